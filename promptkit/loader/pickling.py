"""
Pickling of prompts, resources and skills: by reference, like functions.

Declarations in a folder of recipes are referenced by the folder, which any process can load. Like everywhere,
cloudpickle pickles objects by value that other processes cannot import.
"""

import copyreg
import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from inspect import unwrap
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from pickle import PicklingError
from threading import RLock
from types import FrameType, ModuleType
from typing import Any, Final, TypeAlias, get_args

import attrs

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.prompts import Prompt, imported_prompts
from promptkit.declarations.signature import copied_attributes, is_local
from promptkit.errors.exceptions import LoadError
from promptkit.loader.packages import import_package, install_finders, known_finders
from promptkit.loader.recipes import declared_in
from promptkit.types.functions import annotations_of

#: A module, and the prompts that it declared.
_Imported: TypeAlias = tuple[ModuleType, Iterable[Prompt[..., Any]]]

#: Held while loading: each load replaces the previous one.
_loading: Final = RLock()


def reduced(declared: Any, pickler: FrameType) -> tuple[Any, ...]:
    """
    Return the result of `object.__reduce__` for a prompt, a resource or a skill.

    Args:
        declared:
            The prompt, resource or skill.

        pickler:
            The frame that pickles it: the only way to detect cloudpickle, or a copy of it.

    Raises:
        PicklingError: If no other process could find it.
    """
    module, kind, key = declared.__module__ or "", type(declared), _key_of(declared)
    is_by_value_pickler = "cloudpickle" in pickler.f_globals.get("__name__", "").split(".")
    if not (is_by_value_pickler and _is_by_value(module, pickler)):
        folder, package, imported = _locate_module(module)
        if imported is not None and _find_declared(imported, kind, key) is declared:
            return declared_at, (folder, package, module.removeprefix(package), kind, key)
    if is_by_value_pickler:
        return vars(copyreg)["__newobj__"], (kind,), _state_of(declared)
    raise _error(repr(declared), declared)


def reduced_compiled(compiled: CompiledPrompt) -> tuple[Any, ...]:
    """
    Return the same for a compiled prompt, which is recompiled from its `Prompt`.

    Raises:
        PicklingError: If its module declares no such prompt.
    """
    function = unwrap(compiled.renderer.function)
    *_, imported = _locate_module(function.__module__ or "")
    prompt = None if imported is None else _find_declared(imported, Prompt, compiled.name)
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
        LoadError: If the module does not exist, or does not declare the object.

        Exception: Any exception that the module raises.
    """
    description = f"{kind.__name__.lower()} {key!r}"
    with _loading:
        imported = _import_module(folder, package, inner, description)
    if (declared := _find_declared(imported, kind, key)) is None:
        reason = f"module {imported[0].__name__!r} has no {description}, which was pickled"
        raise LoadError(folder or package, f"{reason}: {_HINT}")
    return declared


#: Hint for missing objects and modules.
_HINT: Final = "give every process the same files at the same path, or pickle it by value with cloudpickle"


def _error(description: str, function: Any) -> PicklingError:
    reason = f"module {function.__module__!r} holds no such object, or another one of its name first"
    hint = "take it from the module as it is now, or give it a different name"
    if is_local(function):
        reason = "it is made in a function, where no other process finds it"
        hint = "define it at the top level of a module, or give the decorated function to cloudpickle"
    return PicklingError(f"{description} cannot be pickled: {reason}: {hint}")


def _key_of(declared: Any) -> str:
    """The name or URI template, unique among declarations of the same kind."""
    return str(declared.options.name if isinstance(declared, Prompt) else declared.uri_template)


def _is_by_value(module: str, pickler: FrameType) -> bool:
    """Whether a module is registered with cloudpickle to be pickled by value."""
    registered = pickler.f_globals.get("_PICKLE_BY_VALUE_MODULES", ())
    names = accumulate(module.split("."), "{}.{}".format)
    return module == "__main__" or any(name in registered for name in names)


def _locate_module(name: str) -> tuple[str, str, _Imported | None]:
    """
    Return a module's folder of recipes and package, and the module; ``""`` and its own name without a folder.
    """
    for finder in known_finders():
        if (module := finder.executions.module(name)) is not None:
            return str(finder.folder), finder.name, (module, finder.executions.prompts.get(name, ()))
    module = sys.modules.get(name)
    return "", name, None if module is None else (module, imported_prompts.get(module, ()))


def _import_module(folder: str, package: str, inner: str, description: str) -> _Imported:
    for finder in known_finders():
        name = finder.name + inner
        if str(finder.folder) == folder and (module := finder.executions.module(name)) is not None:
            return module, finder.executions.prompts.get(name, ())
    prompts: dict[str, tuple[Prompt[..., Any], ...]] = {}
    if folder and Path(folder).is_dir():
        (finder,) = install_finders([Path(folder)])
        import_package(finder, keep=True)
        package, prompts = finder.name, finder.executions.prompts
    name = package + inner
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            reason = f"there is no module {name!r} here, of which {description} was pickled: {_HINT}"
            raise LoadError(folder or package, reason) from None
        raise
    return module, prompts.get(name, imported_prompts.get(module, ()))


def _find_declared(imported: _Imported, kind: type[Any], key: str) -> Any:
    """Return the declaration of a module with that name or URI template; None if there is none."""
    module, prompts = imported
    definitions = declared_in(Path(), module, prompts, module.__name__).definitions
    return next((item for item in definitions if type(item) is kind and _key_of(item) == key), None)


def _state_of(declared: Any) -> dict[str, Any]:
    """Return the attributes of a declaration. Local names that its annotations do not need are omitted."""
    state = {field.name: getattr(declared, field.name) for field in attrs.fields(type(declared))}
    if "names" in state:
        function = unwrap(declared.function)
        scope = {**getattr(function, "__globals__", {}), **declared.names}
        needed = {name for note in annotations_of(function).values() for name in _names_in(note)}
        state["names"] = {name: value for name, value in scope.items() if name in needed}
    return {**state, **copied_attributes(declared.function)}


def _names_in(annotation: Any) -> Iterator[str]:
    """Yield the names in the parts of an annotation that are unevaluated text."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, str):
        with suppress(SyntaxError, ValueError):  # the text of a Literal, or a description
            yield from compile(annotation, "", "eval").co_names
    else:
        for part in get_args(annotation):
            yield from _names_in(part)
