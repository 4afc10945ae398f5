"""Event loops: how many there are, and that those that are not needed end."""

import asyncio
import ctypes
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from promptkit.errors import PromptkitError
from promptkit.server.scheduling.event_loop import EventLoopThread
from promptkit.server.scheduling.loops import EventLoops
from tests.server.busy_server import BUSY, Process

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")


def has_arenas():
    """Whether the C library's memory is that of glibc."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_info")


@pytest.fixture
def start(recipes):
    """A function that starts a client of a server with prompts that take their time."""
    started = []

    def make(*options, source=BUSY):
        client = Process(recipes(recipe=source), *options)
        started.append(client.process)
        return client

    yield make
    for process in started:
        process.kill()
        process.communicate()


def use_of(client):
    """How many threads and how many descriptors a server has."""
    folder = Path(f"/proc/{client.process.pid}")
    return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))


def settles(client, threads, descriptors, number):
    """Whether a server comes down to so many threads and descriptors while it answers requests."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        client.ask(number, "prompts/get", {"name": "awaits", "arguments": {"seconds": "0.01"}})
        client.wait_for(number)
        found = use_of(client)
        if found[0] <= threads and found[1] <= descriptors:
            return True
        time.sleep(0.05)
    return False


def get(client, number, name, seconds):
    client.ask(number, "prompts/get", {"name": name, "arguments": {"seconds": str(seconds)}})


@LINUX
def test_loops_that_were_held_up_end(start):
    """
    After many asynchronous prompts that block there are no more threads and descriptors than before.
    """
    client = start("--no-watch")
    get(client, 1, "awaits", 0.01)
    client.wait_for(1)
    threads, descriptors = use_of(client)
    numbers = range(100, 130)
    for number in numbers:
        get(client, number, "blocks", 0.3)
    assert {client.came.get(timeout=50)[1]["id"] for _ in numbers} == set(numbers)

    assert settles(client, threads + 1, descriptors, 2)


@LINUX
def test_harmless_prompts_beside_one_that_works(start):
    """
    Asynchronous prompts that are late only because the processor is busy need no further loops for long.
    """
    client = start("--no-watch")
    get(client, 1, "awaits", 0.01)
    client.wait_for(1)
    threads, descriptors = use_of(client)
    spinning = range(10, 14)
    for number in spinning:
        get(client, number, "spins", 3)
    answered = set()
    for number in range(100, 200):
        get(client, number, "awaits", 0.001)
        while number not in answered:
            answered.add(client.came.get(timeout=50)[1]["id"])
    most = use_of(client)[0]
    while not answered.issuperset(spinning):
        answered.add(client.came.get(timeout=50)[1]["id"])

    assert most <= threads + len(spinning) + 4
    assert settles(client, threads + 1, descriptors, 2)


@LINUX
def test_a_loop_that_is_blocked_by_what_was_left_behind(start):
    """
    Tasks that block their loop, and belong to no request any more, cannot make ever more loops.
    """
    source = """
        import asyncio, time
        from promptkit import prompt

        left = set()

        async def block():
            time.sleep(60)

        @prompt
        async def leaves():
            left.add(asyncio.create_task(block()))
            return "done"
    """
    client = start("--no-watch", "--max-renders", "3", source=source)
    threads, _ = use_of(client)
    refusals = []
    for number in range(1, 31):
        client.ask(number, "prompts/get", {"name": "leaves"})
        if "error" in (reply := client.wait_for(number)):
            refusals.append(reply["error"])
        time.sleep(0.1)

    assert use_of(client)[0] <= threads + 3 + 3
    assert {error["code"] for error in refusals} == {429}
    told = [error["message"] for error in refusals]
    assert any("event loops are held up by prompts that block" in message for message in told)


@pytest.mark.skipif(not has_arenas(), reason="arenas are glibc's")
def test_threads_share_memory(start, tmp_path):
    """
    The threads of the loops have no arenas of their own, each of which would keep what was freed in it.
    """
    source = f"""
        import asyncio, ctypes, threading
        from pathlib import Path
        from promptkit import prompt

        library, report = ctypes.CDLL(None), Path({str(tmp_path / "arenas")!r})
        library.fopen.restype = ctypes.c_void_p
        all_there = threading.Barrier(32)

        @prompt
        def arenas():
            file = ctypes.c_void_p(library.fopen(bytes(report), b"w"))
            library.malloc_info(0, file)
            library.fclose(file)
            return str(report.read_text().count("<heap "))

        def allocate():
            held = bytes(5_000)
            all_there.wait(50)
            return len(held)

        @prompt
        async def fills():
            return str(sum(await asyncio.gather(*(asyncio.to_thread(allocate) for _ in range(32)))))
    """
    client = start("--no-watch", source=source)
    said = []
    for number, name in enumerate(["arenas", "fills", "arenas"], 1):
        client.ask(number, "prompts/get", {"name": name})
        said.append(int(client.wait_for(number)["result"]["messages"][0]["content"]["text"]))
    before, allocated, after = said

    assert allocated == 32 * 5_000
    assert after <= before + 1


def look_until(loops, condition):
    """Look after *loops* until something holds."""
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        loops.look(time.monotonic())
        time.sleep(0.01)
    return condition()


def test_the_first_loop_is_used_again(monkeypatch):
    """
    Once it comes round, it is the one that is used, and its substitute ends.
    """
    monkeypatch.setattr("promptkit.server.scheduling.loops._KEEP_SUBSTITUTE_S", 0.0)
    loops, release = EventLoops(9), threading.Event()
    first = loops.free()

    async def block():
        release.wait(50)

    blocked = first.start(block(), lambda _: None)

    assert look_until(loops, lambda: first.stuck)
    second = loops.free()
    assert second is not first
    release.set()
    blocked.result(20)
    assert look_until(loops, lambda: not first.stuck)
    assert loops.free() is first
    assert look_until(loops, lambda: second.over)
    assert look_until(loops, lambda: not loops.unsettled)


def test_there_are_only_so_many_loops():
    """
    Beyond the limit, what needs a loop is refused; and served again once one comes round.
    """
    loops, release = EventLoops(1), threading.Event()

    async def block():
        release.wait(50)

    for _ in range(2):
        loop = loops.free()
        loop.start(block(), lambda _: None)
        assert look_until(loops, lambda loop=loop: loop.stuck)
    with pytest.raises(PromptkitError, match="2 event loops are held up by prompts that block"):
        loops.free()
    release.set()

    assert look_until(loops, lambda: not loop.stuck)
    assert not loops.free().stuck


def test_what_is_late_beside_a_late_watchdog_is_not_stuck():
    """
    It is rounds that count, and not time: on a busy machine both are late.
    """
    loop, release = EventLoopThread(), threading.Event()

    async def block():
        release.wait(50)

    loop.start(block(), lambda _: None)
    for _ in range(3):
        loop.look()
        time.sleep(0.1)

    assert not loop.stuck
    release.set()


def test_a_loop_ends_after_what_runs_there():
    """
    What was begun is finished; what was left behind is waited for, and asynchronous generators are closed.
    """
    loop, release, closed, tasks = EventLoopThread(), threading.Event(), threading.Event(), []
    threads = threading.active_count()

    async def numbers():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    kept = numbers()

    async def work():
        await anext(kept)
        tasks.append(asyncio.create_task(asyncio.sleep(0.05)))
        await asyncio.get_running_loop().run_in_executor(None, release.wait, 20)
        return "done"

    future = loop.start(work(), lambda _: None)
    loop.end()
    assert not loop.over
    release.set()

    assert future.result(20) == "done"
    deadline = time.monotonic() + 20
    while not loop.over and time.monotonic() < deadline:
        time.sleep(0.01)
    assert loop.over
    assert closed.is_set()
    assert not tasks[0].cancelled()
    assert threading.active_count() <= threads + 1  # that of the executor may be about to end


def test_what_never_ends_is_cancelled(monkeypatch):
    """
    What was left behind on a loop that is to end has its time, and is cancelled then.
    """
    monkeypatch.setattr("promptkit.server.scheduling.event_loop._LEFT_TASKS_S", 0.05)
    loop, tasks, cancelled = EventLoopThread(), [], threading.Event()

    async def forever():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        cancelled.set()

    async def work():
        tasks.append(asyncio.create_task(forever()))

    loop.start(work(), lambda _: None).result(20)
    loop.end()

    assert cancelled.wait(50)


def test_a_prompt_that_cancels_all_tasks_harms_no_work_that_has_not_begun():
    """
    What waits behind it is done all the same, and says that it is over.
    """
    loop, over = EventLoopThread(), []

    async def cancel_all():
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def work():
        return "done"

    blocking, release = threading.Event(), threading.Event()

    async def block():
        blocking.set()
        release.wait(50)

    loop.start(block(), lambda _: None)
    assert blocking.wait(50)
    loop.start(cancel_all(), lambda _: None)  # what comes now begins in the same round
    futures = [loop.start(work(), lambda _: None, lambda: over.append(1)) for _ in range(5)]
    release.set()

    assert [future.result(50) for future in futures] == ["done"] * 5
    assert over == [1] * 5
    loop.end()


def test_a_task_factory_that_fails_harms_only_who_has_set_it():
    """
    Prompts are begun without it.
    """
    loop = EventLoopThread()

    async def forbid():
        asyncio.get_running_loop().set_task_factory(lambda *_args, **_options: 1 / 0)

    async def work():
        return "done"

    loop.start(forbid(), lambda _: None).result(50)

    assert loop.start(work(), lambda _: None).result(50) == "done"
    loop.end()


def test_requests_share_no_context():
    """
    What the thread that starts a coroutine has set for itself is not seen there.
    """
    from contextvars import ContextVar

    secret = ContextVar("secret", default="nothing")
    secret.set("a secret")
    loop = EventLoopThread()

    async def look():
        found = secret.get()
        secret.set("another")
        return found

    assert [loop.start(look(), lambda _: None).result(20) for _ in range(2)] == ["nothing", "nothing"]
    loop.end()


def test_whoever_is_told_harms_no_other_work(capfd):
    """
    If telling what has come of some work fails, stderr says so, the work is over, and the loop goes on.
    """
    loop, over = EventLoopThread(), threading.Event()

    async def work():
        return "done"

    def fail(_future):
        raise MemoryError

    loop.start(work(), fail, over.set)

    assert over.wait(50)
    assert loop.start(work(), lambda _: None).result(50) == "done"
    assert capfd.readouterr().err == "promptkit: the result of a prompt could not be handled: MemoryError()\n"
    loop.end()


def test_work_that_ends_with_its_loop_is_over_once():
    """
    If an author's code breaks the loop under other prompts they are told, and end, once each.
    """
    loop, told, over = EventLoopThread(), [], []

    async def wait():
        await asyncio.sleep(3600)

    async def break_loop():
        running = asyncio.get_running_loop()

        def fail():
            del running._run_once
            raise OSError

        running._run_once = fail
        await asyncio.sleep(3600)

    for work in (wait, wait, break_loop):
        loop.start(work(), told.append, lambda: over.append(1))
    deadline = time.monotonic() + 50
    while not loop.over and time.monotonic() < deadline:
        time.sleep(0.01)

    assert [str(future.exception()) for future in told] == ["the event loop was closed under the prompt"] * 3
    assert len(over) == 3
