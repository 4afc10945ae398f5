"""Declarations: the prompts and resources that modules make while they are imported, and hold afterwards."""

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from promptkit.compiler.loading.finders import namespace_of
from promptkit.compiler.prompts import Prompt
from promptkit.compiler.recipes import LoadedFile
from promptkit.errors.exceptions import LoadError

if TYPE_CHECKING:
    from promptkit.compiler.resources import Resource

__all__ = ["MadePrompts", "declared_in", "named_declarations"]

#: The prompts that were made, by the module of the function that each was made of.
MadePrompts: TypeAlias = Mapping[str, Sequence[Prompt[..., Any]]]


def declared_in(  # noqa: PLR0913 (what is declared depends on that much)
    file: Path, module: object, name: str, recipes: Container[str], made: MadePrompts, *, package: str
) -> LoadedFile:
    """
    Return what a module declares, and what it holds of modules of its package that are no recipes.

    Args:
        file:
            Its file.

        module:
            The module.

        name:
            Its full name.

        recipes:
            The names of all modules of the package that are recipes.

        made:
            The prompts that were made. The names in a module are not enough: one prompt's name may have
            been defined again below it.

        package:
            The package that is meant: what others define is not declared here.
    """
    own = [prompt for prompt in made.get(name, ()) if not _is_left_over(prompt, module)]
    held = list(namespace_of(module).values())
    inside = f"{package}."
    own += [
        value
        for value in held
        if issubclass(type(value), Prompt)
        and f"{value.__module__}.".startswith(inside)
        and (value.__module__ == name or value.__module__ not in recipes)
    ]
    return LoadedFile(file, tuple(dict.fromkeys(own)), tuple(dict.fromkeys(_resources_among(held))))


def named_declarations(target: str, file: Path, module: ModuleType, attribute: str) -> LoadedFile:
    """
    Return only the prompts and resources that a module calls *attribute*.

    Raises:
        LoadError: If it has nothing of that name, or something else.
    """
    from promptkit.compiler.resources import Resource  # few targets name an object

    try:
        found = reduce(getattr, attribute.split("."), module)
        items = [found] if isinstance(found, Prompt | Resource) else list(found)
    except AttributeError:
        raise LoadError(target, f"{module.__name__} has no {attribute!r}") from None
    except Exception:  # noqa: BLE001 (it is an author's object, which may raise anything)
        items = [None]
    if not all(isinstance(item, Prompt | Resource) for item in items):
        raise LoadError(target, f"{attribute!r} is neither a prompt nor a resource, nor several of them")
    prompts = tuple(item for item in items if isinstance(item, Prompt))
    resources = tuple(item for item in items if isinstance(item, Resource))
    return LoadedFile(file, prompts, resources)


def _resources_among(values: Iterable[Any]) -> "list[Resource[..., Any]]":
    # A module that holds a resource has loaded the class, which takes a while. Most hold none.
    if "promptkit.compiler.resources" not in sys.modules:
        return []
    from promptkit.compiler.resources import Resource

    return [value for value in values if issubclass(type(value), Resource)]


def _is_left_over(prompt: Prompt[..., Any], module: object) -> bool:
    """Whether *prompt* is of a first execution of *module*, which failed in a circle of imports."""
    if not isinstance(function := prompt.function, FunctionType):
        return False
    made_in = function.__globals__
    return made_in.get("__name__") == prompt.__module__ and made_in is not namespace_of(module)
