"""Documents of an issuer that is slow: how long they are waited for, and what is left then."""

import socket
import threading
import time

import pytest

from promptkit.transports.auth.issuer import DocumentUnavailableError, fetch_document

#: How long a document may take here, in seconds, and how long a test waits for the end.
SECONDS, PATIENCE = 0.4, 10.0

OK = b"HTTP/1.1 200 OK\r\n"

#: What a server sends at once, and what it sends again and again after that.
TRICKLES = {
    "status line": (b"HTTP/1.1 200 ", b"O"),
    "one header": (OK + b"x: ", b"y"),
    "headers": (OK, b"x: y\r\n"),
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (OK + b"content-length: 9999\r\n\r\n{", b" "),
    "body without a length": (OK + b"\r\n{", b" "),
    "a whole document without a length": (OK + b"\r\n{}", b" "),
    "chunks": (OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "line of a chunk": (OK + b"transfer-encoding: chunked\r\n\r\n1;", b"x"),
    "body of an error": (b"HTTP/1.1 500 No\r\n\r\n", b"x"),
    "TLS": (b"\x16\x03\x03\x40\x00", b"\0"),
    "proxy": (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
}


class Slow:
    """A server that has one client, never comes to an end, and notes when the client leaves."""

    def __init__(self, first, then):
        self.left = threading.Event()
        self._first, self._then = first, then
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"

    def serve(self):
        """Trickle, until the client has left, or has not for long."""
        with self.listening, self.listening.accept()[0] as client:
            client.settimeout(0.02)
            client.sendall(self._first)
            until = time.monotonic() + PATIENCE
            while not self.left.is_set() and time.monotonic() < until:
                try:
                    client.sendall(self._then)
                    if not client.recv(4096):
                        self.left.set()
                except TimeoutError:
                    continue
                except OSError:
                    self.left.set()


@pytest.mark.parametrize("kind", TRICKLES)
def test_an_issuer_that_trickles(kind, monkeypatch):
    """
    Wherever it does so, the fetch is over in time, and so is the connection.
    """
    slow = Slow(*TRICKLES[kind])
    thread = threading.Thread(target=slow.serve, daemon=True)
    thread.start()
    url = f"http://{slow.address}/keys"
    if kind == "TLS":
        url = f"https://{slow.address}/keys"
    elif kind == "proxy":
        monkeypatch.setenv("HTTPS_PROXY", f"http://{slow.address}")
        url = "https://issuer.example/keys"
    begun = time.monotonic()
    with pytest.raises(DocumentUnavailableError) as refused:
        fetch_document(url, SECONDS)

    assert time.monotonic() - begun < PATIENCE / 2
    assert slow.left.wait(PATIENCE / 2)
    thread.join(PATIENCE)
    expected = "HTTP Error 500: No" if kind == "body of an error" else "it did not arrive within 0.4 s"
    assert str(refused.value) == f"{url}: {expected}"


def test_nothing_is_left_of_a_fetch():
    """
    What is fetched in time leaves neither a thread nor a connection.
    """
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listening, listening.accept()[0] as client:
            client.recv(65536)
            client.sendall(OK + b"\r\n{}")

    thread = threading.Thread(target=serve)
    thread.start()
    before = set(threading.enumerate())
    assert fetch_document(f"http://127.0.0.1:{listening.getsockname()[1]}/keys", PATIENCE) == {}
    thread.join(PATIENCE)
    for other in set(threading.enumerate()) - before:
        other.join(PATIENCE)
        assert not other.is_alive()
