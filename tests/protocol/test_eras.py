import json
from typing import get_args

import pytest

from promptkit.protocol import wire
from promptkit.protocol.capabilities import METHODS, Capabilities, ServerInfo
from promptkit.protocol.events import ClientResponse, Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.protocol.session import Session
from promptkit.protocol.wire import LogLevel
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, line, modern, request

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "shelf", "version": "1.2"}}

LISTS = ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]
HANDSHAKE_ONLY = ["ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"]
MODERN_ONLY = ["server/discover", "subscriptions/listen"]


def connect(revision=None, **offered):
    connection = Session(ServerInfo("shelf", "1.2", "Review prompts."), Capabilities(**offered))
    if revision:
        connection.receive_data(line(initialize(revision)))
    return connection


def event(connection, message):
    """Return the one event of a message, with a decoded reply."""
    (received,) = connection.receive_data(line(message))
    return json.loads(received.line) if isinstance(received, Reply) else received


def code(connection, message):
    return event(connection, message)["error"]["code"]


class TestDiscovery:
    @pytest.mark.requirement("discover/result", "discover/server-info", "versioning/extension-ids")
    def test_result(self):
        """A client without a session gets revisions, capabilities and instructions."""
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
                    "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": True}},
                },
                "instructions": "Review prompts.",
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": SERVER,
            },
        }

    def test_lifetime_without_changes(self):
        """Without file watching, the result is cacheable for five minutes."""
        assert event(connect(), modern(1, "server/discover"))["result"]["ttlMs"] == 300_000

    @pytest.mark.requirement("discover/implemented")
    @pytest.mark.parametrize("revision", [None, *HANDSHAKES])
    def test_any_time(self, revision):
        """Discovery is answered as the first request, after a handshake, and repeatedly."""
        connection = connect(revision)

        replies = [event(connection, modern(1, "server/discover")) for _ in range(2)]

        assert [reply["result"]["resultType"] for reply in replies] == ["complete"] * 2

    @pytest.mark.requirement("discover/versions-served")
    def test_listed_versions_are_served(self):
        """A request can name each listed version, and the error for any other version lists the same ones."""
        listed = event(connect(), modern(1, "server/discover"))["result"]["supportedVersions"]
        metas = [{VERSION: version, CAPABILITIES: {}} for version in [*listed, "2099-01-01"]]

        *served, rejected = [event(connect(), request(1, "prompts/list", {"_meta": meta})) for meta in metas]

        assert [work.revision.date for work in served] == listed
        assert rejected["error"]["data"]["supported"] == listed


class TestEnvelope:
    @pytest.mark.parametrize("revision", [None, *HANDSHAKES])
    def test_revision_and_client(self, revision):
        """A request with an envelope has its own revision and client, with or without a session."""
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
    def test_session_continues(self, revision):
        """The next request without an envelope belongs to the session again."""
        connection = connect(revision)
        event(connection, modern(1, "server/discover"))
        event(connection, modern(1, "prompts/list"))

        work = event(connection, request(2, "prompts/list"))

        assert (work.revision.date, work.client.name) == (revision, "test")

    def test_client_info_is_optional(self):
        """Only the revision and the capabilities are required."""
        meta = {VERSION: MODERN, CAPABILITIES: {}}

        work = event(connect(), request(1, "prompts/list", {"_meta": meta}))

        assert (isinstance(work, Request), work.client) == (True, None)

    @pytest.mark.requirement("base/meta/required", "logging/bad-level")
    @pytest.mark.parametrize(
        ("meta", "expected", "message"),
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
    def test_invalid_envelope(self, meta, expected, message, method):
        """An invalid envelope is reported before errors of the method or its params."""
        error = event(connect(), request(1, method, {"_meta": meta}))["error"]

        assert (error["code"], message in error["message"]) == (expected, True)

    def test_invalid_progress_token(self):
        """An invalid progress token in an envelope is rejected."""
        error = event(connect(), request(1, "prompts/list", {"_meta": envelope(progressToken=[])}))["error"]

        assert (error["code"], "progressToken" in error["message"]) == (-32602, True)

    @pytest.mark.parametrize("level", get_args(LogLevel))
    def test_log_level(self, level):
        """A request can name any log level, although nothing is logged to the client."""
        message = modern(1, "prompts/list", **{"io.modelcontextprotocol/logLevel": level})

        assert isinstance(event(connect(), message), Request)

    @pytest.mark.requirement("versioning/unsupported")
    @pytest.mark.parametrize("method", ["prompts/list", "server/discover", "no/such"])
    @pytest.mark.parametrize("version", ["2027-01-15", *HANDSHAKES, ""])
    def test_unsupported_version(self, version, method):
        """The error lists the supported versions, and names the requested version."""
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
    def test_meta_without_a_version(self, meta):
        """Without a version in its `_meta`, a request belongs to the session."""
        work = event(connect("2025-06-18"), request(1, "prompts/list", {"_meta": meta}))

        assert (isinstance(work, Request), work.revision.date) == (True, "2025-06-18")


class TestMethods:
    @pytest.mark.requirement("base/error/unadvertised")
    @pytest.mark.parametrize("method", HANDSHAKE_ONLY)
    @pytest.mark.parametrize("revision", [None, "2025-11-25"])
    def test_session_methods_in_modern_requests(self, method, revision):
        """Methods of sessions are unknown in modern requests, with or without a session."""
        message = modern(1, method, {"uri": "x://y", "level": "debug"})

        assert code(connect(revision), message) == -32601

    @pytest.mark.requirement("base/error/unadvertised")
    @pytest.mark.parametrize("params", [{}, {"uri": 3}], ids=["missing", "of-another-type"])
    @pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
    def test_method_is_checked_before_params(self, method, params):
        """A session method in a modern request is reported before its params."""
        assert code(connect(), modern(1, method, params)) == -32601

    @pytest.mark.parametrize("method", MODERN_ONLY)
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_modern_methods_in_sessions(self, method, revision):
        """Methods of the modern era are unknown in sessions."""
        assert code(connect(revision), request(1, method, {"notifications": {}})) == -32601

    @pytest.mark.requirement("base/meta/required")
    @pytest.mark.parametrize("method", [*MODERN_ONLY, *LISTS])
    def test_no_session_and_no_envelope(self, method):
        """Without a session and an envelope, the error names the missing fields."""
        error = event(connect(), request(1, method, {"notifications": {}}))["error"]

        assert (error["code"], error["data"]) == (-32602, {"missing": [VERSION, CAPABILITIES]})

    @pytest.mark.parametrize("method", [*LISTS, "resources/read"])
    def test_declared_methods(self, method):
        """The list methods and ``resources/read`` are always available."""
        message = modern(1, method, {"uri": "x://y"})

        assert isinstance(event(connect(), message), Request)
        assert isinstance(event(connect("2025-06-18"), request(1, method, {"uri": "x://y"})), Request)

    @pytest.mark.requirement("base/error/unadvertised")
    @pytest.mark.parametrize("method", ["tools/call", "logging/setLevel", "roots/list", "no/such"])
    def test_undeclared_methods(self, method):
        """Undeclared methods are unknown in modern requests."""
        assert code(connect(), modern(1, method, {"name": "x"})) == -32601

    def test_initialize_with_an_envelope(self):
        """A handshake ignores an envelope in its params."""
        opening = initialize("2025-06-18")
        opening["params"]["_meta"] = envelope(**{"io.modelcontextprotocol/clientInfo": 3})

        assert event(connect(), opening)["result"]["protocolVersion"] == "2025-06-18"

    @pytest.mark.requirement("versioning/handshake-scope")
    def test_handshake_after_a_failed_probe(self):
        """A client can open a session after an error to a modern request."""
        connection = connect()
        probe = request(1, "server/discover", {"_meta": {VERSION: "2027-01-15", CAPABILITIES: {}}})

        assert code(connection, probe) == -32022
        assert event(connection, initialize("2025-11-25"))["result"]["protocolVersion"] == "2025-11-25"
        assert isinstance(event(connection, request(2, "prompts/list")), Request)

    def test_modern_request_in_a_batch(self):
        """A modern request in a batch is rejected, because only sessions have batches."""
        (reply,) = event(connect("2025-03-26"), [modern(1, "prompts/list")])

        assert reply["error"]["code"] == -32600

    def test_every_method_has_an_era(self):
        """The table contains no method that cannot be called."""
        assert all(method.handshake or method.modern for method in METHODS.values())

    def test_every_method_has_params(self):
        """Each method has a subclass of `wire.Params` for its params."""
        assert all(issubclass(method.params, wire.Params) for method in METHODS.values())


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"result": {"action": "cancel"}}, {"action": "cancel"}),
        ({"error": {"code": -1, "message": "no"}}, None),
    ],
    ids=["result", "error"],
)
def test_response(answer, result):
    """A response is an event for the server, which has the questions. An error counts as no answer."""
    response = {"jsonrpc": "2.0", "id": "promptkit-1", **answer}

    assert connect("2025-06-18").receive_data(line(response)) == [ClientResponse("promptkit-1", result)]
