"""
How prompts, resources and skills are pickled: by reference, as functions are.

What a folder of recipes declares is referred to by the folder, which any process can load. Cloudpickle takes
by value what other processes cannot import, and does so here, too.
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

#: A module, and the prompts that it has made.
_Imported: TypeAlias = tuple[ModuleType, Iterable[Prompt[..., Any]]]

#: Only one thread loads at a time: each load takes the place of the last.
_loading: Final = RLock()


def reduced(declared: Any, pickler: FrameType) -> tuple[Any, ...]:
    """
    Return what `object.__reduce__` has to return for a prompt, a resource or a skill.

    Args:
        declared:
            The prompt, resource or skill.

        pickler:
            The frame that pickles it. Nothing else tells whether that is cloudpickle, or a copy of it.

    Raises:
        PicklingError: If no other process would find it.
    """
    module, kind, key = declared.__module__ or "", type(declared), _key(declared)
    takes_values = "cloudpickle" in pickler.f_globals.get("__name__", "").split(".")
    if not (takes_values and _goes_by_value(module, pickler)):
        folder, package, imported = _place_of(module)
        if imported is not None and _found(imported, kind, key) is declared:
            return declared_at, (folder, package, module.removeprefix(package), kind, key)
    if takes_values:
        return vars(copyreg)["__newobj__"], (kind,), _state(declared)
    raise _refusal(repr(declared), declared)


def reduced_compiled(compiled: CompiledPrompt) -> tuple[Any, ...]:
    """
    Return the same for a compiled prompt: it is compiled of its `Prompt` again.

    Raises:
        PicklingError: If its module declares no such prompt.
    """
    function = unwrap(compiled.renderer.function)
    *_, imported = _place_of(function.__module__ or "")
    prompt = None if imported is None else _found(imported, Prompt, compiled.name)
    if prompt is None or prompt.compile()[0] is not compiled:
        shown = f"<compiled prompt {compiled.name!r} at {compiled.location}>"
        raise _refusal(shown, function)
    return attrgetter("compiled"), (prompt,)


def declared_at(folder: str, package: str, inner: str, kind: type[Any], key: str) -> Any:
    """
    Return what some process has pickled by reference. Its module is imported unless it is there already.

    Args:
        folder:
            The folder of recipes that declares it; ``""`` if none does.

        package:
            The package that the folder was there, or the module.

        inner:
            The rest of the module's name.

        kind:
            Its class.

        key:
            Its name, or its URI.

    Raises:
        LoadError: If there is no such module, or it declares no such object.

        Exception: Whatever the module raises.
    """
    what = f"{kind.__name__.lower()} {key!r}"
    with _loading:
        imported = _imported(folder, package, inner, what)
    if (found := _found(imported, kind, key)) is None:
        reason = f"module {imported[0].__name__!r} has no {what}, which was pickled"
        raise LoadError(folder or package, f"{reason}: {_REMEDY}")
    return found


#: What to do where something is missing that was pickled.
_REMEDY: Final = (
    "have the same files in the same place for every process, or pickle it by value with cloudpickle"
)


def _refusal(shown: str, function: Any) -> PicklingError:
    reason = f"module {function.__module__!r} holds no such object, or another one of its name first"
    hint = "take it from the module as it is now, or give it a name of its own"
    if is_local(function):
        reason = "it is made in a function, where no other process finds it"
        hint = "define it at the top level of a module, or give the decorated function to cloudpickle"
    return PicklingError(f"{shown} cannot be pickled: {reason}: {hint}")


def _key(declared: Any) -> str:
    """What tells it from others of its kind."""
    return str(declared.options.name if isinstance(declared, Prompt) else declared.uri_template)


def _goes_by_value(module: str, pickler: FrameType) -> bool:
    """Whether cloudpickle takes by value what is in a module."""
    registered = pickler.f_globals.get("_PICKLE_BY_VALUE_MODULES", ())
    names = accumulate(module.split("."), "{}.{}".format)
    return module == "__main__" or any(name in registered for name in names)


def _place_of(name: str) -> tuple[str, str, _Imported | None]:
    """The folder of recipes that a module is of, with its package; else ``""`` and the module's own name."""
    for finder in known_finders():
        if (module := finder.executions.module(name)) is not None:
            return str(finder.folder), finder.name, (module, finder.executions.made.get(name, ()))
    module = sys.modules.get(name)
    return "", name, None if module is None else (module, imported_prompts.get(module, ()))


def _imported(folder: str, package: str, inner: str, what: str) -> _Imported:
    for finder in known_finders():
        name = finder.name + inner
        if str(finder.folder) == folder and (module := finder.executions.module(name)) is not None:
            return module, finder.executions.made.get(name, ())
    made: dict[str, tuple[Prompt[..., Any], ...]] = {}
    if folder and Path(folder).is_dir():
        (finder,) = install_finders([Path(folder)])
        import_package(finder, keep=True)
        package, made = finder.name, finder.executions.made
    name = package + inner
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            reason = f"there is no module {name!r} here, of which {what} was pickled: {_REMEDY}"
            raise LoadError(folder or package, reason) from None
        raise
    return module, made.get(name, imported_prompts.get(module, ()))


def _found(imported: _Imported, kind: type[Any], key: str) -> Any:
    """What a module declares by that name; None if there is nothing."""
    module, made = imported
    declared = declared_in(Path(), module, made, module.__name__).definitions
    return next((one for one in declared if type(one) is kind and _key(one) == key), None)


def _state(declared: Any) -> dict[str, Any]:
    """All that it is made of. Of the names around it, only those go that its annotations need."""
    state = {field.name: getattr(declared, field.name) for field in attrs.fields(type(declared))}
    if "names" in state:
        function = unwrap(declared.function)
        around = {**getattr(function, "__globals__", {}), **declared.names}
        needed = {name for note in annotations_of(function).values() for name in _names_in(note)}
        state["names"] = {name: value for name, value in around.items() if name in needed}
    return {**state, **copied_attributes(declared.function)}


def _names_in(annotation: Any) -> Iterator[str]:
    """The names in what of an annotation is text, and has yet to be evaluated."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, str):
        with suppress(SyntaxError, ValueError):  # it is the text of a Literal, or a description
            yield from compile(annotation, "", "eval").co_names
    else:
        for part in get_args(annotation):
            yield from _names_in(part)
