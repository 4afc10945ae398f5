"""Diagnostics for files that cannot be imported, with hints."""

import ast
import os
import re
import signal
import sys
from collections.abc import Sequence
from inspect import signature
from itertools import dropwhile
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_exception_only, walk_tb
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

from promptkit.declarations.name_hints import (
    did_you_mean,
    foreign_name_hint,
    list_submodules,
    missing_name_hint,
    operand_hint,
    public_names,
    undefined_name_hint,
)
from promptkit.errors.diagnostics import Diagnostic, Location, printable
from promptkit.errors.distribution import other_package_hint, pip_command, quote_for_shell
from promptkit.errors.rules import Rule
from promptkit.errors.sources import Function, span_at, tree_of
from promptkit.errors.suggestions import nearest
from promptkit.errors.tracebacks import is_authors_file
from promptkit.language.text import Text
from promptkit.loader.discovery import DiscoveredFiles, is_case_file, mentions_prompts
from promptkit.loader.recipes import LoadedFile
from promptkit.loader.targets import display_path, project_root


def hint_for_missing_module(name: str, file: Path) -> str:
    """Return a hint for an import of *name*, a module that cannot be found, in *file*."""
    parent, _, last = name.rpartition(".")
    if parent.partition(".")[0] == "promptkit" and (hint := other_package_hint()) is not None:
        return hint
    if (package := sys.modules.get(parent)) is None:
        top = name.partition(".")[0]
        return _suggest_install(top) or _describe_not_found(top, file)
    if last in (siblings := list_submodules(package)):
        return f"{name} exists, but cannot be imported: see its own error"
    is_in_folder = file.parent in map(Path, getattr(package, "__path__", ()))
    is_hidden = parent == "promptkit" and not last.startswith("_")
    suggestion = nearest(last, [key for key in siblings if not (is_hidden and key.startswith("_"))])
    if suggestion is not None:
        return f"did you mean {suggestion if is_in_folder else f'{parent}.{suggestion}'!r}?"
    if is_in_folder:
        return f"correct the name: no file next to the recipe is called {last}.py"
    return f"correct the name: {parent!r} has no module {last!r}"


def _describe_not_found(name: str, file: Path) -> str:
    """Return a hint that lists the searched folders."""
    root = project_root(file.absolute().parent)
    return (
        f"there is no {name!r} next to the recipe, in the project's root {root}, or installed for "
        f"{sys.executable}: put a module of your own into one of these folders; "
        f"for a third-party package, check its name, and install it with {pip_command()}"
    )


def _suggest_install(module: str) -> str | None:
    """Return how to install a well-known package whose name differs from *module*; None for other modules."""
    package = foreign_name_hint("packages", module)
    return None if package is None else f"install it: {pip_command()} {quote_for_shell(package)}"


_CANNOT_IMPORT: Final = re.compile(r"cannot import name '([^']+)'")
_UNEXPECTED: Final = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")


def import_hint(file: Path, error: BaseException) -> str:
    """Return a hint for *error*, which was raised while a recipe was imported."""
    if isinstance(error, SyntaxError):
        return "correct the syntax; Python stopped parsing at this line"
    if isinstance(error, SystemExit):
        return "do not exit while a recipe is being imported; raise PromptError in the prompt's function"
    try:
        hint = _find_hint(file, error)
    except Exception:  # noqa: BLE001 (inspecting an author's exception may raise anything)
        hint = None
    return hint or "correct the line; the other recipes are still served"


def _find_hint(file: Path, error: BaseException) -> str | None:  # noqa: PLR0911 (a list of cases)
    match error:
        case ImportError() if hint := _hint_for_misnamed(file, error):
            return hint
        case ModuleNotFoundError(name=str(name)):
            return hint_for_missing_module(name, file)
        case ImportError(name=str(module)):
            other = other_package_hint() if module.partition(".")[0] == "promptkit" else None
            match = _CANNOT_IMPORT.search(str(error))
            return other or (missing_name_hint(match[1], module) if match else None)
        case AttributeError(name=str(name)) if error.obj is not None:
            return _hint_for_missing_attribute(name, error.obj)
        case NameError(name=str(name)):
            known = {*(frame := _last_frame(error)).f_globals, *frame.f_locals}
            return undefined_name_hint(name, known) or "define it, or correct the name"
        case FileNotFoundError(filename=str(name)) if name and not os.path.isabs(name):
            return _hint_for_missing_file(name, file)
        case KeyError(args=(str(name),)) if _last_frame(error).f_globals.get("__name__") == "os":
            return f"set {name} where the server is started, or write os.environ.get({name!r}, '...')"
        case TypeError() if match := _UNEXPECTED.search(str(error)):
            return _hint_for_unknown_option(match[1], match[2])
        case TypeError():
            return operand_hint(error)
    return None


def _last_frame(error: BaseException) -> FrameType:
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame


def _hint_for_misnamed(file: Path, error: ImportError) -> str | None:
    """Return a hint for a file that cannot be imported because of its name or its position in a package."""
    folder = file.parent
    if "beyond top-level package" in str(error):
        return f"pass the folder {folder.parent} instead of a folder below it, or do not import from above it"
    if "." in file.stem:
        name = f"{file.stem.replace('.', '_')}.py"
        return f"rename the file, for example to {name}: module names cannot contain dots"
    if "." in folder.name and str(error.name).endswith(f".{folder.name.partition('.')[0]}"):
        name = folder.name.replace(".", "_")
        return f"rename the folder, for example to {name!r}: module names cannot contain dots"
    return None


def _hint_for_missing_attribute(name: str, owner: Any) -> str | None:
    if owner is str and hasattr(Text, name):  # typing.Text
        return "write 'from promptkit import Text': typing.Text is another name for str"
    if isinstance(owner, ModuleType):
        return missing_name_hint(name, owner.__name__)
    is_ours = isinstance(owner, type | FunctionType) and owner.__module__.startswith("promptkit.")
    return did_you_mean(name, dir(owner)) or (foreign_name_hint("names", name) if is_ours else None)


def _hint_for_missing_file(path: str, file: Path) -> str:
    """Return a hint for a relative *path* that the recipe *file* tried to open."""
    folder = file.absolute().parent
    return (
        f"the file was looked up in {Path.cwd()}; if it belongs next to the recipe, in {folder}, "
        f"write Path(__file__).parent / {path!r}"
    )


def _hint_for_unknown_option(name: str, option: str) -> str | None:
    """Return a hint for *option*, which promptkit's function *name* lacks; None for other functions."""
    if (home := public_names().get(name)) is None:
        return None
    if (hint := foreign_name_hint(f"options of {name}", option)) is not None:
        return hint
    parameters = signature(getattr(home, name)).parameters.values()
    options = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return did_you_mean(option, options) or f"{name} takes {', '.join(options) or 'no options'}"


_DECORATORS: Final = frozenset({"prompt", "resource", "skill"})

#: The suggestion that some versions of Python add to a message. The hint already contains one.
_SUGGESTION: Final = re.compile(r"\. Did you (?:mean|forget)\b[^?]*\?$")


def diagnose_import(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    """
    Return the diagnostic for a recipe that raised *error*.

    Args:
        file:
            The recipe.

        folder:
            The folder of its package; None if it is not loaded as part of a package.

        error:
            The exception.

    Raises:
        KeyboardInterrupt: If *error* is a KeyboardInterrupt that was caused by the user's Ctrl-C, and not by
            a recipe.
    """
    # Servers replace Python's SIGINT handler. Without this handler, only a recipe can raise the exception.
    if type(error) is KeyboardInterrupt and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error
    try:
        return _diagnose_error(file, folder, error)
    except Exception:  # noqa: BLE001 (formatting an author's exception runs its code)
        return _failure_diagnostic(
            file, f"cannot be imported: {type(error).__name__}, whose message cannot be shown"
        )


def _failure_diagnostic(
    file: Path,
    problem: str,
    hint: str = "fix or remove it; the other recipes are still served",
    location: Location | None = None,
) -> Diagnostic:
    """Return the diagnostic for a recipe that cannot be loaded."""
    kind = "cases" if is_case_file(file.name) else "recipe"
    message = printable(f"{kind} {file.stem!r} {problem}")
    return Diagnostic(Rule.IMPORT_FAILED, message, hint, location or Location(str(file)))


def diagnose_unserved(files: DiscoveredFiles, loaded: Sequence[LoadedFile]) -> list[LoadedFile]:
    """
    Return diagnostics for files and folders that cannot be served.

    Args:
        files:
            The files of the folder.

        loaded:
            The declarations of the recipes. A file whose name prevents it from being a recipe is not reported
            if a recipe imports it, because its prompts are then served.
    """
    diagnostics = {
        path: _failure_diagnostic(Path(path), f"cannot be read: {reason}")
        for path, reason in files.unreadable
    }
    for path, reason in files.skipped:
        name = os.path.basename(path)
        message = f"the folder {name!r} is not served: {reason}"
        hint = "make it readable, or start its name with '_' if it contains no prompts"
        diagnostics[path] = _unserved_diagnostic(path, message, hint)
    for path in files.outside:
        name = os.path.basename(path)
        message = f"the folder {name!r} is not served: it is a link to a folder outside the target"
        hint = f"pass {os.path.realpath(path)} as another target, or start the link's name with '_'"
        diagnostics[path] = _unserved_diagnostic(path, message, hint)
    for path in files.hidden:
        name = os.path.basename(path)
        message = f"the skills in {name!r} are not served: the folder's name starts with a dot"
        hint = f"to serve them, pass {display_path(path)!r} as a target"
        diagnostics[path] = _unserved_diagnostic(path, message, hint)
    served = {str(file.file) for file in loaded}  # a package that cannot be imported is already reported
    served.update(definition.location.file for file in loaded for definition in file.definitions)
    diagnostics |= {
        path: diagnostic
        for path in filter(mentions_prompts, files.unserved)
        if path not in served and (diagnostic := _diagnose_unserved_file(path))
    }
    return [LoadedFile(Path(path), diagnostics=(diagnostic,)) for path, diagnostic in diagnostics.items()]


def _unserved_diagnostic(path: str, message: str, hint: str, line: int = 0) -> Diagnostic:
    return Diagnostic(Rule.NOT_SERVED, printable(message), printable(hint), Location(path, line))


def _diagnose_unserved_file(path: str) -> Diagnostic | None:
    """
    Return the diagnostic for a file with prompts whose name is not that of a recipe; None if it has tests.
    """
    if (tree := tree_of(path)) is None or any(map(_is_test, tree.body)):
        return None
    first = next(filter(_is_prompt, tree.body), None)
    if not isinstance(first, Function):
        return None
    file = Path(path)
    why = "is a package module" if file.name == "__init__.py" else "has the name of a pytest file"
    why = "has the name of a case file" if is_case_file(file.name) else why
    message = f"{first.name!r} is not served: {file.name} {why}"
    return _unserved_diagnostic(
        path, message, "rename the file, or move its prompts to another file", first.lineno
    )


def _diagnose_error(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    text = _SUGGESTION.sub("", format_exception_only(error)[-1].strip())
    hint, location = import_hint(file, error), _location_of(error, file, folder)
    return _failure_diagnostic(file, f"cannot be imported: {text}", hint, location)


def _location_of(error: BaseException, file: Path, folder: Path | None) -> Location:
    """Return where in the authors' code an error was raised: in *file*, or in code that it called."""
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
    return isinstance(statement, Function) and any(map(_is_prompt_decorator, statement.decorator_list))


def _is_prompt_decorator(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(function, "attr", getattr(function, "id", None)) in _DECORATORS
