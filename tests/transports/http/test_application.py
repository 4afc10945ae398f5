"""The application: every row of the table of statuses, through ASGI, with prompts of every temper."""

# ruff: noqa: ASYNC110 (what is waited for happens on other threads)
import asyncio
import json
import threading
import time

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


@pytest.fixture(scope="module")
def app():
    """One application for all tests: whatever one leaves behind, the next one meets."""
    made = application(recipes.catalog(), hosts=["prompts.example"], origins=["https://chat.example"])
    yield made
    recipes.RELEASED.set()
    made.close(1)
    recipes.RELEASED.clear()


def asked(method, params=None, number=1, revision=MODERN, **members):
    """A request, and the fields that go with it."""
    if revision == MODERN:
        return modern(number, method, params, **members), {}
    meta = {"_meta": members} if members else {}
    return request(number, method, {**(params or {}), **meta} or None), {"mcp_protocol_version": revision}


def reply_to(app, method, params=None, number=1, revision=MODERN, fields=None, **members):  # noqa: PLR0917
    """Post one request; return the answer, whose reply is checked against the published schema."""
    message, given = asked(method, params, number, revision, **members)
    answer = answer_to(app, message, **{**given, **(fields or {})})
    if answer.header("content-type") == "application/json" and "id" in answer.json:
        check(answer.json, revision, {number: method})
    return answer


async def posted(app, pieces, path="/mcp"):
    """Post a body in pieces; return the answer."""
    return await Caller(app, pieces, path=path).result()


def rendered(app, name, revision=MODERN, arguments=None, **members):
    """Post `prompts/get`; return the answer."""
    return reply_to(app, "prompts/get", {"name": name, "arguments": arguments or {}}, 1, revision, **members)


class TestServed:
    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    def test_every_list_and_a_prompt(self, app, revision):
        """
        200 and JSON, of a known length, in every revision.
        """
        for method in ("prompts/list", "resources/list", "resources/templates/list", "tools/list"):
            assert reply_to(app, method, revision=revision).status == 200
        answer = rendered(app, "greet", revision, {"name": "Ada"})

        assert answer.json["result"]["messages"][0]["content"]["text"] == "Hello, Ada!"
        assert answer.header("content-length") == str(len(answer.body))
        read = reply_to(app, "resources/read", {"uri": "note://one"}, 1, revision)
        assert read.json["result"]["contents"][0]["text"] == "One."

    @pytest.mark.parametrize("revision", ERAS)
    @pytest.mark.parametrize("number", [0, "", "x" * 1000, "\u00df", 2**63, -5])
    def test_any_id(self, app, revision, number):
        """
        It comes back as it was sent.
        """
        assert reply_to(app, "prompts/list", None, number, revision).json["id"] == number

    @pytest.mark.parametrize("revision", ERAS)
    @pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
    def test_both_paths(self, app, revision, path):
        """
        With a slash and without.
        """
        assert reply_to(app, "prompts/list", revision=revision, fields={"path": path}).status == 200

    def test_a_name_in_base64(self, app):
        """
        A name may be sent so, though it need not.
        """
        assert rendered(app, "greet", fields={"mcp_name": encoded("greet")}).status == 200
        assert rendered(app, "greet", fields={"mcp_name": encoded("Greet")}).code == -32020

    def test_a_question(self, app):
        """
        What is missing is asked for with an ordinary 200, and answered by another request.
        """
        forms = {"elicitation": {"form": {}}}
        first = rendered(app, "asks", capabilities=forms)
        assert (first.status, first.json["result"]["resultType"]) == (200, "input_required")
        state = first.json["result"]["requestState"]
        answers = {"arguments": {"action": "accept", "content": {"who": "Ada"}}}
        again = {"name": "asks", "arguments": {}, "requestState": state, "inputResponses": answers}

        said = reply_to(app, "prompts/get", again, capabilities=forms).json["result"]
        assert said["messages"][0]["content"]["text"] == "For Ada."
        forged = {**again, "requestState": state[:-2] + ("AA" if state[-2:] != "AA" else "BB")}
        assert (reply_to(app, "prompts/get", forged, capabilities=forms).code) == -32602
        silent = {**again, "inputResponses": {}}
        lost = reply_to(app, "prompts/get", silent, capabilities={})
        assert (lost.status, lost.code) == (400, -32021)

    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_nobody_with_a_session_is_asked(self, app, revision):
        """
        There is no stream for a question, so what is missing is an error.
        """
        opened = answer_to(app, initialize(revision, capabilities={"elicitation": {"form": {}}}))
        sealed = opened.header("mcp-session-id")

        answer = rendered(app, "asks", revision, fields={"mcp_session_id": sealed})
        assert (answer.status, answer.code) == (200, -32602)

    def test_a_batch(self, app):
        """
        An array for an array, in the order in which the replies came.
        """
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
            ([modern(1, "prompts/list")], {}, 400, -32600),
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
    def test_rows_of_the_table(self, app, message, fields, status, code):
        """
        One status, one code, and the length of the body, which may be empty.
        """
        answer = answer_to(app, message, **fields)

        assert (answer.status, answer.code) == (status, code)
        assert answer.header("content-length") == str(len(answer.body))
        if status == 405:
            assert answer.header("allow") == "POST"

    @pytest.mark.parametrize("fields", [{"path": "/"}, {"method": "PUT"}, {"path": "/healthz"}, {}])
    def test_a_reply_before_the_body_is_the_last_one(self, app, fields):
        """
        In place of 100 (Continue), it says that it is: some servers would take what follows for the body.
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
    def test_errors_of_handlers(self, app, revision, method, params):
        """
        200 with -32602: clients of the older era take other statuses for a broken connection.
        """
        answer = reply_to(app, method, params, 1, revision)

        assert (answer.status, answer.code) == (200, -32602)

    def test_a_resource_that_does_not_exist(self, app):
        """
        200, with the code of its era.
        """
        for revision, code in ("2025-11-25", -32002), (MODERN, -32602):
            answer = reply_to(app, "resources/read", {"uri": "note://none"}, 1, revision)
            assert (answer.status, answer.code) == (200, code)

    @pytest.mark.parametrize("revision", ERAS)
    @pytest.mark.parametrize("name", ["fails", "leaves", "interrupts", "hurries"])
    def test_prompts_that_fail(self, app, revision, name, capfd):
        """
        200 with -32603, whatever an author raises and however long it takes, and the next one is served.
        """
        answer = rendered(app, name, revision)

        assert (answer.status, answer.code) == (200, -32603)
        assert rendered(app, "greet", revision).status == 200
        capfd.readouterr()

    @pytest.mark.parametrize("revision", ERAS)
    def test_a_session_has_no_stream(self, app, revision):
        """
        Subscribing needs one, so there is none.
        """
        answer = reply_to(app, "resources/subscribe", {"uri": "note://one"}, 1, revision)

        assert (answer.status, answer.code) == (404 if revision == MODERN else 200, -32601)

    def test_a_preflight(self, app):
        """
        204 without a body or its length, and the headers for an allowed page.
        """
        answer = answer_to(app, b"", method="OPTIONS", origin="https://chat.example", content_type=None)

        assert (answer.status, answer.body, answer.header("content-length")) == (204, b"", None)
        assert answer.header("access-control-allow-origin") == "https://chat.example"
        foreign = answer_to(app, b"", method="OPTIONS", origin="https://evil.example")
        assert (foreign.status, foreign.header("access-control-allow-origin")) == (403, None)

    def test_pages_read_what_they_may(self, app):
        """
        Replies, refusals and streams carry the headers for an allowed page, and for no other.
        """
        for message in (
            modern(1, "prompts/list"),
            b"{",
            modern(1, "prompts/get", {"name": "steps"}, progressToken=1),
        ):
            answer = answer_to(app, message, origin="https://chat.example")
            assert answer.header("access-control-allow-origin") == "https://chat.example"
            assert answer.header("vary") == "origin"
            assert answer_to(app, message).header("access-control-allow-origin") is None


class TestTokensOfOthers:
    @pytest.mark.parametrize(
        "other",
        [{"keys": [b"x" * 32]}, {"name": "another"}, {"keys": [b"x" * 32, KEY], "trusts": True}],
        ids=["another key", "another name", "a ring that knows the key"],
    )
    def test_they_are_replayed(self, app, other):
        """
        What one server has sealed opens nothing at one with other keys, or with another name.
        """
        trusts = other.pop("trusts", False)
        strange = application(recipes.catalog(), **other)
        sealed = answer_to(app, initialize("2025-11-25")).header("mcp-session-id")
        listed = answer_to(strange, request(1, "prompts/list"), mcp_session_id=sealed)
        assert listed.status == (200 if trusts else 404)
        forms = {"elicitation": {"form": {}}}
        state = rendered(app, "asks", capabilities=forms).json["result"]["requestState"]
        answers = {"arguments": {"action": "accept", "content": {"who": "Ada"}}}
        again = {"name": "asks", "arguments": {}, "requestState": state, "inputResponses": answers}
        answer = reply_to(strange, "prompts/get", again, capabilities=forms)
        assert (answer.status, answer.code) == (200, None if trusts else -32602)
        elsewhere = {**again, "arguments": {"who": "Eve"}}
        assert reply_to(app, "prompts/get", elsewhere, capabilities=forms).code == -32602
        session = {**again, "requestState": sealed}
        assert reply_to(app, "prompts/get", session, capabilities=forms).code == -32602
        strange.close(0)


class TestLimits:
    def test_the_rate(self):
        """
        More requests a second than the rate get an error with status 200 and Retry-After, in both eras.
        """
        app = application(recipes.catalog(), rate=1)
        answers = [reply_to(app, "prompts/list", revision=revision) for revision in ERAS * 2]

        refused = [answer for answer in answers if answer.code is not None]
        assert len(refused) >= 2
        assert {(answer.status, answer.code, answer.header("retry-after")) for answer in refused} == {
            (200, 429, "1")
        }
        app.close(0)

    @pytest.mark.parametrize("method", ["prompts/list", "completion/complete"])
    def test_the_rate_is_that_of_an_address(self, method):
        """
        Who asks too often is refused until a time that Retry-After tells. Other addresses are served.
        """
        app = application(recipes.catalog(), rate=0.01, completions=0.01)
        given = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
        message = modern(1, method, given if method == "completion/complete" else None)

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
        assert 95 <= int(answers[1].header("retry-after")) <= 100
        app.close(0)

    def test_what_runs_at_once(self):
        """
        More prompts than may run at the same time wait, and more than may wait are refused.
        """
        app = application(recipes.catalog(), renders=1, waiting=1)

        async def ask():
            begun = len(recipes.BEGUN)
            first = post(app, modern(1, "prompts/get", {"name": "waits", "arguments": {"seconds": "20"}}))
            while len(recipes.BEGUN) == begun:
                await asyncio.sleep(0.001)
            second = post(app, modern(2, "prompts/get", {"name": "greet"}))
            while not app._server._dispatcher.waiting:
                await asyncio.sleep(0.001)
            refused = await post(app, modern(3, "prompts/get", {"name": "greet"})).result()
            first.gone.set()
            await first.result()
            return refused, await second.result()

        refused, answer = asyncio.run(ask())
        assert (refused.code, answer.status, answer.json["id"]) == (429, 200, 2)
        app.close(0)


class TestBodies:
    @pytest.mark.parametrize("sizes", [[101], [50, 51], [1] * 101, [100, 1, 0], [0, 0, 101], [100, 1000]])
    def test_one_that_is_too_long(self, sizes):
        """
        413, after the rest was read and dropped, so that the client sees the reply.
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

    def test_the_longest(self):
        """
        A body of the limit's length is served.
        """
        app = application(recipes.catalog(), body=200)
        body = body_of(request(1, "ping")).ljust(200)

        assert answer_to(app, body).status == 200
        assert answer_to(app, body + b" ").status == 413
        app.close(0)

    def test_one_that_does_not_end(self):
        """
        It is not read for ever, and the connection is closed.
        """
        app = application(recipes.catalog(), body=100)

        async def ask():
            caller = Caller(app, [b"x" * 2**20] * 40)
            answer = await caller.result()
            assert len(caller.pieces) > 20
            return answer

        answer = asyncio.run(ask())
        assert (answer.status, answer.header("connection")) == (413, "close")

    def test_a_refused_body_is_read(self, app):
        """
        The client reads the response, and can use the connection for the next request.
        """

        async def ask():
            caller = Caller(app, [b"x" * 2**20] * 8, path="/nowhere")
            answer = await caller.result()
            assert caller.pieces == []
            return answer

        answer = asyncio.run(ask())
        assert (answer.status, answer.header("connection")) == (404, None)

    def test_a_refused_body_is_read_within_limits(self):
        """
        A body that is too long, or does not arrive in time, closes the connection; one that waits for 100
        (Continue) is not read.
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
    def test_the_server_cannot_read_a_body(self, app, path, status):
        """
        400 if it is needed, for any exception that the server raises; the connection is closed.
        """

        async def broken():
            raise OSError

        answer = asyncio.run(posted(app, [b"{", broken], path))
        assert (answer.status, answer.code, answer.header("connection")) == (status, -32600, "close")

    @pytest.mark.parametrize("path", ["/mcp", "/healthz"])
    @pytest.mark.parametrize("encoding", ["gzip, chunked", "identity", ["chunked", "chunked"], ""])
    def test_an_encoded_body(self, app, path, encoding):
        """
        400, because some servers pass it on as it was sent. In chunks, a body is served.
        """
        answer = answer_to(app, request(1, "ping"), path=path, transfer_encoding=encoding)

        assert (answer.status, answer.code, answer.header("connection")) == (400, -32600, "close")
        assert answer_to(app, request(1, "ping"), transfer_encoding="Chunked").status == 200

    def test_in_any_pieces(self, app):
        """
        It does not matter how a body arrives.
        """
        message = modern(1, "prompts/list")
        body = body_of(message)

        async def ask(pieces):
            caller = post(app, message)
            caller.pieces = pieces
            return await caller.result()

        for pieces in ([body], [b"", body, b""], [bytes([byte]) for byte in body]):
            assert asyncio.run(ask(list(pieces))).status == 200

    def test_a_client_that_leaves_while_it_sends(self, app):
        """
        Nobody is answered.
        """

        async def ask():
            caller = Caller(app, [])
            caller.gone.set()
            return await caller.result()

        assert asyncio.run(ask()).status == 0


def hiding(name):
    """A catalog in which one prompt is for callers with a scope alone."""

    @prompt(name=name, scopes=["secret"])
    def hidden():
        """Nobody else knows it."""
        return "Hidden."

    return compile(Recipes(prompts=(hidden,)))


def ready_of(catalog, settings):
    """What a server that is ready says of itself."""
    app = Application(catalog, settings)
    try:
        answer = answer_to(app, b"", method="GET", path="/readyz")
        assert (answer.status, answer.json["status"]) == (200, "ready")
        return answer.body.decode()
    finally:
        app.close(0)


class TestHealth:
    def test_it_is_asked_by_anybody(self, app):
        """
        A probe names no host that is known, and needs none.
        """
        for path in ("/healthz", "/readyz"):
            assert answer_to(app, b"", method="GET", path=path, host="10.0.0.1").status == 200

    def test_draining(self):
        """
        A process that is about to end is not ready. What it serves, it serves, and which reply is the last
        one on a connection is not its business: others may wait behind this one.
        """
        app = application(recipes.catalog())
        app.draining = True

        assert answer_to(app, b"", method="GET", path="/readyz").status == 503
        assert answer_to(app, b"", method="GET", path="/healthz").status == 200
        served = answer_to(app, modern(1, "prompts/list"))
        assert (served.status, served.header("connection")) == (200, None)
        app.close(0)

    def test_a_large_catalog_holds_up_nobody(self, app, monkeypatch):
        """
        What takes long to say of a catalog is found beside the event loop.
        """
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
    def test_without_keys_it_tells_nothing_of_the_catalog(self, settings):
        """
        A client could guess what is hidden, and compare: so all catalogs look alike.
        """
        assert {ready_of(catalog, settings) for catalog in (recipes.catalog(), hiding("a"), hiding("b"))} == {
            '{"status":"ready","errors":0}'
        }

    def test_with_keys_replicas_can_be_compared(self):
        """
        Those of the same recipes, keys and name say the same; without the keys nobody can compute it.
        """
        own = Settings(keys=[KEY, b"n" * 32])
        said = ready_of(hiding("a"), own)

        assert said == ready_of(hiding("a"), Settings(keys=[KEY]))
        others = [Settings(keys=[b"n" * 32, KEY]), Settings(keys=[KEY], name="others")]
        answers = {said, ready_of(hiding("b"), own), *(ready_of(hiding("a"), one) for one in others)}
        assert len(answers) == 4
        known = SharedServer(hiding("a"), bool, identity=ServerInfo("promptkit", VERSION)).snapshot.digest
        assert known not in said

    def test_nobody_reads(self):
        """
        A process in which no thread reads requests any more is alive, but not ready.
        """
        app = application(recipes.catalog())
        server = app.start()
        assert answer_to(app, b"", method="GET", path="/readyz").status == 200

        app.close(0)
        until = time.monotonic() + 10
        while server.is_reading:
            assert time.monotonic() < until

        answer = answer_to(app, b"", method="GET", path="/readyz")
        assert (answer.status, answer.json) == (503, {"status": "nobody reads requests"})
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
    def test_paths(self, app, root, path, status):
        """
        It answers at the path of the mount, and at the endpoint below it.
        """
        assert answer_to(app, modern(1, "prompts/list"), root=root, path=path).status == status


class TestTheEnd:
    def test_requests_after_it(self):
        """
        Once it is closed nothing is served, and nobody waits.
        """
        app = application(recipes.catalog())
        assert answer_to(app, modern(1, "prompts/list")).status == 200
        app.close(0)

        answer = answer_to(app, modern(1, "prompts/list"))
        assert (answer.status, answer.code, answer.header("connection")) == (503, -32603, "close")

    def test_lifespan(self):
        """
        With a lifespan it starts before the first request, and ends with it.
        """
        app = application(recipes.catalog())
        sent = []

        async def live():
            received = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

            async def receive():
                return next(received)

            async def send(event):
                sent.append(event["type"])

            await app({"type": "lifespan"}, receive, send)

        asyncio.run(live())
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert answer_to(app, modern(1, "prompts/list")).status == 503

    def test_a_socket_is_refused(self, app):
        """
        There are no web sockets.
        """
        sent = []

        async def open_socket():
            async def receive():
                return {"type": "websocket.connect"}

            async def send(event):
                sent.append(event["type"])

            await app({"type": "websocket"}, receive, send)

        asyncio.run(open_socket())
        assert sent == ["websocket.close"]


def test_several_loops(app):
    """
    Each event loop gets its own replies, one after the other and side by side.
    """

    async def ask(number):
        answers = [
            post(app, modern(f"{number}.{each}", "prompts/get", {"name": "greet"})) for each in range(20)
        ]
        return [json.loads((await answer.result()).body)["id"] for answer in answers]

    async def both():
        return await asyncio.gather(*(asyncio.to_thread(asyncio.run, ask(number)) for number in range(3)))

    for number, ids in enumerate(asyncio.run(both())):
        assert ids == [f"{number}.{each}" for each in range(20)]
