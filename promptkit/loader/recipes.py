"""Recipes: the declarations that the loader found at a target, by file."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import reduce
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Literal, TypeAlias

from msgspec import Struct, structs

from promptkit.catalog.prompts import CompiledPrompt, prefixed_name
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import CompiledSkill, prefixed_path, skill_uri
from promptkit.declarations.base import Decorated
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.skill_files import SkillFolder
from promptkit.declarations.skills import Skill
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import LoadError
from promptkit.errors.suggestions import nearest

#: An object that one of promptkit's decorators returns, or a skill folder.
Definition: TypeAlias = Prompt[..., Any] | Resource[..., Any] | Skill[Any] | SkillFolder

#: The form in which a definition is served.
Compiled: TypeAlias = CompiledPrompt | CompiledResource | CompiledSkill

#: Unique key of a declaration: its kind, and its name or URI template.
Key: TypeAlias = tuple[Literal["prompt", "resource", "skill"], str]


class Declaration(Struct, frozen=True):
    """
    One prompt, resource or skill of a file.

    Args:
        key:
            The unique key.

        definition:
            The object that the decorator returned, or the skill folder.

        compiled:
            The form that is served; None if the declaration has an error.
    """

    key: Key
    definition: Definition
    compiled: Compiled | None


def key_of(definition: Definition, prefix: str = "") -> Key:
    """Return the unique key of a definition in a target that has *prefix*."""
    if isinstance(definition, Prompt):
        return "prompt", prefixed_name(prefix, definition.options.name)
    if isinstance(definition, Resource):
        return "resource", definition.uri_template
    return "skill", skill_uri(prefixed_path(prefix, definition.prefix), definition.name)


class LoadedFile(Struct, frozen=True):
    """
    The declarations of one file, which are not yet compiled.

    Args:
        file:
            The recipe file; None if the prompts and resources were not loaded from a file.

        prompts:
            The prompts that the file declares, or imports from modules of its package that are not recipes.

        resources:
            The resources in its namespace.

        diagnostics:
            The errors that occurred when the file was imported.

        skills:
            The skills in its namespace or, for a ``SKILL.md``, in its folder.

        prefix:
            The prefix of the file's target.
    """

    file: Path | None = None
    prompts: tuple[Prompt[..., Any], ...] = ()
    resources: tuple[Resource[..., Any], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    skills: tuple[Skill[Any] | SkillFolder, ...] = ()
    prefix: str = ""

    def with_prefix(self, prefix: str) -> "LoadedFile":
        """Return the same declarations for a target with *prefix*."""
        return structs.replace(self, prefix=prefix)

    def name_of(self, prompt: Prompt[..., Any]) -> str:
        """Return the name by which a prompt of this file is served."""
        return key_of(prompt, self.prefix)[1]

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """All declarations of the file: its prompts, resources and skills."""
        return *self.prompts, *self.resources, *self.skills


class Recipes:
    """
    The declarations at a target, which are not yet compiled.

    Args:
        prompts:
            Prompts that were not loaded from a file, such as those of a test.

        resources:
            Resources that were not loaded from a file.

        skills:
            Skills that were not loaded from a file.

        by_file:
            The declarations of each file.

        root:
            The target if it is a folder; otherwise None.

        read_paths:
            The paths of all files that were read to import the recipes, both modules and media.
    """

    def __init__(  # noqa: PLR0913 (one for each kind)
        self,
        prompts: Iterable[Prompt[..., Any]] = (),
        resources: Iterable[Resource[..., Any]] = (),
        skills: Iterable[Skill[Any]] = (),
        *,
        by_file: Iterable[LoadedFile] = (),
        root: Path | None = None,
        read_paths: Iterable[str] = (),
    ) -> None:
        loose = LoadedFile(None, tuple(prompts), tuple(resources), skills=tuple(skills))
        self.by_file = (loose, *by_file) if loose.definitions else tuple(by_file)
        self.root = root
        self.read_paths = frozenset(read_paths)

    @property
    def prompts(self) -> tuple[Prompt[..., Any], ...]:
        """All prompts, without duplicates."""
        return tuple(dict.fromkeys(prompt for loaded in self.by_file for prompt in loaded.prompts))

    @property
    def named_prompts(self) -> tuple[tuple[str, Prompt[..., Any]], ...]:
        """All prompts with the names by which they are served, without duplicates."""
        named = ((loaded.name_of(prompt), prompt) for loaded in self.by_file for prompt in loaded.prompts)
        return tuple(dict.fromkeys(named))

    @property
    def resources(self) -> tuple[Resource[..., Any], ...]:
        """All resources, without duplicates."""
        return tuple(dict.fromkeys(resource for loaded in self.by_file for resource in loaded.resources))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The errors found when the files were loaded, without duplicates."""
        return tuple(
            dict.fromkeys(diagnostic for loaded in self.by_file for diagnostic in loaded.diagnostics)
        )


def collect_declarations(  # noqa: PLR0913 (each affects the result)
    file: Path,
    module: ModuleType,
    declared: Iterable[Decorated],
    name: str,
    *,
    package: str | None = None,
    recipes: AbstractSet[str] = frozenset(),
) -> LoadedFile:
    """
    Return the declarations of a module, including imports from modules that are not recipes.

    Args:
        file:
            The module's file.

        module:
            The module.

        declared:
            The declarations that were made from the module's functions. Looking up the module's names would
            miss some, because a later definition can reuse a name, and several decorators on one function
            share its name.

        name:
            The module's full name.

        package:
            The package whose prompts are included; prompts imported from elsewhere are not. If None, the
            module itself is the target, and all prompts that it imports or has in a list are included.

        recipes:
            The names of all modules of the package that are recipes.
    """
    own: list[Any] = [declaration for declaration in declared if not _is_stale(declaration, module)]
    values = list(vars(module).values())
    if package is None:
        values += [item for value in values if type(value) in (list, tuple) for item in value]
    own += [
        value
        for value in values
        if issubclass(type(value), Resource | Skill)
        or (
            issubclass(type(value), Prompt)
            and (package is None or f"{value.__module__}.".startswith(f"{package}."))
            and (value.__module__ == name or value.__module__ not in recipes)
        )
    ]
    prompts, resources, skills = (_instances_of(own, kind) for kind in (Prompt, Resource, Skill))
    return LoadedFile(file, prompts, resources, skills=skills)


def find_named_declarations(target: str, file: Path, module: ModuleType, attribute: str) -> LoadedFile:
    """
    Return the prompt, resource or skill in a module's *attribute*, or those in the list that it contains.

    Raises:
        LoadError: If the module has no such attribute, or if the attribute has any other value.
    """
    kinds: tuple[type[Any], ...] = (Prompt, Resource, Skill)
    try:
        value = reduce(getattr, attribute.split("."), module)
        items = [value] if isinstance(value, kinds) else list(value)
    except AttributeError:
        names = [name for name, value in vars(module).items() if issubclass(type(value), kinds)]
        suggestion = nearest(attribute, names)
        hint = f"did you mean {suggestion!r}?" if suggestion else f"it has {', '.join(names) or 'no prompts'}"
        raise LoadError(target, f"{module.__name__} has no {attribute!r}; {hint}") from None
    except Exception:  # noqa: BLE001 (an author's object may raise anything)
        items = [None]
    if not all(isinstance(item, kinds) for item in items):
        reason = f"{attribute!r} is neither a prompt, a resource nor a skill, nor a list of these"
        raise LoadError(target, reason)
    prompts, resources, skills = (tuple(item for item in items if isinstance(item, kind)) for kind in kinds)
    return LoadedFile(file, prompts, resources, skills=skills)


def _instances_of(values: Iterable[Any], kind: type[Any]) -> tuple[Any, ...]:
    """Return the instances of a class among *values*, without duplicates."""
    return tuple(dict.fromkeys(value for value in values if issubclass(type(value), kind)))


def _is_stale(declaration: Decorated, module: ModuleType) -> bool:
    """
    Return whether a declaration is from an earlier execution of *module* that failed in a circular import.
    """
    function = declaration.function
    while isinstance(function, Decorated):
        function = function.function
    if not isinstance(function, FunctionType):
        return False
    namespace = function.__globals__
    return namespace.get("__name__") == declaration.__module__ and namespace is not vars(module)
