"""Why a file cannot be imported, as a diagnostic that says what to do about it."""

import ast
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from inspect import Parameter, signature
from itertools import dropwhile
from pathlib import Path
from pkgutil import iter_modules
from traceback import FrameSummary, extract_tb, format_exception_only, walk_tb
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

from promptkit.declarations.name_hints import (
    did_you_mean,
    instead_of,
    missing_name,
    modules_of,
    operand_hint,
    public_names,
    undefined_name,
)
from promptkit.errors.diagnostics import Diagnostic, Location, printable
from promptkit.errors.distribution import DISTRIBUTION, other_package, pip, quoted
from promptkit.errors.filled_text import explain_filling
from promptkit.errors.rules import Rule
from promptkit.errors.sources import Function, nodes_of, span_at, tree_of
from promptkit.errors.suggestions import is_misspelt, nearest
from promptkit.errors.tracebacks import is_authors_file
from promptkit.files.reading import is_foreign, read_regular_file
from promptkit.files.toml import parse_toml
from promptkit.loader.discovery import FolderWalk, FoundFiles, is_cases
from promptkit.loader.recipes import LoadedFile
from promptkit.loader.targets import project_root

#: A repeated letter is probably a typo. Names that differ otherwise, such as http and httpx, may both exist.
_REPEATED: Final = re.compile(r"(.)\1+")

#: How a requirement begins.
_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: A larger ``pyproject.toml`` is not read.
_MAX_BYTES: Final = 1 << 20

#: How far down in a project a module is searched for, and among how many files and folders at most.
_MAX_DEPTH: Final = 5
_MAX_ENTRIES: Final = 5_000


def missing_module(name: str, file: Path) -> str:
    """Return what to do when *file* imports the module *name*, which cannot be found."""
    parent, _, last = name.rpartition(".")
    if parent.partition(".")[0] == "promptkit" and (other := other_package()) is not None:
        return other
    if (package := sys.modules.get(parent)) is None:
        top = name.partition(".")[0]
        return _in_project(top, file) or _installed_by(top, file) or _not_found(top, file)
    if last in (siblings := modules_of(package)):
        return f"{name} exists, but cannot be imported: see its own error"
    is_beside = file.parent in map(Path, getattr(package, "__path__", ()))
    is_hidden = parent == "promptkit" and not last.startswith("_")
    meant = nearest(last, [other for other in siblings if not (is_hidden and other.startswith("_"))])
    if meant is not None:
        return f"did you mean {meant if is_beside else f'{parent}.{meant}'!r}?"
    if is_beside:
        return f"correct the name: no file beside the recipe is called {last}.py"
    return f"correct the name: {parent!r} has no module {last!r}"


def import_from_project(file: Path, line: int) -> str | None:
    """
    Return what to write in place of a relative import that leads out of the folder that is loaded.

    Args:
        file:
            The file that imports.

        line:
            A line of the statement.

    Returns:
        None if there is no such module in the project.
    """
    tree = tree_of(str(file))
    statements = nodes_of(tree, ast.ImportFrom) if tree is not None else []
    found = next((one for one in statements if one.lineno <= line <= (one.end_lineno or line)), None)
    if found is None or found.level > len(file.parents):
        return None
    place = file.parents[found.level - 1].joinpath(*(found.module or "").split("."))
    root = Path(project_root(file.parent))
    if not place.is_relative_to(root) or not (place.is_dir() or place.with_suffix(".py").is_file()):
        return None
    return _written(place.relative_to(root))


def _written(place: Path) -> str | None:
    """How to import from a file or a folder of the project; None if its path has what no import can name."""
    parts = place.with_suffix("").parts if place.name else ()  # the root itself has no name
    named = bool(parts) and all(part.isidentifier() for part in parts)
    return f"write 'from {'.'.join(parts)} import ...'" if named else None


def _in_project(name: str, file: Path) -> str | None:
    """How to import *name* if it is somewhere in the recipe's project."""
    root, seen, found = project_root(file.absolute().parent), 0, []
    for folder, entries in FolderWalk(root, depth=_MAX_DEPTH, private=True):
        seen += len(entries)
        if seen > _MAX_ENTRIES:
            break
        path, names = Path(folder).relative_to(root), {entry.name for entry in entries}
        if path.name == name and any(other.endswith(".py") for other in names):
            found.append(path)
        if f"{name}.py" in names:
            found.append(path / f"{name}.py")
    for place in sorted(found, key=lambda path: (len(path.parts), path)):
        if (written := _written(place)) is not None:
            return f"it is at {place}, and imports start at the project's root, {root}: {written}"
    return None


def _not_found(name: str, file: Path) -> str:
    """Where a module was looked for, and what is called alike."""
    folder = file.absolute().parent
    looked = (
        f"beside the recipe, in the project's root {project_root(folder)}, or installed for {sys.executable}"
    )
    own = "a module of your own belongs into one of the two folders"
    others = f"if it is a package of somebody else's, check its name, and give that to {pip()}"
    advice = f"there is no {name!r} {looked}: {own}; {others}"
    beside = nearest(name, [path.stem for path in folder.glob("*.py") if path != file])
    if beside is not None:
        return f"did you mean {beside!r}, which is beside the recipe? {advice}"
    modules = (*sys.stdlib_module_names, *(module.name for module in iter_modules()))
    meant = nearest(name, [module for module in modules if not module.startswith("_")])
    if meant is None or not is_misspelt(name, meant):
        return advice
    another = (meant in name or name in meant) and _REPEATED.sub(r"\1", name) != _REPEATED.sub(r"\1", meant)
    return advice if another else f"did you mean {meant!r}? {advice}"


def _installed_by(module: str, file: Path) -> str | None:
    """How to install a module of a package that promptkit knows, or that the project declares."""
    package = instead_of("packages", module)
    if package is None:
        requirements = (*_own_requirements(), *_declared(project_root(file.absolute().parent)))
        names = (found[0] for found in map(_PACKAGE.match, requirements) if found)
        package = next((name for name in names if _normal(name) == _normal(module)), None)
    if package is None:
        return None
    return f"install it: {pip()} {quoted(package)}"


def _normal(name: str) -> str:
    """The name of a package, or of a module, as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _own_requirements() -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires  # it imports an email parser

    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []


def _declared(root: str) -> list[str]:
    """What the ``pyproject.toml`` of a project requires, as far as it can be read."""
    file = Path(root, "pyproject.toml")
    with suppress(OSError, ValueError, AttributeError):
        table = {} if is_foreign(file) else parse_toml(read_regular_file(file, _MAX_BYTES))
        project, tool = table.get("project", {}), table.get("tool", {})
        lists = [
            project.get("dependencies", []),
            *project.get("optional-dependencies", {}).values(),
            *table.get("dependency-groups", {}).values(),
            [*tool.get("poetry", {}).get("dependencies", [])],
        ]
        return [one for each in lists if isinstance(each, list) for one in each if isinstance(one, str)]
    return []


_CANNOT_IMPORT: Final = re.compile(r"cannot import name '([^']+)'")
_UNEXPECTED: Final = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
_MISCALLED: Final = re.compile(r"(\w+)(?:\.__init__)?\(\) (?:missing|takes|got) ")


def import_hint(file: Path, error: BaseException) -> str:
    """Return what to do about *error*, which was raised while a recipe was imported."""
    if isinstance(error, SyntaxError):
        return "correct the syntax; the line is where Python stopped understanding"
    if isinstance(error, SystemExit):
        return "do not exit while a recipe is imported; raise PromptError inside the prompt"
    try:
        hint = _hint(file, error)
    except Exception:  # noqa: BLE001 (reading an author's exception may raise anything)
        hint = None
    return hint or "correct the line; the other recipes are still served"


def _hint(file: Path, error: BaseException) -> str | None:  # noqa: C901, PLR0911 (a list of cases)
    match error:
        case ImportError() if hint := _misnamed(file, error):
            return hint
        case LookupError() | TypeError() | ValueError() if hint := explain_filling(error):
            return hint
        case ModuleNotFoundError(name=str(name)):
            return missing_module(name, file)
        case ImportError(name=str(module)):
            other = other_package() if module.partition(".")[0] == "promptkit" else None
            found = _CANNOT_IMPORT.search(str(error))
            return other or (missing_name(found[1], module) if found else None)
        case AttributeError(name=str(name)) if error.obj is not None:
            return _missing_attribute(name, error.obj)
        case NameError(name=str(name)):
            known = {*(frame := _last_frame(error)).f_globals, *frame.f_locals}
            return undefined_name(name, known) or "define it, or correct the name"
        case FileNotFoundError(filename=str(name)) if name:
            return _missing_file(Path(name), file)
        case KeyError(args=(str(name),)) if _last_frame(error).f_globals.get("__name__") == "os":
            return f"set {name} where the server is started, or write os.environ.get({name!r}, '...')"
        case TypeError() if found := _UNEXPECTED.search(str(error)):
            return _unknown_option(found[1], found[2])
        case TypeError() if hint := operand_hint(error):
            return hint
        case TypeError() if found := _MISCALLED.search(str(error)):
            return _call_hint(found[1])
    return None


def _last_frame(error: BaseException) -> FrameType:
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame


def _misnamed(file: Path, error: ImportError) -> str | None:
    """What to do about a file, or its folder, that cannot be imported by its name."""
    folder, name = file.parent, str(error.name)
    if "beyond top-level package" in str(error):
        *_, (frame, line) = walk_tb(error.__traceback__)
        found = import_from_project(Path(frame.f_code.co_filename), line)
        instead = f"name the folder {folder.parent} in place of what is below it"
        return f"{found}, or {instead}" if found else f"{instead}, or do not import from above it"
    if "." in file.stem:
        return f"rename the file: a module's name has no dot, as in {file.stem.replace('.', '_')}.py"
    if error.path and Path(error.path).parent == file.with_suffix(""):
        return f"rename the file, or the folder {file.stem!r} beside it"
    if "." in folder.name and name.endswith(f".{folder.name.partition('.')[0]}"):
        return f"rename the folder: a module's name has no dot, as in {folder.name.replace('.', '_')!r}"
    if name.endswith(f".{folder.name}.{file.stem}") and folder.with_suffix(".py").is_file():
        return f"rename the folder, or the file '{folder.name}.py' beside it"
    return None


def _missing_attribute(name: str, owner: Any) -> str | None:
    if isinstance(owner, ModuleType):
        return missing_name(name, owner.__name__)
    is_ours = isinstance(owner, type | FunctionType) and owner.__module__.startswith("promptkit.")
    foreign = (instead_of("names", name) or _call_hint(owner.__name__)) if is_ours else None
    return did_you_mean(name, dir(owner)) or foreign


def _missing_file(path: Path, file: Path) -> str:
    """What to do about a file that *file* cannot open."""
    folder = file.absolute().parent
    if not path.is_absolute():
        looked, write = f"it was looked for in {Path.cwd()}", f"write Path(__file__).parent / {str(path)!r}"
        if (folder / path).exists():
            return f"{looked}, but is beside the recipe: {write}"
        return f"{looked}; if it belongs beside the recipe, in {folder}, {write}"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}: correct the path"
    meant = nearest(path.name, [other.name for other in path.parent.iterdir()])
    return f"did you mean {meant!r}?" if meant else f"put the file into {path.parent}, or correct its name"


def _call_hint(name: str) -> str | None:
    """How to call *name*, if promptkit defines it."""
    if name in ("Prompt", "Resource"):
        return f"decorate the function with @{name.lower()}"
    if (home := public_names().get(name)) is None:
        return None
    called = signature(getattr(home, name))
    bare = [parameter.replace(annotation=Parameter.empty) for parameter in called.parameters.values()]
    return f"write it as {name}{called.replace(parameters=bare, return_annotation=called.empty)}"


def _unknown_option(name: str, option: str) -> str | None:
    """What to do about *option*, a keyword argument that *name* of promptkit does not take."""
    if (home := public_names().get(name)) is None:
        return None
    if (instead := instead_of(f"options of {name}", option)) is not None:
        return instead
    parameters = signature(getattr(home, name)).parameters.values()
    options = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    taken = f"{name} takes {', '.join(options)}" if options else _call_hint(name)
    return did_you_mean(option, options) or taken


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
