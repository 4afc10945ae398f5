import json
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests.wire import HANDSHAKES, MODERN, envelope, initialize, modern, notification

pytestmark = [
    pytest.mark.sampled,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc"),
]

RECIPE = """
from dataclasses import dataclass
from datetime import timedelta

from promptkit import prompt, resource

@dataclass
class Point:
    x: int

@prompt
def take(
    more: list[str] | None = None,
    points: list[Point] | None = None,
    data: bytes = b"x",
    time: timedelta = timedelta(1),
):
    return "taken"

@prompt
def echo(text: str = "x", more: list[str] | None = None):
    "Say it again."
    return f"Said: {text}"

@prompt(cache=60)
def kept(text: str):
    return text

@prompt
def length(text: str):
    return str(len(text))

@resource("notes://all")
def notes() -> str:
    return "x" * 1000

@resource("note:{+path}")
def note(path: str) -> str:
    return "x"
"""

MIB = 1 << 20

#: How large a line is, and how large an argument may be at most that is served.
SIZE = 8 * MIB
SERVED = 4 * MIB - 1000

PLAIN = b"a" * SIZE
#: One character that takes four bytes makes each of a text take as many.
WIDE = "\U0001f600".encode() + PLAIN[4:]
ESCAPED = b"\\u0041" * (SIZE // 6)
ENDS = b"\\n" * (SIZE // 2)


def asked(params=b'"name":"echo"', *, number=b"1", method=b'"prompts/get"', more=b""):
    """A request, written by hand: what is here is larger than what a library likes to write."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":{%b}%b}' % (number, method, params, more)


def quoted(text):
    return b'"' + text + b'"'


def argument(text, name=b"echo"):
    return b'"name":"%b","arguments":{"text":"%b"}' % (name, text)


def argument_of(name, text):
    return b'"name":"take","arguments":{"%b":"%b"}' % (name, text)


def refused():
    """Lines that are refused: each takes at most four times its size."""
    return {
        "nested too deep, beside a long text": asked(b'"a":"%b","b":%b' % (PLAIN, b"[" * 150 + b"]" * 150)),
        "nothing but brackets": b"[" * SIZE,
        "brackets that close": b"]" * SIZE,
        "empty lists": b"[" + b"[]," * (SIZE // 3) + b"[]]",
        "empty objects": b"[" + b"{}," * (SIZE // 3) + b"{}]",
        "numbers": asked(b'"a":[' + b"0," * (SIZE // 2) + b"0]"),
        "members": asked(b"".join(b'"%x":0,' % number for number in range(SIZE // 10)) + b'"x":0'),
        "quotation marks": b'"' * SIZE,
        "backslashes": b'"' + b"\\" * SIZE,
        "no JSON": PLAIN,
        "a text": quoted(WIDE),
        "a text in a list": b"[" + quoted(WIDE) + b"]",
        "no UTF-8": asked(b'"a":"%b\xff"' % WIDE),
        "half of a pair": asked(b'"a":"%b\\ud800"' % ESCAPED),
        "half of a pair, wide": asked(b'"a":"%b\\ud800"' % WIDE),
        "no method": asked(b'"a":"%b"' % WIDE, method=b"5"),
        "a method that there is not": asked(b'"a":"%b"' % WIDE, method=b'"x"'),
        "a long method": asked(method=quoted(WIDE)),
        "a long method of line ends": asked(method=quoted(ENDS)),
        "a long id": asked(number=quoted(PLAIN), method=b'"x"'),
        "a long wide id": asked(number=quoted(WIDE), method=b'"x"'),
        "a long escaped id": asked(number=quoted(ESCAPED), method=b'"x"'),
        "a long id without a method": asked(number=quoted(WIDE), method=b"3"),
        "an id of digits": asked(number=b"9" * SIZE),
        "a long argument": asked(argument(PLAIN)),
        "a long wide argument": asked(argument(WIDE)),
        "a long argument of line ends": asked(argument(ENDS + ENDS)),
        "an argument of digits": asked(b'"name":"echo","arguments":{"text":%b}' % (b"9" * SIZE)),
        "a long name of an argument": asked(b'"name":"echo","arguments":{"%b":"x"}' % PLAIN),
        "a long URI": asked(b'"uri":"notes://%b"' % WIDE, method=b'"resources/read"'),
        "a kind of reference": asked(
            b'"ref":{"type":"%b","name":"echo"},"argument":{"name":"text","value":"x"}' % WIDE,
            method=b'"completion/complete"',
        ),
        "a level": asked(
            b'"_meta":{"io.modelcontextprotocol/logLevel":"%b"}' % WIDE, method=b'"prompts/list"'
        ),
        "a long prompt": asked(b'"name":"%b"' % WIDE),
        "a cursor": asked(b'"cursor":"%b"' % WIDE, method=b'"prompts/list"'),
        "a name that is none": asked(b'"name":["%b"]' % WIDE),
        "arguments that are none": asked(b'"name":"echo","arguments":"%b"' % WIDE),
        "params that are none": b'{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":"%b"}' % WIDE,
        "what nobody reads": asked(b'"name":"echo","_meta":{"x":"%b"},"y":"%b"' % (WIDE, WIDE)),
        "a token": asked(b'"name":"echo","_meta":{"progressToken":"%b"}' % WIDE),
        "a name twice": asked(b'"name":"%b","name":"echo"' % WIDE),
        "a URI that is not too long for an argument": asked(
            b'"uri":"notes://%b"' % WIDE[:SERVED], method=b'"resources/read"'
        ),
        "a long word to complete": asked(
            b'"ref":{"type":"ref/prompt","name":"echo"},"argument":{"name":"text","value":"%b"}'
            % WIDE[:SERVED],
            method=b'"completion/complete"',
        ),
        "what a client says of itself": asked(
            b'"protocolVersion":"2025-11-25","capabilities":{"x":"%b"},"clientInfo":{"name":"%b"}'
            % (WIDE, WIDE),
            method=b'"initialize"',
        ),
        "an id behind too much": b'{"params":{"x":["%b",%b]},"jsonrpc":"2.0","method":"x","id":1}'
        % (PLAIN, b"[" * 150 + b"]" * 150),
        "many texts in a text": asked(argument_of(b"more", b'[\\"a\\"' + b',\\"a\\"' * (SERVED // 6) + b"]")),
        "many items": asked(argument_of(b"more", b"aa," * (SERVED // 3))),
        "many lines": asked(argument_of(b"more", b"aa\\n" * (SERVED // 4))),
        "many lists": asked(argument_of(b"points", b"[" + b"[]," * (SERVED // 3 - 1) + b"[]]")),
        "many records": asked(argument_of(b"points", b"[" + b'{\\"x\\":1},' * (SERVED // 12) + b"{}]")),
        "many words of a duration": asked(argument_of(b"time", b"1d " * (SERVED // 3))),
    }


WIDE_ARGUMENT = WIDE[:SERVED]


def read():
    """Lines that are served, or read at least: each takes at most twelve times its size, and 7 MiB."""
    return {
        "an argument": asked(argument(PLAIN[:SERVED])),
        "a wide argument": asked(argument(WIDE_ARGUMENT)),
        "an argument of line ends": asked(argument(ENDS[:SERVED])),
        "an escaped argument": asked(argument(ESCAPED[: SERVED // 6 * 6])),
        "a kept reply": asked(argument(WIDE_ARGUMENT, b"kept")),
        "a short reply": asked(argument(WIDE_ARGUMENT, b"length")),
        "many texts in a text": asked(argument_of(b"more", b'[\\"aa\\"' + b',\\"aa\\"' * 49_000 + b"]")),
        "many records in a text": asked(
            argument_of(b"points", b"[" + b'{\\"x\\":1},' * 24_000 + b'{\\"x\\":1}]')
        ),
        "many records": asked(
            b'"name":"take","arguments":{"points":[%b]}' % b",".join([b'{"x":1}'] * 24_000)
        ),
        "escapes": asked(argument_of(b"data", b"data:," + b"%41" * (SERVED // 3))),
        "base64": asked(argument_of(b"data", b"QUFB" * (SERVED // 4))),
        "a URI": asked(b'"uri":"note:%b"' % (WIDE[:4] * 65_000), method=b'"resources/read"'),
        "a URI of slashes": asked(b'"uri":"note:%b"' % (b"/" * 65_000), method=b'"resources/read"'),
        "many short values": asked(b'"name":"echo","arguments":{"more":["a"%b]}' % (b',"a"' * 49_000)),
    }


def peak(serving):
    """How much memory it has had at most since that was last reset, in bytes."""
    status = Path(f"/proc/{serving.process.pid}/status").read_text(encoding="ascii")
    (most,) = (text for text in status.splitlines() if text.startswith("VmHWM:"))
    return int(most.split()[1]) * 1024


def reset(serving):
    """Count the peak of memory from now on; return how much there is."""
    Path(f"/proc/{serving.process.pid}/clear_refs").write_text("5", encoding="ascii")
    return serving.memory()


def grown(serving, data, replies=1):
    """How much memory more than before *data* takes at its peak, and the last reply to it."""
    before, seen = reset(serving), len(serving.lines)
    serving.write(data)
    serving.wait(lambda: len(serving.lines) >= seen + replies)
    return peak(serving) - before, json.loads(serving.lines[-1][1])


@pytest.fixture
def opened(serve, recipes, tmp_path):
    """A function that starts a server which has served everything once, with a session."""

    def start(revision, *options):
        serving = serve("--audit", str(tmp_path / "audit.jsonl"), *options, folder=recipes(recipe=RECIPE))
        serving.ask(initialize(revision if revision in HANDSHAKES else HANDSHAKES[-1]))
        serving.send(notification("notifications/initialized"))
        for name, arguments in (
            ("echo", {"text": "x"}),
            ("take", {"points": '[{"x": 1}]', "data": "data:,%41"}),
        ):
            serving.ask(modern("warm", "prompts/get", {"name": name, "arguments": arguments}))
        assert serving.serves("begun")
        return serving

    return start


def enveloped(text, revision):
    """The same request, as one of *revision*."""
    meta = b'"params":{' + (b'"_meta":%b' % json.dumps(envelope()).encode()) + b","
    return text.replace(b'"params":{', meta, 1) if revision == MODERN and b'"_meta"' not in text else text


def chosen(kinds, revision, whole):
    """All of *kinds*, or every other one, so that both eras take all of them together."""
    return kinds if whole else dict(islice(kinds.items(), int(revision == MODERN), None, 2))


@pytest.mark.parametrize("revision", [HANDSHAKES[-1], MODERN])
def test_a_line_that_is_refused(opened, figures, whole, revision):
    """Whatever a line holds, to refuse it takes no more than four times its size, and the next is served."""
    serving, found = opened(revision), {}

    for name, text in chosen(refused(), revision, whole).items():
        data = enveloped(text, revision) + b"\n"
        more, reply = grown(serving, data)
        found[name] = round(more / len(data), 1)
        assert "error" in reply, name
        assert serving.serves(name)

    figures(revision=revision, most=max(found.values()))
    assert {name: times for name, times in found.items() if times > 4} == {}


@pytest.mark.parametrize("revision", [HANDSHAKES[-1], MODERN])
def test_a_line_that_is_read(opened, figures, whole, revision):
    """
    To serve it takes no more than twelve times its size, and 7 MiB: how much free memory Python has before,
    and in pieces of which sizes, differs.
    """
    serving, found = opened(revision), {}

    for name, text in chosen(read(), revision, whole).items():
        data = (text if b"initialize" in text else enveloped(text, revision)) + b"\n"
        more, _ = grown(serving, data)
        found[name] = round((more - 7 * MIB) / len(data), 1)
        assert serving.serves(name)

    figures(revision=revision, most=max(found.values()))
    assert {name: times for name, times in found.items() if times > 12} == {}


@pytest.mark.parametrize("piece", [1, 100, 65536])
def test_a_line_in_pieces(opened, piece):
    """However a line is cut, it takes the same."""
    serving = opened(HANDSHAKES[-1])
    data = asked(argument(b"a" * (MIB // 8 if piece == 1 else MIB))) + b"\n"

    def write():
        for start in range(0, len(data), piece):
            serving.write(data[start : start + piece])
        return b""

    before, seen = reset(serving), len(serving.lines)
    write()
    serving.wait(lambda: len(serving.lines) > seen)

    assert "result" in json.loads(serving.lines[-1][1])
    assert peak(serving) - before <= 12 * len(data) + 5 * MIB


def test_a_batch(opened):
    """An array of messages, too."""
    serving = opened("2025-03-26")
    small = b",".join(asked(argument(b"a" * 4000), number=b"%d" % number) for number in range(1000))
    many = b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 1001)
    wide = asked(b'"name":"%b"' % WIDE, method=b'"x"')
    named = b",".join(asked(number=quoted(b"%d" % n + PLAIN[:8000]), method=b'"x"') for n in range(1000))

    unknown, errors = grown(serving, b"[%b]\n" % named)
    served, replies = grown(serving, b"[%b]\n" % small)
    refused, reply = grown(serving, b"[%b]\n" % many)
    element, (told,) = grown(serving, b"[%b]\n" % wide)

    assert len(errors) == len(replies) == 1000
    assert reply["error"]["message"] == "the batch has 1,001 messages: at most 1,000 are taken"
    assert told["error"]["code"] == -32601
    assert unknown <= 4 * len(named)
    assert served <= 12 * len(small) + 5 * MIB
    assert refused <= 12 * len(many) + 5 * MIB
    assert element <= 4 * len(wide) + 5 * MIB


def test_replies_that_are_kept(opened):
    """However much a client asks of prompts with `cache`, little of it is kept."""
    serving = opened(HANDSHAKES[-1])

    def ask(number):
        text = b"%03d" % number + b"a" * (MIB - 3)
        _, reply = grown(serving, asked(argument(text, b"kept"), number=b"%d" % number) + b"\n")
        serving.lines.clear()
        return reply

    assert all("result" in ask(number) for number in range(20))
    before = serving.memory()
    assert all("result" in ask(number) for number in range(20, 50))

    assert serving.memory() - before < 8 * MIB


@pytest.mark.parametrize("room", [16, 48], ids=lambda room: f"{room} MiB")
def test_not_enough_memory(opened, room):
    """Where memory runs out while a line is read, requests go on to be answered, under their ids."""
    import resource

    serving = opened(HANDSHAKES[-1])
    status = Path(f"/proc/{serving.process.pid}/statm").read_text(encoding="ascii")
    limit = int(status.split()[0]) * resource.getpagesize() + room * MIB
    resource.prlimit(serving.process.pid, resource.RLIMIT_AS, (limit, limit))
    unread = asked(b'"name":"echo","x":"%b"' % (WIDE * 4), number=b"8") + b"\n"
    unserved = asked(argument(WIDE_ARGUMENT), number=b"8") + b"\n"

    for data in (unread, unserved, unread, unserved):
        _, reply = grown(serving, data)
        assert reply["id"] == 8
        assert reply.get("error", {"code": -32603})["code"] in {-32602, -32603}  # the line itself may fit
        assert serving.serves()
    assert serving.serves()
    assert serving.end()[1] == 0
