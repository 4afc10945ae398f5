"""The end of a worker: what was sent is answered, all ends within bounds; and what is no reason for it."""

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
    """Clients that keep their connections, connect again when told to, and count."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.answered = self.lost = self.connected = self.closing = 0
        self.refused = False
        self.ends = asyncio.Event()

    async def client(self, pause):
        """Ask until nobody listens any more."""
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
        """Ask on one connection until it is said to end."""
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


async def loaded(served, *, clients, short, seconds):
    """Put a load on a server, end it meanwhile, and return what the clients have counted."""
    load = Load(*served.address)
    pauses = [0.0] * clients + [0.2] * (clients // 4)
    tasks = [asyncio.create_task(load.client(pause)) for pause in pauses]
    tasks += [asyncio.create_task(one_each(load)) for _ in range(short)]
    await asyncio.sleep(seconds)
    assert (load.lost, load.refused) == (0, False)
    served.process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    return load


async def one_each(load):
    """Ask once on each of many connections."""
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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel cannot keep others from connecting")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_request_is_lost_at_the_end(serve, workers):
    """
    Many clients, with connections that they keep and with new ones, get a reply to all that they have sent.
    """
    served = serve("--http", "0", "--workers", workers)
    load = asyncio.run(loaded(served, clients=40, short=8, seconds=1.0))

    assert (load.lost, load.refused) == (0, True)
    assert load.answered > 200
    assert load.closing >= 40
    assert served.process.wait(20) == 0


def test_running_requests_are_answered(serve):
    """
    What runs is waited for, and its reply says that the connection ends.
    """
    served = serve("--http", "0")
    with served.connect() as connection:
        connection.request("/late?0.7")  # after the end has begun
        time.sleep(0.3)
        code, _ = served.end()
        reply = connection.reply()
        assert connection.ended() < 5

    assert (code, reply.status, reply.headers["connection"]) == (0, 200, "close")


def test_requests_that_wait_are_answered(serve):
    """
    All that came on a connection before the end are, and the last reply is not cut short.
    """
    served = serve("--http", "0")
    with served.connect() as connection:
        for number in range(3):
            connection.request(f"/slow?0.{number + 3}")
        time.sleep(0.1)
        code, _ = served.end()
        statuses = [connection.reply().status for _ in range(3)]
        assert connection.ended() < 5

    assert (code, statuses) == (0, [200] * 3)


def test_what_runs_too_long_is_not_waited_for(serve):
    """
    After the grace, the process ends all the same.
    """
    served = serve("--http", "0", "--grace", "0.5")
    with served.connect() as connection:
        connection.request("/slow?50")
        time.sleep(0.3)
        code, seconds = served.end()

    assert (code, seconds < 10) == (0, True)


def test_streams_end_with_their_result(serve):
    """
    The application ends them, and nothing of what it sends then is lost.
    """
    served = serve("--http", "0")
    with served.connect() as connection:
        connection.request("/stream")
        connection.read_until(b"data: begun\n\n")
        code, seconds = served.end()
        connection.ended()

    assert b"data: ended\n\n" in connection.rest
    assert connection.rest.endswith(b"0\r\n\r\n")
    assert (code, seconds < 10) == (0, True)


def test_a_connection_that_is_idle_may_ask_once_more(serve):
    """
    It is not closed at once: a request may be on its way.
    """
    served = serve("--http", "0")
    with served.connect() as connection, served.connect() as other:
        connection.ask()
        other.ask()
        served.process.send_signal(signal.SIGTERM)
        other.ask_to_the_last()
        time.sleep(0.2)
        reply = connection.ask()

    assert (reply.status, reply.headers["connection"]) == (200, "close")
    assert served.process.wait(20) == 0


def test_connections_that_say_nothing_do_not_hold_it_up(serve):
    """
    With clients that are connected and silent, or in the middle of a head, it ends within some seconds.
    """
    served = serve("--http", "0", "--grace", "30")
    with served.connect() as silent, served.connect() as half, served.connect() as idle:
        half.send(b"POST / HTTP/1.1\r\nhost:")
        idle.ask()
        code, seconds = served.end()
        assert (silent.ended() < 5, idle.ended() < 5) == (True, True)

    assert (code, seconds < 10) == (0, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda one: one.name)
def test_a_signal_ends_it(serve, number):
    """
    The exit code is 0, and there is nothing on standard error but where it served.
    """
    served = serve("--http", "0")
    served.get()
    code, seconds = served.end(number)

    assert (code, seconds < 5) == (0, True)
    assert served.said().count("\n") == 1


def test_a_second_signal_ends_it_at_once(serve):
    """
    After a second signal, nothing that runs is waited for.
    """
    served = serve("--http", "0", "--grace", "60")
    with served.connect() as connection, served.connect() as idle:
        connection.request("/slow?30")
        idle.ask()
        served.process.send_signal(signal.SIGTERM)
        idle.ask_to_the_last()
        assert served.process.poll() is None
        code, seconds = served.end(signal.SIGINT)

    assert (code, seconds < 5) == (-signal.SIGINT, True)


class Files:
    """What a worker listens at, and gets connections from, while no file can be opened any more."""

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
        """Nothing waits, if that can be told."""
        if self.are_scarce:
            raise OSError(errno.EMFILE, "Too many open files")
        return ()

    def accept(self):
        """Nothing waits, if that can be told."""
        self.take()
        raise BlockingIOError

    def worker(self, connections, monkeypatch):
        """A worker with so many connections, which may have 20."""
        monkeypatch.setattr("promptkit.transports.http.worker.exit_after", lambda *_: None)
        limits = ConnectionLimits(connections=20)
        worker = HttpWorker(None, [], limits=limits, grace=1.0, balance=self.balance)
        worker._loop, worker._count = self.loop, connections
        worker._end_event = SimpleNamespace(set=bool)
        return worker

    def wait(self, seconds):
        """Do what is due, once a second."""
        for _ in range(seconds):
            self.now += 1.0
            due, self.due = self.due, []
            for function, *args in due:
                function(*args)


class TestDeafness:
    @pytest.mark.parametrize(("connections", "cannot_accept"), [(19, True), (20, False)])
    def test_clients_do_not_end_it(self, monkeypatch, connections, cannot_accept):
        """
        A worker that can open no file ends, unless it is as busy as it may be: clients come and go.
        """
        files = Files()
        worker = files.worker(connections, monkeypatch)
        worker._accept(files)
        files.wait(20)

        assert worker.cannot_accept is cannot_accept

    @pytest.mark.parametrize("source", ["_accept", "_take_handed_over"])
    def test_what_has_passed_does_not_count(self, monkeypatch, source):
        """
        Once files can be opened again, nobody needs to connect for that to be seen.
        """
        files = Files()
        worker = files.worker(0, monkeypatch)
        getattr(worker, source)(*([files] if source == "_accept" else []))
        files.are_scarce = False
        files.wait(100)
        files.are_scarce = True
        worker._accept(files)

        assert not worker.cannot_accept


def test_a_connection_counts_once():
    """
    What a worker tells the others of itself grows by one with each connection, also while many are opened at
    once: counted twice, they would make it look as if it had more than its share.
    """
    told = []
    balance = SimpleNamespace(hand_over=lambda *_: False, note=lambda _, count: told.append(count))
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

    assert told == [*range(9), *reversed(range(8))]
