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
from promptkit.transports.http.connection import Backlogs
from tests.posting import application, body_of, modern_headers, post
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
    """A transport with pending bytes, until it is aborted."""

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
    """Add transports with these pending sizes one after the other, and return them."""
    transports = [Transport(size) for size in sizes]
    for transport in transports:
        backlogs.hold(transport, now)
    return transports


class TestLimit:
    def test_oldest_backlog_is_dropped(self):
        """Beyond the limit, the client that has had unread bytes for the longest time is dropped."""
        backlogs = Backlogs(300_000, 10.0)
        transports = hold(backlogs, 100_000, 100_000, 100_000, 100_000)

        assert [transport.is_aborted for transport in transports] == [True, False, False, False]

    def test_partly_read_reply_counts_fully(self):
        """A reply is kept in memory as long as a part of it is pending."""
        backlogs = Backlogs(300_000, 10.0)
        first, second = hold(backlogs, 200_000, 100_000)
        first.pending = second.pending = 20_000
        hold(backlogs, 100_000)

        assert (first.is_aborted, second.is_aborted) == (True, False)

    def test_single_reply_can_exceed_the_limit(self):
        """
        A single reply can exceed the limit. Once it is read or dropped, there is room for other replies.
        """
        backlogs = Backlogs(300_000, 10.0)
        (first,) = hold(backlogs, 900_000)
        assert not first.is_aborted
        backlogs.release(first)
        (second,) = hold(backlogs, 900_000)
        (third,) = hold(backlogs, 200_000)

        assert [transport.is_aborted for transport in (first, second, third)] == [False, True, False]


class TestReadingRate:
    @pytest.mark.parametrize(
        ("read", "is_aborted"), [(0, True), (4_000, True), (4_200, False), (100_000, False)]
    )
    def test_slow_client_is_dropped(self, read, is_aborted):
        """A client that reads less than 4 KiB a second over ten seconds is dropped."""
        backlogs = Backlogs(300 * MIB, 10.0)
        (transport,) = hold(backlogs, 10_000_000)
        for second in range(1, 40):
            transport.pending -= read
            backlogs.sweep(float(second))
            assert second > 10 or not transport.is_aborted

        assert transport.is_aborted is is_aborted

    def test_uneven_client_is_served(self):
        """Pauses of some seconds are tolerated, but reads in the distant past do not count."""
        backlogs = Backlogs(300 * MIB, 10.0)
        (transport,) = hold(backlogs, 10_000_000)
        for second in range(1, 50):
            transport.pending -= 400_000 if second % 9 == 0 else 0
            backlogs.sweep(float(second))
        assert not transport.is_aborted
        for second in range(50, 71):
            backlogs.sweep(float(second))
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
    fields = {"content-type": "application/json", **modern_headers(message)}
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
    """Free memory is returned to the system once for all large replies of the last few seconds."""
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
