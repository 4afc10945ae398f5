"""Properties of the HTTP endpoint: one outcome, a known status, and one reply to each request."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.capabilities import METHODS, Capabilities, ServerInfo
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.guard import Guard
from promptkit.protocol.http.messages import read_head
from promptkit.protocol.jsonrpc import Reply
from promptkit.protocol.key_ring import KeyRing, Sessions
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import REVISIONS
from tests.faults.shapes import Shapes
from tests.posting import KEY, PLAIN, body_of, encoded, modern_headers, raw_fields
from tests.protocol.http.test_endpoint import Replies
from tests.wire import HANDSHAKES, MODERN, envelope

SESSIONS = Sessions(KeyRing([KEY], "tests"))
LIMITS = Limits(depth=20, values=200, messages=5, held=200_000, reply=100_000)
GUARDED = {421, 431, 403, 404, 405, 415, 406, 204}
STATUSES = {200, 202, 400, 404}

IDS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([])
WORDS = st.sampled_from([*METHODS, "notifications/cancelled", "notifications/x", "", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={key: st.just(value) | JSON for key, value in envelope().items()} | {"progressToken": IDS},
)
PARAMS = (
    st.fixed_dictionaries(
        {},
        optional={
            "_meta": ENVELOPES | JSON,
            "name": JSON,
            "uri": st.just("note://one") | JSON,
            "arguments": JSON,
            "cursor": JSON,
            "notifications": JSON,
            "protocolVersion": st.sampled_from(list(REVISIONS)) | JSON,
            "capabilities": st.just({}) | JSON,
            "clientInfo": st.just({"name": "n", "version": "1"}) | JSON,
        },
    )
    | JSON
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0"] * 9 + ["1.0"])},
    optional={"id": IDS, "method": WORDS | JSON, "params": PARAMS, "result": JSON, "error": JSON},
)
BODIES = (MESSAGES | st.lists(MESSAGES | JSON, max_size=7) | JSON).map(body_of)
CUT = st.tuples(BODIES, st.integers(0, 80), st.binary(max_size=3)).map(
    lambda cut: cut[0][: cut[1]] + cut[2] + cut[0][cut[1] + 1 :]
)
VALUES = st.sampled_from(
    [
        *(revision.encode() for revision in REVISIONS),
        *(name.encode() for name in METHODS),
        b"2031-01-01",
        b"x",
        b"",
        b" x\t",
        b"\xff\x00",
        encoded("x").encode(),
        b"=?base64?!?=",
        SESSIONS.seal(REVISIONS["2025-06-18"], None, {}).encode(),
        SESSIONS.seal(REVISIONS["2025-03-26"], None, {"elicitation": {}}).encode(),
    ]
)
PROTOCOL = [b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id", b"last-event-id"]
FIELDS = st.lists(st.tuples(st.sampled_from(PROTOCOL), VALUES | st.binary(max_size=9)), max_size=6)


def outcome(endpoint, fields, body):
    """Post a body; return the response or the requests, and the lines of the channel after all replies."""
    channel = Replies()
    result = endpoint.receive(read_head("POST", "/mcp", raw_fields(PLAIN) + list(fields)), body, channel)
    if not isinstance(result, list):
        assert channel.sent == [], "there is a second reply"
        return result, []
    assert result
    assert channel.sent == []
    for request in result:
        assert request.answer(Reply(b'{"id":%d}\n' % id(request))) == b""
    return result, channel.sent


def check(result, replies):
    """Check that there is one outcome with a known status."""
    if isinstance(result, list):
        (line,) = replies
        answered = json.loads(line)
        messages = answered if isinstance(answered, list) else [answered]
        ids = [reply["id"] for reply in messages if "id" in reply]
        assert {id(request) for request in result} <= set(ids)
        assert len(ids) == len(set(map(repr, ids))) or len(messages) > 1
        return
    assert result.status in STATUSES
    assert (result.status == 202) == (result.body == b"")
    if result.body:
        assert (b"content-type", b"application/json") in result.headers
        for reply in [json.loads(result.body)] if result.body.startswith(b"{") else json.loads(result.body):
            assert ("result" in reply) != ("error" in reply)
            assert result.status == 200 or "error" in reply
            assert b"line" not in result.body or b"line" in json.dumps(reply.get("id", "")).encode()


@pytest.fixture(scope="module")
def endpoint():
    """One endpoint for all examples, so that they can affect each other."""
    shared = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, LIMITS)
    shared.declare_capabilities(Capabilities(changes=True))
    return shared


class TestOneOutcome:
    @given(fields=FIELDS, body=BODIES | CUT | st.binary(max_size=30))
    def test_arbitrary_headers_and_body(self, endpoint, fields, body):
        """Any headers and body lead to a known status, or to requests with one reply each."""
        check(*outcome(endpoint, fields, body))

    @given(fields=FIELDS, body=BODIES)
    def test_requests_are_independent(self, endpoint, fields, body):
        """A request has the same outcome after any other request."""
        kinds = []
        for _ in range(2):
            result, replies = outcome(endpoint, fields, body)
            is_accepted = isinstance(result, list)
            kinds.append([request.method for request in result] if is_accepted else result.status)
            assert is_accepted or not replies
        assert kinds[0] == kinds[1]

    @given(
        method=st.sampled_from(["POST", "GET", "OPTIONS", "DELETE", "HEAD"]) | st.text(max_size=5),
        path=st.sampled_from(["/mcp", "/mcp/"]) | st.text(max_size=9),
        fields=st.lists(
            st.tuples(
                st.sampled_from([b"host", b"origin", b"content-type", b"accept", *PROTOCOL])
                | st.binary(max_size=6),
                st.sampled_from([value.encode() for value in PLAIN.values()]) | st.binary(max_size=40),
            ),
            max_size=120,
        ),
    )
    def test_arbitrary_headers_and_guard(self, method, path, fields):
        """The guard accepts or rejects any headers, and never accepts another host."""
        head = read_head(method, path, fields)
        response = Guard().check(head)

        if response is None:
            assert head.fields[b"host"].strip(b" \t").partition(b":")[0] in {b"localhost", b"127.0.0.1", b"["}
            assert (method, path.rstrip("/")) == ("POST", "/mcp")
        else:
            assert response.status in GUARDED
        Guard(["*"], ["*"]).cors_headers(head)


class TestValidMessages:
    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    def test_every_request_is_served(self, endpoint, revision):
        """Requests that are valid in the published schema are dispatched, or rejected as unknown methods."""
        shapes = Shapes(revision, Random(revision))  # noqa: S311 (reproducible)
        for number in range(300):
            message = shapes.request(number)
            if revision == MODERN:
                message.setdefault("params", {})["_meta"] = envelope()
            fields = modern_headers(message) if revision == MODERN else {"mcp-protocol-version": revision}
            result, replies = outcome(endpoint, raw_fields(fields), body_of(message))
            check(result, replies)
            method = METHODS.get(message["method"])
            known = method is not None and (method.modern if revision == MODERN else method.handshake)
            known = known and message["method"] != "tools/call"
            if known and message["method"] not in ("initialize", "ping", "server/discover"):
                assert isinstance(result, list), result
            elif known:
                assert result.status == 200
            else:
                assert result.status == (404 if revision == MODERN else 200)
                assert json.loads(result.body)["error"]["code"] == -32601

    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    def test_every_notification_is_accepted(self, endpoint, revision):
        """The response to every notification of the published schema is 202."""
        shapes = Shapes(revision, Random(revision))  # noqa: S311 (reproducible)
        for _ in range(100):
            response, _ = outcome(
                endpoint, [(b"mcp-protocol-version", revision.encode())], body_of(shapes.notification())
            )
            assert response.status == 202
