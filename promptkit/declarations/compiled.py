"""A prompt, resource or skill of a recipe file, with its compiled form."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import CompiledSkill
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.skill_files import SkillFolder
from promptkit.declarations.skills import Skill

#: An object that an author's decorator returns, or a skill folder.
Definition: TypeAlias = Prompt[..., Any] | Resource[..., Any] | Skill[Any] | SkillFolder

#: Unique key of a declaration: its kind, and its name or URI template.
Key: TypeAlias = tuple[Literal["prompt", "resource", "skill"], str]


class Declaration(Struct, frozen=True):
    """
    One prompt, resource or skill of a file.

    Args:
        key:
            The unique key.

        definition:
            The object that the author's decorator returned.

        compiled:
            The compiled form that is served; None if it has an error.
    """

    key: Key
    definition: Definition
    compiled: CompiledPrompt | CompiledResource | CompiledSkill | None


def key_of(definition: Definition) -> Key:
    """Return the unique key of a definition."""
    if isinstance(definition, Prompt):
        return "prompt", definition.options.name
    return definition.kind, definition.uri_template
