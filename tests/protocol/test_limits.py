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
from promptkit.protocol.decoding import find_leading_id
from promptkit.protocol.events import Batch, Request
from promptkit.protocol.jsonrpc import CANCELLED, Reply, TooManyRequests
from promptkit.protocol.limits import MAX_PARAMS, OPTIONS, Limits, OverlongLine
from promptkit.protocol.pagination import PAGE_SIZE
from promptkit.protocol.revisions import REVISIONS as BY_DATE
from promptkit.protocol.session import LineBuffer, Session
from promptkit.protocol.wire import Params
from promptkit.server import rate_limits
from promptkit.server.rate_limits import MAX_SUBJECTS, TokenBucket, TokenBuckets
from promptkit.server.snapshot import MAX_CACHED, MAX_CACHED_BYTES, ReplyCache
from promptkit.types import scalar_parsers
from promptkit.types.scalar_parsers import measure_json
from tests.wire import MODERN, REVISIONS, Client, line, modern, notification, request


@prompt
def repeat(text: str = "x", more: list[str] | None = None):
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


CATALOG = compile(Recipes(prompts=(repeat, choose, collect), resources=(note,)))


def client_of(revision="2025-11-25", **limits):
    return Client(CATALOG, revision, limits=Limits(**limits))


def is_served(client):
    """Whether the next request is served normally."""
    return "result" in client.ask("prompts/get", {"name": "repeat"}, 99)


class TestLines:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("size", [1, 7, 1000, 10**6], ids=lambda size: f"{size}-at-a-time")
    def test_overlong_line(self, revision, size):
        """An overlong line is rejected with its id, in chunks of any size, and the next line is served."""
        client = client_of(revision, line=2000)
        long = line(request(7, "prompts/get", {"name": "repeat", "arguments": {"text": "y" * 3000}}))
        sent = [client.send(long[at : at + size]) for at in range(0, len(long), size)]

        (reply,) = [reply for replies in sent for reply in replies]
        assert reply == {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {"code": -32600, "message": "the message was rejected: it is longer than 2,000 bytes"},
        }
        assert is_served(client)

    def test_overlong_line_is_rejected_before_its_end(self):
        """An overlong line is rejected immediately and not buffered."""
        lines = LineBuffer(1000)

        chunks = [lines.receive_data(b"x" * 600) for _ in range(1000)]

        assert [type(event) for chunk in chunks for event in chunk] == [OverlongLine]
        assert lines.receive_data(b"rest\nnext\n") == [b"next"]

    @given(
        lines=st.lists(st.binary(max_size=12).filter(lambda text: b"\n" not in text), max_size=8),
        sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    )
    def test_short_lines_are_complete(self, lines, sizes):
        """Lines below the limit are complete, whatever the chunks."""
        stream, cutter, events, at = b"".join(text + b"\n" for text in lines), LineBuffer(8), [], 0
        while at < len(stream):
            size = sizes[at % len(sizes)]
            events += cutter.receive_data(stream[at : at + size])
            at += size

        assert [event for event in events if type(event) is bytes] == [
            text for text in lines if len(text) <= 8
        ]
        assert sum(type(event) is OverlongLine for event in events) == sum(len(text) > 8 for text in lines)

    @pytest.mark.parametrize(
        ("text", "number"),
        [
            (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a', 7),
            (b' { "method" : "x" , "jsonrpc" : "2.0" , "id" : "seven" , ', "seven"),
            (b'{"id":-1,"x":[', -1),
            (b'\xef\xbb\xbf{"id":7,"x":[', 7),
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
    def test_leading_id(self, text, number):
        """The id is read from the beginning of a line only where it is unambiguous."""
        assert (find_leading_id(text) or None) == number


class TestDepth:
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_deep_nesting(self, revision):
        """A message that is nested too deeply is rejected with its id; brackets in text do not count."""
        client = client_of(revision, depth=20)
        deep = {"name": "repeat", "arguments": {"more": json.loads("[" * 30 + "]" * 30)}}
        flat = {"name": "repeat", "arguments": {"text": "[{" * 500}}

        reply = client.ask("prompts/get", deep)

        assert (reply["id"], reply["error"]["code"]) == (1, -32700)
        assert reply["error"]["message"] == "the message was rejected: it is nested more than 20 levels deep"
        assert "result" in client.ask("prompts/get", flat)

    @given(
        st.recursive(
            st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        )
    )
    def test_depth(self, value):
        """The measured depth equals the depth of the decoded value."""

        def depth(part):
            if isinstance(part, dict):
                return 1 + max(map(depth, part.values()), default=0)
            return 1 + max(map(depth, part), default=0) if isinstance(part, list) else 0

        text = json.dumps(value).encode()

        assert max((deepest for deepest, _ in measure_json(text)), default=0) == depth(value)


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
    def test_size_of_pieces(self, value, size):
        """The result does not depend on the size of the pieces, which can split strings and escapes."""
        text = json.dumps(value, ensure_ascii=False).encode()

        with pytest.MonkeyPatch.context() as patch:
            (complete,) = measure_json(text)
            patch.setattr(scalar_parsers, "_PIECE_SIZE", size)
            assert list(measure_json(text))[-1] == complete


class TestRejectedMessages:
    @pytest.mark.parametrize("value", TOO_MUCH.values(), ids=TOO_MUCH)
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_id_at_the_end(self, revision, value):
        """A rejected line is answered with its id, wherever the id is."""
        client = client_of(revision)

        (reply,) = client.send(b'{"params":{"x":%b},"jsonrpc":"2.0","method":"ping","id":"last"}\n' % value)

        assert (reply["id"], reply["error"]["message"][:29]) == ("last", "the message was rejected: it ")
        assert is_served(client)

    @pytest.mark.parametrize("value", TOO_MUCH.values(), ids=TOO_MUCH)
    @pytest.mark.parametrize(
        "text",
        [b'{"jsonrpc":"2.0","id":1,"result":%b}\n', b'{"jsonrpc":"2.0","method":"x","params":{"x":%b}}\n'],
        ids=["an answer", "a notification"],
    )
    def test_messages_without_a_reply(self, text, value):
        """A response or notification that exceeds a limit gets no reply."""
        client = client_of()

        assert client.send(text % value) == []
        assert is_served(client)

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_number_out_of_range(self, revision):
        """The error for a number out of range names the problem."""
        client = client_of(revision)

        params = {"name": "repeat", "arguments": {"text": "huge"}}
        text = line(
            request(1, "prompts/get", params) if revision != MODERN else modern(1, "prompts/get", params)
        )

        (reply,) = client.send(text.replace(b'"huge"', b"1e400"))

        assert (reply["id"], reply["error"]["code"]) == (1, -32602)
        assert reply["error"]["message"].startswith(
            "the params of prompts/get are invalid: Number out of range"
        )


class TestParams:
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
    def test_long_strings(self, revision, method, params, path):
        """Strings other than arguments have at most 65,536 characters."""
        client = client_of(revision)

        error = client.ask(method, params)["error"]

        message = f"the params of {method} are invalid: Expected `str` of length <= 65536 - at `$.{path}`"
        assert error == {"code": -32602, "message": message}
        assert is_served(client)

    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("initialize", {"protocolVersion": "2025-03-26", "capabilities": {"x": "y" * MAX_PARAMS}}),
            ("prompts/get", {"name": "y" * MAX_PARAMS}),
            ("prompts/get", {"name": "repeat", "arguments": {"y" * MAX_PARAMS: "x"}}),
            ("prompts/get", {"name": "repeat", "arguments": "y" * MAX_PARAMS}),
            ("prompts/list", {"cursor": "y" * MAX_PARAMS}),
        ],
        ids=["capabilities", "prompt", "argument name", "text", "cursor"],
    )
    def test_params_without_arguments(self, method, params):
        """Params without arguments have at most 1 MiB, and the session continues."""
        client = client_of()

        error = client.ask(method, params)["error"]

        message = (
            rf"the params of {method} without arguments are 1,048,\d+ bytes long: the limit is 1,048,576"
        )
        assert error["code"] == -32602
        assert re.fullmatch(message, error["message"])
        assert is_served(client)

    def test_client_icons(self):
        """Icons of a client can be long, because they are not stored."""
        icons = [{"src": "data:image/png;base64," + "A" * 100_000}]
        info = {"name": "x", "version": "1", "icons": icons}
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}

        assert "result" in client_of().ask("initialize", opening)


class TestArguments:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"text": "y" * 101}, "'text' is 103 bytes long as JSON"),
            ({"more": ["y" * 60, "z" * 60]}, "'more' is 128 bytes long as JSON"),
        ],
    )
    def test_long_argument(self, revision, arguments, message):
        """An argument above the limit is rejected."""
        client = client_of(revision, argument=100)

        error = client.get("repeat", **arguments)["error"]

        assert error == {"code": -32602, "message": f"{message}: the limit is 100"}
        assert is_served(client)

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_many_arguments(self, revision):
        """Too many arguments are rejected."""
        client = client_of(revision, arguments=50)
        many = {f"a{number}": "x" for number in range(51)}

        error = client.get("repeat", **many)["error"]

        assert error == {"code": -32602, "message": "the request has 51 arguments: the limit is 50"}

    @pytest.mark.parametrize(("text", "ensure_ascii"), [("y" * 98, True), ("\u00e9" * 49, False)])
    def test_argument_at_the_limit(self, text, ensure_ascii):
        """An argument of exactly the limit is accepted. The limit counts bytes."""
        message = request(1, "prompts/get", {"name": "repeat", "arguments": {"text": text}})

        (reply,) = client_of(argument=100).send(
            json.dumps(message, ensure_ascii=ensure_ascii).encode() + b"\n"
        )

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
    def test_many_values(self, revision, name, text):
        """Text with too many values is rejected before the values are created."""
        client = client_of(revision, values=100)

        error = client.get("collect", **{name: text})["error"]

        message = f"prompt 'collect': {name!r} has more than 100 values: send fewer"
        assert (error["code"], error["message"]) == (-32602, message)
        assert error["data"]["errors"] == [
            {"argument": name, "reason": "has more than 100 values: send fewer"}
        ]
        assert is_served(client)

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
    def test_separators_inside_values(self, name, text):
        """Commas and brackets count only where they separate values."""
        assert "result" in client_of(values=100).get("collect", **{name: text})

    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_answer_to_a_form(self, revision):
        """The limit applies to the answers of forms as well."""
        client = Client(
            compile(Recipes(prompts=(gather,))),
            revision,
            capabilities={"elicitation": {}},
            limits=Limits(values=100),
        )

        (question,) = client.post("prompts/get", {"name": "gather"}, 1)
        (reply,) = client.answer(question["id"], {"action": "accept", "content": {"words": "a," * 101}})

        message = "prompt 'gather': 'words' has more than 100 values: send fewer"
        assert (reply["id"], reply["error"]["message"]) == (1, message)


class TestReplies:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("prompts/get", {"name": "repeat", "arguments": {"text": "y" * 1000}}),
            ("resources/read", {"uri": "notes://" + "y" * 1000}),
        ],
    )
    def test_long_reply(self, revision, method, params):
        """A reply above the limit is replaced by an error."""
        client = client_of(revision, reply=2000)

        error = client.ask(method, params)["error"]

        assert error["code"] == -32603
        message = r"the reply is [34],\d{3} bytes long: the limit is 2,000"
        assert re.fullmatch(message, error["message"])
        assert is_served(client)


class TestValues:
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize(
        "more", [["x"] * 100, {"x": dict.fromkeys(map(str, range(100)))}], ids=["list", "dict"]
    )
    def test_many_values(self, revision, more):
        """A short line with too many values is rejected with its id."""
        client = client_of(revision, values=100)

        reply = client.ask("prompts/get", {"name": "repeat", "arguments": {"more": more}})

        assert reply == {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32600, "message": "the message was rejected: it has more than 100 values"},
        }
        assert is_served(client)

    def test_commas_in_text(self):
        """Commas inside text do not count."""
        assert "result" in client_of(values=100).get("repeat", text=',[{"' * 500)

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
    def test_linear_time(self, text):
        """Parsing 16 times as much data takes at most 24 times as many calls."""

        def calls(size):
            count, connection = 0, Session(ServerInfo("x", "1"), limits=Limits(depth=10**6, values=10**6))

            def note(_frame, event, _argument):
                nonlocal count
                count += event in {"call", "c_call"}

            sys.setprofile(note)
            connection.receive_data(text * size + b"\n")
            sys.setprofile(None)
            return count

        assert calls(16 * 500) <= 24 * calls(500)


def send_batch(client, messages):
    """Send an array of messages, and return the reply."""
    client.sent.clear()
    client.server.receive_data(line(messages))
    return json.loads(b"".join(client.sent))


class TestBatches:
    @pytest.mark.parametrize("size", [10, 11])
    def test_number_of_messages(self, size):
        """An array above the limit is rejected as a whole."""
        client = client_of("2025-03-26", messages=10)

        reply = send_batch(client, [request(number, "ping") for number in range(size)])

        if size == 10:
            assert len(reply) == 10
        else:
            assert reply["error"]["message"] == "the batch has 11 messages: it must have 1 to 10"
        assert is_served(client)

    def test_size_of_all_replies(self):
        """The results of a batch share the limit of one reply; requests above it get errors."""
        client = client_of("2025-03-26", reply=6000)
        messages = [
            request(f"n{number}", "prompts/get", {"name": "repeat", "arguments": {"text": "y" * 300}})
            for number in range(10)
        ]

        replies = send_batch(client, messages)

        assert sorted(reply["id"] for reply in replies) == sorted(f"n{number}" for number in range(10))
        errors = {reply["error"]["message"] for reply in replies if "error" in reply}
        assert errors == {"the replies to the batch exceed 6,000 bytes in total"}
        assert sum("result" in reply for reply in replies) >= 4
        assert is_served(client)

    def test_cancelled_request_frees_its_space(self):
        """A cancelled request does not count towards the size of a batch's replies."""
        batch = Batch(1000)
        batch.gather([request_of(1, batch), request_of(2, batch)])

        assert request_of(1, batch).answer(CANCELLED) == b""
        assert request_of(2, batch).answer(Reply(b"x" * 900 + b"\n")) == b"[" + b"x" * 900 + b"]\n"

    def test_outcome_of_a_replaced_reply(self):
        """Observers get the error that replaces the result."""
        batch, outcomes = Batch(1000), []
        pending = request_of(1, batch)
        batch.gather([pending, request_of(2, batch)])
        pending.when_answered(lambda reply: outcomes.append((reply.outcome, reply.code)))

        pending.answer(Reply(b"x" * 2000 + b"\n"))

        assert outcomes == [("error", -32603)]


def request_of(number, batch):
    return Request(number, "ping", Params(), BY_DATE["2025-03-26"], None, {}, batch=batch)


class TestCache:
    def test_number_of_bytes(self):
        """The total size of cached replies and requests is limited, and the oldest are evicted."""
        cache, size = ReplyCache(), MAX_CACHED_BYTES // 8
        for number in range(20):
            cache.put(("x", "y", b"%d" % number), b"x" * size, 60)

        cached = [number for number in range(20) if cache.get(("x", "y", b"%d" % number))]

        assert cached == list(range(13, 20))

    def test_size_of_requests(self):
        """Not only the size of a reply counts, but also the size of its request."""
        cache, size = ReplyCache(), MAX_CACHED_BYTES // 8
        for number in range(20):
            cache.put(("x", "y", b"%d" % number + b"x" * size), b"", 60)

        assert len(cache._results) == 7

    def test_number_of_replies(self):
        """The number of cached replies is limited, however small they are."""
        cache = ReplyCache()
        for number in range(2 * MAX_CACHED):
            cache.put(("x", "y", b"%d" % number), b"x", 60)

        assert len(cache._results) == MAX_CACHED

    def test_large_reply(self):
        """A reply that exceeds the cache is not cached, and invalidates its predecessor."""
        cache = ReplyCache()
        cache.put(("x", "y", b"1"), b"x", 60)
        cache.put(("x", "y", b"1"), b"x" * MAX_CACHED_BYTES, 60)

        assert cache.get(("x", "y", b"1")) is None

    def test_replaced_reply(self):
        """A replaced reply counts once."""
        cache, size = ReplyCache(), MAX_CACHED_BYTES // 5
        for _ in range(100):
            cache.put(("x", "y", b"1"), b"x" * size, 60)
        cache.put(("x", "y", b"2"), b"x" * size, 60)

        assert len(cache._results) == 2


@pytest.fixture
def stopped_clock(monkeypatch):
    """Stop the clock of the rate limits."""
    stopped_bucket = partial(TokenBucket, clock=lambda: 0.0)
    monkeypatch.setattr(rate_limits, "TokenBucket", stopped_bucket)


class TestRates:
    def test_token_bucket(self):
        """A bucket starts full, refills over time, and never exceeds its capacity."""
        now = 0.0
        bucket = TokenBucket(10, lambda: now)

        def take_all():
            count = 0
            while bucket.try_take():
                count += 1
            return count

        counts = []
        for later in (0.0, 0.0, 0.3, 0.35, 100.0):
            now = later
            counts.append(take_all())

        assert counts == [10, 0, 3, 0, 10]

    def test_each_subject_has_a_bucket(self):
        """Each subject has a separate bucket, and the least recently used bucket is evicted."""
        buckets = TokenBuckets(1e-6, "requests")

        def is_allowed(subject):
            try:
                buckets.take(subject)
            except TooManyRequests:
                return False
            return True

        assert [is_allowed(subject) for subject in ("a", "a", "b", "b")] == [True, False, True, False]
        for number in range(MAX_SUBJECTS - 2):
            buckets.take(str(number))
        assert [is_allowed("a"), is_allowed("c"), is_allowed("a"), is_allowed("b")] == [
            False,
            True,
            False,
            True,
        ]
        assert buckets._bucket.cache_info().currsize == MAX_SUBJECTS

    @pytest.mark.usefixtures("stopped_clock")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_too_many_requests(self, revision):
        """A client above the rate limit gets an error, and its other messages are handled."""
        client = client_of(revision, rate=3)

        replies = [client.ask("prompts/list", {}, number) for number in range(1, 5)]

        assert ["result" in reply for reply in replies] == [True, True, True, False]
        assert replies[-1]["error"] == {
            "code": 429,
            "message": "the limit is 3 requests per second: try again later",
        }

    @pytest.mark.requirement("completion/rate-limited")
    @pytest.mark.usefixtures("stopped_clock")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_completion_rate(self, revision):
        """Completion has a separate rate limit, even by default."""
        client = Client(CATALOG, revision)
        params = {
            "ref": {"type": "ref/prompt", "name": "choose"},
            "argument": {"name": "word", "value": "o"},
        }

        replies = [client.ask("completion/complete", params, number) for number in range(1, 600)]

        assert all("result" in reply for reply in replies[:500])
        assert {reply["error"]["code"] for reply in replies[500:]} == {429}
        assert is_served(client)


@prompt(elicit=True)
def fill(first: str, second: str):
    return first[:1] + second


class TestPendingRequests:
    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_number_of_bytes(self, revision):
        """Large pending requests count towards the limit until they are answered, rejected or cancelled."""
        catalog = compile(Recipes(prompts=(repeat, fill)))
        client = Client(catalog, revision, capabilities={"elicitation": {}}, limits=Limits(held=500_000))
        params = {"name": "fill", "arguments": {"first": "x" * 200_000}}

        (question,), _ = client.post("prompts/get", params, 1), client.post("prompts/get", params, 2)
        rejected = client.ask("prompts/get", params, 3)
        small = client.ask("prompts/get", {"name": "repeat"}, 4)
        client.send(line(notification("notifications/cancelled", {"requestId": 2})))
        (again,) = client.post("prompts/get", params, 5)
        (answered,) = client.answer(question["id"], {"action": "accept", "content": {"second": "y"}})
        (last,) = client.post("prompts/get", params, 6)

        assert rejected["error"] == {
            "code": 429,
            "message": "the pending requests exceed 500,000 bytes: wait for their replies",
        }
        assert "result" in small
        assert again["method"] == last["method"] == "elicitation/create"
        assert answered["id"] == 1

    def test_wide_characters(self):
        """One character beyond the basic plane makes the whole string take four bytes per character."""
        catalog = compile(Recipes(prompts=(fill,)))
        client = Client(catalog, capabilities={"elicitation": {}}, limits=Limits(held=1_000_000))
        arguments = {"first": "\U0001f600" + "x" * 200_000}
        text = json.dumps(
            request(1, "prompts/get", {"name": "fill", "arguments": arguments}), ensure_ascii=False
        )

        (question,) = client.send(text.encode() + b"\n")
        (rejected,) = client.send(text.replace('"id": 1', '"id": 2').encode() + b"\n")

        assert question["method"] == "elicitation/create"
        assert rejected["error"]["code"] == 429

    def test_request_above_the_limit(self):
        """A request above the limit is served while no other is pending."""
        client = client_of(held=100_000)

        assert all("result" in client.get("repeat", text="y" * 200_000) for _ in range(3))

    def test_number_of_streams(self):
        """The number of streams is limited; after one has ended, another can be opened."""
        client = Client(CATALOG, MODERN, changes=True)
        params = {"notifications": {"promptsListChanged": True}}
        for number in range(1024):
            client.post("subscriptions/listen", params, f"s{number}")

        rejected = client.ask("subscriptions/listen", params, 2000)
        client.send(line(notification("notifications/cancelled", {"requestId": "s7"})))
        (opened,) = client.post("subscriptions/listen", params, 2000)

        assert rejected["error"]["code"] == 429
        assert opened["method"] == "notifications/subscriptions/acknowledged"
        assert is_served(client)


class TestOptions:
    @pytest.mark.parametrize(
        "option", ["timeout", "rate", "completion-rate", "max-line", "max-depth", "page-size"]
    )
    @pytest.mark.parametrize("value", ["0", "-1", "x", "nan", "inf", ""])
    def test_invalid_limit(self, option, value, capsys):
        """A limit that is zero or not a number is rejected at startup."""
        with pytest.raises(SystemExit) as ended:
            main(["serve", "recipes", f"--{option}={value}"])

        assert ended.value.code == 2
        assert f"argument --{option}: '{value}' is no" in capsys.readouterr().err

    def test_defaults(self):
        """The command line and the library have the same defaults."""
        from promptkit.cli.options import limits_of, parse

        options = parse(["serve"])

        assert (limits_of(options), options.page_size) == (Limits(), PAGE_SIZE)

    def test_every_limit_has_an_option(self):
        """Each limit can be set on the command line."""
        from promptkit.cli.options import limits_of, parse

        options = parse(["serve", *(f"--{option.name}=7" for option in OPTIONS.values())])

        assert limits_of(options) == Limits(**dict.fromkeys(Limits.__struct_fields__, 7))

    @pytest.mark.parametrize("value", [0, -1, float("nan")])
    def test_invalid_limit_in_the_library(self, value):
        """The library rejects limits that are not above zero."""
        with pytest.raises(ValueError, match=r"line is .*: a limit must be greater than zero"):
            Limits(line=value)

    def test_default_rate(self):
        """By default requests have no rate limit."""
        assert Limits().rate == inf


def test_argument_limit_applies_only_to_arguments():
    """Long params that are not arguments are limited only by the maximum line length."""
    client = client_of(MODERN, argument=100)

    assert "result" in client.ask("prompts/list", {"x": "y" * 1000})
