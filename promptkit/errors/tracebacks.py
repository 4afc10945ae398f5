"""Tracebacks and stacks, shortened to the frames of recipe authors."""

import ast
import gc
import os
import string
import sys
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ResultError
from promptkit.errors.sources import segment_of
from promptkit.files.reading import INSTALLED

if TYPE_CHECKING:
    from traceback import TracebackException


#: The folder of the package.
_PACKAGE: Final = Path(__file__).parents[1]

#: Libraries that call authors' code, or validate and convert its values.
_LIBRARIES: Final = (
    *("asyncio", "attr", "attrs", "cattr", "cattrs", "concurrent", "contextlib", "importlib", "msgspec"),
    *("runpy", "threading", "typeguard"),
)

#: How to write text that is not a placeholder, by the method or operator that fills in a text.
_BRACES: Final = "double the braces that are part of the text: {{ }}"
_ESCAPES: Final = {
    "format": _BRACES,
    "format_map": _BRACES,
    "substitute": "double the dollar signs that are part of the text: $$",
    "%": "double the percent signs that are part of the text: %%",
}


def format_exception(error: BaseException) -> str:
    """
    Format *error* and its causes with the author's frames only. Causes without any are omitted.

    If filling in a text failed, a hint follows.

    If no frame is the author's, as for recipes in an installed package, only frames of promptkit and of its
    libraries are omitted; all frames are kept if there are no others, because the error is not in a recipe
    then. A `ResultError` has no traceback, because its function has already returned.
    """
    if isinstance(error, ResultError):
        return f"{error}\n"
    from traceback import TracebackException  # only needed for failures

    traceback = TracebackException.from_exception(error)
    files = {frame.filename for exception in _chain(traceback) for frame in exception.stack}
    internals = _internals()
    external = {file for file in files if not _is_below(file, internals)}
    if visible := set(filter(is_authors_file, files)) or external:
        _keep_frames(traceback, visible)
    if (hint := explain_filling(error)) is not None:
        traceback.__notes__ = [*(traceback.__notes__ or ()), hint]
    return "".join(traceback.format())


def _keep_frames(root: "TracebackException", files: Container[str]) -> None:
    """Remove the frames of other files, and causes without frames."""
    for exception in reversed(list(_chain(root))):  # causes first
        exception.stack[:] = [frame for frame in exception.stack if frame.filename in files]
        for name in ("__cause__", "__context__"):
            cause = getattr(exception, name)
            if cause is not None and not (
                cause.stack or cause.__cause__ or cause.__context__ or cause.exceptions
            ):
                setattr(exception, name, None)


def raising_line(error: BaseException) -> Location | None:
    """Return the author's line in which an exception was raised, or that called the code that raised it."""
    from traceback import walk_tb  # only needed for failures

    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    return next((Location(file, line) for file, line in reversed(lines) if is_authors_file(file)), None)


def explain_filling(error: BaseException) -> str | None:
    """
    Return a hint if `str.format`, ``%`` or `string.Template` could not fill in a text; otherwise None.

    Args:
        error:
            The exception raised by an author's code, with its traceback.
    """
    if not isinstance(error, LookupError | TypeError | ValueError):
        return None
    from traceback import extract_tb  # only needed for failures

    frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename != string.__file__]
    if not frames or frames[-1].end_lineno is None or frames[-1].colno is None:
        return None
    frame, first = frames[-1], frames[-1].lineno or 0
    code = segment_of(frame.filename, (first, frame.end_lineno or 0, frame.colno or 0, frame.end_colno or 0))
    # The position of a method call over several lines starts at the method's name.
    code = f"_.{code}" if code.partition("(")[0].strip() in _ESCAPES else code
    operation: object = None
    with suppress(SyntaxError, ValueError, RecursionError):  # the file has changed since it was imported
        match ast.parse(f"({code})", mode="eval").body:
            case ast.Call(ast.Attribute(attr=operation)):
                pass
            case ast.BinOp(op=ast.Mod()):
                operation = "%"
    return f"give each placeholder a value, or {_ESCAPES[operation]}" if operation in _ESCAPES else None


def drop_internal_frames(error: BaseException) -> None:
    """Keep only the author's frames after the first frame of promptkit in an exception's traceback."""
    entry, last, is_inside = error.__traceback__, None, False
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        is_inside = is_inside or _is_below(file, (str(_PACKAGE),))
        if last is not None and (not is_inside or is_authors_file(file)):
            last.tb_next = entry
        if not is_inside or is_authors_file(file):
            last = entry
        entry = entry.tb_next
    if last is not None:
        last.tb_next = None


def is_authors_file(file: str) -> bool:
    """Whether *file* is an author's: not in the standard library, an installed package or promptkit."""
    if file.startswith("<") or not INSTALLED.isdisjoint(Path(file).parts):
        return False
    return not _is_below(file, (str(Path(os.__file__).parent), *_internals()))


def _internals() -> tuple[str, ...]:
    """Return the folders and files of promptkit, and of the loaded libraries."""
    loaded = (getattr(sys.modules.get(name), "__file__", None) for name in _LIBRARIES)
    files = [Path(file) for file in loaded if file]
    return str(_PACKAGE), *(str(file.parent if file.name == "__init__.py" else file) for file in files)


def _is_below(file: str, paths: tuple[str, ...]) -> bool:
    """Whether *file* is one of *paths* or below one, or is generated code."""
    if file.startswith(("<frozen ", "<attrs generated ", "<cattrs generated ")):
        return True
    return any(file == path or file.startswith(path + os.sep) for path in paths)


def _chain(root: "TracebackException") -> Iterator["TracebackException"]:
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


#: Attributes of suspendable objects: the attribute of the frame, and that of the awaited object.
_SUSPENDED: Final = {"cr_frame": "cr_await", "ag_frame": "ag_await", "gi_frame": "gi_yieldfrom"}


def authors_line(thread: int | None, coroutine: Any = None, own: str = "") -> Location | None:
    """
    Return the innermost line of an author's code that a thread executes; None if there is none.

    Args:
        thread:
            The thread's identifier; None if it has not started.

        coroutine:
            The coroutine that runs on the thread's event loop, if any. While it is suspended, the thread
            executes other code.

        own:
            The file of the called function, which counts as the author's wherever it is.
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
    Return the innermost frame of each thread, by thread identifier.

    In Python 3.11, a garbage collection during the call can deadlock all threads.

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


def _frames_around(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, the outermost last."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frames_waiting(awaited: Any) -> Iterator[FrameType]:
    """Yield the frames of a suspended coroutine and of those that it awaits, the outermost first."""
    while (kind := next((name for name in _SUSPENDED if hasattr(awaited, name)), None)) is not None:
        if (frame := getattr(awaited, kind)) is not None:
            yield frame
        awaited = getattr(awaited, _SUSPENDED[kind])
