"""What a client may send, and how slowly."""

import asyncio
import inspect
import json
import socket
import struct
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import partial
from types import SimpleNamespace

import pytest

from promptkit.protocol.http.messages import CLOSE
from promptkit.transports.http.connection import HttpConnection
from promptkit.transports.http.connection_limits import ConnectionLimits, Connections
from tests.transports.http.conftest import GREET, PATIENCE, STAND_IN, Served

#: Short enough to wait for, and long enough for a busy machine.
QUICK = {"head_s": 0.6, "keep_alive": 1.5, "stall_s": 1.0}

HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\n"
FLOOD = b"GET /flood HTTP/1.1\r\nhost: localhost\r\n\r\n"


@contextmanager
def serving(folder, limits):
    """A server for all tests that leave it as it was."""
    (folder / "greet.py").write_text(GREET)
    command = [sys.executable, str(STAND_IN), json.dumps(limits), "serve", str(folder), "--http", "0"]
    served = Served(command, folder / "log.txt")
    yield served
    served.process.kill()
    served.process.wait()


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One with short limits."""
    with serving(tmp_path_factory.mktemp("quick"), QUICK) as served:
        yield served


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One with the usual limits."""
    with serving(tmp_path_factory.mktemp("shared"), {}) as served:
        yield served


#: The descriptors of two sockets, to which nothing is sent. As objects, nobody would close them in the end.
QUIET = [end.detach() for end in socket.socketpair()]


class Transport(SimpleNamespace):
    """One that may be a key, as those of event loops are."""

    __hash__ = object.__hash__


def transport(done):
    """A transport that notes the status of what is written, and whether it reads, or is closed."""
    return Transport(
        get_extra_info={"socket": SimpleNamespace(fileno=lambda: QUIET[0])}.get,
        write=lambda data: done.append(data.split()[1]),
        write_eof=bool,
        is_closing=lambda: b"close" in done,
        close=lambda: done.append(b"close"),
        pause_reading=lambda: done.append(b"pause"),
        resume_reading=lambda: done.append(b"resume"),
        get_write_buffer_size=lambda: 0,
        set_write_buffer_limits=lambda *_: None,
    )


async def answer(_scope, receive, send):
    """An application that needs nothing but the head."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})


def wait_until(holds):
    """Wait until something holds."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def asked_once(served):
    """The status of a request on a connection of its own."""
    with served.connect() as connection:
        return connection.ask().status


def refused(served, data):
    """The status with which something is refused; the connection ends, and others are served."""
    with served.connect() as connection:
        connection.send(data)
        reply = connection.reply()
        assert reply.headers["connection"] == "close"
        assert parsedate_to_datetime(reply.headers["date"])
        assert connection.ended() < PATIENCE
        assert connection.rest == b""
    assert served.get("/after")["path"] == "/after"
    return reply.status


class TestHeads:
    @pytest.mark.parametrize(
        ("fields", "status"),
        [(97, 200), (98, 431), (10_000, 431)],
        ids=["100 with those of the request", "one more", "10,000"],
    )
    def test_too_many_fields(self, shared, fields, status):
        """
        A request may have a hundred fields.
        """
        data = (
            HEAD
            + b"content-length: 0\r\n"
            + b"".join(b"x%d: 1\r\n" % n for n in range(fields))
            + b"x: y\r\n\r\n"
        )
        if status != 200:
            assert refused(shared, data) == status
            return
        with shared.connect() as connection:
            connection.send(data)
            assert len(connection.reply().json["headers"]) == 100

    @pytest.mark.parametrize("size", [33_000, 100_000, 1_000_000])
    def test_a_head_that_is_too_large(self, shared, size):
        """
        A head may have 32 KiB, be it in one field or in a path.
        """
        assert refused(shared, HEAD + b"x: " + b"y" * size + b"\r\n\r\n") == 431
        assert refused(shared, b"POST /" + b"y" * size + b" HTTP/1.1\r\nhost: localhost\r\n\r\n") == 431

    def test_a_large_head_within_the_bound(self, shared):
        """
        Up to the bound, all of it arrives.
        """
        assert len(dict(shared.get(x="y" * 30_000)["headers"])["x"]) == 30_000

    def test_a_header_without_an_end(self, shared):
        """
        It is refused once it is too large, however long it would go on.
        """
        with shared.connect() as connection:
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

    def test_a_slow_head(self, quick):
        """
        However steadily a byte comes, the head must be complete in time.
        """
        started = time.monotonic()
        with quick.connect() as connection:
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

    def test_half_a_head(self, quick):
        """
        A head that does not go on is answered with 408, and the connection ends.
        """
        with quick.connect() as connection:
            connection.send(HEAD)
            assert connection.reply().status == 408
            assert connection.ended() < PATIENCE

    def test_a_second_head_that_does_not_end(self, quick):
        """
        On a connection that was of use, too.
        """
        with quick.connect() as connection:
            assert connection.ask().status == 200
            connection.send(HEAD)
            assert connection.reply().status == 408

    @pytest.mark.parametrize("said", [b"", b"\r\n" * 100], ids=["nothing", "blank lines"])
    def test_a_connection_without_a_request(self, quick, said):
        """
        It is closed without a word.
        """
        with quick.connect() as connection:
            connection.send(said)
            assert connection.ended() < PATIENCE
            assert connection.rest == b""

    @pytest.mark.parametrize(
        ("is_answered", "seconds"), [(True, 32.0), (False, None)], ids=["answered", "not yet"]
    )
    def test_an_idle_connection(self, is_answered, seconds):
        """
        It stays for thirty seconds after a reply, and is then closed. As long as a request is being answered,
        there are no limits but those of the application.
        """
        done, tasks = [], []
        connections = Connections(ConnectionLimits(), bool)
        connection = HttpConnection(answer, connections, SimpleNamespace(create_task=tasks.append))
        connection.connection_made(transport(done))
        connection.data_received(HEAD + b"\r\n")
        if is_answered:
            assert [*tasks[0].__await__()] == []
        closed = None
        for now in map(float, range(100)):
            connections.sweep(now)
            closed = now if closed is None and b"close" in done else closed
        tasks[0].close()

        assert closed == seconds  # two sweeps later at most, and never early

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
    def test_what_is_no_http(self, shared, data):
        """
        It is refused with 400: both lengths, two lengths, two hosts, and whatever could be read in two ways.
        """
        assert refused(shared, data) == 400

    def test_a_client_of_http_1_0(self, shared):
        """
        It is not told to go on, as it knows no such reply, whatever it says that it expects.
        """
        with shared.connect() as connection:
            head = HEAD.replace(b"1.1", b"1.0") + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n"
            connection.send(head)
            time.sleep(0.1)
            connection.send(b"{}")
            assert (connection.reply().status, connection.ended() < PATIENCE) == (200, True)

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
    def test_another_protocol_is_not_spoken(self, shared, framing, body, pieces):
        """
        A wish for another protocol, as Java's client sends it, is ignored, again and again.
        """
        wish = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQC\r\n"
        data = (HEAD + wish + framing + b"\r\n" + body) * 2 + HEAD + b"content-length: 3\r\n\r\nabc"
        size = -(-len(data) // pieces)
        with shared.connect() as connection:
            for start in range(0, len(data), size):
                connection.send(data[start : start + size])
                time.sleep(0.02 if pieces > 1 else 0)
            replies = [connection.reply() for _ in range(3)]

        assert [reply.status for reply in replies] == [200] * 3
        assert [reply.json["length"] for reply in replies] == [2 if body else 0, 2 if body else 0, 3]

    def test_wishes_that_came_together(self):
        """
        However many requests of one read ask for another protocol, no call leads to the next.
        """
        wish = HEAD + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n"
        done, tasks = [], []
        loop = SimpleNamespace(create_task=tasks.append)
        connection = HttpConnection(answer, Connections(ConnectionLimits(), bool), loop)
        connection.connection_made(transport(done))
        bound = sys.getrecursionlimit()
        sys.setrecursionlimit(len(inspect.stack(0)) + 40)
        try:
            connection.data_received(wish * 50)
        finally:
            sys.setrecursionlimit(bound)
        while tasks:
            assert [*tasks.pop().__await__()] == []

        assert done.count(b"200") == 50


class TestBodies:
    def test_a_chunked_body(self, shared):
        """
        It arrives whole; what follows it is no header.
        """
        with shared.connect() as connection:
            connection.send(
                HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n"
            )
            reply = connection.reply()

        assert reply.json["length"] == 5
        assert dict(reply.json["headers"]).keys() == {"host", "transfer-encoding"}

    @pytest.mark.parametrize("endless", [b"0\r\nx: ", b"2;x="], ids=["a trailer", "a chunk extension"])
    def test_what_leads_to_nothing(self, shared, endless):
        """
        Bytes that are neither head nor body are bounded, too.
        """
        with shared.connect() as connection:
            connection.send(HEAD + b"transfer-encoding: chunked\r\n\r\n" + endless)
            for _ in range(3):
                connection.send(b"y" * 20_000)
                time.sleep(0.05)
            assert connection.reply().status == 400

    def test_a_large_body(self, shared):
        """
        How large a body may be is the application's business.
        """
        with shared.connect() as connection:
            assert connection.ask(body=b"x" * 3_000_000).json["length"] == 3_000_000

    def test_requests_one_after_the_other(self, shared):
        """
        Requests that are sent before the reply are answered in their order.
        """
        with shared.connect() as connection:
            for number in range(50):
                connection.request(f"/{number}")
            paths = [connection.reply().json["path"] for _ in range(50)]

        assert paths == [f"/{number}" for number in range(50)]

    def test_nonsense_behind_a_request(self, shared):
        """
        The request before it is answered, and no half reply is mixed into its own.
        """
        with shared.connect() as connection:
            connection.request("/slow?0.5")
            connection.send(b"nonsense\r\n\r\n")
            assert connection.reply().status == 200
            assert connection.ended() < PATIENCE
            assert connection.rest == b""


#: A request with a body of 20 KB.
LARGE = HEAD + b"content-length: 20000\r\n\r\n" + b"y" * 20_000


async def swept(connections):
    """Look after connections, more often than a server does."""
    now = 0.0
    while True:
        await asyncio.sleep(0.02)
        connections.sweep(now := now + 0.02)


class TestRequestsThatWait:
    @staticmethod
    async def slow(done):
        """A connection whose first request is answered slowly, and looks whether the client leaves."""

        async def slowly(_scope, receive, _send):
            while (await receive())["type"] != "http.disconnect":
                pass
            done.append(b"told")

        connections = Connections(ConnectionLimits(), bool)
        connection = HttpConnection(slowly, connections, asyncio.get_running_loop())
        connection.connection_made(transport(done))
        connection.data_received(HEAD + b"\r\n")
        await asyncio.sleep(0)
        return connection

    @pytest.mark.parametrize(
        "request_",
        [
            HEAD + b"x: " + b"y" * 20_000 + b"\r\n\r\n",
            HEAD + b"content-length: 20000\r\n\r\n" + b"y" * 20_000,
            b"GET /?" + b"y" * 20_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
        ],
        ids=["heads", "bodies", "targets"],
    )
    def test_how_much_may_wait(self, request_):
        """
        Nothing more is kept once 64 KiB wait behind a slow reply, and all is read: its client may leave.
        """

        async def kept():
            done = []
            connection = await self.slow(done)
            for _ in range(1000):
                connection.data_received(request_)
            return [*done], sum(cycle.size for cycle in connection._pipeline)

        done, size = asyncio.run(kept())
        assert done == []
        assert 60_000 <= size <= 90_000

    def test_how_many_may_wait(self):
        """
        Of thousands that came in one read, 64 wait. The last of them says that the others are not answered.
        """
        done, tasks = [], []
        loop = SimpleNamespace(create_task=tasks.append)
        connection = HttpConnection(answer, Connections(ConnectionLimits(), bool), loop)
        connection.connection_made(transport(done))
        connection.data_received((HEAD + b"\r\n") * 2_000)
        while tasks:
            assert [*tasks.pop().__await__()] == []

        assert done == [b"200"] * 65 + [b"close"]

    def test_a_piece_costs_the_same_behind_many(self):
        """
        What is done for a piece of a body does not grow with what waits: the client chooses both.
        """

        async def calls_of_a_piece(waiting):
            connection = await self.slow([])
            connection.data_received((HEAD + b"a:\r\n" * 97 + b"\r\n") * waiting)
            connection.data_received(HEAD + b"transfer-encoding: chunked\r\n\r\n")
            calls, before = [], sys.getprofile()
            sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_name))
            connection.data_received(b"1\r\na\r\n")
            sys.setprofile(before)
            assert len(connection._pipeline) == waiting + 1
            return len(calls)

        assert asyncio.run(calls_of_a_piece(60)) == asyncio.run(calls_of_a_piece(1))

    def test_what_was_begun_makes_room(self):
        """
        All that waited may wait again, once it was answered, and once half a request was forgotten.
        """
        tasks = []
        loop = SimpleNamespace(create_task=tasks.append)
        connection = HttpConnection(answer, Connections(ConnectionLimits(), bool), loop)
        connection.connection_made(transport([]))
        for _ in range(5):
            connection.data_received(LARGE * 3)
            while tasks:
                assert [*tasks.pop().__await__()] == []

        assert connection._pipeline_bytes == 0
        connection.data_received(HEAD + b"\r\n" + LARGE[:-1])
        connection.eof_received()
        assert connection._pipeline_bytes == 0
        tasks.pop().close()

    def test_the_end_waits_for_them(self):
        """
        A connection is not at its last request as long as another one waits behind that, or there is none.
        """
        tasks = []
        loop = SimpleNamespace(create_task=tasks.append)
        connections = Connections(ConnectionLimits(), bool)
        connection = HttpConnection(answer, connections, loop)
        connection.connection_made(transport([]))
        connection.data_received((HEAD + b"\r\n") * 3)
        found = []
        while tasks:
            found.append(connections.are_on_last_request)
            assert [*tasks.pop().__await__()] == []

        assert [*found, connections.are_on_last_request] == [False, False, True, False]

    @pytest.mark.parametrize(
        ("version", "behind"),
        [
            (b"1.1", (HEAD + b"\r\n") * 3),
            (b"1.1", LARGE * 20),
            (b"1.1", LARGE[:-1] * 20),
            (b"1.0", b""),
        ],
        ids=["heads", "bodies", "halves", "nothing"],
    )
    @pytest.mark.parametrize("how", ["end", "reset"])
    def test_a_client_that_leaves(self, version, behind, how):
        """
        It is seen, whatever it has sent behind a request that is worked on.
        """

        async def leave():
            told, begun = asyncio.Event(), asyncio.Event()

            async def slowly(_scope, receive, _send):
                begun.set()
                while (await receive())["type"] != "http.disconnect":
                    pass
                told.set()

            loop = asyncio.get_running_loop()
            connections = Connections(ConnectionLimits(), bool)
            server = await loop.create_server(
                lambda: HttpConnection(slowly, connections, loop), "127.0.0.1", 0
            )
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(HEAD.replace(b"1.1", version) + b"\r\n")
            await begun.wait()
            await asyncio.sleep(0.05)
            writer.write(behind)
            await writer.drain()
            if how == "reset":
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.close()
            sweeping = asyncio.create_task(swept(connections))
            async with asyncio.timeout(PATIENCE):
                await told.wait()
            sweeping.cancel()
            server.close()

        asyncio.run(leave())


class TestReaders:
    def test_a_client_that_reads_nothing(self, quick):
        """
        It is dropped, and what waited for it is forgotten.
        """
        with quick.connect() as connection:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.request("/flood")
            wait_until(lambda: quick.get()["flooding"] == 1)
            before = quick.get()["memory"]
            wait_until(lambda: quick.get()["flooding"] == 0)
            assert quick.get()["memory"] < before + 16 * 1024 * 1024

    def test_a_client_that_reads_slowly(self, quick):
        """
        It is served for as long as it reads at all.
        """
        with quick.connect() as connection:
            connection.request("/flood")
            until, read = time.monotonic() + 2.5, 0
            while time.monotonic() < until:
                read += len(connection.socket.recv(200_000))
                time.sleep(0.1)
            assert quick.get()["flooding"] == 1
            assert read > 1_000_000

    @pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no Unix sockets")
    def test_a_client_that_reads_slowly_from_a_unix_socket(self, serve, tmp_path):
        """
        It is served as well: what it reads is seen before most of what the kernel keeps is read.
        """
        served = serve("--http", "0", "--uds", str(tmp_path / "socket"), limits=QUICK)
        served.wait_for("serving at")
        with socket.socket(socket.AF_UNIX) as made:
            made.connect(str(tmp_path / "socket"))
            made.sendall(FLOOD)
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                assert len(made.recv(6_000)) > 0
                time.sleep(0.1)
            assert served.get()["flooding"] == 1

    def test_many_clients_that_read_nothing(self, serve):
        """
        What waits for all of them has a bound, beyond which they are dropped; others are served.
        """
        served = serve("--http", "0", limits={"unread": 1_000_000})
        with ExitStack() as stack:
            for _ in range(30):
                stack.enter_context(served.connect()).request("/flood")
                assert served.get()["flooding"] > 0
            wait_until(lambda: 0 < served.get()["flooding"] < 20)

    def test_a_reply_counts_to_its_end(self):
        """
        Event loops keep all of it until then: a client that leaves its last bytes unread is counted on.
        """
        limits = []
        full = transport([])
        full.set_write_buffer_limits = lambda high, low: limits.append((high > 0, low))
        HttpConnection(answer, Connections(ConnectionLimits(), bool), SimpleNamespace()).connection_made(full)

        assert limits == [(True, 0)]

    def test_small_replies_that_nobody_reads(self):
        """
        What waits for all clients is looked at once a second, also where event loops say nothing of it.
        """
        done = []
        connections = Connections(ConnectionLimits(unread=300_000), bool)
        for number in range(8):
            full = transport([])
            full.get_write_buffer_size = lambda: 60_000
            full.abort = partial(done.append, number)
            HttpConnection(answer, connections, SimpleNamespace()).connection_made(full)
        connections.sweep(1.0)

        assert len(done) == 3

    def test_what_waits_behind_an_unread_reply(self):
        """
        The next request is not begun: nobody would read its reply, either.
        """
        done, tasks = [], []
        loop = SimpleNamespace(create_task=tasks.append)
        connection = HttpConnection(answer, Connections(ConnectionLimits(), bool), loop)
        full = transport(done)
        full.write = lambda _: connection.pause_writing()
        connection.connection_made(full)
        connection.data_received((HEAD + b"\r\n") * 2)
        assert [*tasks[0].__await__()] == []
        connection.data_received(HEAD + b"\r\n")
        begun = [len(tasks)]
        connection.resume_writing()
        begun.append(len(tasks))
        assert [*tasks[1].__await__()] == []
        connection.resume_writing()

        assert [*begun, len(tasks)] == [1, 2, 3]
        tasks[2].close()

    def test_too_many_connections(self, serve):
        """
        One client too many reads the whole refusal, whatever it has sent, and the others stay.
        """
        served = serve("--http", "0", "--max-connections", "3")
        connections = [served.connect() for _ in range(3)]
        assert [connection.ask().status for connection in connections] == [200] * 3
        for _ in range(60):
            with served.connect() as one_more:
                one_more.request(body=b"x" * 200_000)
                reply = one_more.reply()
                assert (reply.status, reply.headers["retry-after"]) == (503, "1")
                assert reply.body == b"Service Unavailable"
                assert one_more.socket.recv(1) == b""
        assert [connection.ask().status for connection in connections] == [200] * 3
        connections.pop().socket.close()
        wait_until(lambda: asked_once(served) == 200)
        for connection in connections:
            connection.socket.close()

    def test_few_refused_connections_stay_open(self):
        """
        More are closed without a wait for their clients, because the next clients need the descriptors.
        """
        done = []
        connections = Connections(ConnectionLimits(connections=0, refused=1), bool)
        for _ in range(2):
            connection = HttpConnection(answer, connections, SimpleNamespace())
            connection.connection_made(transport(done))

        assert done == [b"503", b"503", b"close"]

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
    def test_clients_beyond_the_limit_do_not_end_it(self, serve):
        """
        Many who stay and go on to send something take no descriptors: the server goes on to answer.
        """
        import resource

        limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (60, 60))
        served = serve("--http", "0", limits={"connections": 10}, preexec_fn=limited)
        with ExitStack() as stack:
            first = stack.enter_context(served.connect())
            for _ in range(10):
                stack.enter_context(served.connect())
            others = [stack.enter_context(served.connect()) for _ in range(60)]
            for _ in range(20):
                time.sleep(0.1)
                for other in others:
                    with suppress(OSError):
                        other.send(b"G")
            assert first.ask().status == 200
        wait_until(lambda: asked_once(served) == 200)

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
    def test_more_connections_than_files(self, serve):
        """
        Where few files may be open, there are fewer connections, so that prompts can open files all the same.
        """
        import resource

        limited = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (40, 40))
        served = serve("--http", "0", preexec_fn=limited)
        kept, statuses = [], []
        for _ in range(24):
            connection = served.connect()
            statuses.append(connection.ask().status)
            kept.append(connection)
        again = [
            connection.ask().status
            for connection, status in zip(kept, statuses, strict=True)
            if status == 200
        ]
        for connection in kept:
            connection.socket.close()

        assert Counter(statuses) == {200: 12, 503: 12}
        assert again == [200] * 12

    def test_a_client_that_leaves_cancels_its_work(self, shared):
        """
        The application is told when the connection ends.
        """
        with shared.connect() as connection:
            connection.request("/flood")
            connection.read_until(b"\r\n\r\n")
            assert shared.get()["flooding"] == 1
        until = time.monotonic() + PATIENCE
        while shared.get()["flooding"]:
            assert time.monotonic() < until

    def test_the_request_that_runs_is_told(self, shared):
        """
        So it is if others wait behind it, and nothing is written for nobody.
        """
        with shared.connect() as connection:
            connection.send(FLOOD + FLOOD)
            connection.read_until(b"\r\n\r\n")
            wait_until(lambda: shared.get()["flooding"] == 1)

        wait_until(lambda: shared.get()["flooding"] == 0)
        assert "Traceback" not in shared.said()


class TestRefusals:
    @pytest.mark.parametrize(
        "rest",
        [b"transfer-encoding: chunked\r\n\r\nnonsense\r\n", b"nonsense\r\n"],
        ids=["a body", "a head"],
    )
    def test_a_refused_client_that_stays(self, rest):
        """
        It has two seconds to read why. Then the connection ends, whatever of the request was there.
        """

        async def waiting(_scope, receive, _send):
            while (await receive())["type"] != "http.disconnect":
                pass

        async def closed():
            done = []
            connections = Connections(ConnectionLimits(), bool)
            connection = HttpConnection(waiting, connections, asyncio.get_running_loop())
            connection.connection_made(transport(done))
            connection.data_received(HEAD + rest)
            await asyncio.sleep(0)
            for now in (0.5, 1.5, 2.5):
                connections.sweep(now)
                yield [*done]
            connections.sweep(3.5)
            yield [*done]

        async def all_of_it():
            return [said async for said in closed()]

        assert asyncio.run(all_of_it()) == [[b"400"]] * 3 + [[b"400", b"close"]]


class TestTheLastReply:
    def test_a_client_that_sends_on_behind_it(self):
        """
        What waits behind a reply that says it is the last is never answered, and keeps no connection open.
        """

        async def last(_scope, receive, send):
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": [CLOSE]})
            await send({"type": "http.response.body", "body": b"{}"})

        async def ended():
            loop, gone = asyncio.get_running_loop(), asyncio.Event()
            connections = Connections(ConnectionLimits(), gone.set)
            server = await loop.create_server(lambda: HttpConnection(last, connections, loop), "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write((HEAD + b"\r\n") * 2 + HEAD + b"content-length: 3000000\r\n\r\n" + bytes(2_000_000))
            async with asyncio.timeout(PATIENCE):
                received = await reader.read()
                for now in (40.0, 80.0, 120.0):
                    connections.sweep(now)
                await gone.wait()
            writer.close()
            server.close()
            return received

        assert asyncio.run(ended()).count(b"HTTP/1.1") == 1


class TestCosts:
    def test_a_request_takes_few_calls(self):
        """
        From the bytes of a request to those of its response, beside what the application does.
        """
        done, tasks, calls = [], [], []
        loop = SimpleNamespace(create_task=tasks.append)
        connection = HttpConnection(answer, Connections(ConnectionLimits(), bool), loop)
        connection.connection_made(transport(done))
        before = sys.getprofile()
        for _ in range(2):  # the first fills caches
            calls.clear()
            sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_name))
            connection.data_received(HEAD + b"content-length: 2\r\n\r\n{}")
            waited_for = [*tasks.pop().__await__()]
            sys.setprofile(before)

        assert (done, waited_for) == ([b"200", b"200"], [])
        own = [name for name in calls if name not in ("answer", "<lambda>")]
        assert len(own) <= 26, own
