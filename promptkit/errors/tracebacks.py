"""Tracebacks that show authors their own frames, not those of promptkit or of libraries that it calls."""

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import compress, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from promptkit.errors.exceptions import ResultError
from promptkit.errors.filled_text import explain_filling
from promptkit.files.regular import INSTALLED

if TYPE_CHECKING:
    from traceback import TracebackException
    from types import TracebackType

__all__ = ["drop_internal_frames", "format_exception", "is_authors_file"]

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
