"""Checks of the request head, with the statuses of the specification, or the usual ones."""

import pytest

from promptkit.protocol.http.guard import Guard, parse_accept
from tests.posting import head
from tests.wire import MODERN

LISTEN = {"mcp_method": "subscriptions/listen", "mcp_protocol_version": MODERN}


def status(guard=None, **fields):
    """Return the status of a rejected head, or None for an accepted request."""
    response = (guard or Guard()).check(head(**fields))
    return response and response.status


class TestHost:
    @pytest.mark.parametrize(
        "host",
        ["localhost", "localhost:1", "127.0.0.1:8000", "[::1]", "[::1]:8000", "LOCALHOST:80", " localhost\t"],
    )
    def test_local_host_is_allowed(self, host):
        """The names of the local machine are allowed, with any port, case and surrounding whitespace."""
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
    def test_other_host_is_rejected(self, host):
        """Any other host, as after DNS rebinding, is rejected with 421."""
        guard = Guard()
        assert status(guard) is None

        assert status(guard, host=host) == 421

    def test_configured_host_is_allowed(self):
        """A name allows every port, and a name with a port only that port. Case is ignored."""
        guard = Guard(hosts=["Prompts.example", "other.example:8443"])

        allowed = ["prompts.example", "PROMPTS.example:99", "other.example:8443", "localhost"]
        assert [status(guard, host=host) for host in allowed] == [None] * 4
        rejected = ["other.example", "other.example:443", "a.prompts.example", "prompts.example."]
        assert [status(guard, host=host) for host in rejected] == [421] * 4

    def test_reply_names_the_host_and_the_option(self):
        """The response names the rejected host and the option that allows it."""
        response = Guard().check(head(host="prompts.example"))

        assert response is not None
        assert b"the host name 'prompts.example' is not allowed" in response.body
        assert b"--allow-host prompts.example" in response.body


class TestOrigin:
    @pytest.mark.parametrize(
        "origin",
        [None, "http://localhost", "http://localhost:3000", "https://127.0.0.1:1", "http://[::1]:5173"],
    )
    def test_local_origin_is_allowed(self, origin):
        """Requests without an origin, and those of local pages, are allowed."""
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
    def test_other_origin_is_rejected(self, origin):
        """Foreign, opaque and repeated origins are rejected."""
        assert status(origin=origin) == 403

    def test_local_origin_of_a_configured_host(self):
        """Once hosts are configured, local origins are rejected like any other origin."""
        guard = Guard(hosts=["prompts.example"], origins=["https://Chat.example", "http://[::1]:80"])

        allowed = ["https://chat.example", "https://CHAT.example", "http://[::1]:80"]
        assert [status(guard, origin=origin) for origin in allowed] == [None] * 3
        rejected = [
            "http://localhost",
            "http://chat.example",
            "https://chat.example:8443",
            "https://chat.example.",
        ]
        assert [status(guard, origin=origin) for origin in rejected] == [403] * 4

    def test_invalid_origin_in_the_configuration(self):
        """An origin that no browser sends is a configuration error."""
        for text in ("chat.example", "https://chat.example/path", "null", ""):
            with pytest.raises(ValueError, match="is not a valid origin"):
                Guard(origins=[text])


class TestCors:
    def test_preflight(self):
        """The response to a preflight request names the method and every header of the protocol."""
        guard = Guard()
        preflight = head("OPTIONS", origin="http://localhost:3000", content_type=None)

        response = guard.check(preflight)

        assert response is not None
        assert (response.status, response.body) == (204, b"")
        headers = dict(response.headers)
        assert headers[b"access-control-allow-methods"] == b"POST"
        headers_allowed = headers[b"access-control-allow-headers"].split(b", ")
        protocol = {b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"}
        assert protocol | {b"content-type", b"accept", b"authorization"} <= set(headers_allowed)
        allowed = dict(guard.cors_headers(preflight))
        assert allowed[b"access-control-allow-origin"] == b"http://localhost:3000"
        assert b"mcp-session-id" in allowed[b"access-control-expose-headers"]
        assert allowed[b"vary"] == b"origin"

    def test_preflight_of_other_origins(self):
        """Foreign origins and requests without an origin get no CORS headers."""
        guard = Guard()

        assert status(guard, method="OPTIONS", origin="https://evil.example") == 403
        assert guard.cors_headers(head(origin="https://evil.example")) == ()
        assert guard.cors_headers(head()) == ()
        assert status(guard, method="OPTIONS") == 405


class TestForm:
    @pytest.mark.parametrize(
        "method", ["GET", "DELETE", "HEAD", "PUT", "PATCH", "TRACE", "OPTIONS", "post", "X"]
    )
    def test_other_methods(self, method):
        """Other methods are rejected with 405 and the allowed method."""
        response = Guard().check(head(method))

        assert response is not None
        assert response.status == 405
        assert (b"allow", b"POST") in response.headers

    @pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
    def test_trailing_slash(self, path):
        """A trailing slash is accepted, because clients do not follow redirects with a body."""
        assert status(path=path) is None

    @pytest.mark.parametrize(
        "path", ["", "/", "/mcp//", "/MCP", "/mcp/x", "/mcpx", "/x/mcp", "/mcp\x00", "*"]
    )
    def test_other_paths(self, path):
        """Other paths are rejected with 404."""
        assert status(path=path) == 404

    def test_other_path(self):
        """The response names the path of the endpoint."""
        response = Guard().check(head(path="/metrics"))

        assert "there is nothing at '/metrics': use /mcp" in response.body.decode()

    @pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "deflate, gzip", " zstd\t", "identity, gzip"])
    def test_compressed_body(self, encoding):
        """A compressed body is rejected before it is read, and the response names what is accepted."""
        guard = Guard()
        assert status(guard) is None

        response = guard.check(head(content_encoding=encoding))

        assert (response.status, dict(response.headers)[b"accept-encoding"]) == (415, b"identity")
        assert b"send it without Content-Encoding" in response.body

    @pytest.mark.parametrize("encoding", ["identity", "Identity", ""])
    def test_body_that_is_not_compressed(self, encoding):
        """A client can name the encoding of an uncompressed body."""
        assert status(content_encoding=encoding) is None

    @pytest.mark.parametrize(
        "content",
        ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;"],
    )
    def test_json_content_type(self, content):
        """The content type can have parameters and any case."""
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
    def test_other_content_types(self, content):
        """The content types that a page can send without a preflight request are rejected."""
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
        """JSON is sent unless the client excludes JSON."""
        assert status(accept=accept) is None

    @pytest.mark.parametrize(
        "accept",
        [
            "text/html",
            "text/event-stream",
            "text/*",
            "application/xml",
        ],
    )
    def test_json_is_excluded(self, accept):
        """A client that does not accept JSON gets 406."""
        assert status(accept=accept) == 406

    @pytest.mark.parametrize(
        ("accept", "expected"),
        [
            (None, None),
            ("*/*", None),
            ("text/event-stream", None),
            ("text/*", None),
            ("application/json, text/event-stream", None),
            ("application/json", 406),
        ],
    )
    def test_listen_requires_an_event_stream(self, accept, expected):
        """A client must accept event streams to send `subscriptions/listen`."""
        assert status(accept=accept, **LISTEN) == expected

    def test_case_of_media_ranges(self):
        """Media types are compared without their case."""
        assert parse_accept(b"TEXT/Event-Stream") == (False, True)


class TestSize:
    def test_fields(self):
        """At most 100 headers are accepted."""
        few = {f"x{number}": "" for number in range(97)}

        assert status(**few) is None
        assert status(**few, more="") == 431
        assert status(x=["a"] * 98) == 431
        assert status(x=["a"] * 10_000) == 431

    def test_bytes(self):
        """At most 32 KiB of headers are accepted: in one header, in many, or in a repeated one."""
        assert status(x="a" * 32_000) is None
        assert status(x="a" * 32_768) == 431
        assert status(**{f"x{number}": "a" * 1000 for number in range(40)}) == 431
        assert status(x=["", "a" * 32_768]) == 431
        assert status(accept=["application/json"] + ["a" * 1000] * 40) == 431


@pytest.mark.parametrize(
    ("fields", "expected"),
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
def test_order_of_checks(fields, expected):
    """
    Only the first error is reported. The caller is checked before the path, and the path before the rest.
    """
    assert status(**fields) == expected
