"""The event loop of asynchronous prompts: that it ends, and that nothing is left behind."""

import asyncio
import sys
import threading
import time
from pathlib import Path

import pytest

from promptkit.server.event_loop import EventLoopThread

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")


class Pending:
    """A request that is answered later."""

    is_answered = False


class Work:
    """A coroutine on a loop for a request of its own, and what came of it."""

    def __init__(self, loop, coroutine):
        self.pending = Pending()
        self.ended = threading.Event()
        self._loop, self._coroutine, self._task = loop, coroutine, None

    def start(self):
        """Begin it."""
        self._loop.start(self.pending, self._coroutine, self._end)
        return self

    def _end(self, task):
        self._task = task
        self.ended.set()

    def result(self):
        """What it returned, once it has."""
        assert self.ended.wait(20)
        return self._task.result()


@pytest.fixture
def loop():
    """A loop on a thread of its own, which is ended afterwards."""
    made = EventLoopThread()
    yield made
    made.end()


def has_ended(loop):
    """Whether a loop is closed within some seconds."""
    deadline = time.monotonic() + 20
    while not loop._loop.is_closed() and time.monotonic() < deadline:
        time.sleep(0.01)
    return loop._loop.is_closed()


@LINUX
def test_many_asynchronous_prompts_leave_nothing(start):
    """
    After many that wait, block and take their time there are no more threads and descriptors than before.
    """
    client = start("--no-watch")

    def get(number, name, seconds):
        client.ask(number, "prompts/get", {"name": name, "arguments": {"seconds": str(seconds)}})

    def use():
        folder = Path(f"/proc/{client.process.pid}")
        return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))

    get(1, "awaits", 0.01)
    client.wait_for(1)
    threads, descriptors = use()
    numbers = range(100, 120)
    for number in numbers:
        get(number, "blocks" if number % 2 else "awaits", 0.02)
    assert {client.came.get(timeout=50)[1]["id"] for _ in numbers} == set(numbers)
    after = use()

    assert after[0] <= threads + 1
    assert after[1] <= descriptors


def test_a_prompt_that_blocks_the_loop_delays_others_and_no_more(start):
    """
    Other asynchronous prompts wait for it; anything else is answered at once.
    """
    client = start()
    client.ask(1, "prompts/get", {"name": "blocks", "arguments": {"seconds": "0.5"}})
    client.ask(2, "prompts/get", {"name": "awaits", "arguments": {"seconds": "0.01"}})
    client.ask(3, "prompts/get", {"name": "quick"})
    order = [client.came.get(timeout=50)[1]["id"] for _ in range(3)]

    assert order == [3, 1, 2]


def test_a_loop_ends_after_what_runs_there(loop):
    """
    What was begun is finished; what was left behind is cancelled, and asynchronous generators are closed.
    """
    release, closed, tasks = threading.Event(), threading.Event(), []

    async def numbers():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    kept = numbers()

    async def work():
        await anext(kept)
        tasks.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.get_running_loop().run_in_executor(None, release.wait, 20)
        return "done"

    begun = Work(loop, work()).start()
    loop.end()
    time.sleep(0.05)
    assert not loop._loop.is_closed()
    release.set()

    assert begun.result() == "done"
    assert has_ended(loop)
    assert closed.is_set()
    assert tasks[0].cancelled()


def test_requests_share_no_context(loop):
    """
    What the thread that starts a coroutine has set for itself is not seen there.
    """
    from contextvars import ContextVar

    secret = ContextVar("secret", default="nothing")
    secret.set("a secret")

    async def look():
        found = secret.get()
        secret.set("another")
        return found

    assert [Work(loop, look()).start().result() for _ in range(2)] == ["nothing", "nothing"]


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_what_would_end_a_loop_is_an_error(loop, ending):
    """
    Whatever a coroutine raises, the loop goes on.
    """

    async def end():
        raise ending

    async def work():
        return "done"

    with pytest.raises(ending):
        Work(loop, end()).start().result()
    assert Work(loop, work()).start().result() == "done"


def test_a_task_that_is_left_behind_and_exits_ends_nothing(loop):
    """
    The loop goes on without it.
    """

    async def leave():
        async def end():
            raise SystemExit

        asyncio.get_running_loop().call_soon(asyncio.ensure_future, end())

    async def work():
        await asyncio.sleep(0.02)
        return "done"

    Work(loop, leave()).start().result()

    assert Work(loop, work()).start().result() == "done"


def test_what_is_answered_before_it_begins_never_begins(loop):
    """
    Nor is it complained of.
    """
    begun = []

    async def work():
        begun.append(1)

    late = Work(loop, work())
    late.pending.is_answered = True
    late.start()

    assert late.ended.wait(20)
    assert begun == []


def test_what_is_cancelled_cleans_up(loop, capfd):
    """
    It hears of it where it waits, and nothing is said of that.
    """
    begun, cleaned = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.set()

    work = Work(loop, wait()).start()
    assert begun.wait(20)
    work.pending.is_answered = True
    loop.cancel(work.pending)

    assert cleaned.wait(20)
    assert work.ended.wait(20)


def test_what_fails_while_it_is_handed_over_harms_no_other_work(loop, capfd):
    """
    Standard error says so, and the loop goes on.
    """

    async def work():
        return "done"

    def fail(_task):
        raise MemoryError

    loop.start(Pending(), work(), fail)

    assert Work(loop, work()).start().result() == "done"
    assert "MemoryError" in capfd.readouterr().err
