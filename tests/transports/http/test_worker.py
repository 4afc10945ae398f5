"""Shutdown of a worker: pending requests are answered within limits; and what does not cause a shutdown."""

import asyncio
import errno
import signal
import socket
import sys
import time
from types import SimpleNamespace

import pytest

from promptkit.transports.http.connection_limits import ConnectionLimits
from promptkit.transports.http.worker import HttpWorker

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals end processes there at once")

REQUEST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"


class Load:
    """Clients that keep their connections, reconnect when asked to, and count replies."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.answered = self.lost = self.connected = self.closing = 0
        self.refused = False
        self.ends = asyncio.Event()

    async def client(self, pause):
        """Send requests until the server stops listening."""
        while not self.ends.is_set():
            try:
                reader, writer = await asyncio.wait_for(asyncio.open_connection(self.host, self.port), 0.5)
            except (OSError, TimeoutError):
                self.refused = True
                return
            self.connected += 1
            await self.ask_on(reader, writer, pause)
            writer.close()

    async def ask_on(self, reader, writer, pause):
        """Send requests on one connection until a reply closes it."""
        while not self.ends.is_set():
            await asyncio.sleep(pause)
            try:
                writer.write(REQUEST)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
            except (OSError, asyncio.IncompleteReadError):
                self.lost += 1
                return
            self.answered += 1
            if b"connection: close" in head:
                self.closing += 1
                return


async def run_load(server, *, clients, short, seconds):
    """Put load on a server, stop it meanwhile, and return the counts of the clients."""
    load = Load(*server.address)
    pauses = [0.0] * clients + [0.2] * (clients // 4)
    tasks = [asyncio.create_task(load.client(pause)) for pause in pauses]
    tasks += [asyncio.create_task(ask_on_new_connections(load)) for _ in range(short)]
    await asyncio.sleep(seconds)
    assert (load.lost, load.refused) == (0, False)
    server.process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    return load


async def ask_on_new_connections(load):
    """Send one request on each of many connections."""
    while True:
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(load.host, load.port), 0.5)
        except (OSError, TimeoutError):
            load.refused = True
            return
        try:
            writer.write(REQUEST)
            await reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError):
            load.lost += 1
        else:
            load.answered += 1
        writer.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels cannot stop new connections")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_request_is_lost_at_shutdown(serve, workers):
    """Many clients, with kept and with new connections, get replies to all requests that they have sent."""
    server = serve("--http", "0", "--workers", workers)
    load = asyncio.run(run_load(server, clients=40, short=8, seconds=1.0))

    assert (load.lost, load.refused) == (0, True)
    assert load.answered > 200
    assert load.closing >= 40
    assert server.process.wait(20) == 0


def test_running_requests_are_answered(serve):
    """The server waits for running requests, whose replies close the connection."""
    server = serve("--http", "0")
    with server.connect() as connection:
        connection.request("/late?0.7")  # answered after the shutdown has started
        time.sleep(0.3)
        code, _ = server.end()
        reply = connection.reply()
        assert connection.wait_for_close() < 5

    assert (code, reply.status, reply.headers["connection"]) == (0, 200, "close")


def test_pipelined_requests_are_answered_at_shutdown(serve):
    """All requests that arrived before the shutdown are answered completely."""
    server = serve("--http", "0")
    with server.connect() as connection:
        for number in range(3):
            connection.request(f"/slow?0.{number + 3}")
        time.sleep(0.1)
        code, _ = server.end()
        statuses = [connection.reply().status for _ in range(3)]
        assert connection.wait_for_close() < 5

    assert (code, statuses) == (0, [200] * 3)


def test_grace_period_is_enforced(serve):
    """After the grace period, the process exits despite a running request."""
    server = serve("--http", "0", "--grace", "0.5")
    with server.connect() as connection:
        connection.request("/slow?50")
        time.sleep(0.3)
        code, seconds = server.end()

    assert (code, seconds < 10) == (0, True)


def test_streams_are_completed_at_shutdown(serve):
    """The application ends its streams, and their last messages are delivered."""
    server = serve("--http", "0")
    with server.connect() as connection:
        connection.request("/stream")
        connection.read_until(b"data: started\n\n")
        code, seconds = server.end()
        connection.wait_for_close()

    assert b"data: ended\n\n" in connection.rest
    assert connection.rest.endswith(b"0\r\n\r\n")
    assert (code, seconds < 10) == (0, True)


def test_idle_connection_gets_one_more_reply(serve):
    """Idle connections are not closed immediately, because a request can be on its way."""
    server = serve("--http", "0")
    with server.connect() as connection, server.connect() as other:
        connection.ask()
        other.ask()
        server.process.send_signal(signal.SIGTERM)
        other.ask_until_close()
        time.sleep(0.2)
        reply = connection.ask()

    assert (reply.status, reply.headers["connection"]) == (200, "close")
    assert server.process.wait(20) == 0


def test_silent_connections_do_not_delay_the_exit(serve):
    """The server exits within seconds despite clients that send nothing or half a head."""
    server = serve("--http", "0", "--grace", "30")
    with server.connect() as silent, server.connect() as half, server.connect() as idle:
        half.send(b"POST / HTTP/1.1\r\nhost:")
        idle.ask()
        code, seconds = server.end()
        assert (silent.wait_for_close() < 5, idle.wait_for_close() < 5) == (True, True)

    assert (code, seconds < 10) == (0, True)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda signal_: signal_.name
)
def test_signal_stops_the_server(serve, number):
    """The exit code is 0, and standard error contains only the address."""
    server = serve("--http", "0")
    server.get()
    code, seconds = server.end(number)

    assert (code, seconds < 5) == (0, True)
    assert server.stderr().count("\n") == 1


def test_second_signal_stops_the_server_immediately(serve):
    """Running requests are abandoned."""
    server = serve("--http", "0", "--grace", "60")
    with server.connect() as connection, server.connect() as idle:
        connection.request("/slow?30")
        idle.ask()
        server.process.send_signal(signal.SIGTERM)
        idle.ask_until_close()
        assert server.process.poll() is None
        code, seconds = server.end(signal.SIGINT)

    assert (code, seconds < 5) == (-signal.SIGINT, True)


class ScarceFiles:
    """A listener and a source of connections while no file can be opened."""

    def __init__(self):
        self.are_scarce = True
        self.now = 0.0
        self.due = []
        self.loop = SimpleNamespace(
            time=lambda: self.now,
            add_reader=lambda *_: None,
            remove_reader=lambda _: None,
            call_later=lambda _, *call: self.due.append(call),
            call_soon_threadsafe=lambda _: None,
        )
        self.balance = SimpleNamespace(
            channel=lambda _: None, take=lambda _: self.take(), note=lambda *_: None, end=lambda _: None
        )

    def take(self):
        """Return no connections, or raise an error while files are scarce."""
        if self.are_scarce:
            raise OSError(errno.EMFILE, "Too many open files")
        return ()

    def accept(self):
        """Report that no connection is pending, or raise an error while files are scarce."""
        self.take()
        raise BlockingIOError

    def worker(self, connections, monkeypatch):
        """Return a worker with *connections* of at most 20 connections."""
        monkeypatch.setattr("promptkit.transports.http.worker.exit_after", lambda *_: None)
        limits = ConnectionLimits(connections=20)
        worker = HttpWorker(None, [], limits=limits, grace=1.0, balance=self.balance)
        worker._loop, worker._count = self.loop, connections
        worker._end_event = SimpleNamespace(set=bool)
        return worker

    def wait(self, seconds):
        """Run the scheduled calls, once a second."""
        for _ in range(seconds):
            self.now += 1.0
            due, self.due = self.due, []
            for function, *args in due:
                function(*args)


class TestLackOfFiles:
    @pytest.mark.parametrize(("connections", "cannot_accept"), [(19, True), (20, False)])
    def test_worker_without_file_descriptors_exits(self, monkeypatch, connections, cannot_accept):
        """
        A worker that cannot open files exits, unless it has the maximum number of connections, which are
        temporary.
        """
        files = ScarceFiles()
        worker = files.worker(connections, monkeypatch)
        worker._accept(files)
        files.wait(20)

        assert worker.cannot_accept is cannot_accept

    @pytest.mark.parametrize("source", ["_accept", "_take_handed_over"])
    def test_recovered_worker_does_not_exit(self, monkeypatch, source):
        """Recovery is noticed even if no client connects."""
        files = ScarceFiles()
        worker = files.worker(0, monkeypatch)
        getattr(worker, source)(*([files] if source == "_accept" else []))
        files.are_scarce = False
        files.wait(100)
        files.are_scarce = True
        worker._accept(files)

        assert not worker.cannot_accept


def test_connection_is_counted_once():
    """
    The reported count grows by one with each connection, even while many are opened concurrently; otherwise
    the worker would seem overloaded.
    """
    counts = []
    balance = SimpleNamespace(hand_over=lambda *_: False, note=lambda _, count: counts.append(count))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        clients = [socket.create_connection(listening.getsockname()) for _ in range(8)]

        async def accept():
            worker = HttpWorker(None, [], limits=ConnectionLimits(), grace=1.0, balance=balance)
            worker._loop = asyncio.get_running_loop()
            worker._accept(listening)
            await asyncio.gather(*worker._opening)
            for client in clients:
                client.close()
            await worker._wait_until(lambda: not len(worker._connections), 10)

        asyncio.run(accept())

    assert counts == [*range(9), *reversed(range(8))]
