"""How a worker shuts down and answers pending requests, and which problems do not shut it down."""

import asyncio
import errno
import signal
import sys
import time
from types import SimpleNamespace

import pytest

from promptkit.transports.http.connection import ConnectionLimits
from promptkit.transports.http.worker import HttpWorker

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals end processes there at once")

REQUEST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"


class Load:
    """Clients that send requests until the server refuses connections, and the numbers of their replies."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.answered = self.lost = self.closing = 0
        self.refused = False

    async def client(self, pause=0.0, *, keeps=True):
        """Send requests: one per connection, or with *keeps*, on each connection until a reply closes it."""
        while not self.refused:
            try:
                reader, writer = await asyncio.open_connection(self.host, self.port)
            except OSError:
                self.refused = True
                return
            answered = 0
            try:
                while await self.is_kept(reader, writer) and keeps:
                    answered += 1
                    await asyncio.sleep(pause)
            except ConnectionResetError:  # it was still in the queue when the server stopped listening
                self.lost += answered > 0
            except (OSError, asyncio.IncompleteReadError):
                self.lost += 1
            writer.close()

    async def is_kept(self, reader, writer):
        """Send a request, and return whether the connection stays open after its reply."""
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        self.answered += 1
        closes = b"connection: close" in head
        self.closing += closes
        return not closes


async def run_load(server):
    """Stop a server under load, and return the clients' counts."""
    load = Load(*server.address)
    tasks = [asyncio.create_task(load.client()) for _ in range(40)]
    tasks += [asyncio.create_task(load.client(0.2)) for _ in range(10)]
    tasks += [asyncio.create_task(load.client(keeps=False)) for _ in range(8)]
    await asyncio.sleep(1)
    assert (load.lost, load.refused) == (0, False)
    server.process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    return load


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_request_is_lost_at_shutdown(serve, workers):
    """Many clients, with kept and with new connections, get replies to all requests that were accepted."""
    server = serve("--http", "0", "--workers", workers)
    load = asyncio.run(run_load(server))

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
        code, _ = server.stop()
        reply = connection.reply()
        assert connection.wait_for_close() < 5

    assert (code, reply.status, reply.headers["connection"]) == (0, 200, "close")


def test_grace_period_is_enforced(serve):
    """After the grace period, the process exits despite a running request."""
    server = serve("--http", "0", "--grace", "0.5")
    with server.connect() as connection:
        connection.request("/slow?50")
        time.sleep(0.3)
        code, seconds = server.stop()

    assert (code, seconds < 10) == (0, True)


def test_streams_are_completed_at_shutdown(serve):
    """The application ends its streams, and their last messages are delivered."""
    server = serve("--http", "0")
    with server.connect() as connection:
        connection.request("/stream")
        connection.read_until(b"data: started\n\n")
        code, seconds = server.stop()
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
        code, seconds = server.stop()
        assert (silent.wait_for_close() < 5, idle.wait_for_close() < 5) == (True, True)

    assert (code, seconds < 10) == (0, True)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda signal_: signal_.name
)
def test_signal_stops_the_server(serve, number):
    """A signal stops the server with exit code 0, and standard error contains only the address."""
    server = serve("--http", "0")
    server.get()
    code, seconds = server.stop(number)

    assert (code, seconds < 5) == (0, True)
    assert server.stderr().count("\n") == 1


def test_second_signal_stops_the_server_immediately(serve):
    """A second signal stops the server immediately; running requests are abandoned."""
    server = serve("--http", "0", "--grace", "60")
    with server.connect() as connection, server.connect() as idle:
        connection.request("/slow?30")
        idle.ask()
        server.process.send_signal(signal.SIGTERM)
        idle.ask_until_close()
        assert server.process.poll() is None
        code, seconds = server.stop(signal.SIGINT)

    assert (code, seconds < 5) == (-signal.SIGINT, True)


class ScarceFiles:
    """A listener that cannot accept connections while files are scarce, with its event loop."""

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

    def accept(self):
        """Report that no connection is pending, or raise an error while files are scarce."""
        if self.are_scarce:
            raise OSError(errno.EMFILE, "Too many open files")
        raise BlockingIOError

    def worker(self, monkeypatch):
        """Return a worker that accepts connections."""
        monkeypatch.setattr("promptkit.transports.http.worker.exit_after", lambda *_: None)
        worker = HttpWorker(None, [], limits=ConnectionLimits(), grace=1.0)
        worker._loop = self.loop
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
    def test_worker_without_file_descriptors_exits(self, monkeypatch):
        """A worker that cannot accept connections for some seconds exits."""
        files = ScarceFiles()
        worker = files.worker(monkeypatch)
        worker._accept(files)
        files.wait(20)

        assert worker.cannot_accept

    def test_recovered_worker_does_not_exit(self, monkeypatch):
        """A worker that can accept connections again does not exit, even if no client connects."""
        files = ScarceFiles()
        worker = files.worker(monkeypatch)
        worker._accept(files)
        files.are_scarce = False
        files.wait(100)
        files.are_scarce = True
        worker._accept(files)

        assert not worker.cannot_accept
