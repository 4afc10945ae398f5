"""What is said of a recipe that cannot be imported: what was raised, where, and what to do about it."""

import sys
from pathlib import Path

from promptkit.diagnostics import Diagnostic, Location, Rule

__all__ = ["import_failed"]


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
    from traceback import format_exception_only  # only a broken recipe needs it

    said = format_exception_only(error)[-1].strip()
    return Diagnostic(
        Rule.IMPORT_FAILED,
        f"recipe {file.stem!r} cannot be imported: {said}",
        _import_remedy(file, error),
        _place_of(error, file, folder),
    )


def _place_of(error: BaseException, file: Path, folder: Path | None) -> Location:
    """
    Return where, in *file* or beside it, *error* was raised.
    """
    from traceback import extract_tb

    from promptkit.sources import span_at

    if isinstance(error, SyntaxError) and error.filename:
        column = max(error.offset or 0, 0)
        goes_on = (error.end_lineno or 0, error.end_offset or 0) > (error.lineno or 0, column)
        end = error.end_offset if goes_on and error.end_lineno == error.lineno else column + 1
        return Location(error.filename, error.lineno or 0, column, end if column and end else 0)
    location = Location(str(file))
    for frame in extract_tb(error.__traceback__):
        if Path(frame.filename).parent == folder or frame.filename == str(file):
            line, end = frame.lineno or 0, frame.end_colno if frame.end_lineno == frame.lineno else None
            location = Location(frame.filename, *span_at(frame.filename, line, frame.colno or 0, end))
    return location


def _import_remedy(file: Path, error: BaseException) -> str:
    """
    Return what to do about a recipe, *file*, that raised *error* when it was imported.
    """
    if "." in file.stem:
        return f"rename the file: a module's name has no dot, as in {file.stem.replace('.', '_')}.py"
    if isinstance(error, ModuleNotFoundError):
        return f"correct the name (no file beside the recipe has it), or install it: {sys.executable} -m pip"
    if isinstance(error, SyntaxError):
        return "correct the syntax; the line is where Python stopped understanding"
    if isinstance(error, SystemExit):
        return "do not exit while a recipe is imported; raise PromptError inside the prompt"
    return "correct the line; the other recipes are served all the same"
