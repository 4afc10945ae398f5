"""Connections: limits on the size, number and speed of requests."""

import asyncio
import json
import signal
import socket
import struct
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from types import SimpleNamespace

import pytest

from promptkit.protocol.http.messages import CLOSE
from promptkit.transports.http.connection import ConnectionLimits, Connections, HttpConnection
from tests.transports.http.conftest import GREET, PATIENCE, STAND_IN, ServerProcess

#: Short enough for tests, and long enough for a busy machine.
SHORT_LIMITS = {"head_s": 0.6, "keep_alive": 1.5, "stall_s": 1.0}

HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\n"
FLOOD = b"GET /flood HTTP/1.1\r\nhost: localhost\r\n\r\n"


@contextmanager
def serving(folder, limits):
    """Run a server with these limits, and yield it."""
    (folder / "greet.py").write_text(GREET)
    command = [sys.executable, str(STAND_IN), json.dumps(limits), "serve", str(folder), "--http", "0"]
    server = ServerProcess(command, folder / "log.txt")
    yield server
    server.process.kill()
    server.process.wait()


@pytest.fixture(scope="module")
def quick_server(tmp_path_factory):
    """A server with short limits."""
    with serving(tmp_path_factory.mktemp("quick"), SHORT_LIMITS) as server:
        yield server


@pytest.fixture(scope="module")
def default_server(tmp_path_factory):
    """A server with the default limits."""
    with serving(tmp_path_factory.mktemp("shared"), {}) as server:
        yield server


#: The descriptors of two idle sockets. As socket objects, they would cause warnings when they are collected.
IDLE_DESCRIPTORS = [end.detach() for end in socket.socketpair()]


class Transport(SimpleNamespace):
    """A hashable transport, like those of event loops."""

    __hash__ = object.__hash__


def transport(events):
    """Return a transport that records the statuses of responses, and when it is paused, resumed or closed."""
    return Transport(
        get_extra_info={"socket": SimpleNamespace(fileno=lambda: IDLE_DESCRIPTORS[0])}.get,
        write=lambda data: events.append(data.split()[1]),
        writelines=lambda parts: events.append(parts[0].split()[1]),
        write_eof=lambda: events.append(b"eof"),
        is_closing=lambda: b"close" in events,
        close=lambda: events.append(b"close"),
        pause_reading=lambda: events.append(b"pause"),
        resume_reading=lambda: events.append(b"resume"),
        get_write_buffer_size=lambda: 0,
        set_write_buffer_limits=lambda *_: None,
    )


async def application(_scope, receive, send):
    """Answer without reading the body."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})


def wait_until(holds):
    """Wait until *holds* returns True."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def request_status(server):
    """Return the status of a request on its own connection."""
    with server.connect() as connection:
        return connection.ask().status


def rejection_status(server, data):
    """Check that *data* is rejected, its connection closed and others served, and return the status."""
    with server.connect() as connection:
        connection.send(data)
        reply = connection.reply()
        assert reply.headers["connection"] == "close"
        assert parsedate_to_datetime(reply.headers["date"])
        assert connection.wait_for_close() < PATIENCE
        assert connection.rest == b""
    assert server.get("/after")["path"] == "/after"
    return reply.status


class TestHeads:
    @pytest.mark.parametrize(
        ("fields", "status"),
        [(97, 200), (98, 431), (10_000, 431)],
        ids=["100 in total", "101", "10,000"],
    )
    def test_number_of_fields_is_limited(self, default_server, fields, status):
        """A request can have at most a hundred fields."""
        data = (
            HEAD
            + b"content-length: 0\r\n"
            + b"".join(b"x%d: 1\r\n" % n for n in range(fields))
            + b"x: y\r\n\r\n"
        )
        if status != 200:
            assert rejection_status(default_server, data) == status
            return
        with default_server.connect() as connection:
            connection.send(data)
            assert len(connection.reply().json["headers"]) == 100

    @pytest.mark.parametrize("size", [33_000, 100_000, 1_000_000])
    def test_too_large_head_is_rejected(self, default_server, size):
        """A head can have at most 32 KiB, in one field or in the path."""
        assert rejection_status(default_server, HEAD + b"x: " + b"y" * size + b"\r\n\r\n") == 431
        assert (
            rejection_status(
                default_server, b"POST /" + b"y" * size + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"
            )
            == 431
        )

    def test_head_within_the_limit_is_accepted(self, default_server):
        """A field of 30,000 bytes arrives completely."""
        assert len(dict(default_server.get(x="y" * 30_000)["headers"])["x"]) == 30_000

    def test_endless_header_is_rejected(self, default_server):
        """An endless header is rejected once it exceeds the limit."""
        with default_server.connect() as connection:
            connection.send(HEAD + b"x: ")
            sent = 0
            try:
                while sent < 64 * 1024 * 1024:
                    connection.send(b"y" * 65536)
                    sent += 65536
                    if sent >= 2 * 65536:
                        time.sleep(0.01)
                        connection.socket.settimeout(PATIENCE)
                        break
            except (BrokenPipeError, ConnectionResetError):
                pass
            assert connection.reply().status == 431

    def test_slow_head_times_out(self, quick_server):
        """The head must be complete in time, even if bytes arrive steadily."""
        started = time.monotonic()
        with quick_server.connect() as connection:
            connection.send(HEAD)
            connection.socket.settimeout(0.2)
            while time.monotonic() - started < PATIENCE:
                try:
                    connection.send(b"x")
                    connection.rest += connection.socket.recv(65536)
                    break
                except TimeoutError:
                    continue
            connection.socket.settimeout(PATIENCE)
            assert connection.reply().status == 408

    def test_incomplete_head_times_out(self, quick_server):
        """A head that stays incomplete is answered with 408, and the connection is closed."""
        with quick_server.connect() as connection:
            connection.send(HEAD)
            assert connection.reply().status == 408
            assert connection.wait_for_close() < PATIENCE

    def test_incomplete_second_head_times_out(self, quick_server):
        """The timeout for heads applies to a second request on the connection as well."""
        with quick_server.connect() as connection:
            assert connection.ask().status == 200
            connection.send(HEAD)
            assert connection.reply().status == 408

    @pytest.mark.parametrize("data", [b"", b"\r\n" * 100], ids=["nothing", "blank lines"])
    def test_connection_without_a_request_is_closed(self, quick_server, data):
        """A connection on which no request starts is closed without a response."""
        with quick_server.connect() as connection:
            connection.send(data)
            assert connection.wait_for_close() < PATIENCE
            assert connection.rest == b""

    @pytest.mark.parametrize(
        ("is_answered", "seconds"), [(True, 32.0), (False, None)], ids=["answered", "not yet"]
    )
    def test_idle_connection_is_closed(self, is_answered, seconds):
        """
        A connection is closed thirty seconds after its last reply, but never while a request is being
        answered.
        """
        events, tasks = [], []
        connections = Connections(ConnectionLimits())
        connection = HttpConnection(application, connections, SimpleNamespace(create_task=tasks.append))
        connection.connection_made(transport(events))
        connection.data_received(HEAD + b"\r\n")
        if is_answered:
            assert [*tasks[0].__await__()] == []
        closed = None
        for now in map(float, range(100)):
            connections.sweep(now)
            closed = now if closed is None and b"close" in events else closed
        tasks[0].close()

        assert closed == seconds  # at most two sweeps later, and never early

    @pytest.mark.parametrize(
        "data",
        [
            b"nonsense\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            HEAD + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
            HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nabc",
            HEAD + b"content-length: -1\r\n\r\n",
            HEAD + b"transfer-encoding: gzip\r\n\r\n",
            HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            HEAD + b"x: a\x00b\r\n\r\n",
            HEAD.replace(b" / ", b" http://other/ ") + b"\r\n",
            HEAD.replace(b" / ", b" other:80 ") + b"\r\n",
            HEAD.replace(b"POST / ", b"OPTIONS * ") + b"\r\n",
            HEAD + b"x : y\r\n\r\n",
            HEAD + b"x: a\r\n folded\r\n\r\n",
            HEAD + b"transfer-encoding: chunked\r\n\r\nnonsense\r\n",
        ],
        ids=lambda data: repr(data.removeprefix(HEAD))[2:40],
    )
    def test_invalid_http_is_rejected(self, default_server, data):
        """Ambiguous requests, such as those with two lengths or two hosts, are rejected with 400."""
        assert rejection_status(default_server, data) == 400

    def test_http_1_0_client_gets_no_100_continue(self, default_server):
        """An HTTP/1.0 client gets no interim response even if it expects one."""
        with default_server.connect() as connection:
            head = HEAD.replace(b"1.1", b"1.0") + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n"
            connection.send(head)
            time.sleep(0.1)
            connection.send(b"{}")
            assert (connection.reply().status, connection.wait_for_close() < PATIENCE) == (200, True)

    @pytest.mark.parametrize(
        ("framing", "body"),
        [
            (b"content-length: 2\r\n", b"{}"),
            (b"transfer-encoding: chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n"),
            (b"content-length: 0\r\n", b""),
            (b"", b""),
        ],
        ids=["a length", "chunks", "an empty body", "no body"],
    )
    @pytest.mark.parametrize("pieces", [1, 4], ids=["at once", "in pieces"])
    def test_upgrade_requests_are_ignored(self, default_server, framing, body, pieces):
        """Requests to upgrade the protocol, as Java's client sends them, are served without the upgrade."""
        upgrade = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQC\r\n"
        upgrading = HEAD + upgrade + framing + b"\r\n" + body
        replies = []
        with default_server.connect() as connection:
            for data in (upgrading, upgrading, HEAD + b"content-length: 3\r\n\r\nabc"):
                size = -(-len(data) // pieces)
                for start in range(0, len(data), size):
                    connection.send(data[start : start + size])
                    time.sleep(0.02 if pieces > 1 else 0)
                replies.append(connection.reply())

        assert [reply.status for reply in replies] == [200] * 3
        assert [reply.json["length"] for reply in replies] == [2 if body else 0, 2 if body else 0, 3]


class TestBodies:
    def test_chunked_body(self, default_server):
        """A chunked body arrives completely, and its trailer does not become a header."""
        with default_server.connect() as connection:
            connection.send(
                HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n"
            )
            reply = connection.reply()

        assert reply.json["length"] == 5
        assert dict(reply.json["headers"]).keys() == {"host", "transfer-encoding"}

    @pytest.mark.parametrize("endless", [b"0\r\nx: ", b"2;x="], ids=["a trailer", "a chunk extension"])
    def test_endless_trailers_and_extensions_are_rejected(self, default_server, endless):
        """Bytes outside of head and body are limited, too."""
        with default_server.connect() as connection:
            connection.send(HEAD + b"transfer-encoding: chunked\r\n\r\n" + endless)
            for _ in range(3):
                connection.send(b"y" * 20_000)
                time.sleep(0.05)
            assert connection.reply().status == 400

    def test_large_body(self, default_server):
        """Only the application limits the size of bodies."""
        with default_server.connect() as connection:
            assert connection.ask(body=b"x" * 3_000_000).json["length"] == 3_000_000

    def test_invalid_data_after_a_request(self, default_server):
        """The first request is answered completely, and the connection is closed."""
        with default_server.connect() as connection:
            connection.request("/slow?0.5")
            connection.send(b"nonsense\r\n\r\n")
            assert connection.reply().status == 200
            assert connection.wait_for_close() < PATIENCE
            assert connection.rest == b""


async def sweep_often(connections):
    """Sweep connections more often than a server does."""
    now = 0.0
    while True:
        await asyncio.sleep(0.02)
        connections.sweep(now := now + 0.02)


class TestPipelining:
    @pytest.mark.parametrize(
        "following",
        [HEAD + b"\r\n", (HEAD + b"\r\n") * 2_000, HEAD + b"content-length: 20000\r\n\r\n" + b"y" * 20_000],
        ids=["another", "thousands", "a body"],
    )
    def test_request_before_the_reply_is_dropped(self, following):
        """
        A request that arrives before the previous reply is ignored, and that reply closes the connection.
        """
        events, tasks = [], []
        loop = SimpleNamespace(create_task=tasks.append)
        connection = HttpConnection(application, Connections(ConnectionLimits()), loop)
        connection.connection_made(transport(events))
        connection.data_received(HEAD + b"\r\n" + following)
        connection.data_received(following)
        (task,) = tasks
        assert [*task.__await__()] == []
        connection.data_received(following)

        assert events == [b"200", b"eof"]
        assert not connection._cycle.keep_alive

    def test_running_requests_delay_draining(self):
        """Connections are busy while a request is pending."""
        tasks = []
        loop = SimpleNamespace(create_task=tasks.append)
        connections = Connections(ConnectionLimits())
        connection = HttpConnection(application, connections, loop)
        connection.connection_made(transport([]))
        states = [connections.all_busy]
        connection.data_received(HEAD + b"\r\n")
        states.append(connections.all_busy)
        assert [*tasks.pop().__await__()] == []

        assert [*states, connections.all_busy] == [False, True, False]

    @pytest.mark.parametrize("version", [b"1.0", b"1.1"])
    @pytest.mark.parametrize("following", [b"", (HEAD + b"\r\n") * 3], ids=["nothing", "requests"])
    @pytest.mark.parametrize("action", ["end", "half-close", "reset"])
    def test_disconnect_is_noticed(self, version, following, action):
        """The application is notified of the disconnect, whatever data follows the running request."""

        async def run():
            notified, started = asyncio.Event(), asyncio.Event()

            async def wait_for_disconnect(_scope, receive, _send):
                started.set()
                while (await receive())["type"] != "http.disconnect":
                    pass
                notified.set()

            loop = asyncio.get_running_loop()
            connections = Connections(ConnectionLimits())
            server = await loop.create_server(
                lambda: HttpConnection(wait_for_disconnect, connections, loop), "127.0.0.1", 0
            )
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(HEAD.replace(b"1.1", version) + b"\r\n")
            await started.wait()
            writer.write(following)
            await writer.drain()
            if action == "half-close":
                writer.write_eof()
            else:
                if action == "reset":
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.close()
            async with asyncio.timeout(PATIENCE):
                await notified.wait()
            writer.close()
            server.close()

        asyncio.run(run())


class TestReaders:
    def test_client_that_does_not_read_is_dropped(self, quick_server):
        """A client that does not read is dropped, and the memory of its pending response is released."""
        with quick_server.connect() as connection:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.request("/flood")
            wait_until(lambda: quick_server.get()["flooding"] == 1)
            before = quick_server.get()["memory"]
            wait_until(lambda: quick_server.get()["flooding"] == 0)
            assert quick_server.get()["memory"] < before + 16 * 1024 * 1024

    def test_slow_reader_is_served(self, quick_server):
        """A client is served as long as it reads at all."""
        with quick_server.connect() as connection:
            connection.request("/flood")
            deadline, read = time.monotonic() + 2.5, 0
            while time.monotonic() < deadline:
                read += len(connection.socket.recv(200_000))
                time.sleep(0.1)
            assert quick_server.get()["flooding"] == 1
            assert read > 1_000_000

    @pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no Unix sockets")
    def test_slow_reader_of_a_unix_socket_is_served(self, serve, tmp_path):
        """Progress is noticed before most of the kernel's buffer is read."""
        server = serve("--http", "0", "--uds", str(tmp_path / "socket"), limits=SHORT_LIMITS)
        server.wait_for("serving at")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(tmp_path / "socket"))
            sock.sendall(FLOOD)
            deadline = time.monotonic() + 2.5
            while time.monotonic() < deadline:
                assert len(sock.recv(6_000)) > 0
                time.sleep(0.1)
            assert server.get()["flooding"] == 1

    def test_total_unread_data_is_limited(self, serve):
        """Clients beyond the limit are dropped; others are served."""
        server = serve("--http", "0", limits={"unread": 3_000_000})
        with ExitStack() as stack:
            for _ in range(10):
                connection = stack.enter_context(server.connect())
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.request("/flood")
                assert server.get()["flooding"] > 0
            wait_until(lambda: server.get()["flooding"] == 3)

    def test_every_unread_byte_counts(self):
        """A reply is in memory until all of it is sent, so it counts until its last byte is read."""
        limits = []
        transport_ = transport([])
        transport_.set_write_buffer_limits = limits.append
        HttpConnection(application, Connections(ConnectionLimits()), SimpleNamespace()).connection_made(
            transport_
        )

        assert limits == [0]

    def test_request_before_the_last_reply_is_read(self):
        """The client must read a reply before it sends the next request."""
        events, tasks = [], []
        loop = SimpleNamespace(create_task=tasks.append)
        connection = HttpConnection(application, Connections(ConnectionLimits()), loop)
        transport_ = transport(events)
        connection.connection_made(transport_)
        connection.data_received(HEAD + b"\r\n")
        assert [*tasks.pop().__await__()] == []
        connection.pause_writing()
        connection.data_received(HEAD + b"\r\n")

        assert (events, tasks) == ([b"200", b"503", b"eof"], [])

    def test_connection_limit(self, serve):
        """A client beyond the limit gets a 503 response, and the others are served."""
        server = serve("--http", "0", "--max-connections", "3")
        connections = [server.connect() for _ in range(3)]
        assert [connection.ask().status for connection in connections] == [200] * 3
        for _ in range(10):
            with server.connect() as excess:
                reply = excess.reply()
                assert (reply.status, reply.headers["retry-after"]) == (503, "1")
                assert reply.body == b"Service Unavailable"
                assert excess.socket.recv(1) == b""
        assert [connection.ask().status for connection in connections] == [200] * 3
        connections.pop().socket.close()
        wait_until(lambda: request_status(server) == 200)
        for connection in connections:
            connection.socket.close()

    @pytest.mark.parametrize(
        ("refused", "expected"), [(1, [b"503", b"eof"]), (0, [b"503", b"eof", b"close"])]
    )
    def test_rejected_connection_is_closed(self, refused, expected):
        """
        A rejected connection stays open until its client has read the response, unless there are too many
        such connections, because other clients need the descriptors.
        """
        events = []
        connections = Connections(ConnectionLimits(connections=0, rejected=refused))
        HttpConnection(application, connections, SimpleNamespace()).connection_made(transport(events))

        assert events == expected

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot stop a process")
    def test_rejected_client_that_sends_a_request_reads_the_response(self, serve):
        """A client beyond the limit that has sent a request gets the 503 response, and no reset."""
        server = serve("--http", "0", "--max-connections", "1")
        with server.connect() as first:
            assert first.ask().status == 200
            for _ in range(5):
                server.process.send_signal(signal.SIGSTOP)  # the request arrives before it is accepted
                with server.connect() as excess:
                    excess.send(b"POST /mcp HTTP/1.1\r\ncontent-length: 400000\r\n\r\n" + b"x" * 400_000)
                    server.process.send_signal(signal.SIGCONT)
                    assert excess.reply().status == 503
                    assert excess.socket.recv(1) == b""

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on open files")
    def test_rejected_clients_do_not_exhaust_descriptors(self, serve):
        """Many rejected clients that keep sending do not stop the server from answering."""
        import resource

        limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (60, 60))
        server = serve("--http", "0", limits={"connections": 10}, preexec_fn=limited)
        with ExitStack() as stack:
            first = stack.enter_context(server.connect())
            for _ in range(10):
                stack.enter_context(server.connect())
            for _ in range(60):
                stack.enter_context(server.connect()).send(b"G")
            assert first.ask().status == 200
        wait_until(lambda: request_status(server) == 200)

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on open files")
    def test_connection_limit_follows_the_file_limit(self, serve):
        """With few file descriptors, fewer connections are accepted, so that prompts can open files."""
        import resource

        limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (40, 40))
        server = serve("--http", "0", preexec_fn=limited)
        connections, statuses = [], []
        for _ in range(24):
            connection = server.connect()
            statuses.append(connection.ask().status)
            connections.append(connection)
        repeated = [
            connection.ask().status
            for connection, status in zip(connections, statuses, strict=True)
            if status == 200
        ]
        for connection in connections:
            connection.socket.close()

        assert Counter(statuses) == {200: 14, 503: 10}
        assert repeated == [200] * 14

    def test_disconnect_cancels_the_request(self, default_server):
        """The application is notified when the connection is closed."""
        with default_server.connect() as connection:
            connection.request("/flood")
            connection.read_until(b"\r\n\r\n")
            assert default_server.get()["flooding"] == 1
        deadline = time.monotonic() + PATIENCE
        while default_server.get()["flooding"]:
            assert time.monotonic() < deadline


class TestRejections:
    @pytest.mark.parametrize(
        "remainder",
        [b"transfer-encoding: chunked\r\n\r\nnonsense\r\n", b"nonsense\r\n"],
        ids=["a body", "a head"],
    )
    def test_rejected_client_is_disconnected(self, remainder):
        """A rejected client has ten seconds to read the response; then the connection is closed."""

        async def wait_for_disconnect(_scope, receive, _send):
            while (await receive())["type"] != "http.disconnect":
                pass

        async def sweep():
            events = []
            connections = Connections(ConnectionLimits())
            connection = HttpConnection(wait_for_disconnect, connections, asyncio.get_running_loop())
            connection.connection_made(transport(events))
            connection.data_received(HEAD + remainder)
            await asyncio.sleep(0)
            for now in (0.5, 5.5, 10.5, 11.5):
                connections.sweep(now)
                yield [*events]

        async def collect():
            return [recorded async for recorded in sweep()]

        assert asyncio.run(collect()) == [[b"400", b"eof"]] * 3 + [[b"400", b"eof", b"close"]]


class TestLastReply:
    def test_requests_after_the_last_reply_are_ignored(self):
        """
        Requests after a reply with `Connection: close` are not answered, and do not keep the connection open.
        """

        async def closing_application(_scope, receive, send):
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": [CLOSE]})
            await send({"type": "http.response.body", "body": b"{}"})

        async def exchange():
            loop = asyncio.get_running_loop()
            connections = Connections(ConnectionLimits())
            server = await loop.create_server(
                lambda: HttpConnection(closing_application, connections, loop), "127.0.0.1", 0
            )
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write((HEAD + b"\r\n") * 2 + HEAD + b"content-length: 3000000\r\n\r\n" + bytes(2_000_000))
            async with asyncio.timeout(PATIENCE):
                received = await reader.read()
                for now in (40.0, 80.0, 120.0):
                    connections.sweep(now)
                while len(connections):  # noqa: ASYNC110 (connections set no event)
                    await asyncio.sleep(0.001)
            writer.close()
            server.close()
            return received

        assert asyncio.run(exchange()).count(b"HTTP/1.1") == 1
