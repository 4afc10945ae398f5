"""
Pickling of prompts, resources and skills: by reference, like functions.

Declarations in a folder of recipes are referenced by the folder, which any process can load.
"""

import importlib
import os
import sys
from collections.abc import Iterable
from inspect import unwrap
from operator import attrgetter
from pathlib import Path
from pickle import PicklingError
from threading import RLock
from types import ModuleType
from typing import Any, Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.prompts import Prompt, imported_prompts
from promptkit.errors.exceptions import LoadError
from promptkit.loader.packages import import_package, install_finders, known_finders
from promptkit.loader.recipes import declared_in

#: Held while loading: each load replaces the previous one.
_loading: Final = RLock()


def reduced(declared: Any) -> tuple[Any, ...]:
    """
    Return the result of `object.__reduce__` for a prompt, a resource or a skill.

    Raises:
        PicklingError: If no other process could find it.
    """
    location, kind, key = _locate_module(declared.__module__ or ""), type(declared), _key_of(declared)
    if _find_declared(*location, kind, key) is not declared:
        raise _error(repr(declared), declared)
    return declared_at, (*location, kind, key)


def reduced_compiled(compiled: CompiledPrompt) -> tuple[Any, ...]:
    """
    Return the same for a compiled prompt, which is recompiled from its `Prompt`.

    Raises:
        PicklingError: If its module declares no such prompt.
    """
    function = unwrap(compiled.renderer.function)
    prompt = _find_declared(*_locate_module(function.__module__ or ""), Prompt, compiled.name)
    if prompt is None or prompt.compile()[0] is not compiled:
        description = f"<compiled prompt {compiled.name!r} at {compiled.location}>"
        raise _error(description, function)
    return attrgetter("compiled"), (prompt,)


def declared_at(folder: str, package: str, inner: str, kind: type[Any], key: str) -> Any:
    """
    Return an object that was pickled by reference. Its module is imported unless it already is.

    Args:
        folder:
            The folder of recipes that declares it; ``""`` if none does.

        package:
            The package name of the folder in the other process, or the module.

        inner:
            The rest of the module's name.

        kind:
            The object's class.

        key:
            Its name or URI template.

    Raises:
        LoadError: If the module does not declare the object.

        Exception: Any exception that the import of the module raises.
    """
    with _loading:
        if (declared := _find_declared(folder, package, inner, kind, key)) is not None:
            return declared
        if os.path.isdir(folder):
            (finder,) = install_finders([Path(folder)])
            import_package(finder, keep=True)
            package = finder.name
        importlib.import_module(package + inner)
        declared = _find_declared(folder, package, inner, kind, key)
    if declared is None:
        reason = f"module {package + inner!r} has no {kind.__name__.lower()} {key!r}, which was pickled"
        raise LoadError(folder or package, f"{reason}: give every process the same files at the same path")
    return declared


def _error(description: str, function: Any) -> PicklingError:
    reason = f"other processes do not find it by its name in module {function.__module__!r}"
    hint = "define it at the top level of a module, with a different name from all others there"
    return PicklingError(f"{description} cannot be pickled: {reason}: {hint}")


def _key_of(declared: Any) -> str:
    """The name or URI template, unique among declarations of the same kind."""
    return str(declared.options.name if isinstance(declared, Prompt) else declared.uri_template)


def _locate_module(name: str) -> tuple[str, str, str]:
    """Return a module's folder of recipes (``""`` for none), its package, and the rest of its name."""
    for finder in known_finders():
        if finder.executions.module(name) is not None:
            return str(finder.folder), finder.name, name.removeprefix(finder.name)
    return "", name, ""


def _find_declared(folder: str, package: str, inner: str, kind: type[Any], key: str) -> Any:
    """Return the declaration of an imported module with that name or URI template; None if there is none."""
    module, prompts = _find_module(folder, package, inner)
    if module is None:
        return None
    definitions = declared_in(Path(), module, prompts, module.__name__).definitions
    return next((item for item in definitions if type(item) is kind and _key_of(item) == key), None)


def _find_module(
    folder: str, package: str, inner: str
) -> tuple[ModuleType | None, Iterable[Prompt[..., Any]]]:
    """Return a module and the prompts that it declared; None and no prompts if it is not imported."""
    for finder in known_finders():
        name = finder.name + inner
        if str(finder.folder) == folder and (module := finder.executions.module(name)) is not None:
            return module, finder.executions.prompts.get(name, ())
    imported = None if os.path.isdir(folder) else sys.modules.get(package + inner)
    return imported, () if imported is None else imported_prompts.get(imported, ())
