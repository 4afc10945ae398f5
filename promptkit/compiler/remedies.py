"""Remedies: what an author can do about a recipe that cannot be imported."""

import builtins
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from pkgutil import get_data, iter_modules
from traceback import walk_tb
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import msgspec

from promptkit.compiler.loading.recipe_files import FolderWalk
from promptkit.compiler.loading.targets import project_root
from promptkit.errors.distribution import other_package
from promptkit.errors.exceptions import nearest
from promptkit.fragments.shell_words import command_line

__all__ = ["import_of", "import_remedy", "instead_of", "missing_module", "missing_name", "undefined_name"]

#: The modules that users import from.
_PUBLIC: Final = ("promptkit", "promptkit.fragments", "promptkit.errors")

_CANNOT_IMPORT: Final = re.compile(r"cannot import name '([^']+)'")
_UNEXPECTED: Final = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
_MISCALLED: Final = re.compile(r"(\w+)(?:\.__init__)?\(\) (?:missing|takes|got) ")

#: By kind, the names that authors write in vain, each with what to write instead.
_INSTEAD: Final[Mapping[str, Mapping[str, str]]] = msgspec.toml.decode(
    get_data(__name__, "remedies.toml") or b""
)

#: A repeated letter is probably a typo. Names that differ otherwise, such as http and httpx, may both exist.
_REPEATED: Final = re.compile(r"(.)\1+")

#: How far down in a project a module is searched for, and among how many files and folders at most.
_MAX_DEPTH: Final = 5
_MAX_ENTRIES: Final = 5_000


def instead_of(kind: str, name: str) -> str | None:
    """Return what to write in place of a name of some *kind*, which is a table of ``remedies.toml``."""
    remedies = _INSTEAD.get(kind, {}).items()
    return next((remedy for names, remedy in remedies if name in names.split()), None)


def import_remedy(file: Path, error: BaseException) -> str:
    """Return what to do about *error*, which was raised while a recipe was imported."""
    if isinstance(error, SyntaxError):
        return "correct the syntax; the line is where Python stopped understanding"
    if isinstance(error, SystemExit):
        return "do not exit while a recipe is imported; raise PromptError inside the prompt"
    try:
        remedy = _remedy(file, error)
    except Exception:  # noqa: BLE001 (reading an author's exception may raise anything)
        remedy = None
    return remedy or "correct the line; the other recipes are still served"


def _remedy(file: Path, error: BaseException) -> str | None:  # noqa: PLR0911 (a list of cases)
    match error:
        case ImportError() if remedy := _misnamed(file, error):
            return remedy
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
        case TypeError() if found := _MISCALLED.search(str(error)):
            return _call_remedy(found[1])
    return None


def _last_frame(error: BaseException) -> FrameType:
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame


def _misnamed(file: Path, error: ImportError) -> str | None:
    """What to do about a file, or its folder, that cannot be imported by its name."""
    folder, name = file.parent, str(error.name)
    if "beyond top-level package" in str(error):
        return f"name the folder {folder.parent} in place of what is below it, or do not import from above it"
    if "." in file.stem:
        return f"rename the file: a module's name has no dot, as in {file.stem.replace('.', '_')}.py"
    if error.path and Path(error.path).parent == file.with_suffix(""):
        return f"rename the file, or the folder {file.stem!r} beside it"
    if "." in folder.name and name.endswith(f".{folder.name.partition('.')[0]}"):
        return f"rename the folder: a module's name has no dot, as in {folder.name.replace('.', '_')!r}"
    if name.endswith(f".{folder.name}.{file.stem}") and folder.with_suffix(".py").is_file():
        return f"rename the folder, or the file '{folder.name}.py' beside it"
    return None


def missing_module(name: str, file: Path) -> str:
    """Return what to do when *file* imports the module *name*, which cannot be found."""
    parent, _, last = name.rpartition(".")
    if parent.partition(".")[0] == "promptkit" and (other := other_package()) is not None:
        return other
    if (package := sys.modules.get(parent)) is None:
        top = name.partition(".")[0]
        return _in_project(top, file) or _misspelt(top, file) or f"install it: {_install(top)}"
    if last in (siblings := _modules_of(package)):
        return f"{name} exists, but cannot be imported: see its own error"
    is_beside = file.parent in map(Path, getattr(package, "__path__", ()))
    is_hidden = parent == "promptkit" and not last.startswith("_")
    meant = nearest(last, [other for other in siblings if not (is_hidden and other.startswith("_"))])
    if meant is not None:
        return f"did you mean {meant if is_beside else f'{parent}.{meant}'!r}?"
    if is_beside:
        return f"correct the name: no file beside the recipe is called {last}.py"
    return f"correct the name: {parent!r} has no module {last!r}"


def _modules_of(package: ModuleType) -> list[str]:
    """The names of the modules in a package; none if it is no package."""
    return [module.name for module in iter_modules(getattr(package, "__path__", ()))]


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
        parts = place.with_suffix("").parts
        if all(part.isidentifier() for part in parts):
            where = f"it is at {place}, and imports start at the project's root, {root}"
            return f"{where}: write 'from {'.'.join(parts)} import ...'"
    return None


def _misspelt(name: str, file: Path) -> str | None:
    """Suggest a module with a similar name."""
    if instead_of("packages", name):
        return None
    beside = nearest(name, [path.stem for path in file.absolute().parent.glob("*.py") if path != file])
    if beside is not None:
        return f"did you mean {beside!r}, which is beside the recipe? or install it: {_install(name)}"
    modules = (*sys.stdlib_module_names, *(module.name for module in iter_modules()))
    meant = nearest(name, [module for module in modules if not module.startswith("_")])
    if meant is None or abs(len(meant) - len(name)) > 1:
        return None
    another = (meant in name or name in meant) and _REPEATED.sub(r"\1", name) != _REPEATED.sub(r"\1", meant)
    return None if another else f"did you mean {meant!r}? or install it: {_install(name)}"


def _install(module: str) -> str:
    """A command, ready to be copied, that installs what is imported as *module*."""
    command = [sys.executable, "-m", "pip", "install"]
    if find_spec("pip") is None:  # as in environments that uv makes
        command = ["uv", "pip", "install", "--python", sys.executable]
    return command_line([*command, instead_of("packages", module) or module])


def _missing_attribute(name: str, owner: Any) -> str | None:
    if isinstance(owner, ModuleType):
        return missing_name(name, owner.__name__)
    is_ours = isinstance(owner, type | FunctionType) and owner.__module__.startswith("promptkit.")
    foreign = (instead_of("names", name) or _call_remedy(owner.__name__)) if is_ours else None
    return _did_you_mean(name, dir(owner)) or foreign


def _did_you_mean(name: str, names: Iterable[str]) -> str | None:
    meant = nearest(name, [other for other in names if not other.startswith("_")])
    return None if meant is None else f"did you mean {meant!r}?"


def missing_name(name: str, module: str) -> str | None:  # noqa: PLR0911 (a list of cases)
    """Return what to do about *name*, which the loaded *module* does not have."""
    homes = _homes() if module.partition(".")[0] == "promptkit" else {}
    if name in homes:
        return f"write 'from {homes[name].__name__} import {name}'"
    if homes and (instead := instead_of("names", name)) is not None:
        return instead
    if (loaded := sys.modules.get(module)) is None:
        return None
    if (meant := _did_you_mean(name, _names_of(loaded))) is not None:
        return meant
    if homes:
        near = nearest(name, homes)
        return None if near is None else f"did you mean {near!r} of {homes[near].__name__}?"
    if getattr(getattr(loaded, "__spec__", None), "_initializing", False):
        return "two files import each other: move what both need to a third one"
    if getattr(loaded, "__file__", None) is None:  # a folder
        return f"no file beside the recipe is called {name}.py: correct the name"
    return f"correct the name: {module} has no {name!r}"


def _homes() -> dict[str, ModuleType]:
    """By public name of promptkit, the module that users import it from."""
    modules = map(import_module, reversed(_PUBLIC))
    return {name: module for module in modules for name in _names_of(module)}


def _names_of(module: ModuleType) -> list[str]:
    """The public names of a module, and the modules in a package."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    if module.__name__ in _PUBLIC:
        return [*names, "fragments"] if module.__name__ == "promptkit" else list(names)
    return sorted({*names, *_modules_of(module)})


def import_of(name: str) -> str | None:
    """Return the import statement for *name*, if promptkit or a common module defines it."""
    for public in ("promptkit", "promptkit.fragments", "typing", "pathlib", "datetime", "decimal", "enum"):
        module = import_module(public)
        if name in getattr(module, "__all__", dir(module)):
            return f"from {public} import {name}"
    return f"import {name}" if name in sys.stdlib_module_names else None


def undefined_name(name: str, known: Iterable[str]) -> str | None:
    """Return what to do about a name that nothing defines, where others are *known*: import or correct it."""
    if (found := import_of(name)) is not None:
        return f"import it: {found}"
    return _did_you_mean(name, {*vars(builtins), *known}) or missing_name(name, "promptkit")


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


def _call_remedy(name: str) -> str | None:
    """How to call *name*, if promptkit defines it."""
    if name in ("Prompt", "Resource"):
        return f"decorate the function with @{name.lower()}"
    if (home := _homes().get(name)) is None:
        return None
    called = signature(getattr(home, name))
    bare = [parameter.replace(annotation=Parameter.empty) for parameter in called.parameters.values()]
    return f"write it as {name}{called.replace(parameters=bare, return_annotation=called.empty)}"


def _unknown_option(name: str, option: str) -> str | None:
    """What to do about *option*, a keyword argument that *name* of promptkit does not take."""
    if (home := _homes().get(name)) is None:
        return None
    if (instead := instead_of(f"options of {name}", option)) is not None:
        return instead
    parameters = signature(getattr(home, name)).parameters.values()
    options = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    taken = f"{name} takes {', '.join(options)}" if options else _call_remedy(name)
    return _did_you_mean(option, options) or taken
