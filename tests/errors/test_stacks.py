"""The line of an author's code that a thread executes, or at which a coroutine waits."""

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


def wait():
    RELEASE.wait(20)  # mark: plain


def call_wait():
    wait()


def generate():
    yield RELEASE.wait(20)  # mark: generator


async def nap():
    await asyncio.sleep(20)  # mark: coroutine


async def await_nap():
    await nap()


async def generate_later():
    yield 1
    await nap()


async def iterate():
    async for _ in generate_later():  # mark: generator of values
        pass


async def open_context():
    @asynccontextmanager
    async def opened():
        await nap()
        yield

    async with opened():  # mark: context
        pass


async def delegate():
    await asyncio.to_thread(RELEASE.wait, 20)  # mark: to a thread


async def await_task():
    await asyncio.ensure_future(nap())  # mark: task


async def gather():
    await asyncio.gather(nap(), nap())  # mark: gather


async def wait_with_timeout():
    async with asyncio.timeout(30):
        await nap()


async def block():
    wait()


class Awaitable:
    def __await__(self):
        return nap().__await__()


async def await_object():
    await Awaitable()  # mark: object


@pytest.fixture
def run():
    """A function that runs another one in a thread and returns the thread."""
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
    frame, timer = None, threading.Event()
    for _ in range(2000):
        if (frame := find()) is not None and frame.line == expected:
            return frame
        timer.wait(0.01)
    raise AssertionError(frame)


@pytest.mark.parametrize(
    ("function", "mark"),
    [(wait, "plain"), (call_wait, "plain"), (lambda: list(generate()), "generator")],
    ids=["function", "nested", "generator"],
)
def test_a_threads_line_is_the_innermost_of_an_author(run, function, mark):
    """The line is the innermost line of an author's code, ignoring calls into the standard library."""
    thread = run(function)

    frame = wait_for(lambda: authors_line(thread.ident), line_of(mark))

    assert frame.file == __file__


@pytest.mark.parametrize(
    ("function", "mark"),
    [
        (nap, "coroutine"),
        (await_nap, "coroutine"),
        (iterate, "generator of values"),
        (open_context, "context"),
        (delegate, "to a thread"),
        (await_task, "task"),
        (gather, "gather"),
        (wait_with_timeout, "coroutine"),
        (block, "plain"),
        (await_object, "object"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_coroutines_line_is_where_it_waits(run, function, mark):
    """
    While a coroutine waits, its line is the one at which it waits; while it runs, the line of its thread.
    """
    coroutine = function()

    async def main():
        task = asyncio.ensure_future(coroutine)
        await asyncio.to_thread(RELEASE.wait, 20)
        task.cancel()
        await asyncio.wait([task])

    thread = run(partial(asyncio.run, main()))

    wait_for(lambda: authors_line(thread.ident, coroutine), line_of(mark))


def test_without_code_of_an_author_there_is_no_line():
    """There is no line without a thread, in the standard library alone, or in a closed coroutine."""
    coroutine = nap()
    idle = threading.Thread(target=RELEASE.wait, args=(20,))
    RELEASE.clear()
    idle.start()

    assert authors_line(None) is None
    assert authors_line(idle.ident) is None
    coroutine.close()
    assert authors_line(None, coroutine) is None
    RELEASE.set()
    idle.join()


def test_an_installed_file_can_be_the_authors():
    """*own* makes a file count as the author's, even in an installed package."""
    source = "import threading\ndef waits(go_on):\n    go_on.wait(20)\n"
    file, names = "/usr/lib/python3/site-packages/shared/prompts.py", {}
    exec(compile(source, file, "exec"), names)  # noqa: S102 (a file that does not exist)
    event = threading.Event()
    thread = threading.Thread(target=names["waits"], args=(event,))
    thread.start()

    frame = wait_for(lambda: authors_line(thread.ident, own_file=file), 3)

    assert (frame.file, authors_line(thread.ident)) == (file, None)
    event.set()
    thread.join()


def test_reading_frames_during_garbage_collections():
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
