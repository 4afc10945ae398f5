"""The event loop of asynchronous prompts: shutdown, cleanup and errors."""

import asyncio
import sys
import threading
import time
from pathlib import Path

import pytest

from promptkit.server.event_loop import EventLoopThread

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")


class Pending:
    """A pending request."""

    is_answered = False


class Work:
    """A coroutine that runs on a loop for a request, and its result."""

    def __init__(self, loop, coroutine):
        self.pending = Pending()
        self.ended = threading.Event()
        self._loop, self._coroutine, self._task = loop, coroutine, None

    def start(self):
        """Start the coroutine."""
        self._loop.start(self.pending, self._coroutine, self._end)
        return self

    def _end(self, task):
        self._task = task
        self.ended.set()

    def result(self):
        """Wait for the coroutine, and return its result."""
        assert self.ended.wait(20)
        return self._task.result()


@pytest.fixture
def loop():
    """Return a loop on a separate thread, and stop it after the test."""
    thread = EventLoopThread()
    yield thread
    thread.end()


def has_ended(loop):
    """Return whether a loop closes within 20 seconds."""
    deadline = time.monotonic() + 20
    while not loop._loop.is_closed() and time.monotonic() < deadline:
        time.sleep(0.01)
    return loop._loop.is_closed()


@linux_only
def test_many_asynchronous_prompts_leak_nothing(start):
    """After many prompts that wait and block, the process has no more threads and descriptors than before."""
    client = start("--no-watch")

    def get(number, name, seconds):
        client.ask(number, "prompts/get", {"name": name, "arguments": {"seconds": str(seconds)}})

    def count_resources():
        folder = Path(f"/proc/{client.process.pid}")
        return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))

    get(1, "awaits", 0.01)
    client.wait_for(1)
    threads, descriptors = count_resources()
    numbers = range(100, 120)
    for number in numbers:
        get(number, "blocks" if number % 2 else "awaits", 0.02)
    assert {client.received.get(timeout=50)[1]["id"] for _ in numbers} == set(numbers)
    counts = count_resources()

    assert counts[0] <= threads + 1
    assert counts[1] <= descriptors


def test_blocked_loop_delays_only_asynchronous_prompts(start):
    """Other asynchronous prompts wait for a prompt that blocks the loop; all other requests are served."""
    client = start()
    client.ask(1, "prompts/get", {"name": "blocks", "arguments": {"seconds": "0.5"}})
    client.ask(2, "prompts/get", {"name": "awaits", "arguments": {"seconds": "0.01"}})
    client.ask(3, "prompts/get", {"name": "quick"})
    order = [client.received.get(timeout=50)[1]["id"] for _ in range(3)]

    assert order == [3, 1, 2]


def test_loop_stops_after_its_coroutines(loop):
    """Running coroutines finish, leftover tasks are cancelled, and asynchronous generators are closed."""
    release, closed, tasks = threading.Event(), threading.Event(), []

    async def numbers():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    generator = numbers()

    async def work():
        await anext(generator)
        tasks.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.get_running_loop().run_in_executor(None, release.wait, 20)
        return "done"

    running = Work(loop, work()).start()
    loop.end()
    time.sleep(0.05)
    assert not loop._loop.is_closed()
    release.set()

    assert running.result() == "done"
    assert has_ended(loop)
    assert closed.is_set()
    assert tasks[0].cancelled()


def test_coroutines_do_not_inherit_the_context(loop):
    """A coroutine sees no context variables of other coroutines or of the thread that starts it."""
    from contextvars import ContextVar

    secret = ContextVar("secret", default="nothing")
    secret.set("a secret")

    async def look():
        value = secret.get()
        secret.set("another")
        return value

    assert [Work(loop, look()).start().result() for _ in range(2)] == ["nothing", "nothing"]


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_exit_exception_does_not_stop_the_loop(loop, ending):
    """The loop continues, whatever exception a coroutine raises."""

    async def end():
        raise ending

    async def work():
        return "done"

    with pytest.raises(ending):
        Work(loop, end()).start().result()
    assert Work(loop, work()).start().result() == "done"


def test_exit_of_a_leftover_task_does_not_stop_the_loop(loop):
    """The loop continues after a leftover task raises SystemExit."""

    async def leave():
        async def end():
            raise SystemExit

        asyncio.get_running_loop().call_soon(asyncio.ensure_future, end())

    async def work():
        await asyncio.sleep(0.02)
        return "done"

    Work(loop, leave()).start().result()

    assert Work(loop, work()).start().result() == "done"


def test_answered_request_never_starts(loop):
    """The coroutine of an answered request does not start, and no warning is printed."""
    starts = []

    async def work():
        starts.append(1)

    late = Work(loop, work())
    late.pending.is_answered = True
    late.start()

    assert late.ended.wait(20)
    assert starts == []


def test_cancelled_coroutine_cleans_up(loop, capfd):
    """A cancelled coroutine can clean up where it awaits, and nothing is printed."""
    started, cleaned = threading.Event(), threading.Event()

    async def wait():
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.set()

    work = Work(loop, wait()).start()
    assert started.wait(20)
    work.pending.is_answered = True
    loop.cancel(work.pending)

    assert cleaned.wait(20)
    assert work.ended.wait(20)


def test_failing_callback(loop, capfd):
    """The error of a callback is printed, and the loop continues."""

    async def work():
        return "done"

    def fail(_task):
        raise MemoryError

    loop.start(Pending(), work(), fail)

    assert Work(loop, work()).start().result() == "done"
    assert "MemoryError" in capfd.readouterr().err
