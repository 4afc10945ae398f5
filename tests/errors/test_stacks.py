"""The line of an author's code that a thread executes or a coroutine waits in."""

import asyncio
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from functools import partial
from textwrap import dedent

import pytest

from promptkit.errors.tracebacks import authors_line

#: The functions below block until this event is set, in a line that ends with a mark.
RELEASE = threading.Event()


def waits():
    RELEASE.wait(20)  # mark: plain


def calls():
    waits()


def generates():
    yield RELEASE.wait(20)  # mark: generator


async def naps():
    await asyncio.sleep(20)  # mark: coroutine


async def awaits():
    await naps()


async def agenerates():
    yield 1
    await naps()


async def iterates():
    async for _ in agenerates():  # mark: generator of values
        pass


async def opens():
    @asynccontextmanager
    async def opened():
        await naps()
        yield

    async with opened():  # mark: context
        pass


async def delegates():
    await asyncio.to_thread(RELEASE.wait, 20)  # mark: to a thread


async def awaits_a_task():
    await asyncio.ensure_future(naps())  # mark: task


async def gathers():
    await asyncio.gather(naps(), naps())  # mark: gather


async def times():
    async with asyncio.timeout(30):
        await naps()


async def blocks():
    waits()


class Awaitable:
    def __await__(self):
        return naps().__await__()


async def awaits_an_object():
    await Awaitable()  # mark: object


@pytest.fixture
def run():
    """Return a function that runs another in a thread and returns the thread."""
    RELEASE.clear()
    threads = []

    def start(function):
        thread = threading.Thread(target=function, daemon=True)
        threads.append(thread)
        thread.start()
        return thread

    yield start
    RELEASE.set()
    for thread in threads:
        thread.join(20)


def line_of(mark):
    """Return the number of the line in this file with this mark."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, text in enumerate(file, 1) if text.endswith(f"# mark: {mark}\n"))


def wait_for(find, expected):
    """Poll until *find* returns the expected line; raise with the last result otherwise."""
    found, deadline = None, threading.Event()
    for _ in range(2000):
        if (found := find()) is not None and found.line == expected:
            return found
        deadline.wait(0.01)
    raise AssertionError(found)


@pytest.mark.parametrize(
    ("function", "mark"),
    [(waits, "plain"), (calls, "plain"), (lambda: list(generates()), "generator")],
    ids=["function", "nested", "generator"],
)
def test_a_thread(run, function, mark):
    """The line is the innermost one of an author's, ignoring calls into the standard library."""
    thread = run(function)

    found = wait_for(lambda: authors_line(thread.ident), line_of(mark))

    assert found.file == __file__


@pytest.mark.parametrize(
    ("function", "mark"),
    [
        (naps, "coroutine"),
        (awaits, "coroutine"),
        (iterates, "generator of values"),
        (opens, "context"),
        (delegates, "to a thread"),
        (awaits_a_task, "task"),
        (gathers, "gather"),
        (times, "coroutine"),
        (blocks, "plain"),
        (awaits_an_object, "object"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_coroutine(run, function, mark):
    """While a coroutine waits, its line is where it waits; while it runs, that of its thread."""
    coroutine = function()

    async def main():
        task = asyncio.ensure_future(coroutine)
        await asyncio.to_thread(RELEASE.wait, 20)
        task.cancel()
        await asyncio.wait([task])

    thread = run(partial(asyncio.run, main()))

    wait_for(lambda: authors_line(thread.ident, coroutine), line_of(mark))


def test_what_has_no_line():
    """There is no line without a thread, in the standard library alone, or in a closed coroutine."""
    never = naps()
    idle = threading.Thread(target=RELEASE.wait, args=(20,))
    RELEASE.clear()
    idle.start()

    assert authors_line(None) is None
    assert authors_line(idle.ident) is None
    never.close()
    assert authors_line(None, never) is None
    RELEASE.set()
    idle.join()


def test_a_file_that_is_installed():
    """*own* makes a file count as the author's, even in an installed package."""
    source = "import threading\ndef waits(go_on):\n    go_on.wait(20)\n"
    file, names = "/usr/lib/python3/site-packages/shared/prompts.py", {}
    exec(compile(source, file, "exec"), names)  # noqa: S102 (a file that does not exist)
    go_on = threading.Event()
    thread = threading.Thread(target=names["waits"], args=(go_on,))
    thread.start()

    found = wait_for(lambda: authors_line(thread.ident, own=file), 3)

    assert (found.file, authors_line(thread.ident)) == (file, None)
    go_on.set()
    thread.join()


def test_frames_while_garbage_is_collected():
    """Reading all frames during garbage collections does not deadlock, as it could in Python 3.11."""
    code = """
        import gc, threading, time
        from promptkit.errors.tracebacks import current_frames

        gc.callbacks.append(lambda *_: time.sleep(0.001))
        gc.set_threshold(1)
        ends = False

        def start_threads():
            while not ends:
                thread = threading.Thread(target=bool)
                thread.start()
                thread.join()

        for _ in range(2):
            threading.Thread(target=start_threads, daemon=True).start()
        for _ in range(300):
            current_frames()
            time.sleep(0.001)
        ends = True
    """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True, timeout=50)
