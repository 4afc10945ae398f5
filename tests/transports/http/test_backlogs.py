"""What waits for clients: how much that may be, how fast they have to read, and what is left after a load."""

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
from tests.transports.http.conftest import PATIENCE, Served
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
    """A transport for which so many bytes wait, until it is aborted."""

    def __init__(self, waits):
        self.waits = waits
        self.is_aborted = False

    def get_write_buffer_size(self):
        """How many bytes wait."""
        return self.waits

    def abort(self):
        """End at once."""
        self.is_aborted = True


def held(backlogs, *sizes, now=0.0):
    """Transports for which so many bytes begin to wait, one after the other."""
    transports = [Transport(size) for size in sizes]
    for transport in transports:
        backlogs.hold(transport, now)
    return transports


class TestTheBound:
    def test_the_slowest_is_given_up(self):
        """Beyond the bound, that is the client that has read least, and no more of them than needed."""
        backlogs = Backlogs(300_000, 10.0)
        fast, slow, slower = held(backlogs, 100_000, 100_000, 100_000)
        fast.waits, slow.waits, slower.waits = 10_000, 90_000, 95_000
        (latest,) = held(backlogs, 100_000, now=3.0)

        assert [one.is_aborted for one in (fast, slow, slower, latest)] == [False, False, True, False]

    def test_of_those_that_read_nothing_the_first_is(self):
        """Who has come lately has had no time to read."""
        backlogs = Backlogs(300_000, 10.0)
        early = held(backlogs, 100_000, 100_000)
        late = held(backlogs, 100_000, 100_000, now=3.0)

        assert [one.is_aborted for one in (*early, *late)] == [True, False, False, False]

    def test_what_was_read_partly_counts_whole(self):
        """A reply is kept as long as a part of it waits."""
        backlogs = Backlogs(300_000, 10.0)
        first, second = held(backlogs, 200_000, 100_000)
        first.waits = second.waits = 20_000
        held(backlogs, 100_000)

        assert first.is_aborted != second.is_aborted

    def test_a_single_one_may_be_larger(self):
        """Else nobody could ever be sent such a reply; what was read, or given up, makes room again."""
        backlogs = Backlogs(300_000, 10.0)
        (first,) = held(backlogs, 900_000)
        assert not first.is_aborted
        backlogs.release(first)
        (second,) = held(backlogs, 900_000)
        (third,) = held(backlogs, 200_000)

        assert [one.is_aborted for one in (first, second, third)] == [False, True, False]

    def test_a_reply_costs_the_same_beside_many(self):
        """
        What is done when bytes begin to wait, and when they are read, does not grow with what waits already.
        """

        def calls_beside(number):
            backlogs = Backlogs(300 * MIB, 10.0)
            held(backlogs, *[70_000] * number)
            transport, calls, before = Transport(70_000), [], sys.getprofile()
            sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_name))
            backlogs.hold(transport, 0.0)
            backlogs.release(transport)
            sys.setprofile(before)
            return len(calls)

        assert calls_beside(1000) == calls_beside(1)


class TestLittleThatWaits:
    """Event loops tell of no more than 64 KiB. Less is found once a second."""

    @staticmethod
    def swept(backlogs, now, *transports):
        """Look after transports, as connections do."""
        for transport in transports:
            assert backlogs.check(transport, now) is (transport.waits > 0)
        backlogs.shed(now)
        return [one.is_aborted for one in transports]

    def test_it_counts_together(self):
        """Many small replies that nobody reads are bounded as large ones are."""
        transports = [Transport(60_000) for _ in range(8)]

        assert self.swept(Backlogs(300_000, 10.0), 0.0, *transports) == [True] * 3 + [False] * 5

    def test_what_was_read_makes_room(self):
        """So it does if the event loop has said nothing of it."""
        backlogs = Backlogs(300_000, 10.0)
        first, second = [Transport(60_000) for _ in range(4)], [Transport(60_000) for _ in range(4)]
        self.swept(backlogs, 0.0, *first)
        for transport in first:
            transport.waits = 0

        assert self.swept(backlogs, 1.0, *first, *second) == [False] * 8

    def test_what_comes_later_counts(self):
        """A reply behind another one waits as well."""
        backlogs = Backlogs(300_000, 10.0)
        transports = [Transport(10) for _ in range(8)]
        assert self.swept(backlogs, 0.0, *transports) == [False] * 8
        for transport in transports:
            transport.waits = 60_000

        assert self.swept(backlogs, 1.0, *transports) == [True] * 3 + [False] * 5

    def test_it_is_read_or_given_up(self):
        """A client that reads nothing of it has ten seconds."""
        backlogs = Backlogs(300 * MIB, 10.0)
        transport = Transport(60_000)
        found = [self.swept(backlogs, float(second), transport) for second in range(12)]

        assert found == [[False]] * 11 + [[True]]


class TestTheRate:
    @pytest.mark.parametrize(
        ("read", "is_aborted"), [(0, True), (680, True), (4_000, True), (4_200, False), (100_000, False)]
    )
    def test_of_a_steady_client(self, read, is_aborted):
        """Who reads less than 4 KiB a second is given up, however steadily."""
        backlogs = Backlogs(300 * MIB, 10.0)
        (transport,) = held(backlogs, 10_000_000)
        for second in range(1, 40):
            transport.waits -= read
            backlogs.check(transport, float(second))

        assert transport.is_aborted is is_aborted

    def test_of_an_uneven_client(self):
        """
        Who reads nothing for some seconds, and then much, goes on; what was read long ago does not count.
        """
        backlogs = Backlogs(300 * MIB, 10.0)
        (transport,) = held(backlogs, 10_000_000)
        for second in range(1, 50):
            transport.waits -= 400_000 if second % 9 == 0 else 0
            backlogs.check(transport, float(second))
        assert not transport.is_aborted
        for second in range(50, 71):
            backlogs.check(transport, float(second))
        assert transport.is_aborted


def resident(process):
    """The memory of a process, in bytes."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def wait_until(holds):
    """Wait until something holds."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing says how much memory a process has")
def test_memory_during_and_after_a_load(tmp_path):
    """
    Twenty unread replies of 10 MB take what `--max-held` allows, and their memory is returned after them.

    Without the limit they take 200 MB. While a reply is rendered and encoded, some copies of it exist.
    """
    (tmp_path / "large.py").write_text(LARGE)
    command = [sys.executable, "-m", "promptkit", "serve", str(tmp_path), "--http", "0", "--no-watch"]
    served = Served([*command, "--max-held", str(40 * MIB)], tmp_path / "log.txt")
    message = modern(1, "prompts/get", {"name": "large", "arguments": {}})
    fields = {"content-type": "application/json", **agreeing(message)}
    try:
        with served.connect() as connection:
            assert len(connection.ask("/mcp", body_of(message), **fields).body) > 10_000_000
        before = most = resident(served.process)
        with ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(served.connect())
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.request("/mcp", body_of(message), **fields)
                connection.read_until(b"\r\n\r\n")  # the reply is there, and is not read
                most = max(most, resident(served.process))
        wait_until(lambda: resident(served.process) < before + 10 * MIB)
    finally:
        served.process.kill()
        served.process.wait()

    assert most < before + (40 + 80) * MIB


def test_memory_after_a_large_reply(monkeypatch):
    """The application returns free memory to the system, once for all large replies of some seconds."""
    returned = []
    monkeypatch.setattr(channel, "_TRIM_AFTER_S", 0.05)
    monkeypatch.setattr(channel, "return_free_memory", lambda: returned.append(1))

    async def ask(app, *sizes):
        for size in sizes:
            message = modern(1, "prompts/get", {"name": "sized", "arguments": {"size": str(size)}})
            assert len((await post(app, message).result()).body) > size
        await asyncio.sleep(0.2)
        return len(returned)

    @prompt
    def sized(size: int):
        """A reply of a size."""
        return "x" * size

    app = application(compile([sized]))
    assert asyncio.run(ask(app, 1000)) == 0
    assert asyncio.run(ask(app, 2 * MIB, 2 * MIB)) == 1
    app.close(0)
