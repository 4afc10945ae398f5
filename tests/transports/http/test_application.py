"""The application: every row of the table of statuses, through ASGI, with all kinds of prompts."""

# ruff: noqa: ASYNC110 (the awaited conditions change on other threads)
import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from promptkit import prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import ServerInfo
from promptkit.server.server import SharedServer
from promptkit.server.snapshot import Snapshot
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import Settings
from promptkit.version import VERSION
from tests.posting import KEY, Caller, answer_to, application, body_of, encoded, post
from tests.transports.http import recipes
from tests.wire import HANDSHAKES, MODERN, check, initialize, modern, notification, request

ERAS = ["2025-06-18", MODERN]
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def app():
    """One application for all tests, so that leftover state of a test makes later tests fail."""
    application_ = application(recipes.catalog(), hosts=["prompts.example"], origins=["https://chat.example"])
    yield application_
    recipes.RELEASED.set()
    application_.close(1)
    recipes.RELEASED.clear()


def build_request(method, params=None, number=1, revision=MODERN, **members):
    """Return a request, and the header fields for it."""
    if revision == MODERN:
        return modern(number, method, params, **members), {}
    meta = {"_meta": members} if members else {}
    return request(number, method, {**(params or {}), **meta} or None), {"mcp_protocol_version": revision}


def reply_to(app, method, params=None, number=1, revision=MODERN, fields=None, **members):  # noqa: PLR0917
    """Post one request, validate the reply with the published schema, and return the answer."""
    message, headers = build_request(method, params, number, revision, **members)
    answer = answer_to(app, message, **{**headers, **(fields or {})})
    if answer.header("content-type") == "application/json" and "id" in answer.json:
        check(answer.json, revision, {number: method})
    return answer


async def post_pieces(app, pieces, path="/mcp"):
    """Post a body in pieces, and return the answer."""
    return await Caller(app, pieces, path=path).result()


def render(app, name, revision=MODERN, arguments=None, **members):
    """Post `prompts/get`, and return the answer."""
    return reply_to(app, "prompts/get", {"name": name, "arguments": arguments or {}}, 1, revision, **members)


def test_other_servers_need_no_parser():
    """The application can be imported without httptools, which only the server of `serve --http` needs."""
    code = "import sys; sys.modules['httptools'] = None; from promptkit import asgi; asgi.app('recipes')"

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


class TestServed:
    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    def test_lists_prompts_and_resources(self, app, revision):
        """The reply is JSON with status 200 and a length, in every revision."""
        for method in ("prompts/list", "resources/list", "resources/templates/list", "tools/list"):
            assert reply_to(app, method, revision=revision).status == 200
        answer = render(app, "greet", revision, {"name": "Ada"})

        assert answer.json["result"]["messages"][0]["content"]["text"] == "Hello, Ada!"
        assert answer.header("content-length") == str(len(answer.body))
        read = reply_to(app, "resources/read", {"uri": "note://one"}, 1, revision)
        assert read.json["result"]["contents"][0]["text"] == "One."

    @pytest.mark.parametrize("revision", ERAS)
    @pytest.mark.parametrize("number", [0, "", "x" * 1000, "\u00df", 2**63, -5])
    def test_reply_has_the_id_of_the_request(self, app, revision, number):
        """The reply contains the id as it was sent."""
        assert reply_to(app, "prompts/list", None, number, revision).json["id"] == number

    @pytest.mark.parametrize("revision", ERAS)
    @pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
    def test_trailing_slash_is_optional(self, app, revision, path):
        """The path of the endpoint can end with a slash."""
        assert reply_to(app, "prompts/list", revision=revision, fields={"path": path}).status == 200

    def test_name_in_base64(self, app):
        """The header with the name can be encoded in base64."""
        assert render(app, "greet", fields={"mcp_name": encoded("greet")}).status == 200
        assert render(app, "greet", fields={"mcp_name": encoded("Greet")}).code == -32020

    def test_input_required(self, app):
        """A missing argument is requested in a result with status 200, and sent in another request."""
        forms = {"elicitation": {"form": {}}}
        first = render(app, "asks", capabilities=forms)
        assert (first.status, first.json["result"]["resultType"]) == (200, "input_required")
        state = first.json["result"]["requestState"]
        answers = {"arguments": {"action": "accept", "content": {"who": "Ada"}}}
        retry = {"name": "asks", "arguments": {}, "requestState": state, "inputResponses": answers}

        result = reply_to(app, "prompts/get", retry, capabilities=forms).json["result"]
        assert result["messages"][0]["content"]["text"] == "For Ada."
        forged = {**retry, "requestState": state[:-2] + ("AA" if state[-2:] != "AA" else "BB")}
        assert (reply_to(app, "prompts/get", forged, capabilities=forms).code) == -32602
        unanswered = {**retry, "inputResponses": {}}
        rejected = reply_to(app, "prompts/get", unanswered, capabilities={})
        assert (rejected.status, rejected.code) == (400, -32021)

    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_no_input_requests_in_sessions(self, app, revision):
        """Without a stream or a session, no input can be requested, so a missing argument is an error."""
        opened = answer_to(app, initialize(revision, capabilities={"elicitation": {"form": {}}}))
        sealed = opened.header("mcp-session-id")

        for fields in ({"mcp_session_id": sealed, "accept": "application/json"}, {}):
            answer = render(app, "asks", revision, fields=fields)
            assert (answer.status, answer.code) == (200, -32602)

    def test_batch_is_answered_with_an_array(self, app):
        """The replies to a batch are one array; a batch without requests gets 202."""
        get = request("g", "prompts/get", {"name": "greet"})
        answer = answer_to(app, [get, request(2, "ping"), notification("x"), 5])

        assert answer.status == 200
        assert {reply.get("id") for reply in answer.json} == {"g", 2, None}
        assert answer_to(app, [request(1, "ping")]).json[0]["result"] == {}
        assert answer_to(app, [notification("x")]).status == 202


class TestNotServed:
    @pytest.mark.parametrize(
        ("message", "fields", "status", "code"),
        [
            (notification("notifications/initialized"), {}, 202, None),
            (
                notification("notifications/cancelled", {"requestId": 1}),
                {"mcp_protocol_version": MODERN},
                202,
                None,
            ),
            ({"jsonrpc": "2.0", "id": 1, "result": {}}, {}, 202, None),
            ({"jsonrpc": "2.0", "id": 1, "result": {}}, {"mcp_protocol_version": MODERN}, 400, -32600),
            (b"{", {}, 400, -32700),
            (b"", {}, 400, -32700),
            (b"5", {}, 400, -32600),
            (request(None, "ping"), {}, 400, -32600),
            ([], {}, 400, -32600),
            ([modern(1, "prompts/list")], {"mcp_protocol_version": MODERN}, 400, -32600),
            ([request(1, "ping")], {"mcp_protocol_version": MODERN}, 400, -32600),
            (request(1, "prompts/list"), {"mcp_protocol_version": MODERN}, 400, -32602),
            (request(1, "prompts/list"), {"mcp_protocol_version": "2031-01-01"}, 400, -32602),
            (modern(1, "prompts/list"), {"mcp_method": None}, 400, -32020),
            (modern(1, "prompts/list"), {"mcp_protocol_version": "2025-11-25"}, 400, -32020),
            (modern(1, "ping"), {}, 404, -32601),
            (request(1, "x/y"), {}, 200, -32601),
            (request(1, "prompts/list"), {"mcp_session_id": "x"}, 404, -32600),
            (request(1, "ping"), {"method": "GET"}, 405, -32600),
            (request(1, "ping"), {"method": "DELETE"}, 405, -32600),
            (request(1, "ping"), {"method": "HEAD"}, 405, -32600),
            (request(1, "ping"), {"accept": "text/html"}, 406, -32600),
            (
                modern(1, "subscriptions/listen", {"notifications": {}}),
                {"accept": "application/json"},
                406,
                -32600,
            ),
            (request(1, "ping"), {"content_type": "text/plain"}, 415, -32600),
            (request(1, "ping"), {"host": "evil.example"}, 421, -32600),
            (request(1, "ping"), {"origin": "null"}, 403, -32600),
            (request(1, "ping"), {"origin": "http://localhost"}, 403, -32600),
            (request(1, "ping"), {"path": "/"}, 404, -32600),
            (request(1, "ping"), {"x": "a" * 40_000}, 431, -32600),
        ],
    )
    def test_statuses_and_error_codes(self, app, message, fields, status, code):
        """Each invalid message leads to one status and code, and a content length."""
        answer = answer_to(app, message, **fields)

        assert (answer.status, answer.code) == (status, code)
        assert answer.header("content-length") == str(len(answer.body))
        if status == 405:
            assert answer.header("allow") == "POST"

    @pytest.mark.parametrize("fields", [{"path": "/"}, {"method": "PUT"}, {"path": "/healthz"}, {}])
    def test_early_reply_closes_the_connection(self, app, fields):
        """
        A reply in place of 100 (Continue) closes the connection, because some servers would read the next
        request as the body.
        """
        answer = answer_to(app, request(1, "ping"), expect="100-continue", **fields)

        assert answer.header("connection") == ("close" if fields else None)

    @pytest.mark.parametrize("revision", ERAS)
    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("prompts/get", {"name": "nobody"}),
            ("prompts/get", {}),
            ("prompts/get", {"name": "greet", "arguments": {"nothing": "1"}}),
            ("prompts/get", {"name": "blocks", "arguments": {"seconds": "x"}}),
            ("prompts/get", {"name": "refuses"}),
            ("prompts/list", {"cursor": "x"}),
            (
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}},
            ),
        ],
    )
    def test_invalid_params_have_status_200(self, app, revision, method, params):
        """
        Errors of handlers have status 200, because older clients treat other statuses as a broken connection.
        """
        answer = reply_to(app, method, params, 1, revision)

        assert (answer.status, answer.code) == (200, -32602)

    def test_unknown_resource(self, app):
        """The reply about an unknown resource has status 200 and the error code of the era."""
        for revision, code in ("2025-11-25", -32002), (MODERN, -32602):
            answer = reply_to(app, "resources/read", {"uri": "note://none"}, 1, revision)
            assert (answer.status, answer.code) == (200, code)

    @pytest.mark.parametrize("revision", ERAS)
    @pytest.mark.parametrize("name", ["fails", "leaves", "interrupts", "hurries"])
    def test_failing_prompts(self, app, revision, name, capfd):
        """
        Any exception, exit or timeout of a prompt leads to 200 with -32603, and the next request is served.
        """
        answer = render(app, name, revision)

        assert (answer.status, answer.code) == (200, -32603)
        assert render(app, "greet", revision).status == 200
        capfd.readouterr()

    @pytest.mark.parametrize("revision", ERAS)
    def test_subscribing_without_a_session_is_unsupported(self, app, revision):
        """Without a session, a subscription to a resource is rejected as an unknown method."""
        answer = reply_to(app, "resources/subscribe", {"uri": "note://one"}, 1, revision)

        assert (answer.status, answer.code) == (404 if revision == MODERN else 200, -32601)

    def test_preflight(self, app):
        """A preflight request gets 204 without a body, and the headers for an allowed origin."""
        answer = answer_to(app, b"", method="OPTIONS", origin="https://chat.example", content_type=None)

        assert (answer.status, answer.body, answer.header("content-length")) == (204, b"", None)
        assert answer.header("access-control-allow-origin") == "https://chat.example"
        foreign = answer_to(app, b"", method="OPTIONS", origin="https://evil.example")
        assert (foreign.status, foreign.header("access-control-allow-origin")) == (403, None)

    def test_cors_headers(self, app):
        """Replies, errors and streams have the headers for allowed origins only."""
        for message in (
            modern(1, "prompts/list"),
            b"{",
            modern(1, "prompts/get", {"name": "steps"}, progressToken=1),
        ):
            answer = answer_to(app, message, origin="https://chat.example")
            assert answer.header("access-control-allow-origin") == "https://chat.example"
            assert answer.header("vary") == "origin"
            assert answer_to(app, message).header("access-control-allow-origin") is None


class TestForeignTokens:
    @pytest.mark.parametrize(
        "other",
        [{"keys": [b"x" * 32]}, {"name": "another"}, {"keys": [b"x" * 32, KEY], "trusts": True}],
        ids=["another key", "another name", "a ring with the key"],
    )
    def test_replayed_tokens_are_rejected(self, app, other):
        """
        Session ids and request states are invalid at servers with other keys or another name, and for other
        arguments.
        """
        trusts = other.pop("trusts", False)
        foreign = application(recipes.catalog(), **other)
        sealed = answer_to(app, initialize("2025-11-25")).header("mcp-session-id")
        listed = answer_to(foreign, request(1, "prompts/list"), mcp_session_id=sealed)
        assert listed.status == (200 if trusts else 404)
        forms = {"elicitation": {"form": {}}}
        state = render(app, "asks", capabilities=forms).json["result"]["requestState"]
        answers = {"arguments": {"action": "accept", "content": {"who": "Ada"}}}
        retry = {"name": "asks", "arguments": {}, "requestState": state, "inputResponses": answers}
        answer = reply_to(foreign, "prompts/get", retry, capabilities=forms)
        assert (answer.status, answer.code) == (200, None if trusts else -32602)
        other_arguments = {**retry, "arguments": {"who": "Eve"}}
        assert reply_to(app, "prompts/get", other_arguments, capabilities=forms).code == -32602
        session = {**retry, "requestState": sealed}
        assert reply_to(app, "prompts/get", session, capabilities=forms).code == -32602
        foreign.close(0)


class TestLimits:
    def test_open_streams_and_forms(self, monkeypatch):
        """Streams and forms are counted together; beyond the limit, both get an error."""
        monkeypatch.setattr("promptkit.server.dispatch._MAX_HELD", 1)

        async def ask_all():
            app = application(recipes.catalog(), changes=True)
            opened = await post(app, initialize("2025-11-25", capabilities={"elicitation": {}})).result()
            fields = {
                "mcp_session_id": opened.header("mcp-session-id"),
                "mcp_protocol_version": "2025-11-25",
            }
            stream = Caller(app, method="GET", **fields, accept="text/event-stream")
            await stream.until(lambda answer: answer.status)
            other = {**fields, "mcp_session_id": await open_another(app)}
            second = await Caller(app, method="GET", **other, accept="text/event-stream").result()
            form = await post(app, request(1, "prompts/get", {"name": "asks"}), **fields).result()
            await asyncio.to_thread(app.close, 0)
            return second, form

        async def open_another(app):
            opened = await post(app, initialize("2025-11-25")).result()
            return opened.header("mcp-session-id")

        second, form = asyncio.run(ask_all())
        assert (second.status, second.code) == (503, 429)
        assert (form.status, form.code) == (200, 429)
        assert second.header("retry-after") is not None
        assert form.header("retry-after") is not None

    def test_rate_limit(self):
        """Requests beyond the rate get an error with status 200 and Retry-After, in both eras."""
        app = application(recipes.catalog(), rate=1)
        answers = [reply_to(app, "prompts/list", revision=revision) for revision in ERAS * 2]

        rejected = [answer for answer in answers if answer.code is not None]
        assert len(rejected) >= 2
        assert {(answer.status, answer.code, answer.header("retry-after")) for answer in rejected} == {
            (200, 429, "1")
        }
        app.close(0)

    @pytest.mark.parametrize("method", ["prompts/list", "completion/complete"])
    def test_rate_limit_is_per_address(self, method):
        """Requests from one address are rejected; other addresses are served."""
        app = application(recipes.catalog(), rate=0.01, completions=0.01)
        params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
        message = modern(1, method, params if method == "completion/complete" else None)

        async def ask(address):
            caller = post(app, message)
            caller.scope["client"] = address
            return await caller.result()

        async def ask_all():
            addresses = [("10.0.0.1", 1), ("10.0.0.1", 2), ("10.0.0.2", 1), None]
            return [await ask(address) for address in addresses]

        answers = asyncio.run(ask_all())
        assert [answer.status for answer in answers] == [200] * 4
        assert [answer.code for answer in answers] == [None, 429, None, None]
        app.close(0)

    def test_concurrent_renderings_are_limited(self):
        """Prompts beyond the limit wait, and requests beyond the queue are rejected."""
        app = application(recipes.catalog(), renders=1, waiting=1)

        async def ask():
            started = len(recipes.STARTED)
            first = post(app, modern(1, "prompts/get", {"name": "waits", "arguments": {"seconds": "20"}}))
            while len(recipes.STARTED) == started:
                await asyncio.sleep(0.001)
            second = post(app, modern(2, "prompts/get", {"name": "greet"}))
            while not app._server._dispatcher.waiting_count:
                await asyncio.sleep(0.001)
            rejected = await post(app, modern(3, "prompts/get", {"name": "greet"})).result()
            first.gone.set()
            await first.result()
            return rejected, await second.result()

        rejected, answer = asyncio.run(ask())
        assert (rejected.code, answer.status, answer.json["id"]) == (429, 200, 2)
        app.close(0)


class TestBodies:
    @pytest.mark.parametrize("sizes", [[101], [50, 51], [1] * 101, [100, 1, 0], [0, 0, 101], [100, 1000]])
    def test_oversized_body_is_rejected(self, sizes):
        """
        The rest of a body above the limit is read and dropped, so that the client receives the 413 response.
        """
        app = application(recipes.catalog(), body=100)

        async def ask():
            caller = Caller(app, [b"x" * size for size in sizes])
            answer = await caller.result()
            assert caller.pieces == []
            return answer

        answer = asyncio.run(ask())
        assert (answer.status, answer.code, answer.header("connection")) == (413, -32600, None)
        assert "100 bytes" in answer.json["error"]["message"]

    def test_body_of_the_maximum_length_is_served(self):
        """A body of exactly the maximum length is served."""
        app = application(recipes.catalog(), body=200)
        body = body_of(request(1, "ping")).ljust(200)

        assert answer_to(app, body).status == 200
        assert answer_to(app, body + b" ").status == 413
        app.close(0)

    def test_endless_body_closes_the_connection(self):
        """An endless body is read up to a limit; then the connection is closed."""
        app = application(recipes.catalog(), body=100)

        async def ask():
            caller = Caller(app, [b"x" * 2**20] * 40)
            answer = await caller.result()
            assert len(caller.pieces) > 20
            return answer

        answer = asyncio.run(ask())
        assert (answer.status, answer.header("connection")) == (413, "close")

    def test_rejected_body_is_read(self, app):
        """A rejected body is read, so that the client can read the response and reuse the connection."""

        async def ask():
            caller = Caller(app, [b"x" * 2**20] * 8, path="/nowhere")
            answer = await caller.result()
            assert caller.pieces == []
            return answer

        answer = asyncio.run(ask())
        assert (answer.status, answer.header("connection")) == (404, None)

    def test_rejected_body_is_read_within_limits(self):
        """
        A body that is too long or too slow closes the connection; a body that waits for 100 (Continue) is not
        read.
        """
        app = application(recipes.catalog(), body_timeout=0.05)

        async def never():
            await asyncio.sleep(20)

        async def ask(pieces, **fields):
            caller = Caller(app, pieces, path="/nowhere", **fields)
            answer = await caller.result()
            return answer.status, answer.header("connection"), len(caller.pieces)

        assert asyncio.run(ask([b"x" * 2**20] * 40)) == (404, "close", 23)
        assert asyncio.run(ask([b"x", never, b"x"])) == (404, "close", 1)
        assert asyncio.run(ask([b"x"], expect="100-continue")) == (404, "close", 1)

    @pytest.mark.parametrize(("path", "status"), [("/mcp", 400), ("/nowhere", 404)])
    def test_failing_body_read(self, app, path, status):
        """
        Any exception of the server while it reads the body closes the connection, with 400 if the body is
        needed.
        """

        async def broken():
            raise OSError

        answer = asyncio.run(post_pieces(app, [b"{", broken], path))
        assert (answer.status, answer.code, answer.header("connection")) == (status, -32600, "close")

    @pytest.mark.parametrize("path", ["/mcp", "/healthz"])
    @pytest.mark.parametrize("encoding", ["gzip, chunked", "identity", ["chunked", "chunked"], ""])
    def test_encoded_body_is_rejected(self, app, path, encoding):
        """
        Content encodings are rejected with 400, because some servers pass on the encoded body. Chunked bodies
        are served.
        """
        answer = answer_to(app, request(1, "ping"), path=path, transfer_encoding=encoding)

        assert (answer.status, answer.code, answer.header("connection")) == (400, -32600, "close")
        assert answer_to(app, request(1, "ping"), transfer_encoding="Chunked").status == 200

    def test_body_in_pieces(self, app):
        """A body can arrive in any pieces."""
        message = modern(1, "prompts/list")
        body = body_of(message)

        async def ask(pieces):
            caller = post(app, message)
            caller.pieces = pieces
            return await caller.result()

        for pieces in ([body], [b"", body, b""], [bytes([byte]) for byte in body]):
            assert asyncio.run(ask(list(pieces))).status == 200

    def test_disconnect_during_the_body(self, app):
        """If the client disconnects during the body, the application sends no response."""

        async def ask():
            caller = Caller(app, [])
            caller.gone.set()
            return await caller.result()

        assert asyncio.run(ask()).status == 0


def hidden_catalog(name):
    """Return a catalog with one prompt that needs a scope."""

    @prompt(name=name, scopes=["secret"])
    def hidden():
        """A prompt that needs a scope."""
        return "Hidden."

    return compile(Recipes(prompts=(hidden,)))


def readiness_of(catalog, settings):
    """Return the body of the readiness reply of a server with this catalog."""
    app = Application(catalog, settings)
    try:
        answer = answer_to(app, b"", method="GET", path="/readyz")
        assert (answer.status, answer.json["status"]) == (200, "ready")
        return answer.body.decode()
    finally:
        app.close(0)


class TestHealth:
    def test_health_checks_accept_any_host(self, app):
        """A health check can name an unknown host."""
        for path in ("/healthz", "/readyz"):
            assert answer_to(app, b"", method="GET", path=path, host="10.0.0.1").status == 200

    def test_draining_server(self):
        """
        A draining process is not ready, but serves requests. It does not ask clients to close their
        connections, because other requests can be pending.
        """
        app = application(recipes.catalog())
        app.draining = True

        assert answer_to(app, b"", method="GET", path="/readyz").status == 503
        assert answer_to(app, b"", method="GET", path="/healthz").status == 200
        served = answer_to(app, modern(1, "prompts/list"))
        assert (served.status, served.header("connection")) == (200, None)
        app.close(0)

    def test_digest_is_computed_off_the_event_loop(self, app, monkeypatch):
        """The slow digest of a large catalog does not block the event loop."""
        threads = []

        def digest(_snapshot):
            threads.append(threading.current_thread())
            return "all of it"

        monkeypatch.setattr(Snapshot, "digest", property(digest))

        app = application(recipes.catalog())
        ready = answer_to(app, b"", method="GET", path="/readyz")
        app.close(0)
        assert ready.json["status"] == "ready"
        assert threads
        assert threading.current_thread() not in threads

    @pytest.mark.parametrize("settings", [Settings(), Settings(own_key=b"o" * 32)], ids=["random", "own"])
    def test_no_digest_without_keys(self, settings):
        """
        A client could guess hidden prompts and compare digests, so without shared keys all catalogs look
        alike.
        """
        assert {
            readiness_of(catalog, settings)
            for catalog in (recipes.catalog(), hidden_catalog("a"), hidden_catalog("b"))
        } == {'{"status":"ready","errors":0}'}

    def test_digest_compares_replicas(self):
        """
        Replicas with the same recipes, keys and name have the same digest, which cannot be computed without
        the keys.
        """
        settings = Settings(keys=[KEY, b"n" * 32])
        body = readiness_of(hidden_catalog("a"), settings)

        assert body == readiness_of(hidden_catalog("a"), Settings(keys=[KEY]))
        different = [
            Settings(keys=[b"n" * 32, KEY]),
            Settings(keys=[KEY], identity=ServerInfo("others", "1")),
        ]
        answers = {
            body,
            readiness_of(hidden_catalog("b"), settings),
            *(readiness_of(hidden_catalog("a"), each) for each in different),
        }
        assert len(answers) == 4
        public_digest = SharedServer(
            hidden_catalog("a"), bool, identity=ServerInfo("promptkit", VERSION)
        ).snapshot.digest
        assert public_digest not in body

    def test_server_without_a_reader_is_not_ready(self):
        """A process in which no thread reads requests is alive, but not ready."""
        app = application(recipes.catalog())
        server = app.start()
        assert answer_to(app, b"", method="GET", path="/readyz").status == 200

        app.close(0)
        deadline = time.monotonic() + 10
        while server.is_reading:
            assert time.monotonic() < deadline

        answer = answer_to(app, b"", method="GET", path="/readyz")
        assert (answer.status, answer.json) == (503, {"status": "no thread reads requests"})
        assert answer_to(app, b"", method="GET", path="/healthz").status == 200


class TestMounted:
    @pytest.mark.parametrize(
        ("root", "path", "status"),
        [
            ("", "/mcp", 200),
            ("", "/", 404),
            ("/prompts", "/prompts", 200),
            ("/prompts", "/prompts/", 200),
            ("/prompts", "/prompts/mcp", 200),
            ("/prompts/", "/prompts/mcp/", 200),
            ("/prompts", "/prompts/x", 404),
            ("/prompts", "/promptsmcp", 404),
            ("/a", "/mcp", 200),
        ],
    )
    def test_mount_paths(self, app, root, path, status):
        """The application answers at the path of the mount, and at the endpoint below it."""
        assert answer_to(app, modern(1, "prompts/list"), root=root, path=path).status == status


class TestClosing:
    def test_closed_application_rejects_requests(self):
        """Requests to a closed application get 503 immediately."""
        app = application(recipes.catalog())
        assert answer_to(app, modern(1, "prompts/list")).status == 200
        app.close(0)

        answer = answer_to(app, modern(1, "prompts/list"))
        assert (answer.status, answer.code, answer.header("connection")) == (503, -32603, "close")

    def test_lifespan(self):
        """The application starts and closes with the lifespan of the ASGI server."""
        app = application(recipes.catalog())
        sent = []

        async def run_lifespan():
            received = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

            async def receive():
                return next(received)

            async def send(event):
                sent.append(event["type"])

            await app({"type": "lifespan"}, receive, send)

        asyncio.run(run_lifespan())
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert answer_to(app, modern(1, "prompts/list")).status == 503

    def test_websocket_is_rejected(self, app):
        """The application closes WebSocket connections."""
        sent = []

        async def open_socket():
            async def receive():
                return {"type": "websocket.connect"}

            async def send(event):
                sent.append(event["type"])

            await app({"type": "websocket"}, receive, send)

        asyncio.run(open_socket())
        assert sent == ["websocket.close"]


def test_several_event_loops(app):
    """Each event loop gets its own replies, sequentially and concurrently."""

    async def ask(number):
        answers = [
            post(app, modern(f"{number}.{each}", "prompts/get", {"name": "greet"})) for each in range(20)
        ]
        return [json.loads((await answer.result()).body)["id"] for answer in answers]

    async def run_loops():
        return await asyncio.gather(*(asyncio.to_thread(asyncio.run, ask(number)) for number in range(3)))

    for number, ids in enumerate(asyncio.run(run_loops())):
        assert ids == [f"{number}.{each}" for each in range(20)]
