"""What is said of a recipe that cannot be imported: what was raised, where, and what to do about it."""

import re
from itertools import dropwhile
from pathlib import Path
from typing import Final

from promptkit.errors.diagnostics import Diagnostic, Location, Rule

__all__ = ["import_failed"]

#: What some versions of Python guess, which the remedy says on all of them, and where a module lies.
_BESIDE: Final = re.compile(
    r"\. Did you (?:mean|forget)\b[^?]*\?$| \((?:[^()]+\.(?:py|pyd|so)|unknown location)\)$"
)


def import_failed(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    """
    Return the diagnostic for a recipe that raised *error* when it was imported.

    Args:
        file:
            The recipe.

        folder:
            Where its neighbours lie, if it has any.

        error:
            What was raised.
    """
    from traceback import format_exception_only  # only a broken recipe needs these

    from promptkit.compiler.remedies.imports import import_remedy

    said = _BESIDE.sub("", _BESIDE.sub("", format_exception_only(error)[-1].strip()))
    return Diagnostic(
        Rule.IMPORT_FAILED,
        f"recipe {file.stem!r} cannot be imported: {said}",
        import_remedy(file, error),
        _place_of(error, file, folder),
    )


def _place_of(error: BaseException, file: Path, folder: Path | None) -> Location:
    """
    Return where in the author's code, from *file* on, *error* was raised.
    """
    from traceback import FrameSummary, extract_tb

    from promptkit.errors.sources import span_at
    from promptkit.errors.tracebacks import is_authors_file

    if isinstance(error, SyntaxError) and error.filename:
        column = max(error.offset or 0, 0)
        goes_on = (error.end_lineno or 0, error.end_offset or 0) > (error.lineno or 0, column)
        end = error.end_offset if goes_on and error.end_lineno == error.lineno else column + 1
        return Location(error.filename, error.lineno or 0, column, end if column and end else 0)

    def is_recipe(frame: FrameSummary) -> bool:
        return Path(frame.filename).parent == folder or frame.filename == str(file)

    location = Location(str(file))
    for frame in dropwhile(lambda frame: not is_recipe(frame), extract_tb(error.__traceback__)):
        if is_recipe(frame) or is_authors_file(frame.filename):
            line, end = frame.lineno or 0, frame.end_colno if frame.end_lineno == frame.lineno else None
            location = Location(frame.filename, *span_at(frame.filename, line, frame.colno or 0, end))
    return location
