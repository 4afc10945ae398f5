"""Fetching documents from a slow issuer: the deadline, and the cleanup afterwards."""

import socket
import threading
import time

import pytest

from promptkit.transports.auth.issuer import DocumentUnavailableError, fetch_document

#: The deadline of a fetch, and how long a test waits for anything, in seconds.
DEADLINE_S, WAIT_S = 0.4, 10.0

OK = b"HTTP/1.1 200 OK\r\n"

#: For each kind: the first bytes of the response, and the bytes that the server then repeats.
RESPONSES = {
    "status line": (b"HTTP/1.1 200 ", b"O"),
    "one header": (OK + b"x: ", b"y"),
    "headers": (OK, b"x: y\r\n"),
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": (OK + b"content-length: 9999\r\n\r\n{", b" "),
    "body without a length": (OK + b"\r\n{", b" "),
    "chunks": (OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "line of a chunk": (OK + b"transfer-encoding: chunked\r\n\r\n1;", b"x"),
    "body of an error": (b"HTTP/1.1 500 No\r\n\r\n", b"x"),
    "TLS": (b"\x16\x03\x03\x40\x00", b"\0"),
    "proxy": (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
}


class TricklingServer:
    """
    A server that never completes the response to its one client, and records when that client disconnects.
    """

    def __init__(self, first, repeated):
        self.disconnected = threading.Event()
        self._first, self._then = first, repeated
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"

    def serve(self):
        """Send the repeated part until the client disconnects or the time is up."""
        with self.listening, self.listening.accept()[0] as client:
            client.settimeout(0.02)
            client.sendall(self._first)
            deadline = time.monotonic() + WAIT_S
            while not self.disconnected.is_set() and time.monotonic() < deadline:
                try:
                    client.sendall(self._then)
                    if not client.recv(4096):
                        self.disconnected.set()
                except TimeoutError:
                    continue
                except OSError:
                    self.disconnected.set()


@pytest.mark.parametrize("kind", RESPONSES)
def test_trickling_response_times_out(kind, monkeypatch):
    """A fetch meets its deadline and closes its connection, whichever part of the response trickles."""
    server = TricklingServer(*RESPONSES[kind])
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    url = f"http://{server.address}/keys"
    if kind == "TLS":
        url = f"https://{server.address}/keys"
    elif kind == "proxy":
        monkeypatch.setenv("HTTPS_PROXY", f"http://{server.address}")
        url = "https://issuer.example/keys"
    started = time.monotonic()
    with pytest.raises(DocumentUnavailableError) as error:
        fetch_document(url, DEADLINE_S)

    assert time.monotonic() - started < WAIT_S / 2
    assert server.disconnected.wait(WAIT_S / 2)
    thread.join(WAIT_S)
    expected = "HTTP Error 500: No" if kind == "body of an error" else "it did not arrive within 0.4 s"
    assert str(error.value) == f"{url}: {expected}"


def test_fetch_leaves_no_thread_behind():
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listening, listening.accept()[0] as client:
            client.recv(65536)
            client.sendall(OK + b"\r\n{}")

    thread = threading.Thread(target=serve)
    thread.start()
    before = set(threading.enumerate())
    assert fetch_document(f"http://127.0.0.1:{listening.getsockname()[1]}/keys", WAIT_S) == {}
    thread.join(WAIT_S)
    for thread in set(threading.enumerate()) - before:
        thread.join(WAIT_S)
        assert not thread.is_alive()
