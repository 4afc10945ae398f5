"""Diagnostics for recipes that cannot be imported: what was raised, where, and what to do about it."""

import re
from itertools import dropwhile
from pathlib import Path
from typing import Final

from promptkit.compiler.loading.interpreter import raise_if_interrupted
from promptkit.errors.diagnostics import Diagnostic, Location, Rule, printable

__all__ = ["fault_of", "import_failed"]

#: What is cut from Python's message: the suggestions that some versions add, as the remedy has its own,
#: and the path of the module.
_CUT: Final = re.compile(
    r"\. Did you (?:mean|forget)\b[^?]*\?$| \((?:[^()]+\.(?:py|pyd|so)|unknown location)\)$"
)


def fault_of(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    """
    Return the diagnostic for a recipe that raised *error*.

    Args:
        file:
            The recipe.

        folder:
            The folder of its package, if it is loaded as part of one.

        error:
            What was raised.
    """
    try:
        return _import_error(file, folder, error)
    except BaseException as other:  # noqa: BLE001 (showing an author's exception runs its code)
        raise_if_interrupted(other)
        return import_failed(file, f"cannot be imported: {type(error).__name__}, which cannot be described")


def import_failed(
    file: Path,
    what: str,
    remedy: str = "fix or remove it; the other recipes are still served",
    location: Location | None = None,
) -> Diagnostic:
    """Return the diagnostic for a recipe that cannot be loaded."""
    message = printable(f"recipe {file.stem!r} {what}")
    return Diagnostic(Rule.IMPORT_FAILED, message, remedy, location or Location(str(file)))


def _import_error(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    from traceback import format_exception_only

    from promptkit.compiler.remedies import import_remedy

    text = format_exception_only(error)[-1].strip()
    text = _CUT.sub("", _CUT.sub("", text))
    remedy, location = import_remedy(file, error), _location_of(error, file, folder)
    return import_failed(file, f"cannot be imported: {text}", remedy, location)


def _location_of(error: BaseException, file: Path, folder: Path | None) -> Location:
    """Where in the author's code, from *file* on, the error was raised."""
    from traceback import FrameSummary, extract_tb

    from promptkit.errors.sources import span_at
    from promptkit.errors.tracebacks import is_authors_file

    if isinstance(error, SyntaxError) and error.filename:
        return _location_of_syntax_error(error, error.filename)

    def is_recipe(frame: FrameSummary) -> bool:
        return folder in Path(frame.filename).parents or frame.filename == str(file)

    location = Location(str(file))
    for frame in dropwhile(lambda frame: not is_recipe(frame), extract_tb(error.__traceback__)):
        if is_recipe(frame) or is_authors_file(frame.filename):
            line, end = frame.lineno or 0, frame.end_colno if frame.end_lineno == frame.lineno else None
            location = Location(frame.filename, *span_at(frame.filename, line, frame.colno or 0, end))
    return location


def _location_of_syntax_error(error: SyntaxError, file: str) -> Location:
    column = max(error.offset or 0, 0)
    has_end = (error.end_lineno or 0, error.end_offset or 0) > (error.lineno or 0, column)
    end = error.end_offset if has_end and error.end_lineno == error.lineno else column + 1
    return Location(file, error.lineno or 0, column, end if column and end else 0)
