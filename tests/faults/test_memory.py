"""Memory for a line: a bounded multiple of its size, whether it is rejected or served."""

import json
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests.wire import HANDSHAKES, MODERN, envelope, initialize, modern, notification

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")

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
    "Repeat the text."
    return f"Said: {text}"

@prompt(cache=60)
def cached(text: str):
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

#: The size of a line, and the maximum size of an argument that is served.
SIZE = 8 * MIB
SERVED = 4 * MIB - 1000

PLAIN = b"a" * SIZE
#: A single character of four bytes makes Python store four bytes for each character of a text.
WIDE = "\U0001f600".encode() + PLAIN[4:]
ESCAPED = b"\\u0041" * (SIZE // 6)
ENDS = b"\\n" * (SIZE // 2)


def build_request(params=b'"name":"echo"', *, number=b"1", method=b'"prompts/get"', more=b""):
    """Return a handwritten request, because libraries do not write such large ones."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":{%b}%b}' % (number, method, params, more)


def quoted(text):
    return b'"' + text + b'"'


def argument(text, name=b"echo"):
    return b'"name":"%b","arguments":{"text":"%b"}' % (name, text)


def argument_of(name, text):
    return b'"name":"take","arguments":{"%b":"%b"}' % (name, text)


@pytest.fixture(scope="module")
def rejected_lines():
    """Lines that are rejected; each takes at most four times its size."""
    return {
        "nested too deep, after a long text": build_request(
            b'"a":"%b","b":%b' % (PLAIN, b"[" * 150 + b"]" * 150)
        ),
        "nothing but brackets": b"[" * SIZE,
        "brackets that close": b"]" * SIZE,
        "empty lists": b"[" + b"[]," * (SIZE // 3) + b"[]]",
        "empty objects": b"[" + b"{}," * (SIZE // 3) + b"{}]",
        "numbers": build_request(b'"a":[' + b"0," * (SIZE // 2) + b"0]"),
        "members": build_request(b"".join(b'"%x":0,' % number for number in range(SIZE // 10)) + b'"x":0'),
        "quotation marks": b'"' * SIZE,
        "backslashes": b'"' + b"\\" * SIZE,
        "invalid JSON": PLAIN,
        "a text": quoted(WIDE),
        "a text in a list": b"[" + quoted(WIDE) + b"]",
        "invalid UTF-8": build_request(b'"a":"%b\xff"' % WIDE),
        "half of a pair": build_request(b'"a":"%b\\ud800"' % ESCAPED),
        "half of a pair, wide": build_request(b'"a":"%b\\ud800"' % WIDE),
        "no method": build_request(b'"a":"%b"' % WIDE, method=b"5"),
        "an unknown method": build_request(b'"a":"%b"' % WIDE, method=b'"x"'),
        "a long method": build_request(method=quoted(WIDE)),
        "a long method of line ends": build_request(method=quoted(ENDS)),
        "a long id": build_request(number=quoted(PLAIN), method=b'"x"'),
        "a long wide id": build_request(number=quoted(WIDE), method=b'"x"'),
        "a long escaped id": build_request(number=quoted(ESCAPED), method=b'"x"'),
        "a long id without a method": build_request(number=quoted(WIDE), method=b"3"),
        "an id of digits": build_request(number=b"9" * SIZE),
        "a long argument": build_request(argument(PLAIN)),
        "a long wide argument": build_request(argument(WIDE)),
        "a long argument of line ends": build_request(argument(ENDS + ENDS)),
        "an argument of digits": build_request(b'"name":"echo","arguments":{"text":%b}' % (b"9" * SIZE)),
        "a long name of an argument": build_request(b'"name":"echo","arguments":{"%b":"x"}' % PLAIN),
        "a long URI": build_request(b'"uri":"notes://%b"' % WIDE, method=b'"resources/read"'),
        "a kind of reference": build_request(
            b'"ref":{"type":"%b","name":"echo"},"argument":{"name":"text","value":"x"}' % WIDE,
            method=b'"completion/complete"',
        ),
        "a level": build_request(
            b'"_meta":{"io.modelcontextprotocol/logLevel":"%b"}' % WIDE, method=b'"prompts/list"'
        ),
        "a long prompt": build_request(b'"name":"%b"' % WIDE),
        "a cursor": build_request(b'"cursor":"%b"' % WIDE, method=b'"prompts/list"'),
        "an invalid name": build_request(b'"name":["%b"]' % WIDE),
        "invalid arguments": build_request(b'"name":"echo","arguments":"%b"' % WIDE),
        "invalid params": b'{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":"%b"}' % WIDE,
        "unused members": build_request(b'"name":"echo","_meta":{"x":"%b"},"y":"%b"' % (WIDE, WIDE)),
        "a token": build_request(b'"name":"echo","_meta":{"progressToken":"%b"}' % WIDE),
        "a name twice": build_request(b'"name":"%b","name":"echo"' % WIDE),
        "a URI that is not too long for an argument": build_request(
            b'"uri":"notes://%b"' % WIDE[:SERVED], method=b'"resources/read"'
        ),
        "a long word to complete": build_request(
            b'"ref":{"type":"ref/prompt","name":"echo"},"argument":{"name":"text","value":"%b"}'
            % WIDE[:SERVED],
            method=b'"completion/complete"',
        ),
        "client info": build_request(
            b'"protocolVersion":"2025-11-25","capabilities":{"x":"%b"},"clientInfo":{"name":"%b"}'
            % (WIDE, WIDE),
            method=b'"initialize"',
        ),
        "an id after too much data": b'{"params":{"x":["%b",%b]},"jsonrpc":"2.0","method":"x","id":1}'
        % (PLAIN, b"[" * 150 + b"]" * 150),
        "many texts in a text": build_request(
            argument_of(b"more", b'[\\"a\\"' + b',\\"a\\"' * (SERVED // 6) + b"]")
        ),
        "many items": build_request(argument_of(b"more", b"aa," * (SERVED // 3))),
        "many lines": build_request(argument_of(b"more", b"aa\\n" * (SERVED // 4))),
        "many lists": build_request(argument_of(b"points", b"[" + b"[]," * (SERVED // 3 - 1) + b"[]]")),
        "many records": build_request(
            argument_of(b"points", b"[" + b'{\\"x\\":1},' * (SERVED // 12) + b"{}]")
        ),
        "many words of a duration": build_request(argument_of(b"time", b"1d " * (SERVED // 3))),
    }


WIDE_ARGUMENT = WIDE[:SERVED]


def accepted_lines():
    """Return lines that are parsed; each takes at most twelve times its size, plus 7 MiB."""
    return {
        "an argument": build_request(argument(PLAIN[:SERVED])),
        "a wide argument": build_request(argument(WIDE_ARGUMENT)),
        "an argument of line ends": build_request(argument(ENDS[:SERVED])),
        "an escaped argument": build_request(argument(ESCAPED[: SERVED // 6 * 6])),
        "a cached reply": build_request(argument(WIDE_ARGUMENT, b"cached")),
        "a short reply": build_request(argument(WIDE_ARGUMENT, b"length")),
        "many texts in a text": build_request(
            argument_of(b"more", b'[\\"aa\\"' + b',\\"aa\\"' * 49_000 + b"]")
        ),
        "many records in a text": build_request(
            argument_of(b"points", b"[" + b'{\\"x\\":1},' * 24_000 + b'{\\"x\\":1}]')
        ),
        "many records": build_request(
            b'"name":"take","arguments":{"points":[%b]}' % b",".join([b'{"x":1}'] * 24_000)
        ),
        "escapes": build_request(argument_of(b"data", b"data:," + b"%41" * (SERVED // 3))),
        "base64": build_request(argument_of(b"data", b"QUFB" * (SERVED // 4))),
        "a URI": build_request(b'"uri":"note:%b"' % (WIDE[:4] * 65_000), method=b'"resources/read"'),
        "a URI of slashes": build_request(b'"uri":"note:%b"' % (b"/" * 65_000), method=b'"resources/read"'),
        "many short values": build_request(
            b'"name":"echo","arguments":{"more":["a"%b]}' % (b',"a"' * 49_000)
        ),
    }


def peak(serving):
    """Return the peak memory since its last reset, in bytes."""
    status = Path(f"/proc/{serving.process.pid}/status").read_text(encoding="ascii")
    (peak_line,) = (text for text in status.splitlines() if text.startswith("VmHWM:"))
    return int(peak_line.split()[1]) * 1024


def reset_peak(serving):
    """Reset the peak of memory, and return the current memory."""
    Path(f"/proc/{serving.process.pid}/clear_refs").write_text("5", encoding="ascii")
    return serving.memory()


def memory_growth(serving, data, replies=1):
    """Send *data*, and return the growth of memory at its peak and the last reply."""
    before, seen = reset_peak(serving), len(serving.lines)
    serving.write(data)
    serving.wait(lambda: len(serving.lines) >= seen + replies)
    return peak(serving) - before, json.loads(serving.lines[-1][1])


@pytest.fixture
def open_server(serve, recipes, tmp_path):
    """A function that starts a warmed-up server with a session."""

    def start(revision, *options):
        serving = serve("--audit", str(tmp_path / "audit.jsonl"), *options, folder=recipes(recipe=RECIPE))
        serving.ask(initialize(revision if revision in HANDSHAKES else HANDSHAKES[-1]))
        serving.send(notification("notifications/initialized"))
        for name, arguments in (
            ("echo", {"text": "x"}),
            ("take", {"points": '[{"x": 1}]', "data": "data:,%41"}),
        ):
            serving.ask(modern("warm", "prompts/get", {"name": name, "arguments": arguments}))
        assert serving.is_serving("started")
        return serving

    return start


def with_envelope(text, revision):
    """Return the request in the format of *revision*."""
    meta = b'"params":{' + (b'"_meta":%b' % json.dumps(envelope()).encode()) + b","
    return text.replace(b'"params":{', meta, 1) if revision == MODERN and b'"_meta"' not in text else text


def select(kinds, revision, full_length):
    """Return all *kinds*, or every other one, such that both eras together cover all."""
    return kinds if full_length else dict(islice(kinds.items(), int(revision == MODERN), None, 2))


@pytest.mark.parametrize("revision", [HANDSHAKES[-1], MODERN])
def test_memory_of_rejected_lines(open_server, rejected_lines, figures, *, full_length, revision):
    """The rejection of a line takes at most four times its size, and the next request is served."""
    serving, ratios = open_server(revision), {}

    for name, text in select(rejected_lines, revision, full_length).items():
        data = with_envelope(text, revision) + b"\n"
        growth, reply = memory_growth(serving, data)
        ratios[name] = round(growth / len(data), 1)
        assert "error" in reply, name
        assert serving.is_serving(name)

    figures(revision=revision, most=max(ratios.values()))
    assert {name: ratio for name, ratio in ratios.items() if ratio > 4} == {}


@pytest.mark.parametrize("revision", [HANDSHAKES[-1], MODERN])
def test_memory_of_served_lines(open_server, figures, full_length, revision):
    """
    A line takes at most twelve times its size, plus 7 MiB, because the amount and fragmentation of free
    memory vary.
    """
    serving, ratios = open_server(revision), {}

    for name, text in select(accepted_lines(), revision, full_length).items():
        data = (text if b"initialize" in text else with_envelope(text, revision)) + b"\n"
        growth, _ = memory_growth(serving, data)
        ratios[name] = round((growth - 7 * MIB) / len(data), 1)
        assert serving.is_serving(name)

    figures(revision=revision, most=max(ratios.values()))
    assert {name: ratio for name, ratio in ratios.items() if ratio > 12} == {}


@pytest.mark.parametrize("piece", [1, 100, 65536])
def test_memory_of_a_line_in_pieces(open_server, piece):
    """The memory for a line does not depend on its split into pieces."""
    serving = open_server(HANDSHAKES[-1])
    data = build_request(argument(b"a" * (MIB // 32 if piece == 1 else MIB))) + b"\n"

    def write():
        for start in range(0, len(data), piece):
            serving.write(data[start : start + piece])
        return b""

    before, seen = reset_peak(serving), len(serving.lines)
    write()
    serving.wait(lambda: len(serving.lines) > seen)

    assert "result" in json.loads(serving.lines[-1][1])
    assert peak(serving) - before <= 12 * len(data) + 5 * MIB


def test_memory_of_batches(open_server):
    """The limits on memory apply to arrays of messages as well."""
    serving = open_server("2025-03-26")
    small = b",".join(build_request(argument(b"a" * 4000), number=b"%d" % number) for number in range(1000))
    many = b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 1001)
    wide = build_request(b'"name":"%b"' % WIDE, method=b'"x"')
    named = b",".join(
        build_request(number=quoted(b"%d" % n + PLAIN[:8000]), method=b'"x"') for n in range(1000)
    )

    unknown, errors = memory_growth(serving, b"[%b]\n" % named)
    served, replies = memory_growth(serving, b"[%b]\n" % small)
    rejected, reply = memory_growth(serving, b"[%b]\n" % many)
    element, (error,) = memory_growth(serving, b"[%b]\n" % wide)

    assert len(errors) == len(replies) == 1000
    assert reply["error"]["message"] == "the batch has 1,001 messages: it must have 1 to 1,000"
    assert error["error"]["code"] == -32601
    assert unknown <= 4 * len(named)
    assert served <= 12 * len(small) + 5 * MIB
    assert rejected <= 12 * len(many) + 5 * MIB
    assert element <= 4 * len(wide) + 5 * MIB


def test_cached_replies_are_bounded(open_server):
    """Many large replies of a prompt with `cache` do not grow the memory."""
    serving = open_server(HANDSHAKES[-1])

    def ask(number):
        text = b"%03d" % number + b"a" * (MIB - 3)
        _, reply = memory_growth(
            serving, build_request(argument(text, b"cached"), number=b"%d" % number) + b"\n"
        )
        serving.lines.clear()
        return reply

    assert all("result" in ask(number) for number in range(20))
    before = serving.memory()
    assert all("result" in ask(number) for number in range(20, 50))

    assert serving.memory() - before < 8 * MIB


@pytest.mark.parametrize("spare", [16, 48], ids=lambda spare: f"{spare} MiB")
def test_out_of_memory(open_server, spare):
    """When the memory runs out while a line is parsed, requests are still answered with their ids."""
    import resource

    serving = open_server(HANDSHAKES[-1])
    status = Path(f"/proc/{serving.process.pid}/statm").read_text(encoding="ascii")
    limit = int(status.split()[0]) * resource.getpagesize() + spare * MIB
    resource.prlimit(serving.process.pid, resource.RLIMIT_AS, (limit, limit))
    unparsed = build_request(b'"name":"echo","x":"%b"' % (WIDE * 4), number=b"8") + b"\n"
    unserved = build_request(argument(WIDE_ARGUMENT), number=b"8") + b"\n"

    for data in (unparsed, unserved, unparsed, unserved):
        _, reply = memory_growth(serving, data)
        assert reply["id"] == 8
        assert reply.get("error", {"code": -32603})["code"] in {-32602, -32603}  # the line itself can fit
        assert serving.is_serving()
    assert serving.is_serving()
    assert serving.end()[1] == 0
