"""The HTTP endpoint: the era and the status of posted messages."""

import json
from itertools import product

import pytest

from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.jsonrpc import Reply
from promptkit.protocol.key_ring import KeyRing, Sessions
from promptkit.protocol.limits import Limits
from tests.posting import KEY, body_of, encoded, head, modern_headers, repeated_headers
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, modern, notification, request

BATCHES = "2025-03-26"
SESSIONS = Sessions(KeyRing([KEY], "tests"))
GET = modern(1, "prompts/get", {"name": "greet"})
LIST = request(1, "prompts/list")
CLAIM = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class Replies:
    """A channel that collects its lines."""

    gone = False
    principal = address = None

    def __init__(self):
        self.sent = []

    def add(self, reply):
        """Collect a reply."""
        self.sent.append(reply.line)
        return b""

    def sender(self, _send):
        """Return the function that collects the lines sent before the reply."""
        return self.sent.append


class Outcome:
    """The outcome of a posted message."""

    def __init__(self, message, limits=None, **fields):
        self.channel = Replies()
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, limits or Limits())
        endpoint.declare_capabilities(Capabilities(changes=True))
        head_fields = {
            **{name.replace("-", "_"): value for name, value in repeated_headers(message).items()},
            **fields,
        }
        self.result = endpoint.receive(head(**head_fields), body_of(message), self.channel)

    @property
    def served(self):
        """The dispatched requests: method, revision and whether the revision is stateless."""
        assert isinstance(self.result, list)
        assert self.channel.sent == []
        return [(each.method, each.revision.date, each.revision.stateless) for each in self.result]

    @property
    def status(self):
        """The status of the immediate response."""
        assert not isinstance(self.result, list)
        assert self.channel.sent == [], "there are two replies"
        return self.result.status

    @property
    def reply(self):
        """The body of the response."""
        assert self.status
        assert dict(self.result.headers)[b"content-type"] == b"application/json"
        return json.loads(self.result.body)

    @property
    def error(self):
        """The status and the error code."""
        return self.status, self.reply["error"]["code"]

    @property
    def headers(self):
        """The headers of the response."""
        return dict(self.result.headers)


def claiming(version, method="prompts/list", **params):
    """Return a request whose envelope names *version* as its revision."""
    meta = envelope() | {CLAIM: version}
    return request(1, method, {**params, "_meta": meta})


def session_id(revision):
    """Return a session id of a revision."""
    opened = Outcome(initialize(revision, capabilities={"roots": {}}))
    return opened.headers[b"mcp-session-id"].decode()


class TestEra:
    def test_modern_request(self):
        """A request that names the modern revision in its body and headers is served in that revision."""
        assert Outcome(GET).served == [("prompts/get", MODERN, True)]

    @pytest.mark.parametrize("version", [None, *HANDSHAKES, "2031-01-01", "", "x"])
    def test_revision_missing_in_the_headers(self, version):
        """A modern request without a matching header is rejected, and not served as a legacy request."""
        assert Outcome(GET, mcp_protocol_version=version).error == (400, -32020)

    @pytest.mark.parametrize("version", [None, *HANDSHAKES])
    @pytest.mark.parametrize("proposed", [*HANDSHAKES, "2031-01-01", MODERN])
    def test_handshake(self, version, proposed):
        """`initialize` opens a session, whatever legacy revision the headers name."""
        opened = Outcome(initialize(proposed), mcp_protocol_version=version)

        assert opened.status == 200
        agreed = proposed if proposed in HANDSHAKES else HANDSHAKES[-1]
        assert opened.reply["result"]["protocolVersion"] == agreed
        assert opened.reply["result"]["capabilities"]["prompts"] == {"listChanged": True}
        session = SESSIONS.open(opened.headers[b"mcp-session-id"].decode())
        assert session is not None
        assert (session.revision.date, session.client.name) == (agreed, "test")

    @pytest.mark.parametrize("version", [MODERN, "2031-01-01", "", "x", b"\xff"])
    @pytest.mark.parametrize(
        "message", [LIST, request(1, "ping"), initialize(HANDSHAKES[-1]), request(1, "x/y")]
    )
    def test_modern_header_without_an_envelope(self, version, message):
        """
        A request with a modern or unknown revision in its headers but no envelope is rejected, and opens no
        session.
        """
        rejected = Outcome(message, mcp_protocol_version=version)

        assert rejected.error == (400, -32602)
        assert rejected.reply["error"]["data"] == {"missing": [CLAIM, CAPABILITIES]}
        assert b"mcp-session-id" not in rejected.headers

    @pytest.mark.parametrize("version", HANDSHAKES)
    def test_legacy_header(self, version):
        """A request is served in the legacy revision of its headers."""
        assert Outcome(LIST, mcp_protocol_version=version).served == [("prompts/list", version, False)]

    def test_no_revision(self):
        """A request without a revision is served in the last revision without the version header."""
        assert Outcome(LIST).served == [("prompts/list", BATCHES, False)]

    @pytest.mark.parametrize("version", HANDSHAKES)
    def test_revision_of_the_session_id(self, version):
        """Without the header, the session id determines the revision."""
        sealed = session_id(version)

        served = Outcome(LIST, mcp_session_id=sealed)
        assert served.served == [("prompts/list", version, False)]
        assert served.result[0].client.name == "test"
        assert served.result[0].capabilities == {"roots": {}}
        other = Outcome(LIST, mcp_session_id=sealed, mcp_protocol_version="2025-06-18")
        assert other.served == [("prompts/list", "2025-06-18", False)]

    @pytest.mark.parametrize("version", [*HANDSHAKES, "2031-01-01"])
    def test_unsupported_revision(self, version):
        """A request can only name modern revisions; the error for any other revision lists them."""
        rejected = Outcome(claiming(version), mcp_protocol_version=version)

        assert rejected.error == (400, -32022)
        assert rejected.reply["error"]["data"] == {"supported": [MODERN], "requested": version}
        assert rejected.reply["id"] == 1

    def test_modern_handshake(self):
        """A modern revision has no handshake, and no session is opened."""
        rejected = Outcome(request(1, "initialize", {**initialize(BATCHES)["params"], "_meta": envelope()}))

        assert rejected.error == (404, -32601)
        assert b"mcp-session-id" not in rejected.headers

    @pytest.mark.parametrize("method", ["ping", "resources/subscribe", "logging/setLevel", "x", ""])
    def test_unknown_methods(self, method):
        """The status is 404 in the modern era, and 200 in sessions, where 404 means a lost session."""
        assert Outcome(modern("a", method, {"uri": "x://"})).error == (404, -32601)
        assert Outcome(request("a", "x/" + method)).error == (200, -32601)

    def test_methods_of_one_era(self):
        """`server/discover` exists only in the modern era, and `ping` only in sessions."""
        discovered = Outcome(modern(1, "server/discover"))

        assert (discovered.status, discovered.reply["result"]["supportedVersions"]) == (200, [MODERN])
        assert Outcome(request(1, "server/discover")).error == (200, -32601)
        assert Outcome(request(1, "ping")).reply["result"] == {}


class TestNotifications:
    @pytest.mark.parametrize("version", [None, *HANDSHAKES, MODERN])
    @pytest.mark.parametrize(
        "method", ["notifications/initialized", "notifications/cancelled", "notifications/x", "x"]
    )
    def test_accepted(self, version, method):
        """The response to a known or unknown notification is 202 without a body, in every era."""
        outcome = Outcome(notification(method, {"requestId": 1}), mcp_protocol_version=version)

        assert (outcome.status, outcome.result.body, outcome.headers) == (202, b"", {})

    @pytest.mark.parametrize("version", ["2031-01-01", "", "x", b"\xff"])
    def test_unknown_revision(self, version):
        """The response is 400 and lists the supported revisions."""
        rejected = Outcome(notification("notifications/initialized"), mcp_protocol_version=version)

        assert rejected.error == (400, -32022)
        assert "id" not in rejected.reply

    def test_malformed(self):
        """An invalid notification is dropped, because notifications are never answered."""
        assert Outcome(notification("notifications/cancelled", {"requestId": {}})).status == 202
        assert Outcome(notification("notifications/cancelled", [])).status == 202


class TestResponses:
    @pytest.mark.parametrize("response", [{"result": {}}, {"error": {"code": 1, "message": "x"}}])
    def test_unexpected_response(self, response):
        """Sessions ignore unexpected responses; the modern era rejects them."""
        message = {"jsonrpc": "2.0", "id": 1, **response}

        assert Outcome(message).status == 202
        assert Outcome(message, mcp_protocol_version="2025-11-25").status == 202
        assert Outcome(message, mcp_protocol_version=MODERN).error == (400, -32600)


class TestInvalidBodies:
    @pytest.mark.parametrize("version", [None, "2025-11-25", MODERN])
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b"", -32700),
            (b" \n", -32700),
            (b"{", -32700),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
            (b"nonsense", -32700),
            (b"\xff\xfe", -32700),
            (b'{"a":1}{"b":2}', -32700),
            (b"[" * 200, -32700),
            (b"\xef\xbb\xbf", -32700),
            (b"\xef\xbb\xbf{}", -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', -32700),
            (b"{}", -32600),
            (b"null", -32600),
            (b"5", -32600),
            (b'"ping"', -32600),
            (b"true", -32600),
            (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
            (b'{"id":1,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1}', -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32600),
        ],
    )
    def test_status(self, version, body, code):
        """The status for an invalid body is 400 in every era."""
        assert Outcome(body, mcp_protocol_version=version).error == (400, code)

    @pytest.mark.parametrize("version", [None, "2025-11-25"])
    def test_byte_order_mark(self, version):
        """A byte order mark before the message is ignored."""
        body = b"\xef\xbb\xbf" + json.dumps(request(1, "prompts/list")).encode()

        assert Outcome(body, mcp_protocol_version=version).served[0][0] == "prompts/list"

    def test_message(self):
        """The error message does not mention lines, because HTTP bodies are not lines."""
        bodies = [b"", b"{", b"\xff", b'"\\ud800"', b"[]", b"[1]", b"[" * 200, b"[" + b"1," * 60_000 + b"1]"]
        for version in (None, "2025-11-25", MODERN):
            for body in bodies:
                rejected = Outcome(body, mcp_protocol_version=version)
                assert b"line" not in rejected.result.body, rejected.result.body


class TestBatches:
    def test_requests_and_notifications(self):
        """Each request of a batch is dispatched, and the replies are one array."""
        outcome = Outcome(
            [LIST, notification("notifications/x"), request("b", "prompts/list"), request(3, "ping")]
        )

        assert outcome.served == [("prompts/list", BATCHES, False)] * 2
        for each in outcome.result:
            each.answer(Reply(b'{"id":"%a"}\n' % each.id))
        (line,) = outcome.channel.sent
        assert [reply["id"] for reply in json.loads(line)] == [3, "1", "'b'"]

    @pytest.mark.parametrize(
        "batch",
        [
            [notification("notifications/initialized")],
            [notification("x"), notification("y")],
            [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}],
            [{"jsonrpc": "2.0", "id": 1, "result": {}}, notification("x")],
        ],
    )
    def test_nothing_to_answer(self, batch):
        """The response to a batch without requests is 202."""
        assert Outcome(batch).status == 202

    def test_immediate_replies(self):
        """A batch that needs no dispatch is answered immediately with one array."""
        outcome = Outcome([request(1, "ping"), request(2, "ping"), notification("x")])

        assert (outcome.status, [reply["id"] for reply in outcome.reply]) == (200, [1, 2])

    def test_invalid_element(self):
        """An invalid element gets an error in its position, and the others are served."""
        outcome = Outcome([5, request(1, "ping"), {"id": 2}])

        assert outcome.status == 200
        assert [reply.get("error", {}).get("code") for reply in outcome.reply] == [-32600, None, -32600]

    def test_handshake(self):
        """A batch cannot contain `initialize`, because its elements share a session."""
        outcome = Outcome([initialize(BATCHES)])

        assert [reply["error"]["code"] for reply in outcome.reply] == [-32600]
        assert b"mcp-session-id" not in outcome.headers

    @pytest.mark.parametrize(
        ("batch", "version"),
        [
            ([], None),
            ([], BATCHES),
            ([], MODERN),
            *(
                ([LIST], version)
                for version in [*HANDSHAKES, MODERN, "2031-01-01", "x"]
                if version != BATCHES
            ),
            *(([notification("x")], version) for version in ["2025-06-18", MODERN]),
            ([LIST] * 1001, None),
        ],
    )
    def test_rejected_batches(self, batch, version):
        """Empty and overlong batches, and batches of another revision, are rejected."""
        assert Outcome(batch, mcp_protocol_version=version).error == (400, -32600)

    @pytest.mark.parametrize("element", [GET, claiming("2031-01-01")])
    def test_element_that_names_a_revision(self, element):
        """An element that names a revision gets an error, whatever the headers are."""
        assert [reply["error"]["code"] for reply in Outcome([element]).reply] == [-32600]

    def test_session_of_a_revision_without_batches(self):
        """The revision of a session id has the same effect as the header."""
        assert Outcome([LIST], mcp_session_id=session_id("2025-06-18")).error == (400, -32600)
        assert Outcome([LIST], mcp_session_id=session_id(BATCHES)).served == [
            ("prompts/list", BATCHES, False)
        ]


class TestSessions:
    @pytest.mark.parametrize("sealed", ["", "x", "a.b", "\xff", "A" * 3000, "0" * 40])
    def test_invalid_session_id(self, sealed):
        """The status is 404, so that the client opens another session; the reply keeps the request id."""
        rejected = Outcome(request("q", "ping"), mcp_session_id=sealed)

        assert (rejected.error, rejected.reply["id"]) == ((404, -32600), "q")
        assert Outcome(notification("x"), mcp_session_id=sealed).status == 404
        assert Outcome(initialize("2025-11-25"), mcp_session_id=sealed).status == 200

    def test_session_id_of_another_server(self):
        """Session ids with another key or server name are rejected."""
        session = (SESSIONS.open(session_id("2025-11-25")).revision, None, {})
        for ring in (KeyRing([b"x" * 32], "tests"), KeyRing([KEY], "others")):
            assert Outcome(LIST, mcp_session_id=Sessions(ring).seal(*session)).status == 404

    def test_altered_session_id(self):
        """A session id with one character replaced is rejected."""
        sealed = session_id("2025-11-25")
        for index in range(0, len(sealed), 7):
            replacement = "A" if sealed[index] != "A" else "B"
            assert (
                Outcome(LIST, mcp_session_id=sealed[:index] + replacement + sealed[index + 1 :]).status == 404
            )

    def test_expired_session_id(self):
        """An expired session id is rejected like an unknown one."""
        old = Sessions(KeyRing([KEY], "tests"), lifetime=-1).seal(
            SESSIONS.open(session_id("2025-11-25")).revision, None, {}
        )

        assert Outcome(LIST, mcp_session_id=old).status == 404

    def test_session_id_is_ignored_in_the_modern_era(self):
        """A session id is ignored in the modern era, even if headers and body do not match."""
        assert Outcome(GET, mcp_session_id="x").served == [("prompts/get", MODERN, True)]
        assert Outcome(GET, mcp_session_id="x", mcp_protocol_version=None).error == (400, -32020)

    def test_repeated_headers(self):
        """Repeated session ids and revisions are ambiguous and rejected."""
        sealed = session_id("2025-11-25")

        assert Outcome(LIST, mcp_session_id=[sealed, "x"]).error == (400, -32600)
        assert Outcome(LIST, mcp_protocol_version=["2025-11-25", "2025-06-18"]).error == (400, -32600)


class TestEnvelope:
    @pytest.mark.parametrize("missing", [[CLAIM], [CAPABILITIES], [CLAIM, CAPABILITIES]])
    @pytest.mark.parametrize("method", ["prompts/list", "x/y", "server/discover", "ping"])
    def test_missing_fields(self, missing, method):
        """Missing fields are reported before headers and body are compared."""
        meta = {key: value for key, value in envelope().items() if key not in missing}
        rejected = Outcome(request(1, method, {"_meta": meta}), mcp_protocol_version=MODERN)

        assert rejected.error == (400, -32602)
        assert rejected.reply["error"]["data"] == {"missing": missing}

    @pytest.mark.parametrize("params", [[], 5, {}, *({"_meta": meta} for meta in (None, 5, "x", [], {}))])
    def test_invalid_envelope(self, params):
        """An envelope of the wrong type counts as missing."""
        rejected = Outcome(request(1, "prompts/list", params), mcp_protocol_version=MODERN)

        assert rejected.error == (400, -32602)
        if not isinstance(params, dict):
            assert Outcome(request(1, "prompts/list", params)).error == (400, -32600)

    @pytest.mark.parametrize(
        "invalid", [{CLAIM: 5}, {CLAIM: None}, {CLAIM: [MODERN]}, {CAPABILITIES: []}, {CAPABILITIES: None}]
    )
    def test_fields_of_the_wrong_type(self, invalid):
        """Fields of the wrong type, even the revision, lead to -32602."""
        message = request(1, "prompts/list", {"_meta": envelope() | invalid})

        rejected = Outcome(message, mcp_protocol_version=MODERN, mcp_method="prompts/list")
        assert rejected.error == (400, -32602)

    def test_invalid_params(self):
        """The status of invalid params is 200 in both eras, because the request itself was valid."""
        assert Outcome(modern(1, "prompts/get", {"name": 5}), mcp_name=None).error == (200, -32602)
        assert Outcome(request(1, "prompts/get", {"name": 5})).error == (200, -32602)
        assert Outcome(modern(1, "prompts/get", {})).error == (200, -32602)


class TestIds:
    @pytest.mark.parametrize(
        "number", [0, -1, 2**63, -(2**63), "", "0", "\u00df\u20ac", '","result":', "x" * 1000]
    )
    def test_ids(self, number):
        """Ids that are strings or integers are returned unchanged."""
        pong = Outcome(request(number, "ping"))
        assert (pong.status, pong.reply["id"]) == (200, number)
        unknown = Outcome(modern(number, "x/y"))
        assert (unknown.error, unknown.reply["id"]) == ((404, -32601), number)
        (accepted,) = Outcome(modern(number, "prompts/list")).result
        assert accepted.id == number


class TestLimits:
    @pytest.mark.parametrize("version", [None, "2025-11-25", MODERN])
    def test_values(self, version):
        """A body with too many values is rejected without being decoded."""
        for body in (b"[" + b"1," * 60_000 + b"1]", body_of(request(1, "x", {"a": [1] * 60_000}))):
            assert Outcome(body, mcp_protocol_version=version).error == (400, -32600)

    def test_memory(self):
        """A large request is rejected while others are pending; its client must send it again later."""
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, Limits(held=100_000))
        message = modern(1, "prompts/get", {"name": "greet", "arguments": {"a": "x" * 80_000}})
        fields = {name.replace("-", "_"): value for name, value in modern_headers(message).items()}
        first = endpoint.receive(head(**fields), body_of(message), Replies())

        rejected = endpoint.receive(head(**fields), body_of(message), Replies())

        assert rejected.status == 200
        assert json.loads(rejected.body)["error"]["code"] == 429
        assert (b"retry-after", b"1") in rejected.headers
        first[0].answer(Reply(b"{}\n"))
        assert isinstance(endpoint.receive(head(**fields), body_of(message), Replies()), list)

    @pytest.mark.parametrize("mismatch", [{"mcp_name": "x"}, {"mcp_protocol_version": "2025-11-25"}])
    def test_rejected_request_holds_no_memory(self, mismatch):
        """A large request whose headers do not match leaves memory for the next one."""
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, Limits(held=100_000))
        message = modern(1, "prompts/get", {"name": "greet", "arguments": {"a": "x" * 80_000}})
        fields = {name.replace("-", "_"): value for name, value in modern_headers(message).items()}
        for _ in range(3):
            assert endpoint.receive(head(**{**fields, **mismatch}), body_of(message), Replies()).status == 400

        assert isinstance(endpoint.receive(head(**fields), body_of(message), Replies()), list)


class TestHeaders:
    def test_mismatch_is_observed(self):
        """Observers get a request whose headers do not match, and its error."""
        observed = []
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, Limits())
        endpoint.declare_capabilities(
            Capabilities(), lambda request, reply: observed.append((request.method, reply.line))
        )
        fields = {**modern_headers(modern(1, "prompts/list")), "mcp-method": "prompts/get"}
        head_fields = {name.replace("-", "_"): value for name, value in fields.items()}

        response = endpoint.receive(head(**head_fields), body_of(modern(1, "prompts/list")), Replies())

        assert response.status == 400
        assert observed == [("prompts/list", response.body + b"\n")]

    @pytest.mark.parametrize(
        ("method", "field"),
        [
            *product(["prompts/get", "resources/read"], ["mcp_protocol_version", "mcp_method", "mcp_name"]),
            *product(["tools/call"], ["mcp_protocol_version", "mcp_method"]),
        ],
    )
    def test_mismatch(self, field, method):
        """Each header must be sent once and match the body exactly; the error has the request id."""
        message = modern("q", method, {"name": "Greet", "uri": "Greet"})
        right = {name.replace("-", "_"): value for name, value in modern_headers(message).items()}[field]
        mismatches = [
            None,
            "",
            "other",
            right.swapcase() if right.swapcase() != right else "x",
            [right, right],
        ]
        for value in [
            *mismatches,
            [right, "x"],
            f"{right}\x00",
            f'"{right}"',
            f"{right}, {right}",
            b"\xff",
            encoded("x"),
        ]:
            rejected = Outcome(message, **{field: value})
            assert (rejected.error, rejected.reply["id"]) == ((400, -32020), "q"), value

    def test_whitespace_around_a_value(self):
        """Whitespace around a value is ignored."""
        outcome = Outcome(
            GET, mcp_name=" greet\t", mcp_method="\tprompts/get ", mcp_protocol_version=f" {MODERN} "
        )

        assert outcome.served == [("prompts/get", MODERN, True)]

    @pytest.mark.parametrize(
        "name",
        [
            "greet",
            "ma\u00dfe",
            "\u65e5\u672c\u8a9e",
            " blanks ",
            "line\nbreak",
            "=?base64?eA==?=",
            "",
            "\x00",
            "a\x7f",
        ],
    )
    def test_encoded_name(self, name):
        """A name is sent as printable ASCII or as Base64."""
        message = modern(1, "prompts/get", {"name": name})

        assert Outcome(message).served == [("prompts/get", MODERN, True)]
        assert Outcome(message, mcp_name=encoded(name)).served == [("prompts/get", MODERN, True)]

    @pytest.mark.parametrize(
        ("name", "sent"),
        [
            ("ma\u00dfe", "ma\u00dfe".encode()),
            ("ma\u00dfe", "ma\u00dfe".encode("latin-1")),
            ("=?base64?eA==?=", "=?base64?eA==?="),
            ("a\x7f", "a\x7f"),
            ("code_review", "=?base64?Y29kZV9yZXZpZXc?="),
            ("x", "=?base64?eB==?="),
            ("x", "=?base64?eA=?="),
            ("x", "=?base64?eA?="),
            ("x", "=?base64?eA===?="),
            ("x", "=?base64?eA==\t?="),
            ("x", "=?base64? eA==?="),
            ("x", "=?base64?e-A==?="),
            ("x", "=?BASE64?eA==?="),
            ("x", "=?base64?eA=="),
            ("x", "=?utf-8?b?eA==?="),
            ("x", encoded(encoded("x"))),
            ("", None),
            ("\ufffd", "=?base64?/w==?="),
        ],
    )
    def test_invalid_encoding(self, name, sent):
        """Raw bytes outside of printable ASCII, and non-canonical Base64, are rejected."""
        assert Outcome(modern(1, "prompts/get", {"name": name}), mcp_name=sent).error == (400, -32020)

    def test_methods_without_a_name(self):
        """Methods without a name ignore the header."""
        for value in ("x", "", b"\xff", ["a", "b"]):
            listed = Outcome(modern(1, "prompts/list", {"name": "n"}), mcp_name=value)
            assert listed.served == [("prompts/list", MODERN, True)]

    def test_name_of_a_resource(self):
        """The name of a resource is its URI, even if the params have a field called name."""
        message = modern(1, "resources/read", {"uri": "note://one", "name": "other"})
        broken = modern(1, "resources/read", {"uri": "note://one", "name": "other", "_meta": 5})

        assert Outcome(message).served == [("resources/read", MODERN, True)]
        assert Outcome(message, mcp_name="other").error == (400, -32020)
        unserved = modern(1, "tools/call", {"name": "n", "uri": "u"})
        assert Outcome(unserved).error == (404, -32601)
        assert Outcome(broken | {"params": {**message["params"], "cursor": 1}}).served

    def test_other_headers_are_ignored(self):
        """Headers for tool parameters and for resuming a stream are ignored."""
        assert Outcome(GET, **{"mcp-param-x": "y", "last-event-id": "7"}).served


@pytest.mark.parametrize(
    ("message", "fields", "expected"),
    [
        (b"{", {"mcp_protocol_version": "x", "mcp_session_id": "x"}, (400, -32700)),
        (b"[]", {"mcp_protocol_version": "x"}, (400, -32600)),
        (claiming("2031-01-01", "x/y") | {"jsonrpc": "1"}, {}, (400, -32600)),
        (request(1, "x/y", {"_meta": {CLAIM: "2031-01-01"}}), {"mcp_method": "z"}, (400, -32602)),
        (claiming("2031-01-01", "x/y"), {"mcp_method": "z"}, (400, -32020)),
        (claiming("2031-01-01", "x/y"), {"mcp_protocol_version": MODERN}, (400, -32020)),
        (claiming("2031-01-01", "x/y"), {"mcp_protocol_version": "2031-01-01"}, (400, -32022)),
        (claiming(MODERN, "x/y", name=5), {}, (404, -32601)),
        (claiming(MODERN, "prompts/get", name=5), {"mcp_name": None}, (200, -32602)),
    ],
)
def test_order_of_checks(message, fields, expected):
    """The first error is reported, in the order: JSON, request, envelope, headers, revision, method."""
    assert Outcome(message, **fields).error == expected
