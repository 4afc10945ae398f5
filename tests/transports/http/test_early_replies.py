"""Replies that are sent before the whole body has arrived."""

import sys
import time

import pytest

from tests.transports.http.conftest import GREET, PATIENCE, ServerProcess

#: A body that looks like another request.
SMUGGLED = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def head(method, path, *fields):
    """Return the head of a request."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def exchange(server, data, then=b""):
    """
    Send *data*, and return everything that the server sends until it closes; *then* is sent after the first
    reply.
    """
    with server.connect() as connection:
        sock = connection.socket
        sock.settimeout(PATIENCE)
        sock.sendall(data)
        received = b""
        if then:
            received = sock.recv(65536)
            sock.sendall(then)
        while piece := sock.recv(65536):
            received += piece
        return received


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with one prompt, shared by all tests."""
    folder = tmp_path_factory.mktemp("early")
    (folder / "greet.py").write_text(GREET)
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), "--http", "0"]
    server = ServerProcess(command, folder / "log.txt")
    yield server
    server.process.kill()
    server.process.wait()


@pytest.mark.parametrize(
    "request_",
    [
        head("POST", "/nowhere", "expect: 100-continue", f"content-length: {len(SMUGGLED)}"),
        head("PUT", "/mcp", "expect: 100-continue", f"content-length: {len(SMUGGLED)}"),
        head("GET", "/healthz", "expect: 100-continue", f"content-length: {len(SMUGGLED)}"),
    ],
    ids=["404", "405", "healthz"],
)
def test_body_after_an_early_reply_is_not_a_request(server, request_):
    """An early reply closes the connection, and the body that follows is not answered."""
    received = exchange(server, request_, then=SMUGGLED)

    assert received.count(b"HTTP/1.1 ") == 1, received
    assert b"\r\nconnection: close\r\n" in received


@pytest.mark.parametrize(
    "request_",
    [
        head("POST", "/nowhere", f"content-length: {len(SMUGGLED)}") + SMUGGLED,
        head("POST", "/nowhere", "transfer-encoding: chunked")
        + b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED),
        head("POST", "/mcp", "content-type: text/plain", f"content-length: {len(SMUGGLED)}") + SMUGGLED,
    ],
    ids=["404", "chunks", "415"],
)
def test_connection_is_reused_after_a_rejected_body(server, request_):
    """A rejected body is read and discarded, and the next request is answered."""
    received = exchange(server, request_, then=head("GET", "/readyz", "connection: close"))

    assert received.count(b"HTTP/1.1 4") == received.count(b"HTTP/1.1 200 ") == 1, received
    assert received.count(b"HTTP/1.1 ") == 2


@pytest.mark.parametrize("path", ["/nowhere", "/mcp"])
def test_client_that_still_sends_can_read_the_rejection(server, path):
    """A client that sends 30 MB before it reads gets the reply, not a reset."""
    size = 30_000_000
    with server.connect() as connection:
        sock = connection.socket
        sock.settimeout(PATIENCE)
        sock.sendall(head("POST", path, "content-type: text/plain", f"content-length: {size}"))
        for _ in range(30):
            sock.sendall(b"x" * (size // 30))
        time.sleep(0.1)
        received = b""
        while piece := sock.recv(65536):
            received += piece

    assert received.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    "first", [b"GET /healthz\r\n\r\n", head("GET", "/healthz").replace(b"/1.1", b"/2.0")]
)
def test_other_http_versions_are_rejected(server, first):
    """HTTP/0.9 and HTTP/2 requests are rejected."""
    received = exchange(server, first)

    assert received.startswith((b"HTTP/1.1 505 ", b"HTTP/1.1 400 "))
    assert b"200 OK" not in received
