"""Import errors: what an author can do about a recipe that cannot be imported."""

import re
from inspect import Parameter, signature
from pathlib import Path
from traceback import walk_tb
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

from promptkit.declarations.foreign_names import instead_of
from promptkit.declarations.name_hints import (
    did_you_mean,
    missing_name,
    operand_hint,
    public_names,
    undefined_name,
)
from promptkit.errors.distribution import other_package
from promptkit.errors.filled_text import explain_filling
from promptkit.errors.suggestions import nearest
from promptkit.loader.missing_modules import import_from_project, missing_module

__all__ = ["import_hint"]

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
