"""Remedies for exceptions that were raised while a recipe was imported."""

import builtins
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

from promptkit.compiler.remedies.foreign_names import remedy_for_name, remedy_for_option
from promptkit.compiler.remedies.missing_modules import children_of, missing_module
from promptkit.errors.distribution import other_package
from promptkit.errors.exceptions import nearest

__all__ = ["import_of", "import_remedy", "missing_module", "missing_name", "undefined_name"]

#: The modules that users import from.
_PUBLIC: Final = ("promptkit", "promptkit.fragments", "promptkit.errors")

_CANNOT_IMPORT: Final = re.compile(r"cannot import name '([^']+)'")
_UNEXPECTED: Final = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
_MISCALLED: Final = re.compile(r"(\w+)(?:\.__init__)?\(\) (?:missing|takes|got) ")

_DEFAULT_REMEDY: Final = "correct the line; the other recipes are still served"


def import_remedy(file: Path, error: BaseException) -> str:
    """Return what to do about *error*, which was raised while a recipe was imported."""
    if isinstance(error, SyntaxError):
        return "correct the syntax; the line is where Python stopped understanding"
    if isinstance(error, SystemExit):
        return "do not exit while a recipe is imported; raise PromptError inside the prompt"
    try:
        return _remedy(file, error) or _DEFAULT_REMEDY
    except Exception:  # noqa: BLE001 (reading an author's exception may raise anything)
        return _DEFAULT_REMEDY


def _remedy(file: Path, error: BaseException) -> str | None:  # noqa: PLR0911 (a list of cases)
    match error:
        case ImportError() if remedy := _misnamed(file, error):
            return remedy
        case ModuleNotFoundError(name=str(name)):
            return missing_module(name, file)
        case ImportError(name=str(module)):
            found = _CANNOT_IMPORT.search(str(error))
            return _other_package(module) or (missing_name(found[1], module) if found else None)
        case AttributeError(name=str(name)) if error.obj is not None:
            return _missing_attribute(name, error.obj)
        case NameError(name=str(name)):
            return undefined_name(name, _names_at(error)) or "define it, or correct the name"
        case FileNotFoundError(filename=str(name)) if name:
            return _missing_file(Path(name)) if Path(name).is_absolute() else _relative_file(name, file)
        case KeyError(args=(str(name),)) if _last_frame(error).f_globals.get("__name__") == "os":
            return f"set {name} where the server is started, or write os.environ.get({name!r}, '...')"
        case TypeError() if found := _UNEXPECTED.search(str(error)):
            return _unknown_option(found[1], found[2])
        case TypeError() if found := _MISCALLED.search(str(error)):
            return _call_remedy(found[1])
    return None


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


def _other_package(module: str) -> str | None:
    """What to do if another project's package is imported in place of this one."""
    return other_package() if module.partition(".")[0] == "promptkit" else None


def _missing_attribute(name: str, owner: Any) -> str | None:
    if isinstance(owner, ModuleType):
        return missing_name(name, owner.__name__)
    remedy = _did_you_mean(name, dir(owner))
    if (
        remedy is None
        and isinstance(owner, type | FunctionType)
        and owner.__module__.startswith("promptkit.")
    ):
        remedy = remedy_for_name(name) or _call_remedy(owner.__name__)
    return remedy


def _did_you_mean(name: str, names: Iterable[str]) -> str | None:
    public = [other for other in names if not other.startswith("_")]
    begun = (other for other in public if len(name) > 2 and other.startswith(name))
    meant = nearest(name, public) or next(begun, None)
    return None if meant is None else f"did you mean {meant!r}?"


def missing_name(name: str, module: str) -> str | None:  # noqa: PLR0911 (a list of cases)
    """Return what to do about *name*, which the loaded *module* does not have."""
    if module.partition(".")[0] == "promptkit":
        for public in _PUBLIC:
            if name in _names_of(import_module(public)):
                return f"write 'from {public} import {name}'"
        if (remedy := remedy_for_name(name)) is not None:
            return remedy
    loaded = sys.modules.get(module)
    if loaded is None:
        return None
    if (meant := _did_you_mean(name, _names_of(loaded))) is not None:
        return meant
    if module.partition(".")[0] == "promptkit":
        homes = {other: public for public in reversed(_PUBLIC) for other in _names_of(import_module(public))}
        near = nearest(name, homes)
        return None if near is None else f"did you mean {near!r} of {homes[near]}?"
    spec = getattr(loaded, "__spec__", None)
    if getattr(spec, "_initializing", False):
        return "two files import each other: move what both need to a third one"
    if getattr(loaded, "__file__", None) is None:  # a folder
        return f"no file beside the recipe is called {name}.py: correct the name"
    return f"correct the name: {module} has no {name!r}"


def _names_of(module: ModuleType) -> list[str]:
    """The public names of a module, and the modules in a package."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    if module.__name__ in _PUBLIC:
        return [*names, "fragments"] if module.__name__ == "promptkit" else list(names)
    return sorted({*names, *(path.stem for path in children_of(module))})


def import_of(name: str) -> str | None:
    """Return the import statement for *name*, if promptkit or a common module defines it."""
    for public in ("promptkit", "promptkit.fragments", "typing", "pathlib", "datetime", "decimal", "enum"):
        module = import_module(public)
        if name in getattr(module, "__all__", dir(module)):
            return f"from {public} import {name}"
    return f"import {name}" if name in sys.stdlib_module_names else None


def undefined_name(name: str, known: Iterable[str]) -> str | None:
    """
    Return what to do about a name that nothing defines: import it, or correct it.

    Args:
        name:
            The name.

        known:
            The names in scope where it is used.
    """
    if (found := import_of(name)) is not None:
        return f"import it: {found}"
    return _did_you_mean(name, {*vars(builtins), *known}) or missing_name(name, "promptkit")


def _names_at(error: NameError) -> set[str]:
    frame = _last_frame(error)
    return {*frame.f_globals, *frame.f_locals}


def _last_frame(error: BaseException) -> FrameType:
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame


def _relative_file(name: str, file: Path) -> str:
    """What to do about a file that was opened by a relative path."""
    folder = file.absolute().parent
    at = f"Path(__file__).parent / {name!r}"
    if (folder / name).exists():
        return f"it was looked for in {Path.cwd()}, but is beside the recipe: write {at}"
    return f"it was looked for in {Path.cwd()}; if it belongs beside the recipe, in {folder}, write {at}"


def _missing_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}: correct the path"
    meant = nearest(path.name, [other.name for other in path.parent.iterdir()])
    return f"did you mean {meant!r}?" if meant else f"put the file into {path.parent}, or correct its name"


def _call_remedy(name: str) -> str | None:
    """How to call *name*, if promptkit defines it."""
    from inspect import Parameter, signature

    if name in ("Prompt", "Resource"):
        return f"decorate the function with @{name.lower()}"
    for public in _PUBLIC:
        module = import_module(public)
        if name in getattr(module, "__all__", ()):
            called = signature(getattr(module, name))
            bare = [p.replace(annotation=Parameter.empty) for p in called.parameters.values()]
            shown = called.replace(parameters=bare, return_annotation=called.empty)
            return f"write it as {name}{shown}"
    return None


def _unknown_option(name: str, option: str) -> str | None:
    """What to do about *option*, a keyword argument that *name* of promptkit does not take."""
    from inspect import signature

    for public in _PUBLIC:
        module = import_module(public)
        if name in getattr(module, "__all__", ()):
            if (remedy := remedy_for_option(name, option)) is not None:
                return remedy
            parameters = signature(getattr(module, name)).parameters.values()
            options = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
            taken = f"{name} takes {', '.join(options)}" if options else _call_remedy(name)
            return _did_you_mean(option, options) or taken
    return None
