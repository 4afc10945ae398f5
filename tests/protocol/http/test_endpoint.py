"""What is posted: in which era it is served, and the status of what is not. Each test is a row of a table."""

import json

import pytest

from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.sessions import Sessions
from promptkit.protocol.jsonrpc import Reply
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.limits import Limits
from tests.posting import KEY, agreeing, body_of, encoded, head, repeat
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, modern, notification, request

BATCHES = "2025-03-26"
SESSIONS = Sessions(KeyRing([KEY], "tests"))
GET = modern(1, "prompts/get", {"name": "greet"})
LIST = request(1, "prompts/list")
CLAIM = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class Replies:
    """A channel that keeps what goes to it."""

    gone = False
    principal = address = None

    def __init__(self):
        self.sent = []

    def fit_reply(self, _request_id, reply):
        """Take replies of any length."""
        return reply

    def add(self, reply):
        """Take a reply."""
        self.sent.append(reply.line)
        return b""

    def sender(self, _send):
        """Take lines before the reply, too."""
        return self.sent.append


class Outcome:
    """What became of a posted message."""

    def __init__(self, message, limits=None, **fields):
        self.channel = Replies()
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, limits or Limits())
        endpoint.offer(Capabilities(changes=True))
        given = {**{name.replace("-", "_"): value for name, value in repeat(message).items()}, **fields}
        self.found = endpoint.receive(head(**given), body_of(message), self.channel)

    @property
    def served(self):
        """The requests for the server, each with its revision and whether it names that."""
        assert isinstance(self.found, list)
        assert self.channel.sent == []
        return [(each.method, each.revision.date, each.revision.stateless) for each in self.found]

    @property
    def status(self):
        """The status that the message is answered with at once."""
        assert not isinstance(self.found, list)
        assert self.channel.sent == [], "there are two replies"
        return self.found.status

    @property
    def reply(self):
        """What it is answered with."""
        assert self.status
        assert dict(self.found.headers)[b"content-type"] == b"application/json"
        return json.loads(self.found.body)

    @property
    def refusal(self):
        """The status, and the code of the error."""
        return self.status, self.reply["error"]["code"]

    @property
    def header(self):
        """The headers of the response."""
        return dict(self.found.headers)


def claiming(version, method="prompts/list", **params):
    """A request that names any revision."""
    meta = envelope() | {CLAIM: version}
    return request(1, method, {**params, "_meta": meta})


def session_id(revision):
    """The id of a session of some revision."""
    opened = Outcome(initialize(revision, capabilities={"roots": {}}))
    return opened.header[b"mcp-session-id"].decode()


class TestTheEra:
    def test_a_claim_in_the_body_decides(self):
        """
        A request that names the modern revision, in body and head, is served so.
        """
        assert Outcome(GET).served == [("prompts/get", MODERN, True)]

    @pytest.mark.parametrize("version", [None, *HANDSHAKES, "2031-01-01", "", "x"])
    def test_a_claim_that_the_head_does_not_repeat(self, version):
        """
        Such a request is never served as one of the older era, with its claim ignored.
        """
        assert Outcome(GET, mcp_protocol_version=version).refusal == (400, -32020)

    @pytest.mark.parametrize("version", [None, *HANDSHAKES])
    @pytest.mark.parametrize("proposed", [*HANDSHAKES, "2031-01-01", MODERN])
    def test_a_handshake(self, version, proposed):
        """
        `initialize` opens a session, whatever legacy revision the head names, and declares no changes.
        """
        opened = Outcome(initialize(proposed), mcp_protocol_version=version)

        assert opened.status == 200
        agreed = proposed if proposed in HANDSHAKES else HANDSHAKES[-1]
        assert opened.reply["result"]["protocolVersion"] == agreed
        assert opened.reply["result"]["capabilities"]["prompts"] == {"listChanged": False}
        session = SESSIONS.open(opened.header[b"mcp-session-id"].decode())
        assert session is not None
        assert (session.revision.date, session.client.name) == (agreed, "test")

    @pytest.mark.parametrize("version", [MODERN, "2031-01-01", "", "x", b"\xff"])
    @pytest.mark.parametrize(
        "message", [LIST, request(1, "ping"), initialize(HANDSHAKES[-1]), request(1, "x/y")]
    )
    def test_no_claim_under_a_head_of_no_session(self, version, message):
        """
        A modern or unknown revision in the head asks for an envelope, and gets no session id.
        """
        refused = Outcome(message, mcp_protocol_version=version)

        assert refused.refusal == (400, -32602)
        assert refused.reply["error"]["data"] == {"missing": [CLAIM, CAPABILITIES]}
        assert b"mcp-session-id" not in refused.header

    @pytest.mark.parametrize("version", HANDSHAKES)
    def test_no_claim_under_a_legacy_head(self, version):
        """
        A request is served at the revision that its head names.
        """
        assert Outcome(LIST, mcp_protocol_version=version).served == [("prompts/list", version, False)]

    def test_no_claim_at_all(self):
        """
        A request that names no revision is of the last one without the header.
        """
        assert Outcome(LIST).served == [("prompts/list", BATCHES, False)]

    @pytest.mark.parametrize("version", HANDSHAKES)
    def test_a_session_id_says_the_revision(self, version):
        """
        Without the header, the sealed session id tells; with it, the header.
        """
        sealed = session_id(version)

        served = Outcome(LIST, mcp_session_id=sealed)
        assert served.served == [("prompts/list", version, False)]
        assert served.found[0].client.name == "test"
        assert served.found[0].capabilities == {"roots": {}}
        other = Outcome(LIST, mcp_session_id=sealed, mcp_protocol_version="2025-06-18")
        assert other.served == [("prompts/list", "2025-06-18", False)]

    @pytest.mark.parametrize("version", [*HANDSHAKES, "2031-01-01"])
    def test_a_claim_that_no_request_can_make(self, version):
        """
        Of what is served, only modern revisions are named: a client that got it wrong may try again.
        """
        refused = Outcome(claiming(version), mcp_protocol_version=version)

        assert refused.refusal == (400, -32022)
        assert refused.reply["error"]["data"] == {"supported": [MODERN], "requested": version}
        assert refused.reply["id"] == 1

    def test_a_handshake_of_the_modern_era(self):
        """
        There is none: no session is opened for a request that names its revision.
        """
        refused = Outcome(request(1, "initialize", {**initialize(BATCHES)["params"], "_meta": envelope()}))

        assert refused.refusal == (404, -32601)
        assert b"mcp-session-id" not in refused.header

    @pytest.mark.parametrize("method", ["ping", "resources/subscribe", "logging/setLevel", "x", ""])
    def test_unknown_methods(self, method):
        """
        404 in the modern era; clients of the older one would take that for a broken connection.
        """
        assert Outcome(modern("a", method, {"uri": "x://"})).refusal == (404, -32601)
        assert Outcome(request("a", "x/" + method)).refusal == (200, -32601)

    def test_a_session_has_no_discovery(self):
        """
        `server/discover` belongs to the modern era, and is answered there without the server.
        """
        found = Outcome(modern(1, "server/discover"))

        assert (found.status, found.reply["result"]["supportedVersions"]) == (200, [MODERN])
        assert Outcome(request(1, "server/discover")).refusal == (200, -32601)
        assert Outcome(request(1, "ping")).reply["result"] == {}


class TestNotifications:
    @pytest.mark.parametrize("version", [None, *HANDSHAKES, MODERN])
    @pytest.mark.parametrize(
        "method", ["notifications/initialized", "notifications/cancelled", "notifications/x", "x"]
    )
    def test_they_are_accepted(self, version, method):
        """
        202 without a body, in every era, whether they are known or not.
        """
        found = Outcome(notification(method, {"requestId": 1}), mcp_protocol_version=version)

        assert (found.status, found.found.body, found.header) == (202, b"", {})

    @pytest.mark.parametrize("version", ["2031-01-01", "", "x", b"\xff"])
    def test_those_of_unknown_revisions_are_not(self, version):
        """
        400, and which revisions are served.
        """
        refused = Outcome(notification("notifications/initialized"), mcp_protocol_version=version)

        assert refused.refusal == (400, -32022)
        assert "id" not in refused.reply

    def test_those_that_are_malformed(self):
        """
        A notification is never answered, so one that does not fit is dropped like others.
        """
        assert Outcome(notification("notifications/cancelled", {"requestId": {}})).status == 202
        assert Outcome(notification("notifications/cancelled", [])).status == 202


class TestResponses:
    @pytest.mark.parametrize("response", [{"result": {}}, {"error": {"code": 1, "message": "x"}}])
    def test_nobody_asked(self, response):
        """
        Clients of the older era may send responses, those of the modern one may not.
        """
        message = {"jsonrpc": "2.0", "id": 1, **response}

        assert Outcome(message).status == 202
        assert Outcome(message, mcp_protocol_version="2025-11-25").status == 202
        assert Outcome(message, mcp_protocol_version=MODERN).refusal == (400, -32600)


class TestBrokenBodies:
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
            (b"\xef\xbb\xbf{}", -32700),
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
    def test_their_status(self, version, body, code):
        """
        400 in every era: no client sends such a body by chance.
        """
        assert Outcome(body, mcp_protocol_version=version).refusal == (400, code)

    def test_what_is_said_of_a_body(self):
        """
        Nobody sends lines over HTTP, so no error speaks of one.
        """
        bodies = [b"", b"{", b"\xff", b'"\\ud800"', b"[]", b"[1]", b"[" * 200, b"[" + b"1," * 60_000 + b"1]"]
        for version in (None, "2025-11-25", MODERN):
            for body in bodies:
                found = Outcome(body, mcp_protocol_version=version)
                assert b"line" not in found.found.body, found.found.body


class TestBatches:
    def test_requests_and_notifications(self):
        """
        Of an array of the one revision that has them, each request is served, and the reply is one array.
        """
        found = Outcome(
            [LIST, notification("notifications/x"), request("b", "prompts/list"), request(3, "ping")]
        )

        assert found.served == [("prompts/list", BATCHES, False)] * 2
        for each in found.found:
            each.answer(Reply(b'{"id":"%a"}\n' % each.id))
        (line,) = found.channel.sent
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
        """
        202, as for each of them alone.
        """
        assert Outcome(batch).status == 202

    def test_all_is_answered_at_once(self):
        """
        What needs no server is answered, once, with an array.
        """
        found = Outcome([request(1, "ping"), request(2, "ping"), notification("x")])

        assert (found.status, [reply["id"] for reply in found.reply]) == (200, [1, 2])

    def test_one_bad_element(self):
        """
        It is answered in its place, and the others are served.
        """
        found = Outcome([5, request(1, "ping"), {"id": 2}])

        assert found.status == 200
        assert [reply.get("error", {}).get("code") for reply in found.reply] == [-32600, None, -32600]

    def test_a_handshake_is_no_part_of_one(self):
        """
        The elements of a batch share a session, which `initialize` would change.
        """
        found = Outcome([initialize(BATCHES)])

        assert [reply["error"]["code"] for reply in found.reply] == [-32600]
        assert b"mcp-session-id" not in found.header

    @pytest.mark.parametrize(
        ("batch", "version"),
        [
            ([], None),
            ([], BATCHES),
            ([], MODERN),
            ([GET], None),
            ([LIST, GET], BATCHES),
            ([GET, LIST], None),
            ([claiming("2031-01-01")], None),
            *(
                ([LIST], version)
                for version in [*HANDSHAKES, MODERN, "2031-01-01", "x"]
                if version != BATCHES
            ),
            *(([notification("x")], version) for version in ["2025-06-18", MODERN]),
            ([LIST] * 1001, None),
        ],
    )
    def test_those_that_are_refused(self, batch, version):
        """
        Empty and overlong ones, those of another revision, and those with an element that names a revision.
        """
        assert Outcome(batch, mcp_protocol_version=version).refusal == (400, -32600)

    def test_a_session_id_of_a_revision_without_them(self):
        """
        A sealed session id counts like the header.
        """
        assert Outcome([LIST], mcp_session_id=session_id("2025-06-18")).refusal == (400, -32600)
        assert Outcome([LIST], mcp_session_id=session_id(BATCHES)).served == [
            ("prompts/list", BATCHES, False)
        ]


class TestSessions:
    @pytest.mark.parametrize("sealed", ["", "x", "a.b", "\xff", "A" * 3000, "0" * 40])
    def test_one_that_has_ended(self, sealed):
        """
        404, so that the client opens another, which it does without the id; requests keep their id.
        """
        refused = Outcome(request("q", "ping"), mcp_session_id=sealed)

        assert (refused.refusal, refused.reply["id"]) == ((404, -32600), "q")
        assert Outcome(notification("x"), mcp_session_id=sealed).status == 404
        assert Outcome(initialize("2025-11-25"), mcp_session_id=sealed).status == 200

    def test_ids_of_others(self):
        """
        What other keys, or a server with another name, have sealed opens nothing.
        """
        said = (SESSIONS.open(session_id("2025-11-25")).revision, None, {})
        for ring in (KeyRing([b"x" * 32], "tests"), KeyRing([KEY], "others")):
            assert Outcome(LIST, mcp_session_id=Sessions(ring).seal(*said)).status == 404

    def test_ids_that_were_changed(self):
        """
        No character of an id can be another one.
        """
        sealed = session_id("2025-11-25")
        for place in range(0, len(sealed), 7):
            other = "A" if sealed[place] != "A" else "B"
            assert Outcome(LIST, mcp_session_id=sealed[:place] + other + sealed[place + 1 :]).status == 404

    def test_an_ended_one(self):
        """
        After its time an id is one that never was.
        """
        old = Sessions(KeyRing([KEY], "tests"), lifetime=-1).seal(
            SESSIONS.open(session_id("2025-11-25")).revision, None, {}
        )

        assert Outcome(LIST, mcp_session_id=old).status == 404

    def test_the_modern_era_has_none(self):
        """
        An id is ignored there, whatever it is, even if the head does not agree with the body.
        """
        assert Outcome(GET, mcp_session_id="x").served == [("prompts/get", MODERN, True)]
        assert Outcome(GET, mcp_session_id="x", mcp_protocol_version=None).refusal == (400, -32020)

    def test_several_at_once(self):
        """
        Nobody can tell which one counts.
        """
        sealed = session_id("2025-11-25")

        assert Outcome(LIST, mcp_session_id=[sealed, "x"]).refusal == (400, -32600)
        assert Outcome(LIST, mcp_protocol_version=["2025-11-25", "2025-06-18"]).refusal == (400, -32600)


class TestTheEnvelope:
    @pytest.mark.parametrize("missing", [[CLAIM], [CAPABILITIES], [CLAIM, CAPABILITIES]])
    @pytest.mark.parametrize("method", ["prompts/list", "x/y", "server/discover", "ping"])
    def test_what_every_request_has_to_carry(self, missing, method):
        """
        400 (-32602), before anything else of head and body is compared.
        """
        meta = {key: value for key, value in envelope().items() if key not in missing}
        refused = Outcome(request(1, method, {"_meta": meta}), mcp_protocol_version=MODERN)

        assert refused.refusal == (400, -32602)
        assert refused.reply["error"]["data"] == {"missing": missing}

    @pytest.mark.parametrize("params", [[], 5, {}, *({"_meta": meta} for meta in (None, 5, "x", [], {}))])
    def test_no_envelope(self, params):
        """
        Whatever else stands in its place is the same as nothing.
        """
        refused = Outcome(request(1, "prompts/list", params), mcp_protocol_version=MODERN)

        assert refused.refusal == (400, -32602)
        if not isinstance(params, dict):
            assert Outcome(request(1, "prompts/list", params)).refusal == (400, -32600)

    @pytest.mark.parametrize(
        "wrong", [{CLAIM: 5}, {CLAIM: None}, {CLAIM: [MODERN]}, {CAPABILITIES: []}, {CAPABILITIES: None}]
    )
    def test_members_of_another_type(self, wrong):
        """
        400 (-32602), also for a revision that is no text.
        """
        message = request(1, "prompts/list", {"_meta": envelope() | wrong})

        refused = Outcome(message, mcp_protocol_version=MODERN, mcp_method="prompts/list")
        assert refused.refusal == (400, -32602)

    def test_params_that_do_not_fit(self):
        """
        A handler's error is 200, in both eras: the request itself was one.
        """
        assert Outcome(modern(1, "prompts/get", {"name": 5}), mcp_name=None).refusal == (200, -32602)
        assert Outcome(request(1, "prompts/get", {"name": 5})).refusal == (200, -32602)
        assert Outcome(modern(1, "prompts/get", {})).refusal == (200, -32602)


class TestIds:
    @pytest.mark.parametrize(
        "number", [0, -1, 2**63, -(2**63), "", "0", "\u00df\u20ac", '","result":', "x" * 1000]
    )
    def test_they_come_back(self, number):
        """
        An id is any text or whole number, and comes back as it was sent.
        """
        pong = Outcome(request(number, "ping"))
        assert (pong.status, pong.reply["id"]) == (200, number)
        unknown = Outcome(modern(number, "x/y"))
        assert (unknown.refusal, unknown.reply["id"]) == ((404, -32601), number)
        (accepted,) = Outcome(modern(number, "prompts/list")).found
        assert accepted.id == number


class TestLimits:
    @pytest.mark.parametrize("version", [None, "2025-11-25", MODERN])
    def test_values(self, version):
        """
        A body with too many values is refused, and not decoded to say what it is.
        """
        for body in (b"[" + b"1," * 60_000 + b"1]", body_of(request(1, "x", {"a": [1] * 60_000}))):
            assert Outcome(body, mcp_protocol_version=version).refusal == (400, -32600)

    def test_memory(self):
        """
        While large requests are open, another one is to be sent again later.
        """
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, Limits(held=100_000))
        message = modern(1, "prompts/get", {"name": "greet", "arguments": {"a": "x" * 80_000}})
        fields = {name.replace("-", "_"): value for name, value in agreeing(message).items()}
        first = endpoint.receive(head(**fields), body_of(message), Replies())

        refused = endpoint.receive(head(**fields), body_of(message), Replies())

        assert refused.status == 200
        assert json.loads(refused.body)["error"]["code"] == 429
        assert (b"retry-after", b"1") in refused.headers
        first[0].answer(Reply(b"{}\n"))
        assert isinstance(endpoint.receive(head(**fields), body_of(message), Replies()), list)

    @pytest.mark.parametrize("wrong", [{"mcp_name": "x"}, {"mcp_protocol_version": "2025-11-25"}])
    def test_what_is_refused_holds_no_memory(self, wrong):
        """
        A large request whose head does not agree leaves room for the next one.
        """
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, Limits(held=100_000))
        message = modern(1, "prompts/get", {"name": "greet", "arguments": {"a": "x" * 80_000}})
        fields = {name.replace("-", "_"): value for name, value in agreeing(message).items()}
        for _ in range(3):
            assert endpoint.receive(head(**{**fields, **wrong}), body_of(message), Replies()).status == 400

        assert isinstance(endpoint.receive(head(**fields), body_of(message), Replies()), list)

    def test_batches_that_are_refused_hold_no_memory(self):
        """
        Neither do those of another revision, with a modern element, or with replies that do not fit.
        """
        large = request(1, "prompts/get", {"name": "greet", "arguments": {"a": "x" * 80_000}})
        limits = Limits(held=100_000, reply=150)
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, limits)
        for batch, status in ([large, GET], 400), ([large, request("x" * 200, "prompts/list")], 200):
            refused = endpoint.receive(head(), body_of(batch), Replies())
            assert refused.status == status

        assert isinstance(endpoint.receive(head(), body_of(large), Replies()), list)


class TestAgreement:
    def test_a_disagreement_is_noted(self):
        """
        The audit has the request, and its refusal.
        """
        noted = []
        endpoint = Endpoint(ServerInfo("tests", "1.0"), SESSIONS, Limits())
        endpoint.offer(Capabilities(), lambda request, reply: noted.append((request.method, reply.line)))
        fields = {**agreeing(modern(1, "prompts/list")), "mcp-method": "prompts/get"}
        given = {name.replace("-", "_"): value for name, value in fields.items()}

        found = endpoint.receive(head(**given), body_of(modern(1, "prompts/list")), Replies())

        assert found.status == 400
        assert noted == [("prompts/list", found.body + b"\n")]

    @pytest.mark.parametrize("field", ["mcp_protocol_version", "mcp_method", "mcp_name"])
    @pytest.mark.parametrize("method", ["prompts/get", "resources/read", "tools/call"])
    def test_each_field_is_sent_once_and_agrees(self, field, method):
        """
        Missing, empty, repeated, unlike the body in case or at all: 400 (-32020), with the request's id.
        """
        message = modern("q", method, {"name": "Greet", "uri": "Greet"})
        right = {name.replace("-", "_"): value for name, value in agreeing(message).items()}[field]
        wrong = [None, "", "other", right.swapcase() if right.swapcase() != right else "x", [right, right]]
        for value in [
            *wrong,
            [right, "x"],
            f"{right}\x00",
            f'"{right}"',
            f"{right}, {right}",
            b"\xff",
            encoded("x"),
        ]:
            refused = Outcome(message, **{field: value})
            assert (refused.refusal, refused.reply["id"]) == ((400, -32020), "q"), value

    def test_blanks_around_a_value(self):
        """
        They are no part of it, whether or not the server has left them there.
        """
        found = Outcome(
            GET, mcp_name=" greet\t", mcp_method="\tprompts/get ", mcp_protocol_version=f" {MODERN} "
        )

        assert found.served == [("prompts/get", MODERN, True)]

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
    def test_every_name_can_be_sent(self, name):
        """
        As it is if it is printable ASCII, else as Base64, which is always allowed.
        """
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
    def test_other_spellings(self, name, sent):
        """
        Raw bytes that are no printable ASCII, and Base64 that is not canonical: 400 (-32020).
        """
        assert Outcome(modern(1, "prompts/get", {"name": name}), mcp_name=sent).refusal == (400, -32020)

    def test_only_some_methods_have_a_name(self):
        """
        For others the field is ignored, whatever it says.
        """
        for value in ("x", "", b"\xff", ["a", "b"]):
            listed = Outcome(modern(1, "prompts/list", {"name": "n"}), mcp_name=value)
            assert listed.served == [("prompts/list", MODERN, True)]

    def test_each_method_has_its_own(self):
        """
        A resource is named by its URI, even if there is a member that is called name.
        """
        message = modern(1, "resources/read", {"uri": "note://one", "name": "other"})
        broken = modern(1, "resources/read", {"uri": "note://one", "name": "other", "_meta": 5})

        assert Outcome(message).served == [("resources/read", MODERN, True)]
        assert Outcome(message, mcp_name="other").refusal == (400, -32020)
        unserved = modern(1, "tools/call", {"name": "n", "uri": "u"})
        assert Outcome(unserved).refusal == (404, -32601)
        assert Outcome(broken | {"params": {**message["params"], "cursor": 1}}).served

    def test_other_fields_are_ignored(self):
        """
        Fields of tools' params, and those for resuming a stream, mean nothing here.
        """
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
def test_the_order_of_the_checks(message, fields, expected):
    """
    Of several faults the first one answers: JSON, a request, its envelope, its head, its revision, method.
    """
    assert Outcome(message, **fields).refusal == expected
