"""Replies that come before a body was read, and clients that end their sending side: on real connections."""

import socket
import sys
import time
from http.client import HTTPResponse

import pytest

from tests.transports.http.conftest import GREET, PATIENCE, Served

#: What a body holds that is to be taken for another request.
SMUGGLED = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def head(method, path, *fields):
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def all_of(served, data, then=b"", *, half_closed=False):
    """What a server sends for some bytes until it closes; more bytes follow once the first reply is there."""
    with served.connect() as connection:
        sock = connection.socket
        sock.settimeout(PATIENCE)
        sock.sendall(data)
        if half_closed:
            sock.shutdown(socket.SHUT_WR)
        received = b""
        if then:
            received = sock.recv(65536)
            sock.sendall(then)
        while piece := sock.recv(65536):
            received += piece
        return received


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of one prompt, which all tests leave as it was."""
    folder = tmp_path_factory.mktemp("early")
    (folder / "greet.py").write_text(GREET)
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), "--http", "0"]
    served = Served(command, folder / "log.txt")
    yield served
    served.process.kill()
    served.process.wait()


@pytest.mark.parametrize(
    "request_",
    [
        head("POST", "/nowhere", "expect: 100-continue", f"content-length: {len(SMUGGLED)}"),
        head("PUT", "/mcp", "expect: 100-continue", f"content-length: {len(SMUGGLED)}"),
        head("GET", "/healthz", "expect: 100-continue", f"content-length: {len(SMUGGLED)}"),
    ],
    ids=["404", "405", "healthz"],
)
def test_no_body_becomes_a_request(served, request_):
    """A reply in place of a body says that it is the last one, and what comes of the body is not answered."""
    received = all_of(served, request_, then=SMUGGLED)

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
def test_the_connection_is_used_after_a_refusal(served, request_):
    """A refused body is read, is not answered as a request, and the next request is."""
    received = all_of(served, request_ + head("GET", "/readyz", "connection: close"))

    assert received.count(b"HTTP/1.1 4") == received.count(b"HTTP/1.1 200 ") == 1, received
    assert received.count(b"HTTP/1.1 ") == 2


@pytest.mark.parametrize("path", ["/nowhere", "/mcp"])
def test_a_refusal_is_read_by_who_still_sends(served, path):
    """A client that sends 30 MB before it reads finds the reply, and no reset."""
    size = 30_000_000
    with served.connect() as connection:
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


def test_a_half_closed_client_is_answered(served):
    """Who says that nothing more comes, and reads on, gets all replies."""
    received = all_of(served, head("GET", "/healthz") * 2, half_closed=True)

    assert received.count(b" 200 OK") == 2


def test_a_half_closed_client_of_few_words(served):
    """What shows whether it still reads is an interim response that every client passes over."""
    with served.connect() as connection:
        connection.socket.settimeout(PATIENCE)
        connection.send(head("GET", "/readyz"))
        connection.socket.shutdown(socket.SHUT_WR)
        response = HTTPResponse(connection.socket, method="GET")
        response.begin()

    assert response.status == 200


@pytest.mark.parametrize(
    "first", [b"GET /healthz\r\n\r\n", head("GET", "/healthz").replace(b"/1.1", b"/2.0")]
)
def test_other_versions_are_refused(served, first):
    """HTTP/0.9 has no head, and HTTP/2 none of this form."""
    received = all_of(served, first)

    assert received.startswith((b"HTTP/1.1 505 ", b"HTTP/1.1 400 "))
    assert b"200 OK" not in received
