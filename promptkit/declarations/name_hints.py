"""Hints: what an author can write in place of a name that does not exist, or of what is no type."""

import builtins
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import get_data, iter_modules
from types import ModuleType
from typing import Final

import msgspec

from promptkit.errors.suggestions import is_misspelt, nearest

#: By kind, the names that authors write in vain, each with what to write instead.
_INSTEAD: Final[Mapping[str, Mapping[str, str]]] = msgspec.toml.decode(
    get_data(__name__, "foreign_names.toml") or b""
)


def instead_of(kind: str, name: str) -> str | None:
    """Return what to write in place of a name of some *kind*: a table of ``foreign_names.toml``."""
    hints = _INSTEAD.get(kind, {}).items()
    return next((hint for names, hint in hints if name in names.split()), None)


#: The modules that users import from; what two of them have is the first one's.
_PUBLIC: Final = (
    *("promptkit", "promptkit.fragments", "promptkit.errors"),
    *("promptkit.workspace", "promptkit.exports", "promptkit.testing"),
)

#: Modules that recipes often import from.
_COMMON: Final = ("typing", "pathlib", "datetime", "decimal", "enum")

_OPERANDS: Final = re.compile(r"unsupported operand type\(s\) for \|: '(\w+)' and '(\w+)'")


def operand_hint(error: Exception) -> str | None:
    """Return what to do about ``any | None`` in an annotation, where one of the two is no type."""
    found = _OPERANDS.search(str(error))
    kinds = found.groups() if found and isinstance(error, TypeError) else ()
    return next(filter(None, (instead_of("beside | in annotations", kind) for kind in kinds)), None)


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """Return which public one of *names* was probably meant, as a question; None if none is near."""
    meant = nearest(name, [other for other in names if not other.startswith("_")])
    return None if meant is None else f"did you mean {meant!r}?"


def missing_name(name: str, module: str) -> str | None:  # noqa: PLR0911 (a list of cases)
    """Return what to do about *name*, which the loaded *module* does not have."""
    homes = public_names() if module.partition(".")[0] == "promptkit" else {}
    if name in homes:
        return f"write 'from {homes[name].__name__} import {name}'"
    if homes and (instead := instead_of("names", name)) is not None:
        return instead
    if (loaded := sys.modules.get(module)) is None:
        return None
    if (meant := did_you_mean(name, _names_of(loaded))) is not None:
        return meant
    if homes:
        near = nearest(name, homes)
        return None if near is None else f"did you mean {near!r} of {homes[near].__name__}?"
    if getattr(getattr(loaded, "__spec__", None), "_initializing", False):
        return "two files import each other: move what both need to a third one"
    if getattr(loaded, "__file__", None) is None:  # a folder
        return f"no file beside the recipe is called {name}.py: correct the name"
    return f"correct the name: {module} has no {name!r}"


def public_names() -> dict[str, ModuleType]:
    """By public name of promptkit, the module that users import it from."""
    modules = map(import_module, reversed(_PUBLIC))
    return {name: module for module in modules for name in _names_of(module)}


def _names_of(module: ModuleType) -> list[str]:
    """The public names of a module, and the modules in a package."""
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    if module.__name__ in _PUBLIC:
        return [*names, "fragments"] if module.__name__ == "promptkit" else list(names)
    return sorted({*names, *modules_of(module)})


def modules_of(package: ModuleType) -> list[str]:
    """The names of the modules in a package; none if it is no package."""
    return [module.name for module in iter_modules(getattr(package, "__path__", ()))]


def import_of(name: str) -> str | None:
    """Return the import statement for *name*, if promptkit or a common module defines it."""
    if (home := public_names().get(name)) is not None:
        return f"from {home.__name__} import {name}"
    for common in _COMMON:
        if name in getattr(module := import_module(common), "__all__", dir(module)):
            return f"from {common} import {name}"
    return f"import {name}" if name in sys.stdlib_module_names else None


def undefined_name(name: str, known: Iterable[str]) -> str | None:
    """Return what to do about a name that nothing defines, where others are *known*: import or correct it."""
    if (found := import_of(name)) is not None:
        return f"import it: {found}"
    own, others = [other for other in known if not other.startswith("_")], public_names()
    meant = nearest(name, [other for other in (*vars(builtins), *others, *own) if is_misspelt(name, other)])
    if meant is None:
        return instead_of("names", name) or did_you_mean(name, own)
    more = f" import it: {import_of(meant)}" if meant in others and meant not in own else ""
    return f"did you mean {meant!r}?{more}"
