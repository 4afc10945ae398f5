"""Tracebacks and stacks, reduced to the frames of recipe authors."""

import gc
import os
import sys
from collections.abc import Container, Iterator
from itertools import zip_longest
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ResultError
from promptkit.files.reading import INSTALL_FOLDERS

if TYPE_CHECKING:
    from traceback import TracebackException


#: The folders of the package, and of Python's standard library.
_PACKAGE: Final = str(Path(__file__).parents[1])
_STANDARD_LIBRARY: Final = str(Path(os.__file__).parent)


def format_exception(error: BaseException) -> str:
    """
    Format *error* and its causes with only the author's frames. Omit causes that have no such frames.

    If no frame is the author's, as with recipes in an installed package, all frames are kept. A `ResultError`
    is formatted without a traceback, because its function has already returned.
    """
    if isinstance(error, ResultError):
        return f"{error}\n"
    from traceback import TracebackException  # only needed for failures

    traceback = TracebackException.from_exception(error)
    files = {frame.filename for exception in _walk_causes(traceback) for frame in exception.stack}
    if visible := set(filter(is_authors_file, files)):
        _keep_frames(traceback, visible)
    return "".join(traceback.format())


def _keep_frames(root: "TracebackException", files: Container[str]) -> None:
    """Remove the frames that are not in *files*, and then the causes that have no frames left."""
    for exception in reversed(list(_walk_causes(root))):  # causes first
        exception.stack[:] = [frame for frame in exception.stack if frame.filename in files]
        for name in ("__cause__", "__context__"):
            cause = getattr(exception, name)
            if cause is not None and not (
                cause.stack or cause.__cause__ or cause.__context__ or cause.exceptions
            ):
                setattr(exception, name, None)


def raising_line(error: BaseException) -> Location | None:
    """
    Return the author's line that raised an exception, or that called the code which raised it.

    The result is None if the traceback contains no line of the author.
    """
    from traceback import walk_tb  # only needed for failures

    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    return next((Location(file, line) for file, line in reversed(lines) if is_authors_file(file)), None)


def drop_internal_frames(error: BaseException) -> None:
    """
    Remove promptkit's first frame and all later frames, except the author's, from an exception's traceback.
    """
    entries, is_inside, entry = list[TracebackType](), False, error.__traceback__
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        is_inside = is_inside or file.startswith(_PACKAGE + os.sep)
        if not is_inside or is_authors_file(file):
            entries.append(entry)
        entry = entry.tb_next
    for visible, following in zip_longest(entries, entries[1:]):
        visible.tb_next = following


def is_authors_file(file: str) -> bool:
    """
    Return whether *file* is an author's file: not in the standard library, an installed package or promptkit.
    """
    if file.startswith("<") or not INSTALL_FOLDERS.isdisjoint(Path(file).parts):
        return False
    return not file.startswith((_PACKAGE + os.sep, _STANDARD_LIBRARY + os.sep))


def _walk_causes(root: "TracebackException") -> Iterator["TracebackException"]:
    """Yield an exception with its causes, contexts and group members."""
    pending: list[TracebackException | None] = [root]
    while pending:
        exception = pending.pop()
        if exception is not None:
            yield exception
            pending += [
                exception.__cause__,
                exception.__context__,
                *(getattr(exception, "exceptions", None) or ()),
            ]


#: For each kind of suspended object, the names of two attributes: its frame, and the object that it awaits.
_FRAME_ATTRIBUTES: Final = {"cr_frame": "cr_await", "ag_frame": "ag_await", "gi_frame": "gi_yieldfrom"}


def authors_line(thread: int | None, coroutine: Any = None, own_file: str = "") -> Location | None:
    """
    Return the innermost line of an author's code that a thread is executing; None if there is none.

    Args:
        thread:
            The thread's identifier; None if it has not started.

        coroutine:
            The coroutine that runs on the thread's event loop, if any. While the coroutine is suspended, the
            thread executes other code.

        own_file:
            The file of the called function. It counts as an author's file, wherever it is.
    """
    if coroutine is None or getattr(coroutine, "cr_running", False):
        frames = _frame_and_callers(current_frames().get(thread or 0))
    else:
        frames = reversed(list(_suspended_frames(coroutine)))
    for frame in frames:
        file = frame.f_code.co_filename
        if file == own_file or is_authors_file(file):
            return Location(file, frame.f_lineno)
    return None


def current_frames() -> dict[int, FrameType]:
    """
    Return the innermost frame of each thread, keyed by thread identifier.

    Garbage collection is off during the call, because in Python 3.11 it could deadlock all threads.

    See Also:
        https://github.com/python/cpython/issues/106883
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()  # noqa: SLF001 (documented)
    finally:
        if was_enabled:
            gc.enable()


def _frame_and_callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and then its callers, from the innermost to the outermost."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _suspended_frames(awaited: Any) -> Iterator[FrameType]:
    """Yield the frames of a suspended coroutine and of the objects that it awaits, the outermost first."""
    while (kind := next((name for name in _FRAME_ATTRIBUTES if hasattr(awaited, name)), None)) is not None:
        if (frame := getattr(awaited, kind)) is not None:
            yield frame
        awaited = getattr(awaited, _FRAME_ATTRIBUTES[kind])
