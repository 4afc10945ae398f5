"""Tracebacks and stacks, shortened to what the author of a recipe has written."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import compress, pairwise
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ResultError
from promptkit.errors.filled_text import explain_filling
from promptkit.files.reading import INSTALLED

if TYPE_CHECKING:
    from traceback import TracebackException
    from types import TracebackType


#: The folder of promptkit.
_PACKAGE: Final = Path(__file__).parents[1]

#: Libraries that, beside promptkit, call an author's code, or check and convert its values.
_RUNNING: Final = (
    *("asyncio", "attr", "attrs", "cattr", "cattrs", "concurrent", "contextlib", "importlib", "msgspec"),
    *("runpy", "threading", "typeguard"),
)


def format_exception(error: BaseException) -> str:
    """
    Return the traceback of *error* and of its causes, with the author's frames only.

    Below it stands what is wrong with a text that could not be filled in.

    All frames are kept if none is an author's: then the fault is not in a recipe. A `ResultError`
    has no traceback, since the function at fault has already returned.
    """
    if isinstance(error, ResultError):
        return f"{error}\n"
    from traceback import TracebackException  # only a failure needs it

    whole = TracebackException.from_exception(error)
    stacks = [shown.stack for shown in _chain(whole)]
    kept = [list(compress(stack, _shown([frame.filename for frame in stack]))) for stack in stacks]
    if any(kept):
        for stack, frames in zip(stacks, kept, strict=True):
            stack[:] = frames
    if isinstance(error, LookupError | TypeError | ValueError):
        notes = (*(whole.__notes__ or ()), explain_filling(error))
        whole.__notes__ = [note for note in notes if note is not None]
    return "".join(whole.format())


def drop_internal_frames(error: BaseException) -> None:
    """
    Remove from an exception's traceback the frames of promptkit, and of the libraries that it calls.

    Frames before the first one of promptkit stay.
    """
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    files = [entry.tb_frame.f_code.co_filename for entry in entries]
    own = str(_PACKAGE) + os.sep
    first = next((i for i, file in enumerate(files) if file.startswith(own)), len(files))
    shown = _shown(files) if first < len(files) else []
    kept = entries[:first] + list(compress(entries[first:], shown[first:]))
    for entry, following in pairwise((*kept, None)):
        if entry is not None:
            entry.tb_next = following


def is_authors_file(file: str) -> bool:
    """
    Whether *file* is an author's: neither Python's, nor an installed package's, nor promptkit's.
    """
    if file.startswith("<") or not INSTALLED.isdisjoint(Path(file).parts):
        return False
    return not _is_below(file, (str(Path(os.__file__).parent), *_internals()))


def _shown(files: Sequence[str]) -> list[bool]:
    """Return for each frame whether it is shown: neither what calls authors' code, nor what that calls."""
    internals = _internals()
    shown = [not _is_below(file, internals) for file in files]
    # Once an author's last frame has called one of ours, or of a library of ours, all that follows is ours.
    behind = max((i for i, file in enumerate(files) if is_authors_file(file)), default=-1) + 1
    if behind and not all(shown[behind : behind + 1]):
        shown[behind:] = [False] * (len(files) - behind)
    return shown


def _internals() -> tuple[str, ...]:
    """Return the folders and files of promptkit, and of the loaded libraries of `_RUNNING`."""
    loaded = (getattr(sys.modules.get(name), "__file__", None) for name in _RUNNING)
    files = [Path(file) for file in loaded if file]
    return str(_PACKAGE), *(str(file.parent if file.name == "__init__.py" else file) for file in files)


def _is_below(file: str, places: tuple[str, ...]) -> bool:
    """Return whether *file* is one of *places*, lies in one, or is generated code."""
    if file.startswith(("<frozen ", "<attrs generated ", "<cattrs generated ")):
        return True
    return any(file == place or file.startswith(place + os.sep) for place in places)


def _chain(shown: "TracebackException") -> Iterator["TracebackException"]:
    """Yield an exception with its causes, its contexts and the members of its groups."""
    waiting: list[TracebackException | None] = [shown]
    while waiting:
        found = waiting.pop()
        if found is not None:
            yield found
            waiting += [found.__cause__, found.__context__, *(getattr(found, "exceptions", None) or ())]


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
