"""
Attacks on a real server process: no foreign request is served, memory is limited, and valid requests are
answered.
"""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.posting import modern_headers
from tests.wire import modern, request

pytest.importorskip("uvicorn")
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc"),
    pytest.mark.timeout(120),
]

RECIPES = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}!"

@prompt
def long():
    """Return a long text."""
    return "x" * 3_000_000
'''
SERVE = """
import sys
from promptkit.asgi import app
from promptkit.protocol.limits import Limits
application = app(sys.path[0] + "/greetings.py", limits=Limits(held=64 * 1024 * 1024))
application.body_timeout = 6.0  # shorter than the default of 10 s
"""
LIST = modern(1, "prompts/list")
LISTEN = modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
MIB = 1 << 20

#: The memory growth in MiB that an attack can cause, if more than 50: the allocator keeps the memory of many
#: bodies and replies for later ones.
GROWTH_MIB = {"test_many_incomplete_bodies": 100, "test_clients_that_do_not_read": 400}


class Process:
    """A server process, and its memory."""

    def __init__(self, folder):
        (folder / "greetings.py").write_text(RECIPES, encoding="utf-8")
        (folder / "serve_attacked.py").write_text(SERVE, encoding="utf-8")
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.port = self.listener.getsockname()[1]
        command = ["-m", "uvicorn", "serve_attacked:application", "--fd", str(self.listener.fileno())]
        self.process = subprocess.Popen(
            [
                sys.executable,
                *command,
                "--app-dir",
                str(folder),
                "--no-access-log",
                "--log-level",
                "critical",
            ],
            pass_fds=[self.listener.fileno()],
            cwd=folder,
            env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        )
        self.check_serving()

    @property
    def resident(self):
        """The resident memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def connect(self, timeout=20.0):
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def exchange(self, data):
        """Send bytes on a new connection, and return the status and the body of the first response."""
        with self.connect() as connection:
            with contextlib.suppress(ConnectionError):  # it can be rejected before it is sent completely
                connection.sendall(data)
            return response(connection)

    def check_serving(self):
        """Check that a valid request is answered."""
        status, body = self.exchange(request_bytes(modern(1, "prompts/get", {"name": "greet"})))
        assert (status, b"Hello, you!" in body) == (200, True)

    def kill(self):
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self.listener.close()


def response(connection):
    """Read one response, and return its status and body; the status is 0 without a response."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in received and (data := connection.recv(65536)):
            received += data
        head, _, body = received.partition(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while length and len(body) < int(length[0].split(b":")[1]) and (data := connection.recv(65536)):
            body += data
        return (int(head.split()[1]), body) if head else (0, b"")
    return 0, b""


def request_bytes(message, *lines, host="localhost", length=None, **fields):
    """Return the bytes of a request."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    repeated = (
        {} if isinstance(message, bytes) else modern_headers(message) if "_meta" in message["params"] else {}
    )
    headers = {"content-type": "application/json", **repeated, **fields}
    head = [b"POST /mcp HTTP/1.1", f"host: {host}".encode("latin-1")]
    head += [f"{name}: {value}".encode("latin-1") for name, value in headers.items()]
    if length is None:
        head.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*head, *lines, b"", b""]) + body


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One process for all attacks, so that leftover state of one attack affects the next."""
    process = Process(tmp_path_factory.mktemp("attacked"))
    yield process
    process.kill()


@pytest.fixture(autouse=True)
def check_survival(server, request):
    """Check after each attack that memory is limited, and that the next valid request is answered."""
    before = server.resident
    yield
    server.check_serving()
    assert server.resident - before < GROWTH_MIB.get(request.node.name, 50)


class TestHeads:
    @pytest.mark.parametrize(
        "attack",
        [
            request_bytes(LIST, *[b"x%d: y" % number for number in range(10_000)]),
            request_bytes(LIST, *[b"x: y"] * 10_000),
            request_bytes(LIST, b"x: " + b"y" * MIB),
            request_bytes(LIST, b"mcp-name: " + b"y" * 40_000),
        ],
    )
    def test_huge_heads_are_rejected(self, server, attack):
        """Thousands of fields, and a field of 1 MiB, are rejected."""
        assert server.exchange(attack)[0] in {0, 400, 431}

    @pytest.mark.parametrize(
        "attack",
        [
            request_bytes(LIST, b"transfer-encoding: chunked"),
            request_bytes(LIST, b"content-length: 5"),
            request_bytes(LIST, b"transfer-encoding: chunked, identity", length=0),
            request_bytes(LIST, b"content-length: -1", length=0),
            request_bytes(LIST, b"content-length: 0x10", length=0),
            request_bytes(LIST, b"host: evil.example"),
            request_bytes(LIST, b"origin: http://localhost", b"origin: http://evil.example"),
            request_bytes(LIST, b"content-type: text/plain"),
            request_bytes(LIST, b"mcp-method: prompts/get"),
            request_bytes(LIST, b"mcp-method : prompts/list"),
            request_bytes(LIST).replace(b"host: localhost\r\n", b""),
            request_bytes(LIST).replace(b" HTTP/1.1", b" HTTP/1.0").replace(b"host: localhost\r\n", b""),
            request_bytes(LIST)
            .replace(b"/mcp", b"http://evil.example/mcp")
            .replace(b"localhost", b"evil.example"),
        ],
    )
    def test_ambiguous_heads_are_rejected(self, server, attack):
        """
        Duplicate or conflicting lengths, hosts and origins are rejected, because proxies could read them
        differently.
        """
        status, body = server.exchange(attack)

        assert status in {0, 400, 403, 408, 415, 421}
        assert b"greet" not in body

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "localhost.evil.example",
            "user@localhost",
            "localhost@evil.example",
            "LOCALHOST.",
            "localhost:80:80",
            "localhost:x",
            "[::2]",
            "[::1",
            "0.0.0.0",  # noqa: S104 (no socket is bound)
            "",
        ],
    )
    def test_foreign_hosts_are_rejected(self, server, host):
        """A page whose name was rebound to this machine (DNS rebinding) cannot read prompts."""
        assert server.exchange(request_bytes(LIST, host=host))[0] in {400, 421}
        assert server.exchange(request_bytes(LIST, host="LocalHost:1"))[0] == 200

    @pytest.mark.parametrize(
        "origin",
        ["null", "https://evil.example", "http://localhost.evil.example", "http://localhost@evil", "x"],
    )
    def test_foreign_origins_are_rejected(self, server, origin):
        """Pages of other sites are not served."""
        assert server.exchange(request_bytes(LIST, origin=origin))[0] == 403
        assert server.exchange(request_bytes(LIST, origin="http://LOCALHOST:1"))[0] == 200


class TestBodies:
    @pytest.mark.parametrize(
        "body",
        [
            b"[" * 4_000_000,
            b'{"a":' * 800_000,
            b"[" + b"1," * 2_000_000 + b"1]",
            b"[" + b"{}," * 1_300_000 + b"1]",
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"a":[' + b"{}," * 1_300_000 + b"1]}}}",
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{' + b'"k":1,' * 600_000 + b'"k":1}}',
            b'{"jsonrpc":"2.0","id":"' + b"x" * 4_000_000 + b'","method":"x"}',
            b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 4_000_000 + b'"}',
            b'"' + b"\\ud800" * 690_000 + b'"',
            b" " * 4_000_000,
            b"\xff" * 4_000_000,
        ],
        ids=[
            "arrays",
            "objects",
            "numbers",
            "many objects",
            "meta",
            "params",
            "id",
            "method",
            "halves",
            "blanks",
            "bytes",
        ],
    )
    def test_invalid_bodies_of_maximum_length(self, server, body):
        """A body of the maximum length is rejected quickly, whatever it contains, in both eras."""
        for fields in ({}, {"mcp-protocol-version": "2026-07-28"}):
            assert server.exchange(request_bytes(body, **fields))[0] in {200, 400, 404}

    def test_endless_body_is_rejected(self, server):
        """An endless body is rejected, and the connection is closed."""
        piece = b"%x\r\n" % MIB + b"x" * MIB + b"\r\n"
        with server.connect() as connection:
            connection.sendall(request_bytes(b"", b"transfer-encoding: chunked", length=0))
            with contextlib.suppress(ConnectionError):
                for _ in range(200):
                    connection.sendall(piece)
            assert response(connection)[0] in {0, 413}

    def test_oversized_body_is_rejected(self, server):
        """A client that sends a body above the limit can send all of it, and receives the 413 response."""
        assert server.exchange(request_bytes(b"x" * (5 * MIB)))[0] == 413

    def test_many_incomplete_bodies(self, server):
        """Incomplete bodies share the memory of `Limits.held`, and time out."""
        before, incomplete = server.resident, request_bytes(b"x" * 4_000_000)[:-1000]
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(server.connect()) for _ in range(25)]
            for connection in connections:
                # With the small buffer of the kernel, the server has read each body before the next one.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
                connection.sendall(incomplete)
            server.check_serving()
            assert server.exchange(request_bytes(b"x" * 4_000_000))[0] == 503
            assert server.resident - before < 100
            assert {response(connection)[0] for connection in connections} == {408}
        assert server.exchange(request_bytes(b"x" * 4_000_000))[0] == 400


class TestConnections:
    def test_thousands_of_short_connections(self, server):
        """The server survives thousands of clients that disconnect before, within or after a request."""
        complete = request_bytes(modern(1, "prompts/get", {"name": "greet"}))
        for number in range(3000):
            with server.connect() as connection:
                connection.sendall(complete[: [0, 10, len(complete) - 5, len(complete)][number % 4]])

    def test_number_of_streams_is_limited(self, server):
        """1,024 streams are open, and another one is accepted only after one of them ends."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 2048:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(server.connect()) for _ in range(1024)]
            for stream in streams:
                stream.sendall(request_bytes(LISTEN, accept="*/*"))
            for stream in streams:
                assert response(stream)[0] == 200
            status, body = server.exchange(request_bytes(LISTEN, accept="*/*"))
            assert (status, b'"code":429' in body) == (200, True)
            server.check_serving()
        deadline = time.monotonic() + 20
        while True:
            with server.connect() as late:
                late.sendall(request_bytes(LISTEN, accept="*/*"))
                if b'"code":429' not in response(late)[1] or time.monotonic() > deadline:
                    break
            time.sleep(0.05)
        assert time.monotonic() < deadline

    def test_clients_that_do_not_read(self, server):
        """Replies to clients that do not read take limited memory."""
        message = request_bytes(modern(1, "prompts/get", {"name": "long"}))
        before = server.resident
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(server.connect())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(message * 50)
            server.check_serving()
            time.sleep(0.5)
            assert server.resident - before < 20 * 6 * 3

    def test_pipelined_requests_are_answered_in_order(self, server):
        """Several requests on one connection are answered in order."""
        with server.connect() as connection:
            connection.sendall(
                b"".join(request_bytes(modern(number, "prompts/list")) for number in range(20))
            )
            received = b""
            while received.count(b'"resultType"') < 20 and (data := connection.recv(65536)):
                received += data
        order = [int(part.split(b",")[0]) for part in received.split(b'"id":')[1:]]
        assert order == list(range(20))


class TestTokens:
    def test_forged_sessions_are_rejected(self, server):
        """A session id with one changed character is rejected."""
        handshake = request_bytes(
            request(
                0,
                "initialize",
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "n", "version": "1"},
                },
            )
        )
        with server.connect() as connection:
            connection.sendall(handshake)
            head = connection.recv(65536).partition(b"\r\n\r\n")[0].decode()
        (sealed,) = [line.split(": ")[1] for line in head.split("\r\n") if line.startswith("mcp-session-id")]
        ping = request(1, "ping", {})
        assert server.exchange(request_bytes(ping, **{"mcp-session-id": sealed}))[0] == 200
        for index in range(0, len(sealed), 5):
            forged = sealed[:index] + ("A" if sealed[index] != "A" else "B") + sealed[index + 1 :]
            assert server.exchange(request_bytes(ping, **{"mcp-session-id": forged}))[0] == 404
