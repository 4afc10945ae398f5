"""Where an author's code is: the line that another thread runs, or in which it awaits something."""

import gc
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from promptkit.errors.diagnostics import Location
from promptkit.errors.tracebacks import is_authors_file

__all__ = ["authors_line", "current_frames"]

#: What has a frame that may be suspended: by the attribute that has it, the one that has what it waits for.
_SUSPENDED: Final = {"cr_frame": "cr_await", "ag_frame": "ag_await", "gi_frame": "gi_yieldfrom"}


def authors_line(thread: int | None, coroutine: Any = None, own: str = "") -> Location | None:
    """
    Return the innermost line of an author that a thread is in; None if it is in none.

    Args:
        thread:
            The number of the thread; None if it has not started.

        coroutine:
            What is run on an event loop of that thread, if anything is. While it waits, the thread does
            something else.

        own:
            The file of the function that was called, which is the author's wherever it lies.
    """
    if coroutine is None or getattr(coroutine, "cr_running", False):
        frames = _frames_around(current_frames().get(thread or 0))
    else:
        frames = reversed(list(_frames_waiting(coroutine)))
    for frame in frames:
        file = frame.f_code.co_filename
        if file == own or is_authors_file(file):
            return Location(file, frame.f_lineno)
    return None


def current_frames() -> dict[int, FrameType]:
    """
    Return the innermost frame of each thread, by the number of the thread.

    In Python 3.11, a garbage collection meanwhile may block all threads forever.

    See Also:
        https://github.com/python/cpython/issues/106883
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()  # noqa: SLF001 (documented)
    finally:
        if collects:
            gc.enable()


def _frames_around(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those around it, the outermost last."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frames_waiting(awaited: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine that waits, and those of what it waits for, the outermost first."""
    seen = set[int]()  # tasks may wait for each other
    while awaited is not None and id(awaited) not in seen:
        seen.add(id(awaited))
        kind = next((name for name in _SUSPENDED if hasattr(awaited, name)), None)
        if kind is None:
            awaited = _wrapped_in(awaited)
            continue
        if (frame := getattr(awaited, kind)) is not None:
            yield frame
        awaited = getattr(awaited, _SUSPENDED[kind])


def _wrapped_in(awaited: Any) -> Any:
    """What an iterator of C code waits for: a task's coroutine, or an asynchronous generator; else None."""
    # Nothing else leads from the step of an asynchronous generator to the generator.
    for held in gc.get_referents(awaited):
        if hasattr(held, "get_coro"):  # a task
            return held.get_coro()
        if any(hasattr(held, name) for name in _SUSPENDED):
            return held
    return None
