"""Recipes: what the loader found at a target, file by file, not compiled yet."""

import sys
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import reduce
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.skills import Skill
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import LoadError
from promptkit.errors.suggestions import nearest

if TYPE_CHECKING:  # most recipes hold neither
    from promptkit.declarations.resources import Resource
    from promptkit.declarations.skill_files import SkillFolder
    from promptkit.declarations.skills import Skill


class LoadedFile(Struct, frozen=True):
    """
    What one file declares, not compiled yet.

    Args:
        file:
            The recipe file; None if the prompts and resources were not loaded from a file.

        prompts:
            The prompts that it declares, and those that it imports from modules of its package that
            are not recipes themselves.

        resources:
            The resources in its namespace.

        diagnostics:
            Why it could not be imported.

        skills:
            The skills in its namespace, or in its folder.
    """

    file: Path | None = None
    prompts: tuple[Prompt[..., Any], ...] = ()
    resources: "tuple[Resource[..., Any], ...]" = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    skills: "tuple[Skill[Any] | SkillFolder, ...]" = ()

    @property
    def definitions(self) -> "tuple[Prompt[..., Any] | Resource[..., Any] | Skill[Any] | SkillFolder, ...]":
        """All that it declares."""
        return *self.prompts, *self.resources, *self.skills


class Recipes:
    """
    What was found at a target, not compiled yet.

    Args:
        prompts:
            Prompts that were not loaded from a file, such as those of a test.

        resources:
            Resources that were not loaded from a file.

        skills:
            Skills that were not loaded from a file.

        by_file:
            What each file declares.

        root:
            The target, if it was a folder.

        read:
            The paths of all files that were read to import the recipes, both modules and media.
    """

    def __init__(  # noqa: PLR0913 (there are that many kinds)
        self,
        prompts: Iterable[Prompt[..., Any]] = (),
        resources: "Iterable[Resource[..., Any]]" = (),
        skills: "Iterable[Skill[Any]]" = (),
        *,
        by_file: Iterable[LoadedFile] = (),
        root: Path | None = None,
        read: Iterable[str] = (),
    ) -> None:
        loose = LoadedFile(None, tuple(prompts), tuple(resources), skills=tuple(skills))
        self.by_file = (loose, *by_file) if loose.definitions else tuple(by_file)
        self.root = root
        self.read = frozenset(read)

    @property
    def prompts(self) -> tuple[Prompt[..., Any], ...]:
        """All prompts, without duplicates."""
        return tuple(dict.fromkeys(prompt for found in self.by_file for prompt in found.prompts))

    @property
    def resources(self) -> "tuple[Resource[..., Any], ...]":
        """All resources, without duplicates."""
        return tuple(dict.fromkeys(resource for found in self.by_file for resource in found.resources))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Why recipes could not be imported, without duplicates."""
        return tuple(dict.fromkeys(reason for found in self.by_file for reason in found.diagnostics))


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
