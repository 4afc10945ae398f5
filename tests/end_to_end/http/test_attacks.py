"""Attacks on a real process: nothing foreign is served, memory is bounded, and others are answered."""

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

from tests.posting import agreeing
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
    """Say much."""
    return "x" * 3_000_000
'''
SERVE = """
import sys
from promptkit.asgi import app
from promptkit.protocol.limits import Limits
application = app(sys.path[0] + "/greetings.py", limits=Limits(held=64 * 1024 * 1024))
application.body_timeout = 6.0  # nobody waits for 10 s
"""
LIST = modern(1, "prompts/list")
LISTEN = modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
MIB = 1 << 20

#: By how many MiB an attack may let memory grow, if that is more than 50: the allocator keeps what many
#: bodies and replies took, for the next ones.
MOST_MIB = {"test_many_that_stop": 100, "test_readers_that_do_not_read": 400}


class Process:
    """A server of its own process, and how much memory it takes."""

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
        self.hello()

    @property
    def resident(self):
        """How many MiB are resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def connect(self, timeout=20.0):
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def exchange(self, data):
        """Send bytes on a connection of their own; return the status and the body of the first response."""
        with self.connect() as connection:
            with contextlib.suppress(ConnectionError):  # it may be refused before it is sent whole
                connection.sendall(data)
            return response(connection)

    def hello(self):
        """Check that an honest request is answered."""
        status, body = self.exchange(posted(modern(1, "prompts/get", {"name": "greet"})))
        assert (status, b"Hello, you!" in body) == (200, True)

    def end(self):
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.listener.close()


def response(connection):
    """Read one response; return its status, 0 if there is none, and its body."""
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


def posted(message, *lines, host="localhost", length=None, **fields):
    """Return the bytes of a request."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    sent = {} if isinstance(message, bytes) else agreeing(message) if "_meta" in message["params"] else {}
    given = {"content-type": "application/json", **sent, **fields}
    head = [b"POST /mcp HTTP/1.1", f"host: {host}".encode("latin-1")]
    head += [f"{name}: {value}".encode("latin-1") for name, value in given.items()]
    if length is None:
        head.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*head, *lines, b"", b""]) + body


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One process for all attacks: what one leaves behind, the next one meets."""
    process = Process(tmp_path_factory.mktemp("attacked"))
    yield process
    process.end()


@pytest.fixture(autouse=True)
def survived(server, request):
    """After each attack memory is bounded, and the next honest request is answered."""
    before = server.resident
    yield
    server.hello()
    assert server.resident - before < MOST_MIB.get(request.node.name, 50)


class TestHeads:
    @pytest.mark.parametrize(
        "attack",
        [
            posted(LIST, *[b"x%d: y" % number for number in range(10_000)]),
            posted(LIST, *[b"x: y"] * 10_000),
            posted(LIST, b"x: " + b"y" * MIB),
            posted(LIST, b"mcp-name: " + b"y" * 40_000),
        ],
    )
    def test_huge_ones(self, server, attack):
        """
        10,000 fields, or one of a MiB, are refused.
        """
        assert server.exchange(attack)[0] in {0, 400, 431}

    @pytest.mark.parametrize(
        "attack",
        [
            posted(LIST, b"transfer-encoding: chunked"),
            posted(LIST, b"content-length: 5"),
            posted(LIST, b"transfer-encoding: chunked, identity", length=0),
            posted(LIST, b"content-length: -1", length=0),
            posted(LIST, b"content-length: 0x10", length=0),
            posted(LIST, b"host: evil.example"),
            posted(LIST, b"origin: http://localhost", b"origin: http://evil.example"),
            posted(LIST, b"content-type: text/plain"),
            posted(LIST, b"mcp-method: prompts/get"),
            posted(LIST, b"mcp-method : prompts/list"),
            posted(LIST).replace(b"host: localhost\r\n", b""),
            posted(LIST).replace(b" HTTP/1.1", b" HTTP/1.0").replace(b"host: localhost\r\n", b""),
            posted(LIST).replace(b"/mcp", b"http://evil.example/mcp").replace(b"localhost", b"evil.example"),
        ],
    )
    def test_ambiguous_ones(self, server, attack):
        """
        Both length headers, two hosts, two origins: what two readers read differently is not served.
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
            "0.0.0.0",  # noqa: S104 (nothing is bound)
            "",
        ],
    )
    def test_foreign_hosts(self, server, host):
        """
        A page that was rebound to this machine reads nothing.
        """
        assert server.exchange(posted(LIST, host=host))[0] in {400, 421}
        assert server.exchange(posted(LIST, host="LocalHost:1"))[0] == 200

    @pytest.mark.parametrize(
        "origin",
        ["null", "https://evil.example", "http://localhost.evil.example", "http://localhost@evil", "x"],
    )
    def test_foreign_origins(self, server, origin):
        """
        No page of another site is served.
        """
        assert server.exchange(posted(LIST, origin=origin))[0] == 403
        assert server.exchange(posted(LIST, origin="http://LOCALHOST:1"))[0] == 200


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
    def test_four_mib(self, server, body):
        """
        The longest body is refused soon, whatever it holds, in either era.
        """
        for fields in ({}, {"mcp-protocol-version": "2026-07-28"}):
            assert server.exchange(posted(body, **fields))[0] in {200, 400, 404}

    def test_endless_ones(self, server):
        """
        A body without an end is refused, and the connection closed.
        """
        piece = b"%x\r\n" % MIB + b"x" * MIB + b"\r\n"
        with server.connect() as connection:
            connection.sendall(posted(b"", b"transfer-encoding: chunked", length=0))
            with contextlib.suppress(ConnectionError):
                for _ in range(200):
                    connection.sendall(piece)
            assert response(connection)[0] in {0, 413}

    def test_too_long_but_sent_whole(self, server):
        """
        The client sees why.
        """
        assert server.exchange(posted(b"x" * (5 * MIB)))[0] == 413

    def test_many_that_stop(self, server):
        """
        Bodies that stop halfway take as much as `Limits.held` together, however many there are, and end
        within their time.
        """
        before, half = server.resident, posted(b"x" * 4_000_000)[:-1000]
        with contextlib.ExitStack() as stack:
            open_ones = [stack.enter_context(server.connect()) for _ in range(25)]
            for connection in open_ones:
                # The kernel keeps little, so the server has read what was sent: one body after the other.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
                connection.sendall(half)
            server.hello()
            assert server.exchange(posted(b"x" * 4_000_000))[0] == 503
            assert server.resident - before < 100
            assert {response(connection)[0] for connection in open_ones} == {408}
        assert server.exchange(posted(b"x" * 4_000_000))[0] == 400


class TestConnections:
    def test_thousands_that_close_at_once(self, server):
        """
        Before, within and after a request.
        """
        whole = posted(modern(1, "prompts/get", {"name": "greet"}))
        for number in range(3000):
            with server.connect() as connection:
                connection.sendall(whole[: [0, 10, len(whole) - 5, len(whole)][number % 4]])

    def test_all_streams(self, server):
        """
        1,024 streams are open at once, and not one more, until one of them ends.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 2048:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(server.connect()) for _ in range(1024)]
            for stream in streams:
                stream.sendall(posted(LISTEN, accept="*/*"))
            for stream in streams:
                assert response(stream)[0] == 200
            status, body = server.exchange(posted(LISTEN, accept="*/*"))
            assert (status, b"-32603" in body) == (200, True)
            server.hello()
        end = time.monotonic() + 20
        while True:
            with server.connect() as late:
                late.sendall(posted(LISTEN, accept="*/*"))
                if b"-32603" not in response(late)[1] or time.monotonic() > end:
                    break
            time.sleep(0.05)
        assert time.monotonic() < end

    def test_readers_that_do_not_read(self, server):
        """
        Replies to clients that do not read take bounded memory.
        """
        message = posted(modern(1, "prompts/get", {"name": "long"}))
        before = server.resident
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(server.connect())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(message * 50)
            server.hello()
            time.sleep(0.5)
            assert server.resident - before < 20 * 6 * 3

    def test_pipelined_requests(self, server):
        """
        Several requests on one connection are answered in their order.
        """
        with server.connect() as connection:
            connection.sendall(b"".join(posted(modern(number, "prompts/list")) for number in range(20)))
            received = b""
            while received.count(b'"resultType"') < 20 and (data := connection.recv(65536)):
                received += data
        order = [int(part.split(b",")[0]) for part in received.split(b'"id":')[1:]]
        assert order == list(range(20))


class TestTokens:
    def test_forged_sessions(self, server):
        """
        Nothing that this process has not sealed opens a session, and a change of one character is seen.
        """
        opened = posted(
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
            connection.sendall(opened)
            head = connection.recv(65536).partition(b"\r\n\r\n")[0].decode()
        (sealed,) = [line.split(": ")[1] for line in head.split("\r\n") if line.startswith("mcp-session-id")]
        ping = request(1, "ping", {})
        assert server.exchange(posted(ping, **{"mcp-session-id": sealed}))[0] == 200
        for place in range(0, len(sealed), 5):
            forged = sealed[:place] + ("A" if sealed[place] != "A" else "B") + sealed[place + 1 :]
            assert server.exchange(posted(ping, **{"mcp-session-id": forged}))[0] == 404
