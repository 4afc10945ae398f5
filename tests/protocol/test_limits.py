import json
import re
import sys
from functools import partial
from math import inf
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Arg, prompt, resource
from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.connection import Connection, LineBuffer
from promptkit.protocol.decoding import leading_id
from promptkit.protocol.events import Batch, Request
from promptkit.protocol.jsonrpc import CANCELLED, Reply, TooManyRequests
from promptkit.protocol.limits import MAX_PARAMS, OPTIONS, PAGE_SIZE, Limits, OverlongLine
from promptkit.protocol.revisions import REVISIONS as BY_DATE
from promptkit.protocol.wire import Params
from promptkit.server import request_limits
from promptkit.server.request_limits import MAX_SUBJECTS, TokenBucket, TokenBuckets
from promptkit.server.snapshot import CACHED, CACHED_BYTES, ReplyCache
from promptkit.types import scalar_parsing
from promptkit.types.scalar_parsing import extent
from tests.wire import MODERN, REVISIONS, Client, line, modern, notification, request


@prompt
def say(text: str = "x", more: list[str] | None = None):
    return text * 3


@prompt
def choose(word: Literal["one", "two"], other: Annotated[str, Arg(complete=["a"])]):
    return word


@prompt
def collect(
    text: str = "",
    more: list[str] | None = None,
    deep: list[list[str]] | None = None,
    either: int | list[str] = 0,
    few: Annotated[set[int], msgspec.Meta(max_length=1000)] = frozenset(),
):
    return "collected"


@prompt(elicit=True)
def gather(words: list[str]):
    return "gathered"


@resource("notes://{name}")
def note(name: str) -> str:
    return name * 3


CATALOG = compile(Recipes(prompts=(say, choose, collect), resources=(note,)))


def client_of(revision="2025-11-25", **limits):
    return Client(CATALOG, revision, limits=Limits(**limits))


def served(client):
    """Whether the next request is served as if nothing had happened."""
    return "result" in client.ask("prompts/get", {"name": "say"}, 99)


class TestLines:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("size", [1, 7, 1000, 10**6], ids=lambda size: f"{size}-at-a-time")
    def test_a_line_that_is_too_long(self, revision, size):
        """
        It is refused under its id, however it arrives, and the next one is served.
        """
        client = client_of(revision, line=2000)
        long = line(request(7, "prompts/get", {"name": "say", "arguments": {"text": "y" * 3000}}))
        sent = [client.send(long[at : at + size]) for at in range(0, len(long), size)]

        (reply,) = [reply for replies in sent for reply in replies]
        assert reply == {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {"code": -32600, "message": "the message is not read: it is longer than 2,000 bytes"},
        }
        assert served(client)

    def test_it_is_refused_before_it_ends(self):
        """
        Nothing waits for the end of a line that is too long, and nothing of it is kept.
        """
        lines = LineBuffer(1000)

        found = [lines.receive_data(b"x" * 600) for _ in range(1000)]

        assert [type(one) for part in found for one in part] == [OverlongLine]
        assert lines.receive_data(b"rest\nnext\n") == [b"next"]

    @given(
        lines=st.lists(st.binary(max_size=12).filter(lambda text: b"\n" not in text), max_size=8),
        sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    )
    def test_every_other_line_comes_through(self, lines, sizes):
        """
        Whatever the lines, and however they are cut, those that are short enough come whole.
        """
        stream, cutter, found, at = b"".join(one + b"\n" for one in lines), LineBuffer(8), [], 0
        while at < len(stream):
            size = sizes[at % len(sizes)]
            found += cutter.receive_data(stream[at : at + size])
            at += size

        assert [one for one in found if type(one) is bytes] == [one for one in lines if len(one) <= 8]
        assert sum(type(one) is OverlongLine for one in found) == sum(len(one) > 8 for one in lines)

    @pytest.mark.parametrize(
        ("text", "number"),
        [
            (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a', 7),
            (b' { "method" : "x" , "jsonrpc" : "2.0" , "id" : "seven" , ', "seven"),
            (b'{"id":-1,"x":[', -1),
            (b'{"params":{"id":7},"id":8,', None),
            (b'{"jsonrpc":"2.0","x":{"id":7,', None),
            (b'{"id":7', None),
            (b'{"id":1.5,', None),
            (b'{"id":null,', None),
            (b'{"id":"\xff",', None),
            (b'["id",7,', None),
            (b"", None),
        ],
    )
    def test_whose_line_it_is(self, text, number):
        """
        The id is read from the beginning only where it can be no other's.
        """
        assert (leading_id(text) or None) == number


class TestDepth:
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_what_is_nested_too_deep(self, revision):
        """
        It is refused under its id; what is less deep, or only looks so, is served.
        """
        client = client_of(revision, depth=20)
        deep = {"name": "say", "arguments": {"more": json.loads("[" * 30 + "]" * 30)}}
        flat = {"name": "say", "arguments": {"text": "[{" * 500}}

        reply = client.ask("prompts/get", deep)

        assert (reply["id"], reply["error"]["code"]) == (1, -32700)
        assert reply["error"]["message"] == "the message is not read: it is nested more than 20 deep"
        assert "result" in client.ask("prompts/get", flat)

    @given(
        st.recursive(
            st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        )
    )
    def test_the_depth_is_that_of_the_value(self, value):
        """
        Brackets inside of text do not count.
        """

        def depth(part):
            if isinstance(part, dict):
                return 1 + max(map(depth, part.values()), default=0)
            return 1 + max(map(depth, part), default=0) if isinstance(part, list) else 0

        text = json.dumps(value).encode()

        assert max((deepest for deepest, _ in extent(text)), default=0) == depth(value)


TOO_MUCH = {
    "deep": b"[" * 101 + b"]" * 101,
    "many": b"[" + b"0," * 50_000 + b"0]",
    "deep and long": b'["%b",%b]' % (b"x" * 100_000, b"[" * 101 + b"]" * 101),
}


class TestExtent:
    @given(
        st.recursive(
            st.text('\\\\"[]{},a\u00e9', max_size=9),
            lambda inner: st.lists(inner) | st.dictionaries(st.text('\\\\"[,', max_size=5), inner),
        ),
        st.integers(1, 9),
    )
    def test_it_does_not_matter_where_a_line_is_cut(self, value, size):
        """
        Texts and escapes that begin in one piece end in another.
        """
        text = json.dumps(value, ensure_ascii=False).encode()

        with pytest.MonkeyPatch.context() as patch:
            (whole,) = extent(text)
            patch.setattr(scalar_parsing, "_PIECE_SIZE", size)
            assert list(extent(text))[-1] == whole


class TestWhoIsTold:
    @pytest.mark.parametrize("held", TOO_MUCH.values(), ids=TOO_MUCH)
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_a_request_whose_id_stands_last(self, revision, held):
        """
        A line that holds too much is answered under its id, wherever that stands.
        """
        client = client_of(revision)

        (reply,) = client.send(b'{"params":{"x":%b},"jsonrpc":"2.0","method":"ping","id":"last"}\n' % held)

        assert (reply["id"], reply["error"]["message"][:28]) == ("last", "the message is not read: it ")
        assert served(client)

    @pytest.mark.parametrize("held", TOO_MUCH.values(), ids=TOO_MUCH)
    @pytest.mark.parametrize(
        "text",
        [b'{"jsonrpc":"2.0","id":1,"result":%b}\n', b'{"jsonrpc":"2.0","method":"x","params":{"x":%b}}\n'],
        ids=["an answer", "a notification"],
    )
    def test_what_is_never_answered(self, text, held):
        """
        An answer, or a notification, is answered as little as any other.
        """
        client = client_of()

        assert client.send(text % held) == []
        assert served(client)

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_a_number_that_is_too_large(self, revision):
        """
        The error says what is wrong.
        """
        client = client_of(revision)

        asked = {"name": "say", "arguments": {"text": "huge"}}
        text = line(
            request(1, "prompts/get", asked) if revision != MODERN else modern(1, "prompts/get", asked)
        )

        (reply,) = client.send(text.replace(b'"huge"', b"1e400"))

        assert (reply["id"], reply["error"]["code"]) == (1, -32602)
        assert reply["error"]["message"].startswith(
            "the params of prompts/get are invalid: Number out of range"
        )


class TestWhatIsTyped:
    @pytest.mark.parametrize(
        ("method", "params", "path"),
        [
            ("resources/read", {"uri": "x" * 65_537}, "uri"),
            ("resources/read", {"uri": "\U0001f600" * 65_537}, "uri"),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "choose"},
                    "argument": {"name": "word", "value": "x" * 65_537},
                },
                "argument.value",
            ),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "choose"},
                    "argument": {"name": "x" * 65_537, "value": "x"},
                },
                "argument.name",
            ),
        ],
        ids=["URI", "wide URI", "value", "name of an argument"],
    )
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_nobody_types_so_much(self, revision, method, params, path):
        """
        It has at most 65,536 characters.
        """
        client = client_of(revision)

        error = client.ask(method, params)["error"]

        said = f"the params of {method} are invalid: Expected `str` of length <= 65536 - at `$.{path}`"
        assert error == {"code": -32602, "message": said}
        assert served(client)

    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("initialize", {"protocolVersion": "2025-03-26", "capabilities": {"x": "y" * MAX_PARAMS}}),
            ("prompts/get", {"name": "y" * MAX_PARAMS}),
            ("prompts/get", {"name": "say", "arguments": {"y" * MAX_PARAMS: "x"}}),
            ("prompts/get", {"name": "say", "arguments": "y" * MAX_PARAMS}),
            ("prompts/list", {"cursor": "y" * MAX_PARAMS}),
        ],
        ids=["capabilities", "prompt", "argument name", "text", "cursor"],
    )
    def test_params_without_arguments(self, method, params):
        """
        They have at most 1 MiB, and the session continues as before.
        """
        client = client_of()

        error = client.ask(method, params)["error"]

        said = rf"the params of {method} have 1,048,\d+ bytes without arguments: at most 1,048,576 are taken"
        assert error["code"] == -32602
        assert re.fullmatch(said, error["message"])
        assert served(client)

    def test_icons_of_a_client(self):
        """
        What is not kept may be long.
        """
        icons = [{"src": "data:image/png;base64," + "A" * 100_000}]
        info = {"name": "x", "version": "1", "icons": icons}
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}

        assert "result" in client_of().ask("initialize", opening)


class TestArguments:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"text": "y" * 101}, "'text' has 103 characters of JSON"),
            ({"more": ["y" * 60, "z" * 60]}, "'more' has 128 characters of JSON"),
        ],
    )
    def test_one_that_is_too_long(self, revision, arguments, said):
        """
        It is refused.
        """
        client = client_of(revision, argument=100)

        error = client.get("say", **arguments)["error"]

        assert error == {"code": -32602, "message": f"{said}: at most 100 are taken"}
        assert served(client)

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_too_many(self, revision):
        """
        So are more than so many.
        """
        client = client_of(revision, arguments=50)
        many = {f"a{number}": "x" for number in range(51)}

        error = client.get("say", **many)["error"]

        assert error == {"code": -32602, "message": "there are 51 arguments: at most 50 are taken"}

    @pytest.mark.parametrize("text", ["y" * 97, "y" * 98, "\u00e9" * 98])
    @pytest.mark.parametrize("ensure_ascii", [True, False])
    def test_one_that_is_just_short_enough(self, text, ensure_ascii):
        """
        The limit itself is taken, and a character counts as one however it is written.
        """
        asked = request(1, "prompts/get", {"name": "say", "arguments": {"text": text}})

        (reply,) = client_of(argument=100).send(json.dumps(asked, ensure_ascii=ensure_ascii).encode() + b"\n")

        assert "result" in reply


class TestValuesInText:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("more", "a" + ",b" * 100),
            ("more", "a\n" * 101),
            ("more", "a\r\n\u2028" * 51),
            ("more", json.dumps(["a"] * 101)),
            ("deep", json.dumps([[]] * 101)),
            ("deep", json.dumps([["a"] * 10] * 11)),
            ("either", json.dumps(["a"] * 101)),
            ("few", ",".join(map(str, range(101)))),
        ],
    )
    def test_too_many_in_a_text(self, revision, name, text):
        """
        A text may hold as many values as a line, and is refused before they are made.
        """
        client = client_of(revision, values=100)

        error = client.get("collect", **{name: text})["error"]

        said = f"prompt 'collect': {name!r} holds more than 100 values: send fewer of them"
        assert (error["code"], error["message"]) == (-32602, said)
        assert error["data"]["errors"] == [
            {"argument": name, "reason": "holds more than 100 values: send fewer of them"}
        ]
        assert served(client)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("text", "a,[{" * 1000),
            ("more", ",".join("a" * 100)),
            ("more", "a, b, c, d\n" * 99),
            ("more", "a\r\n" * 99),
            ("more", json.dumps(["a, [b], {c}, \\", '"'] * 25)),
            ("deep", json.dumps([["a,,,,,,"] * 9] * 10)),
            ("either", "5" * 200),
            ("few", ",".join(map(str, range(20)))),
        ],
    )
    def test_what_looks_like_many(self, name, text):
        """
        Commas and brackets count where they separate values.
        """
        assert "result" in client_of(values=100).get("collect", **{name: text})

    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_an_answer_to_a_form(self, revision):
        """
        What a person enters holds no more.
        """
        client = Client(
            compile(Recipes(prompts=(gather,))),
            revision,
            capabilities={"elicitation": {}},
            limits=Limits(values=100),
        )

        (question,) = client.post("prompts/get", {"name": "gather"}, 1)
        (reply,) = client.answer(question["id"], {"action": "accept", "content": {"words": "a," * 101}})

        said = "prompt 'gather': 'words' holds more than 100 values: send fewer of them"
        assert (reply["id"], reply["error"]["message"]) == (1, said)


class TestReplies:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("prompts/get", {"name": "say", "arguments": {"text": "y" * 1000}}),
            ("resources/read", {"uri": "notes://" + "y" * 1000}),
        ],
    )
    def test_one_that_is_too_long(self, revision, method, params):
        """
        It is not sent, and the client gets an error that says why.
        """
        client = client_of(revision, reply=2000)

        error = client.ask(method, params)["error"]

        assert error["code"] == -32603
        said = r"the reply would have [34],\d{3} bytes: at most 2,000 are sent"
        assert re.fullmatch(said, error["message"])
        assert served(client)


class TestValues:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize(
        "more", [["x"] * 100, {"x": dict.fromkeys(map(str, range(100)))}], ids=["list", "dict"]
    )
    def test_too_many(self, revision, more):
        """
        A short line may hold so many values that they fill memory; it is refused under its id.
        """
        client = client_of(revision, values=100)

        reply = client.ask("prompts/get", {"name": "say", "arguments": {"more": more}})

        assert reply == {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32600, "message": "the message is not read: it holds more than 100 values"},
        }
        assert served(client)

    def test_what_only_looks_like_them(self):
        """
        Commas inside of text do not count.
        """
        assert "result" in client_of(values=100).get("say", text=',[{"' * 500)

    @pytest.mark.parametrize(
        "text",
        [
            b"[[],",
            b'"',
            b'"a"',
            b'"a":',
            b"\\",
            b'"\\',
            b"{}",
            b"]",
            b",",
            b"{[",
            b'"[',
            b"x",
            b'{"a":"',
            b"\xff",
        ],
        ids=ascii,
    )
    def test_it_takes_so_many_calls(self, text):
        """
        What is counted is counted at once: sixteen times as much takes sixteen times as many calls.
        """

        def calls(size):
            count, connection = 0, Connection(ServerInfo("x", "1"), limits=Limits(depth=10**6, values=10**6))

            def note(_frame, event, _argument):
                nonlocal count
                count += event in {"call", "c_call"}

            sys.setprofile(note)
            connection.receive_data(text * size + b"\n")
            sys.setprofile(None)
            return count

        assert calls(16 * 500) <= 24 * calls(500)


def arrays(client, messages):
    """What an array of messages is answered with."""
    client.sent.clear()
    client.server.receive_data(line(messages))
    return json.loads(b"".join(client.sent))


class TestBatches:
    @pytest.mark.parametrize("size", [10, 11])
    def test_so_many_messages(self, size):
        """
        An array has at most so many messages; of one that has more, none is worked on.
        """
        client = client_of("2025-03-26", messages=10)

        found = arrays(client, [request(number, "ping") for number in range(size)])

        if size == 10:
            assert len(found) == 10
        else:
            assert found["error"]["message"] == "the batch has 11 messages: at most 10 are taken"
        assert served(client)

    def test_the_replies_together(self):
        """
        They are no longer than one reply may be: what does not fit is refused, each under its id.
        """
        client = client_of("2025-03-26", reply=6000)
        asked = [
            request(f"n{number}", "prompts/get", {"name": "say", "arguments": {"text": "y" * 300}})
            for number in range(10)
        ]

        found = arrays(client, asked)

        assert sum(map(len, client.sent)) <= 6000
        assert sorted(reply["id"] for reply in found) == sorted(f"n{number}" for number in range(10))
        told = {reply["error"]["message"] for reply in found if "error" in reply}
        assert told == {"the replies to the batch would have more than 6,000 bytes together"}
        assert sum("result" in reply for reply in found) >= 4
        assert served(client)

    def test_no_room_for_refusals(self):
        """
        Where not even those fit, one takes the place of them all.
        """
        client = client_of("2025-03-26", reply=500)

        found = arrays(client, [request(number, "prompts/list") for number in range(50)])

        assert found["error"]["message"] == "the replies to the batch would have more than 500 bytes together"

    def test_a_request_that_is_cancelled_leaves_room(self):
        """
        What is never answered takes none.
        """
        batch = Batch(1000)
        batch.gather([asked(1, batch), asked(2, batch)])

        assert asked(1, batch).answer(CANCELLED) == b""
        assert asked(2, batch).answer(Reply(b"x" * 900 + b"\n")) == b"[" + b"x" * 900 + b"]\n"

    def test_the_outcome_of_a_refused_reply_is_its_error(self):
        """
        Observers get the error that the client gets in place of the result.
        """
        batch, outcomes = Batch(1000), []
        pending = asked(1, batch)
        batch.gather([pending, asked(2, batch)])
        pending.when_answered(lambda reply: outcomes.append((reply.outcome, reply.code)))

        pending.answer(Reply(b"x" * 2000 + b"\n"))

        assert outcomes == [("error", -32603)]


def asked(number, batch):
    return Request(number, "ping", Params(), BY_DATE["2025-03-26"], None, {}, batch)


class TestKept:
    def test_so_many_bytes(self):
        """
        Replies are kept while they, and what was asked, are small together, the newest first.
        """
        kept, size = ReplyCache(), CACHED_BYTES // 8
        for number in range(20):
            kept.put(("x", "y", b"%d" % number), b"x" * size, 60)

        found = [number for number in range(20) if kept.get(("x", "y", b"%d" % number))]

        assert found == list(range(13, 20))

    def test_what_is_asked_counts(self):
        """
        The length of a question counts, not only that of its reply.
        """
        kept, size = ReplyCache(), CACHED_BYTES // 8
        for number in range(20):
            kept.put(("x", "y", b"%d" % number + b"x" * size), b"", 60)

        assert len(kept._results) == 7

    def test_so_many(self):
        """
        However small they are, only so many are kept.
        """
        kept = ReplyCache()
        for number in range(2 * CACHED):
            kept.put(("x", "y", b"%d" % number), b"x", 60)

        assert len(kept._results) == CACHED

    def test_one_that_is_large(self):
        """
        One that would drop most of the others is not kept, and what was kept in its place is dropped.
        """
        kept = ReplyCache()
        kept.put(("x", "y", b"1"), b"x", 60)
        kept.put(("x", "y", b"2"), b"x", 60)
        kept.put(("x", "y", b"2"), b"x" * CACHED_BYTES, 60)

        assert (kept.get(("x", "y", b"1")), kept.get(("x", "y", b"2"))) == (b"x", None)

    def test_what_takes_the_place_of_another(self):
        """
        It counts once.
        """
        kept, size = ReplyCache(), CACHED_BYTES // 5
        for _ in range(100):
            kept.put(("x", "y", b"1"), b"x" * size, 60)
        kept.put(("x", "y", b"2"), b"x" * size, 60)

        assert len(kept._results) == 2


@pytest.fixture
def stopped(monkeypatch):
    """Rates are counted by a clock that stands still."""
    standing = partial(TokenBucket, clock=lambda: 0.0)
    monkeypatch.setattr(request_limits, "TokenBucket", standing)


class TestRates:
    def test_so_many_at_once_and_so_many_a_second(self):
        """
        A bucket is full at first, fills again with time, and never runs over.
        """
        now = 0.0
        bucket = TokenBucket(10, "requests", lambda: now)

        def taken():
            count = 0
            while bucket.allows():
                count += 1
            return count

        counts = []
        for later in (0.0, 0.0, 0.3, 0.35, 100.0):
            now = later
            counts.append(taken())

        assert counts == [10, 0, 3, 0, 10]

    def test_each_subject_has_its_own(self):
        """
        What one has used up, another still has; and only so many are known: the one that has not asked for
        longest is forgotten.
        """
        buckets = TokenBuckets(1e-6, "requests")

        def may(subject):
            try:
                buckets.take(subject)
            except TooManyRequests:
                return False
            return True

        assert [may(subject) for subject in ("a", "a", "b", "b")] == [True, False, True, False]
        for number in range(MAX_SUBJECTS - 2):
            buckets.take(str(number))
        assert [may("a"), may("c"), may("a"), may("b")] == [False, True, False, True]
        assert buckets._bucket.cache_info().currsize == MAX_SUBJECTS

    def test_a_slow_rate_says_when_to_come_back(self):
        """
        If that takes longer than a second, the error says how long.
        """
        now = 0.0
        bucket = TokenBucket(0.1, "requests", lambda: now)
        allowed = bucket.allows()
        now = 4.5

        assert (allowed, bucket.allows()) == (True, False)
        assert bucket.error().data == {"retryAfter": 6}

    @pytest.mark.usefixtures("stopped")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_too_many_requests(self, revision):
        """
        The client gets an error that asks it to wait; its other messages are handled.
        """
        client = client_of(revision, rate=3)

        replies = [client.ask("prompts/list", {}, number) for number in range(1, 5)]

        assert ["result" in reply for reply in replies] == [True, True, True, False]
        assert replies[-1]["error"] == {
            "code": 429,
            "message": "more than 3 requests a second: try again later",
        }

    @pytest.mark.requirement("completion/rate-limited")
    @pytest.mark.usefixtures("stopped")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_too_much_completion(self, revision):
        """
        Completion has a limit of its own, also by default.
        """
        client = Client(CATALOG, revision)
        asked = {"ref": {"type": "ref/prompt", "name": "choose"}, "argument": {"name": "word", "value": "o"}}

        replies = [client.ask("completion/complete", asked, number) for number in range(1, 600)]

        assert all("result" in reply for reply in replies[:500])
        assert {reply["error"]["code"] for reply in replies[500:]} == {429}
        assert served(client)


@prompt(elicit=True)
def fill(first: str, second: str):
    return first[:1] + second


class TestOpenRequests:
    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_only_so_many_bytes(self, revision):
        """
        Large requests that wait for something take room until they are answered, refused or cancelled.
        """
        catalog = compile(Recipes(prompts=(say, fill)))
        client = Client(catalog, revision, capabilities={"elicitation": {}}, limits=Limits(held=500_000))
        asked = {"name": "fill", "arguments": {"first": "x" * 200_000}}

        (question,), _ = client.post("prompts/get", asked, 1), client.post("prompts/get", asked, 2)
        refused = client.ask("prompts/get", asked, 3)
        small = client.ask("prompts/get", {"name": "say"}, 4)
        client.send(line(notification("notifications/cancelled", {"requestId": 2})))
        (again,) = client.post("prompts/get", asked, 5)
        (answered,) = client.answer(question["id"], {"action": "accept", "content": {"second": "y"}})
        (last,) = client.post("prompts/get", asked, 6)

        assert refused["error"] == {
            "code": 429,
            "message": "requests of more than 500,000 bytes are open: wait for their answers",
        }
        assert "result" in small
        assert again["method"] == last["method"] == "elicitation/create"
        assert answered["id"] == 1

    def test_text_that_takes_more_than_its_bytes(self):
        """
        One character beyond the basic plane makes all of a text take four bytes each.
        """
        catalog = compile(Recipes(prompts=(fill,)))
        client = Client(catalog, capabilities={"elicitation": {}}, limits=Limits(held=1_000_000))
        arguments = {"first": "\U0001f600" + "x" * 200_000}
        text = json.dumps(
            request(1, "prompts/get", {"name": "fill", "arguments": arguments}), ensure_ascii=False
        )

        (question,) = client.send(text.encode() + b"\n")
        (refused,) = client.send(text.replace('"id": 1', '"id": 2').encode() + b"\n")

        assert question["method"] == "elicitation/create"
        assert refused["error"]["code"] == 429

    def test_one_that_is_larger_than_all(self):
        """
        It is served while no other runs: a line has a limit of its own.
        """
        client = client_of(held=100_000)

        assert all("result" in client.get("say", text="y" * 200_000) for _ in range(3))

    def test_only_so_many_streams(self):
        """
        A client with too many streams is asked to end some; then it may open others.
        """
        client = Client(CATALOG, MODERN, changes=True)
        wanted = {"notifications": {"promptsListChanged": True}}
        for number in range(1024):
            client.post("subscriptions/listen", wanted, f"s{number}")

        refused = client.ask("subscriptions/listen", wanted, 2000)
        client.send(line(notification("notifications/cancelled", {"requestId": "s7"})))
        (opened,) = client.post("subscriptions/listen", wanted, 2000)

        assert refused["error"]["code"] == 429
        assert opened["method"] == "notifications/subscriptions/acknowledged"
        assert served(client)


class TestOptions:
    @pytest.mark.parametrize(
        "option", ["timeout", "rate", "completion-rate", "max-line", "max-depth", "page-size"]
    )
    @pytest.mark.parametrize("value", ["0", "-1", "x", "nan", "inf", ""])
    def test_what_is_no_limit(self, option, value, capsys):
        """
        A limit that lets nothing through, or is not a number, is refused before anything is served.
        """
        with pytest.raises(SystemExit) as ended:
            main(["serve", "recipes", f"--{option}={value}"])

        assert ended.value.code == 2
        assert f"argument --{option}: '{value}' is no" in capsys.readouterr().err

    def test_the_defaults_are_those_of_the_library(self):
        """
        What the command line says when asked for help is what counts without it.
        """
        from promptkit.cli.options import limits_of, parse

        options = parse(["serve"])

        assert (limits_of(options), options.page_size) == (Limits(), PAGE_SIZE)

    def test_every_limit_has_an_option(self):
        """
        Each limit can be set on the command line.
        """
        from promptkit.cli.options import limits_of, parse

        options = parse(["serve", *(f"--{option.name}=7" for option in OPTIONS.values())])

        assert limits_of(options) == Limits(**dict.fromkeys(Limits.__struct_fields__, 7))

    @pytest.mark.parametrize("value", [0, -1, float("nan")])
    def test_a_limit_is_above_zero(self, value):
        """
        In the library, too.
        """
        with pytest.raises(ValueError, match=r"line is .*: a limit is a number above zero"):
            Limits(line=value)

    def test_rates_may_be_without_limit(self):
        """
        By default requests have no rate limit.
        """
        assert Limits().rate == inf


def test_a_modern_listing_is_no_argument():
    """
    What is long but no argument is only limited by the line.
    """
    client = client_of(MODERN, argument=100)

    assert "result" in client.ask("prompts/list", {"x": "y" * 1000})
