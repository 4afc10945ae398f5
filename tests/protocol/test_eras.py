import json
from typing import get_args

import pytest

from promptkit.protocol import wire
from promptkit.protocol.capabilities import METHODS, Capabilities, ServerInfo
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import ClientResponse, Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.protocol.wire import LogLevel
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, line, modern, notification, request

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "shelf", "version": "1.2"}}

LISTS = ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]
HANDSHAKE_ONLY = ["ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"]
MODERN_ONLY = ["server/discover", "subscriptions/listen"]


def connect(revision=None, **offered):
    connection = Connection(ServerInfo("shelf", "1.2", "Review prompts."), Capabilities(**offered))
    if revision:
        connection.receive_data(line(initialize(revision)))
    return connection


def event(connection, message):
    """The one thing that follows from a message."""
    (found,) = connection.receive_data(line(message))
    return json.loads(found.line) if isinstance(found, Reply) else found


def code(connection, message):
    return event(connection, message)["error"]["code"]


class TestDiscovery:
    @pytest.mark.requirement("discover/result", "discover/server-info", "versioning/extension-ids")
    def test_it_says_what_is_served(self):
        """
        A client without a session gets revisions, capabilities and instructions.
        """
        answer = event(connect(changes=True), modern(1, "server/discover"))

        assert answer == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "resultType": "complete",
                "supportedVersions": [MODERN],
                "capabilities": {
                    "prompts": {"listChanged": True},
                    "resources": {"subscribe": True, "listChanged": True},
                    "tools": {"listChanged": False},
                    "completions": {},
                },
                "instructions": "Review prompts.",
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": SERVER,
            },
        }

    def test_what_does_not_change_may_be_kept(self):
        """
        A server that watches no files lets clients keep what it says for a while.
        """
        assert event(connect(), modern(1, "server/discover"))["result"]["ttlMs"] == 300_000

    @pytest.mark.requirement("discover/implemented")
    @pytest.mark.parametrize("revision", [None, *HANDSHAKES])
    def test_it_is_answered_at_any_time(self, revision):
        """
        First of all, after a handshake, and again.
        """
        connection = connect(revision)

        replies = [event(connection, modern(1, "server/discover")) for _ in range(2)]

        assert [reply["result"]["resultType"] for reply in replies] == ["complete"] * 2

    @pytest.mark.requirement("discover/versions-served")
    def test_what_it_lists_is_served(self):
        """
        A request may name each version that is listed; the error for others lists the same.
        """
        listed = event(connect(), modern(1, "server/discover"))["result"]["supportedVersions"]
        metas = [{VERSION: version, CAPABILITIES: {}} for version in [*listed, "2099-01-01"]]

        *served, refused = [event(connect(), request(1, "prompts/list", {"_meta": meta})) for meta in metas]

        assert [work.revision.date for work in served] == listed
        assert refused["error"]["data"]["supported"] == listed


class TestEnvelope:
    @pytest.mark.parametrize("revision", [None, *HANDSHAKES])
    def test_a_request_that_names_its_revision(self, revision):
        """
        It is of that revision, whether or not there is a session, with its own client.
        """
        meta = envelope({"elicitation": {}})
        meta["io.modelcontextprotocol/clientInfo"] = {"name": "desk", "version": "4"}

        work = event(connect(revision), request(1, "prompts/get", {"name": "x", "_meta": meta}))

        assert (work.revision.date, work.client.name, work.capabilities) == (
            MODERN,
            "desk",
            {"elicitation": {}},
        )

    @pytest.mark.requirement("versioning/handshake-scope")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_session_goes_on_beside_it(self, revision):
        """
        The next request without an envelope is the session's again.
        """
        connection = connect(revision)
        event(connection, modern(1, "server/discover"))
        event(connection, modern(1, "prompts/list"))

        work = event(connection, request(2, "prompts/list"))

        assert (work.revision.date, work.client.name) == (revision, "test")

    def test_the_client_need_not_say_who_it_is(self):
        """
        Only the revision and the capabilities are demanded.
        """
        meta = {VERSION: MODERN, CAPABILITIES: {}}

        work = event(connect(), request(1, "prompts/list", {"_meta": meta}))

        assert (isinstance(work, Request), work.client) == (True, None)

    @pytest.mark.requirement("base/meta/required", "logging/bad-level")
    @pytest.mark.parametrize(
        ("meta", "expected", "said"),
        [
            pytest.param({VERSION: MODERN}, -32602, CAPABILITIES, id="no-capabilities"),
            pytest.param({VERSION: 3, CAPABILITIES: {}}, -32602, VERSION, id="version-no-text"),
            pytest.param({VERSION: MODERN, CAPABILITIES: []}, -32602, CAPABILITIES, id="capabilities"),
            pytest.param(
                envelope(**{"io.modelcontextprotocol/clientInfo": "desk"}), -32602, "clientInfo", id="client"
            ),
            pytest.param(
                envelope(**{"io.modelcontextprotocol/logLevel": "loud"}), -32602, "logLevel", id="log-level"
            ),
            pytest.param(
                envelope(**{"io.modelcontextprotocol/logLevel": 3}), -32602, "logLevel", id="level-number"
            ),
            pytest.param(envelope(progressToken=[]), -32602, "progressToken", id="progress-token"),
            pytest.param(
                {VERSION: "2027-01-15", CAPABILITIES: {}}, -32022, "2027-01-15", id="unknown-version"
            ),
            pytest.param(
                {VERSION: "2025-11-25", CAPABILITIES: {}}, -32022, "initialize", id="session-version"
            ),
            pytest.param(
                {VERSION: "2027-01-15", CAPABILITIES: {}, "io.modelcontextprotocol/clientInfo": 3},
                -32022,
                "2027-01-15",
                id="unknown-version-with-other-types",
            ),
            pytest.param({VERSION: "2027-01-15"}, -32602, CAPABILITIES, id="unknown-version-no-capabilities"),
        ],
    )
    @pytest.mark.parametrize("method", ["prompts/list", "server/discover", "prompts/get", "no/such"])
    def test_one_that_is_at_fault(self, meta, expected, said, method):
        """
        A fault in the envelope is reported before any other, of the method or of its params.
        """
        error = event(connect(), request(1, method, {"_meta": meta}))["error"]

        assert (error["code"], said in error["message"]) == (expected, True)

    @pytest.mark.parametrize("level", get_args(LogLevel))
    def test_a_level_that_there_is(self, level):
        """
        A request may say how much it wants logged, though nothing is.
        """
        message = modern(1, "prompts/list", **{"io.modelcontextprotocol/logLevel": level})

        assert isinstance(event(connect(), message), Request)

    @pytest.mark.requirement("versioning/unsupported")
    @pytest.mark.parametrize("method", ["prompts/list", "server/discover", "no/such"])
    @pytest.mark.parametrize("version", ["2027-01-15", *HANDSHAKES, ""])
    def test_an_unserved_version_is_told_which_are(self, version, method):
        """
        The error names the versions that a request may name, and the one that it did.
        """
        meta = {VERSION: version, CAPABILITIES: {}}

        error = event(connect("2025-06-18"), request(1, method, {"_meta": meta}))["error"]

        assert (error["code"], error["data"]) == (-32022, {"supported": [MODERN], "requested": version})

    @pytest.mark.parametrize(
        "meta",
        [
            {"progressToken": 1},
            {CAPABILITIES: {}},
            {CAPABILITIES: 3},
            {"io.modelcontextprotocol/clientInfo": "x"},
            {"traceparent": 7, "com.example/x": [1]},
            {},
            None,
        ],
        ids=str,
    )
    def test_anything_else_is_no_evidence(self, meta):
        """
        What a session's client puts into `_meta` beside a version does not leave the session.
        """
        work = event(connect("2025-06-18"), request(1, "prompts/list", {"_meta": meta}))

        assert (isinstance(work, Request), work.revision.date) == (True, "2025-06-18")


class TestMethods:
    @pytest.mark.requirement("base/error/unadvertised")
    @pytest.mark.parametrize("method", HANDSHAKE_ONLY)
    @pytest.mark.parametrize("revision", [None, "2025-11-25"])
    def test_methods_of_sessions_are_unknown_to_modern_requests(self, method, revision):
        """
        What only sessions have is not found, in whatever state the connection is.
        """
        message = modern(1, method, {"uri": "x://y", "level": "debug"})

        assert code(connect(revision), message) == -32601

    @pytest.mark.requirement("base/error/unadvertised")
    @pytest.mark.parametrize("params", [{}, {"uri": 3}], ids=["missing", "of-another-type"])
    @pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
    def test_a_method_that_there_is_not_has_no_params(self, method, params):
        """
        That a modern request asks for what only sessions have is said before what its params lack.
        """
        assert code(connect(), modern(1, method, params)) == -32601

    @pytest.mark.parametrize("method", MODERN_ONLY)
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_methods_of_modern_requests_are_unknown_to_sessions(self, method, revision):
        """
        So is, in a session, what only modern requests have.
        """
        assert code(connect(revision), request(1, method, {"notifications": {}})) == -32601

    @pytest.mark.requirement("base/meta/required")
    @pytest.mark.parametrize("method", [*MODERN_ONLY, *LISTS])
    def test_nothing_at_all_was_said(self, method):
        """
        Without a session and without an envelope, the answer names what is missing.
        """
        error = event(connect(), request(1, method, {"notifications": {}}))["error"]

        assert (error["code"], error["data"]) == (-32602, {"missing": [VERSION, CAPABILITIES]})

    @pytest.mark.parametrize("method", [*LISTS, "resources/read"])
    def test_what_is_declared_is_answered(self, method):
        """
        A server without resources has their methods, as it declares them; so it does the list of tools.
        """
        message = modern(1, method, {"uri": "x://y"})

        assert isinstance(event(connect(), message), Request)
        assert isinstance(event(connect("2025-06-18"), request(1, method, {"uri": "x://y"})), Request)

    @pytest.mark.requirement("base/error/unadvertised")
    @pytest.mark.parametrize("method", ["tools/call", "logging/setLevel", "roots/list", "no/such"])
    def test_what_is_not_declared_is_unknown_to_modern_requests(self, method):
        """
        A method that is not declared is not found, and so is a tool that no list has.
        """
        assert code(connect(), modern(1, method, {"name": "x"})) == -32601

    def test_initialize_opens_a_session_whatever_it_carries(self):
        """
        An envelope does not turn a handshake into anything else.
        """
        opening = initialize("2025-06-18")
        opening["params"]["_meta"] = envelope(**{"io.modelcontextprotocol/clientInfo": 3})

        assert event(connect(), opening)["result"]["protocolVersion"] == "2025-06-18"

    @pytest.mark.requirement("versioning/handshake-scope")
    def test_a_probe_that_failed_may_be_followed_by_a_handshake(self):
        """
        Nothing that a modern request is answered with keeps a client from opening a session.
        """
        connection = connect()
        probe = request(1, "server/discover", {"_meta": {VERSION: "2027-01-15", CAPABILITIES: {}}})

        assert code(connection, probe) == -32022
        assert event(connection, initialize("2025-11-25"))["result"]["protocolVersion"] == "2025-11-25"
        assert isinstance(event(connection, request(2, "prompts/list")), Request)

    def test_a_modern_request_is_no_part_of_a_batch(self):
        """
        Only sessions have batches.
        """
        (reply,) = event(connect("2025-03-26"), [modern(1, "prompts/list")])

        assert reply["error"]["code"] == -32600

    def test_every_method_is_of_one_era_at_least(self):
        """
        The table holds no method that cannot be called.
        """
        assert all(method.handshake or method.modern for method in METHODS.values())

    def test_every_method_has_params(self):
        """
        The params that a method names are a struct of the wire.
        """
        assert all(issubclass(method.params, wire.Params) for method in METHODS.values())


class TestQuestions:
    def test_an_answer_is_handed_out_once(self):
        """
        A response is matched with what was asked; a second one, and any other, is ignored.
        """
        connection = connect("2025-06-18")
        number, sent = connection.ask("elicitation/create", {"message": "?"})
        connection.expect(number)
        answer = line({"jsonrpc": "2.0", "id": number, "result": {"action": "cancel"}})

        assert json.loads(sent)["id"] == number
        assert connection.receive_data(answer) == [ClientResponse(number, {"action": "cancel"})]
        assert connection.receive_data(answer) == []

    def test_an_error_is_no_answer(self):
        """
        An error from the client counts as no answer.
        """
        connection = connect("2025-06-18")
        number, _ = connection.ask("elicitation/create", {})
        connection.expect(number)
        refusal = {"jsonrpc": "2.0", "id": number, "error": {"code": -1, "message": "no"}}

        assert connection.receive_data(line(refusal)) == [ClientResponse(number, None)]

    def test_ids_are_never_used_again(self):
        """
        Every question has its own id.
        """
        connection = connect("2025-06-18")

        assert len({connection.ask("elicitation/create", {})[0] for _ in range(100)}) == 100

    def test_what_is_withdrawn_is_not_awaited(self):
        """
        The client is notified, and its answer is ignored.
        """
        connection = connect("2025-06-18")
        number, _ = connection.ask("elicitation/create", {})
        connection.expect(number)

        told = json.loads(connection.withdraw(number))

        assert told == notification("notifications/cancelled", {"requestId": number})
        assert connection.receive_data(line({"jsonrpc": "2.0", "id": number, "result": {}})) == []
