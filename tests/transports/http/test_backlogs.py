"""Unread replies: limits on their size and on the speed of readers, and memory after a load."""

import asyncio
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from promptkit import prompt
from promptkit.compiler.compilation import compile
from promptkit.transports.http import channel
from promptkit.transports.http.connection_limits import Backlogs
from tests.posting import agreeing, application, body_of, post
from tests.transports.http.conftest import PATIENCE, ServerProcess
from tests.wire import modern

MIB = 1024 * 1024

LARGE = '''
from promptkit import prompt

@prompt
def large():
    """A large reply."""
    return "x" * 10_000_000
'''


class Transport:
    """A transport with *waits* pending bytes, until it is aborted."""

    def __init__(self, pending):
        self.pending = pending
        self.is_aborted = False

    def get_write_buffer_size(self):
        """Return the number of pending bytes."""
        return self.pending

    def abort(self):
        """Record the abort."""
        self.is_aborted = True


def hold(backlogs, *sizes, now=0.0):
    """Return transports of these pending sizes, which are added one after the other."""
    transports = [Transport(size) for size in sizes]
    for transport in transports:
        backlogs.hold(transport, now)
    return transports


class TestLimit:
    def test_slowest_reader_is_dropped(self):
        """Beyond the limit, only the client that has read least is dropped."""
        backlogs = Backlogs(300_000, 10.0)
        fast, slow, slower = hold(backlogs, 100_000, 100_000, 100_000)
        fast.pending, slow.pending, slower.pending = 10_000, 90_000, 95_000
        (newest,) = hold(backlogs, 100_000, now=3.0)

        assert [transport.is_aborted for transport in (fast, slow, slower, newest)] == [
            False,
            False,
            True,
            False,
        ]

    def test_oldest_of_equal_readers_is_dropped(self):
        """A recent client has had no time to read."""
        backlogs = Backlogs(300_000, 10.0)
        early = hold(backlogs, 100_000, 100_000)
        late = hold(backlogs, 100_000, 100_000, now=3.0)

        assert [transport.is_aborted for transport in (*early, *late)] == [True, False, False, False]

    def test_partly_read_reply_counts_fully(self):
        """A reply is kept in memory as long as a part of it is pending."""
        backlogs = Backlogs(300_000, 10.0)
        first, second = hold(backlogs, 200_000, 100_000)
        first.pending = second.pending = 20_000
        hold(backlogs, 100_000)

        assert first.is_aborted != second.is_aborted

    def test_single_reply_can_exceed_the_limit(self):
        """One reply can exceed the limit, and makes room when it was read or dropped."""
        backlogs = Backlogs(300_000, 10.0)
        (first,) = hold(backlogs, 900_000)
        assert not first.is_aborted
        backlogs.release(first)
        (second,) = hold(backlogs, 900_000)
        (third,) = hold(backlogs, 200_000)

        assert [transport.is_aborted for transport in (first, second, third)] == [False, True, False]

    def test_cost_of_a_reply_does_not_depend_on_the_number(self):
        """Adding and releasing a reply take the same number of calls with one and with a thousand others."""

        def count_calls(number):
            backlogs = Backlogs(300 * MIB, 10.0)
            hold(backlogs, *[70_000] * number)
            transport, calls, before = Transport(70_000), [], sys.getprofile()
            sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_name))
            backlogs.hold(transport, 0.0)
            backlogs.release(transport)
            sys.setprofile(before)
            return len(calls)

        assert count_calls(1000) == count_calls(1)


class TestSmallBacklogs:
    """Backlogs below the 64 KiB high-water mark of event loops, which are measured once a second."""

    @staticmethod
    def swept(backlogs, now, *transports):
        """Check the transports like connections do, and return which are aborted."""
        for transport in transports:
            assert backlogs.check(transport, now) is (transport.pending > 0)
        backlogs.shed(now)
        return [transport.is_aborted for transport in transports]

    def test_small_backlogs_add_up(self):
        """Many small unread replies are limited like large ones."""
        transports = [Transport(60_000) for _ in range(8)]

        assert self.swept(Backlogs(300_000, 10.0), 0.0, *transports) == [True] * 3 + [False] * 5

    def test_read_replies_make_room(self):
        """Read replies are removed even without a notification of the event loop."""
        backlogs = Backlogs(300_000, 10.0)
        first, second = [Transport(60_000) for _ in range(4)], [Transport(60_000) for _ in range(4)]
        self.swept(backlogs, 0.0, *first)
        for transport in first:
            transport.pending = 0

        assert self.swept(backlogs, 1.0, *first, *second) == [False] * 8

    def test_growing_backlog_counts(self):
        """Further replies add to a backlog."""
        backlogs = Backlogs(300_000, 10.0)
        transports = [Transport(10) for _ in range(8)]
        assert self.swept(backlogs, 0.0, *transports) == [False] * 8
        for transport in transports:
            transport.pending = 60_000

        assert self.swept(backlogs, 1.0, *transports) == [True] * 3 + [False] * 5

    def test_client_that_does_not_read_is_dropped(self):
        """A client that reads nothing is dropped after ten seconds."""
        backlogs = Backlogs(300 * MIB, 10.0)
        transport = Transport(60_000)
        aborted = [self.swept(backlogs, float(second), transport) for second in range(12)]

        assert aborted == [[False]] * 11 + [[True]]


class TestReadingRate:
    @pytest.mark.parametrize(
        ("read", "is_aborted"), [(0, True), (680, True), (4_000, True), (4_200, False), (100_000, False)]
    )
    def test_slow_client_is_dropped(self, read, is_aborted):
        """A client that reads less than 4 KiB a second is dropped."""
        backlogs = Backlogs(300 * MIB, 10.0)
        (transport,) = hold(backlogs, 10_000_000)
        for second in range(1, 40):
            transport.pending -= read
            backlogs.check(transport, float(second))

        assert transport.is_aborted is is_aborted

    def test_uneven_client_is_served(self):
        """Pauses of some seconds are tolerated, but reads in the distant past do not count."""
        backlogs = Backlogs(300 * MIB, 10.0)
        (transport,) = hold(backlogs, 10_000_000)
        for second in range(1, 50):
            transport.pending -= 400_000 if second % 9 == 0 else 0
            backlogs.check(transport, float(second))
        assert not transport.is_aborted
        for second in range(50, 71):
            backlogs.check(transport, float(second))
        assert transport.is_aborted


def resident(process):
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def wait_until(holds):
    """Wait until *holds* returns True."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory of a process")
def test_memory_during_and_after_a_load(tmp_path):
    """
    Twenty unread replies of 10 MB take at most the memory of `--max-held`, which is returned to the system
    afterwards.

    Without the limit they take 200 MB. While a reply is rendered and encoded, a few copies of it exist.
    """
    (tmp_path / "large.py").write_text(LARGE)
    command = [sys.executable, "-m", "promptkit", "serve", str(tmp_path), "--http", "0", "--no-watch"]
    server = ServerProcess([*command, "--max-held", str(40 * MIB)], tmp_path / "log.txt")
    message = modern(1, "prompts/get", {"name": "large", "arguments": {}})
    fields = {"content-type": "application/json", **agreeing(message)}
    try:
        with server.connect() as connection:
            assert len(connection.ask("/mcp", body_of(message), **fields).body) > 10_000_000
        before = peak = resident(server.process)
        with ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(server.connect())
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.request("/mcp", body_of(message), **fields)
                connection.read_until(b"\r\n\r\n")  # the reply has arrived, and stays unread
                peak = max(peak, resident(server.process))
        wait_until(lambda: resident(server.process) < before + 10 * MIB)
    finally:
        server.process.kill()
        server.process.wait()

    assert peak < before + (40 + 80) * MIB


def test_memory_after_a_large_reply(monkeypatch):
    """Free memory is returned to the system once for all large replies within some seconds."""
    returned = []
    monkeypatch.setattr(channel, "_TRIM_AFTER_S", 0.5)
    monkeypatch.setattr(channel, "return_free_memory", lambda: returned.append(1))

    async def ask(app, *sizes):
        for size in sizes:
            message = modern(1, "prompts/get", {"name": "sized", "arguments": {"size": str(size)}})
            assert len((await post(app, message).result()).body) > size
        await asyncio.sleep(1)
        return len(returned)

    @prompt
    def sized(size: int):
        """A reply of the given size."""
        return "x" * size

    app = application(compile([sized]))
    assert asyncio.run(ask(app, 1000)) == 0
    assert asyncio.run(ask(app, 2 * MIB, 2 * MIB)) == 1
    app.close(0)
