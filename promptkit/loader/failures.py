"""
Diagnostics for files that are not served: what an import raised, where, and what to do about it.

This is imported only where there is such a file.
"""

import ast
import re
import signal
from collections.abc import Iterable, Sequence
from itertools import dropwhile
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_exception_only
from typing import Final

from promptkit.errors.diagnostics import Diagnostic, Location, Rule, printable
from promptkit.errors.sources import Function, span_at, tree_of
from promptkit.errors.tracebacks import is_authors_file
from promptkit.loader.discovery import FoundFiles, is_cases
from promptkit.loader.import_errors import import_hint
from promptkit.loader.recipes import LoadedFile

__all__ = ["fault_of", "not_served"]

_DECORATORS: Final = frozenset({"prompt", "resource", "skill"})

#: What is cut from Python's message: the suggestions that some versions add, as the hint has its own,
#: and the path of the module.
_CUT: Final = re.compile(
    r"(?:\. Did you (?:mean|forget)\b[^?]*\?| \((?:[^()]+\.(?:py|pyd|so)|unknown location)\))+$"
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

    Raises:
        KeyboardInterrupt: If *error* is one, and not a recipe but the user's Ctrl-C has raised it.
    """
    # A server handles SIGINT by itself: there it can only come from a recipe.
    if type(error) is KeyboardInterrupt and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error
    try:
        return _import_error(file, folder, error)
    except Exception:  # noqa: BLE001 (showing an author's exception runs its code)
        return _import_failed(file, f"cannot be imported: {type(error).__name__}, which cannot be described")


def _import_failed(
    file: Path,
    what: str,
    hint: str = "fix or remove it; the other recipes are still served",
    location: Location | None = None,
) -> Diagnostic:
    """The diagnostic for a recipe that cannot be loaded."""
    kind = "cases" if is_cases(file.name) else "recipe"
    message = printable(f"{kind} {file.stem!r} {what}")
    return Diagnostic(Rule.IMPORT_FAILED, message, hint, location or Location(str(file)))


def not_served(files: FoundFiles, likely: Iterable[str], loaded: Sequence[LoadedFile]) -> list[LoadedFile]:
    """
    Return what is in a folder and cannot be served, each with the reason.

    Args:
        files:
            What is in the folder.

        likely:
            The files that are no recipes by their names, and seem to define prompts.

        loaded:
            What the recipes declare. What they have imported of the likely files is served.
    """
    unreadable = ((Path(path), f"cannot be read: {reason}") for path, reason in files.unreadable)
    found = {str(path): _import_failed(path, what) for path, what in unreadable}
    found |= {path: _not_entered(Path(path), reason) for path, reason in files.skipped}
    served = {str(file.file) for file in loaded}  # of a package that cannot be imported, that is said already
    served.update(one.location.file for file in loaded for one in file.definitions)
    found |= {path: fault for path in likely if path not in served and (fault := _unserved_prompts(path))}
    return [LoadedFile(Path(path), diagnostics=(fault,)) for path, fault in found.items()]


def _not_entered(folder: Path, reason: str) -> Diagnostic:
    message = f"what is in the folder {folder.name!r} is not served: {reason}"
    hint = "let it be read, or begin its name with '_' if no prompts are in it"
    return Diagnostic(Rule.NOT_SERVED, message, hint, Location(str(folder)))


def _unserved_prompts(path: str) -> Diagnostic | None:
    """What to say of a file that is no recipe by its name; None if it has no prompts, or tests besides."""
    if (tree := tree_of(path)) is None or any(map(_is_test, tree.body)):
        return None
    first = next(filter(_is_prompt, tree.body), None)
    if not isinstance(first, Function):
        return None
    file = Path(path)
    why = "is a package's own file" if file.name == "__init__.py" else "is pytest's by its name"
    why = "is one of cases by its name" if is_cases(file.name) else why
    return Diagnostic(
        Rule.NOT_SERVED,
        printable(f"{first.name!r} is not served: {file.name} {why}"),
        printable(f"rename the file to {_served_name(file, first.name)}, or move its prompts to such a file"),
        Location(path, first.lineno),
    )


def _import_error(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    text = _CUT.sub("", format_exception_only(error)[-1].strip())
    hint, location = import_hint(file, error), _location_of(error, file, folder)
    return _import_failed(file, f"cannot be imported: {text}", hint, location)


def _location_of(error: BaseException, file: Path, folder: Path | None) -> Location:
    """Where in the author's code, from *file* on, the error was raised."""
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
    end = max(error.end_offset or 0, column + 1) if error.end_lineno == error.lineno else column + 1
    return Location(file, error.lineno or 0, column, end if column else 0)


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ClassDef):
        return statement.name.startswith("Test")
    return isinstance(statement, Function) and statement.name.startswith("test") and not _is_prompt(statement)


def _is_prompt(statement: ast.stmt) -> bool:
    return isinstance(statement, Function) and any(map(_makes_prompt, statement.decorator_list))


def _makes_prompt(decorator: ast.expr) -> bool:
    made = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(made, "attr", getattr(made, "id", None)) in _DECORATORS


def _served_name(file: Path, function: str) -> str:
    """A name for *file* that has none of what keeps it from being served."""
    own = file.stem.removeprefix("test_").removeprefix("cases_").removesuffix("_test")
    stem = function if own in {"", "__init__", "conftest"} else own
    return f"{stem}_prompts.py" if file.with_name(f"{stem}.py").exists() else f"{stem}.py"
