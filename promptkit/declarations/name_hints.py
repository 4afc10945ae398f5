"""Suggestions for names that do not exist and for annotations that are not types."""

import builtins
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import get_data, iter_modules
from types import ModuleType
from typing import Final

import msgspec

from promptkit.errors.suggestions import is_misspelling_of, nearest

#: Hints for names from other frameworks and libraries, by kind and by name.
_HINTS: Final[Mapping[str, Mapping[str, str]]] = msgspec.toml.decode(
    get_data(__name__, "foreign_names.toml") or b""
)


def foreign_name_hint(kind: str, name: str) -> str | None:
    """Return the hint for *name* in the table *kind* of ``foreign_names.toml``, or None."""
    hints = _HINTS.get(kind, {}).items()
    return next((hint for names, hint in hints if name in names.split()), None)


#: The modules that users import from. If several of them export a name, the first one is suggested.
_PUBLIC: Final = (
    *("promptkit", "promptkit.fragments", "promptkit.errors"),
    *("promptkit.workspace", "promptkit.exports", "promptkit.testing"),
)

#: Modules that recipes often import from.
_COMMON: Final = ("typing", "pathlib", "datetime", "decimal", "enum")

_OPERANDS: Final = re.compile(r"unsupported operand type\(s\) for \|: '(\w+)' and '(\w+)'")


def operand_hint(error: Exception) -> str | None:
    """
    Return a hint for the error that an annotation like ``any | None`` raises; None for any other error.

    In such an annotation, an operand of ``|`` is not a type.
    """
    match = _OPERANDS.search(str(error))
    kinds = match.groups() if match and isinstance(error, TypeError) else ()
    return next(filter(None, (foreign_name_hint("operands of |", kind) for kind in kinds)), None)


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """Return a question that suggests the public name most similar to *name*; None if none is similar."""
    suggestion = nearest(name, [candidate for candidate in names if not candidate.startswith("_")])
    return None if suggestion is None else f"did you mean {suggestion!r}?"


def missing_name_hint(name: str, module: str) -> str | None:
    """Return a hint for a *name* that *module* does not define; None if there is no hint."""
    exports = public_names() if module.partition(".")[0] == "promptkit" else {}
    if name in exports:
        return f"write 'from {exports[name].__name__} import {name}'"
    if exports and (hint := foreign_name_hint("names", name)) is not None:
        return hint
    if (loaded := sys.modules.get(module)) is None:
        return None
    if (question := did_you_mean(name, _list_public_names(loaded))) is not None:
        return question
    if exports:
        near = nearest(name, exports)
        return None if near is None else f"did you mean {near!r} from {exports[near].__name__}?"
    return None


def public_names() -> dict[str, ModuleType]:
    """Return promptkit's public names, each with the module that users import it from."""
    modules = map(import_module, reversed(_PUBLIC))
    return {name: module for module in modules for name in _list_public_names(module)}


def _list_public_names(module: ModuleType) -> list[str]:
    """
    Return a module's public names and, for packages other than promptkit's, the names of its submodules.
    """
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    if module.__name__ in _PUBLIC:
        return [*names, "fragments"] if module.__name__ == "promptkit" else list(names)
    return sorted({*names, *list_submodules(module)})


def list_submodules(package: ModuleType) -> list[str]:
    """Return the names of a package's submodules; an empty list for a module that is not a package."""
    return [module.name for module in iter_modules(getattr(package, "__path__", ()))]


def import_statement_for(name: str) -> str | None:
    """
    Return the statement that imports *name*, or None if the name is unknown.

    Known names are those that promptkit and a few common modules export, and the standard library's modules.
    """
    if (home := public_names().get(name)) is not None:
        return f"from {home.__name__} import {name}"
    for common in _COMMON:
        if name in getattr(module := import_module(common), "__all__", dir(module)):
            return f"from {common} import {name}"
    return f"import {name}" if name in sys.stdlib_module_names else None


def undefined_name_hint(name: str, known: Iterable[str]) -> str | None:
    """
    Return a hint to import an undefined name, or to correct it to a *known* one; None if there is no hint.
    """
    if (statement := import_statement_for(name)) is not None:
        return f"import it: {statement}"
    own, exports = [key for key in known if not key.startswith("_")], public_names()
    suggestion = nearest(
        name, [key for key in (*vars(builtins), *exports, *own) if is_misspelling_of(name, key)]
    )
    if suggestion is None:
        return foreign_name_hint("names", name) or did_you_mean(name, own)
    more = (
        f" import it: {import_statement_for(suggestion)}"
        if suggestion in exports and suggestion not in own
        else ""
    )
    return f"did you mean {suggestion!r}?{more}"
