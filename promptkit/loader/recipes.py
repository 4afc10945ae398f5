"""Recipes: what the loader found at a target, file by file, not compiled yet."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic

if TYPE_CHECKING:  # most recipes hold neither
    from promptkit.declarations.resources import Resource
    from promptkit.declarations.skill_folders import SkillFolder
    from promptkit.declarations.skills import Skill

__all__ = ["LoadedFile", "Recipes"]


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
