"""Heads: who asks, for what, and in which form. The statuses are the specification's, or the field's."""

import pytest

from promptkit.protocol.http.head_checks import Guard, accepts
from tests.posting import head
from tests.wire import MODERN

LISTEN = {"mcp_method": "subscriptions/listen", "mcp_protocol_version": MODERN}


def status(guard=None, **fields):
    """The status that a head is refused with; None if the request is let through."""
    response = (guard or Guard()).check(head(**fields))
    return response and response.status


class TestAHost:
    @pytest.mark.parametrize(
        "host",
        ["localhost", "localhost:1", "127.0.0.1:8000", "[::1]", "[::1]:8000", "LOCALHOST:80", " localhost\t"],
    )
    def test_this_machine_is_allowed(self, host):
        """
        Whatever the port and the case, and blanks around it, this machine may be called by its names.
        """
        assert status(host=host) is None

    @pytest.mark.parametrize(
        "host",
        [
            None,
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:8000",
            "localhost@evil.example",
            "user@localhost",
            "user:pw@localhost:80",
            "localhost.",
            "localhost:",
            "localhost:80:80",
            "localhost:-1",
            "localhost:8 0",
            "localhost:\xb2",
            "localhost/evil",
            "localhost, evil.example",
            "::1",
            "[::1",
            "[::2]:8000",
            "[::ffff:127.0.0.1]",
            "127.0.0.1.",
            "127.1",
            "0.0.0.0",  # noqa: S104 (nothing is bound)
            "2130706433",
            "0x7f.0.0.1",
            "*",
            b"\xff\x00",
            ["localhost", "localhost"],
            ["localhost", "evil.example"],
        ],
    )
    def test_every_other_host_is_misdirected(self, host):
        """
        A page that was rebound to this machine names its own host: 421, whatever it looks like.
        """
        guard = Guard()
        assert status(guard) is None

        assert status(guard, host=host) == 421

    def test_a_named_host_is_allowed_with_the_port_it_was_named_with(self):
        """
        A name allows every port; a name with a port allows that port alone. Case makes no difference.
        """
        guard = Guard(hosts=["Prompts.example", "other.example:8443"])

        allowed = ["prompts.example", "PROMPTS.example:99", "other.example:8443", "localhost"]
        assert [status(guard, host=host) for host in allowed] == [None] * 4
        refused = ["other.example", "other.example:443", "a.prompts.example", "prompts.example."]
        assert [status(guard, host=host) for host in refused] == [421] * 4

    def test_the_reply_names_the_host_and_the_option(self):
        """
        What was refused, and which option allows it, stand in the reply.
        """
        response = Guard().check(head(host="prompts.example"))

        assert response is not None
        assert b"this server is not called 'prompts.example'" in response.body
        assert b"--allow-host prompts.example" in response.body


class TestAnOrigin:
    @pytest.mark.parametrize(
        "origin",
        [None, "http://localhost", "http://localhost:3000", "https://127.0.0.1:1", "http://[::1]:5173"],
    )
    def test_pages_of_this_machine_may_ask(self, origin):
        """
        A program has no origin; a page of this machine has one of its names.
        """
        assert status(origin=origin) is None

    @pytest.mark.parametrize(
        "origin",
        [
            "null",
            "",
            "https://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://evil.example#localhost",
            "http://localhost:80@evil.example",
            "http://localhost/",
            "http://localhost:80:80",
            "ftp://localhost",
            "localhost",
            "file://",
            "http://127.0.0.1.evil.example",
            "http://localhost http://evil.example",
            "http://localhost, http://evil.example",
            b"http://localhost\xb2",
            ["http://localhost", "https://evil.example"],
            ["http://localhost", "http://localhost"],
        ],
    )
    def test_other_pages_may_not(self, origin):
        """
        A foreign origin, one that hides, and several at once are refused, in every revision.
        """
        assert status(origin=origin) == 403

    def test_only_named_origins_may_ask_a_server_with_a_name(self):
        """
        Once hosts are named, pages of this machine are foreign, too.
        """
        guard = Guard(hosts=["prompts.example"], origins=["https://Chat.example", "http://[::1]:80"])

        allowed = ["https://chat.example", "https://CHAT.example", "http://[::1]:80"]
        assert [status(guard, origin=origin) for origin in allowed] == [None] * 3
        refused = [
            "http://localhost",
            "http://chat.example",
            "https://chat.example:8443",
            "https://chat.example.",
        ]
        assert [status(guard, origin=origin) for origin in refused] == [403] * 4

    def test_an_origin_that_is_none_is_refused_at_the_start(self):
        """
        What no browser ever sends as an origin is an error in the server's configuration.
        """
        for text in ("chat.example", "https://chat.example/path", "null", ""):
            with pytest.raises(ValueError, match="is not an origin"):
                Guard(origins=[text])


class TestCors:
    def test_an_allowed_page_learns_what_it_may_send(self):
        """
        The answer to a preflight names the method and every header of the protocol.
        """
        guard = Guard()
        asked = head("OPTIONS", origin="http://localhost:3000", content_type=None)

        response = guard.check(asked)

        assert response is not None
        assert (response.status, response.body) == (204, b"")
        headers = dict(response.headers)
        assert headers[b"access-control-allow-methods"] == b"POST"
        named = headers[b"access-control-allow-headers"].split(b", ")
        protocol = {b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"}
        assert protocol | {b"content-type", b"accept", b"authorization"} <= set(named)
        allowed = dict(guard.cors(asked))
        assert allowed[b"access-control-allow-origin"] == b"http://localhost:3000"
        assert b"mcp-session-id" in allowed[b"access-control-expose-headers"]
        assert allowed[b"vary"] == b"origin"

    def test_others_learn_nothing(self):
        """
        A foreign page is told nothing, and a program without an origin neither.
        """
        guard = Guard()

        assert status(guard, method="OPTIONS", origin="https://evil.example") == 403
        assert guard.cors(head(origin="https://evil.example")) == ()
        assert guard.cors(head()) == ()
        assert status(guard, method="OPTIONS") == 405


class TestTheForm:
    @pytest.mark.parametrize(
        "method", ["GET", "DELETE", "HEAD", "PUT", "PATCH", "TRACE", "OPTIONS", "post", "X"]
    )
    def test_other_methods(self, method):
        """
        There is no stream to get and no session to end: 405, with what is allowed.
        """
        response = Guard().check(head(method))

        assert response is not None
        assert response.status == 405
        assert (b"allow", b"POST") in response.headers

    @pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
    def test_both_spellings_of_the_path(self, path):
        """
        Clients follow no redirect with a body, so a slash makes no difference.
        """
        assert status(path=path) is None

    @pytest.mark.parametrize(
        "path", ["", "/", "/mcp//", "/MCP", "/mcp/x", "/mcpx", "/x/mcp", "/mcp\x00", "*"]
    )
    def test_other_paths(self, path):
        """
        There is nothing anywhere else.
        """
        assert status(path=path) == 404

    @pytest.mark.parametrize(
        ("path", "use"), [("/metric", "use /mcp"), ("/metrics", "promptkit serve --metrics shows them")]
    )
    def test_what_is_said_of_other_paths(self, path, use):
        """
        Where prompts are, or which option shows what was looked for.
        """
        refused = Guard().check(head(path=path))

        assert f"there is nothing at '{path}': {use}" in refused.body.decode()

    @pytest.mark.parametrize(
        "content",
        ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;"],
    )
    def test_json(self, content):
        """
        The type of a body may have parameters and any case.
        """
        assert status(content_type=content) is None

    @pytest.mark.parametrize(
        "content",
        [
            None,
            "",
            "text/plain",
            "application/jsonx",
            "text/plain; application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            ["application/json", "text/plain"],
            ["text/plain", "application/json"],
        ],
    )
    def test_other_types(self, content):
        """
        What a page may send without a preflight is no JSON.
        """
        assert status(content_type=content) == 415

    @pytest.mark.parametrize(
        "accept",
        [
            None,
            "*/*",
            "application/*",
            "application/json",
            "application/json, text/event-stream",
            "text/event-stream,application/json;q=0.1",
            "text/html, */*;q=0.1",
            ["text/event-stream", "application/json"],
        ],
    )
    def test_json_is_accepted(self, accept):
        """
        JSON is sent unless the client excludes it.
        """
        assert status(accept=accept) is None

    @pytest.mark.parametrize(
        "accept",
        [
            "text/html",
            "text/event-stream",
            "text/*",
            "application/json;q=0",
            "application/json;q=0.000, */*",
            "*/*;q=0",
            "application/xml",
        ],
    )
    def test_json_is_excluded(self, accept):
        """
        A client that takes no JSON cannot be answered.
        """
        assert status(accept=accept) == 406

    @pytest.mark.parametrize(
        ("accept", "refused"),
        [
            (None, None),
            ("*/*", None),
            ("text/event-stream", None),
            ("text/*", None),
            ("application/json, text/event-stream", None),
            ("application/json", 406),
            ("application/json, text/event-stream;q=0", 406),
        ],
    )
    def test_a_stream_is_asked_for_with_its_type(self, accept, refused):
        """
        The reply to `subscriptions/listen` is a stream of events, and nothing else.
        """
        assert status(accept=accept, **LISTEN) == refused

    def test_what_a_client_takes(self):
        """
        The more exact range decides, wherever it stands.
        """
        assert accepts(b"*/*;q=0, application/json") == (True, False)
        assert accepts(b"text/event-stream;q=0, text/*;q=0.5") == (False, False)
        assert accepts(b"TEXT/Event-Stream") == (False, True)


class TestASizeOfAHead:
    def test_fields(self):
        """
        A hundred fields are taken, and not one more, whatever they are called.
        """
        few = {f"x{number}": "" for number in range(97)}

        assert status(**few) is None
        assert status(**few, more="") == 431
        assert status(x=["a"] * 98) == 431
        assert status(x=["a"] * 10_000) == 431

    def test_bytes(self):
        """
        32 KiB are taken, whether in one field, in many, or in one that is repeated.
        """
        assert status(x="a" * 32_000) is None
        assert status(x="a" * 32_768) == 431
        assert status(**{f"x{number}": "a" * 1000 for number in range(40)}) == 431
        assert status(x=["", "a" * 32_768]) == 431
        assert status(accept=["application/json"] + ["a" * 1000] * 40) == 431


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"x": "a" * 40_000, "host": "evil", "origin": "null", "path": "/"}, 431),
        ({"host": "evil", "origin": "null", "path": "/", "method": "GET"}, 421),
        ({"origin": "null", "path": "/", "method": "GET", "content_type": "text/plain"}, 403),
        ({"path": "/", "method": "GET", "content_type": "text/plain"}, 404),
        ({"method": "GET", "content_type": "text/plain", "accept": "text/html"}, 405),
        ({"content_type": "text/plain", "accept": "text/html"}, 415),
        ({"accept": "text/html"}, 406),
    ],
)
def test_the_order_of_the_checks(wrong, expected):
    """
    Of several faults the first one answers: who asks comes before what for, and that before how.
    """
    assert status(**wrong) == expected
