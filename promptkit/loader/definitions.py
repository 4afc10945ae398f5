"""What a module declares: prompts, resources and skills, all of them or those that a target names."""

import sys
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import reduce
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.skills import Skill
from promptkit.errors.exceptions import LoadError
from promptkit.errors.suggestions import nearest
from promptkit.loader.recipes import LoadedFile

__all__ = ["declared_in", "named_declarations"]

#: What a module may hold besides prompts: the module that defines it, and its class.
_OTHER_KINDS: Final = (
    ("promptkit.declarations.resources", "Resource"),
    ("promptkit.declarations.skills", "Skill"),
)


def declared_in(  # noqa: PLR0913 (what is declared depends on that much)
    file: Path,
    module: ModuleType,
    made: Iterable[Prompt[..., Any]],
    name: str,
    *,
    package: str | None = None,
    recipes: AbstractSet[str] = frozenset(),
) -> LoadedFile:
    """
    Return what a module declares, and what it holds of modules that are no recipes.

    Args:
        file:
            Its file.

        module:
            The module.

        made:
            The prompts that were made of its functions. The names in it are not enough: one prompt's name may
            have been defined again below it.

        name:
            Its full name.

        package:
            The package whose prompts count: what others define is not declared here. None if the module was
            named itself: then all prompts count that it imports, or lists.

        recipes:
            The names of all modules of the package that are recipes.
    """
    own = [prompt for prompt in made if not _is_left_over(prompt, module)]
    held = list(vars(module).values())
    if package is None:
        held += [item for value in held if type(value) in (list, tuple) for item in value]
    own += [
        value
        for value in held
        if issubclass(type(value), Prompt)
        and (package is None or f"{value.__module__}.".startswith(f"{package}."))
        and (value.__module__ == name or value.__module__ not in recipes)
    ]
    resources, skills = (_among(held, *kind) for kind in _OTHER_KINDS)
    return LoadedFile(file, tuple(dict.fromkeys(own)), resources, skills=skills)


def named_declarations(target: str, file: Path, module: ModuleType, attribute: str) -> LoadedFile:
    """
    Return only the prompts, resources and skills that a module calls *attribute*.

    Raises:
        LoadError: If it has nothing of that name, or something else.
    """
    kinds: tuple[type[Any], ...] = (Prompt, Resource, Skill)
    try:
        found = reduce(getattr, attribute.split("."), module)
        items = [found] if isinstance(found, kinds) else list(found)
    except AttributeError:
        names = [name for name, value in vars(module).items() if issubclass(type(value), kinds)]
        meant = nearest(attribute, names)
        hint = f"did you mean {meant!r}?" if meant else f"it has {', '.join(names) or 'no prompts'}"
        raise LoadError(target, f"{module.__name__} has no {attribute!r}; {hint}") from None
    except Exception:  # noqa: BLE001 (it is an author's object, which may raise anything)
        items = [None]
    if not all(isinstance(item, kinds) for item in items):
        reason = f"{attribute!r} is neither a prompt, a resource nor a skill, nor several of them"
        raise LoadError(target, reason)
    prompts, resources, skills = (tuple(item for item in items if isinstance(item, kind)) for kind in kinds)
    return LoadedFile(file, prompts, resources, skills=skills)


def _among(values: Iterable[Any], module: str, name: str) -> tuple[Any, ...]:
    """The objects of a class among *values*, each once."""
    # A module that holds one has loaded the class, which takes a while. Most hold none.
    if (defining := sys.modules.get(module)) is None:
        return ()
    kind = getattr(defining, name)
    return tuple(dict.fromkeys(value for value in values if issubclass(type(value), kind)))


def _is_left_over(prompt: Prompt[..., Any], module: ModuleType) -> bool:
    """Whether *prompt* is of a first execution of *module*, which failed in a circle of imports."""
    if not isinstance(function := prompt.function, FunctionType):
        return False
    made_in = function.__globals__
    return made_in.get("__name__") == prompt.__module__ and made_in is not vars(module)
