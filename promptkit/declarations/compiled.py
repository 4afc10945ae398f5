"""One prompt, resource or skill of a recipe file, with what it was compiled to."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.prompts import Prompt

if TYPE_CHECKING:  # most recipes hold neither
    from promptkit.catalog.resources import CompiledResource
    from promptkit.catalog.skills import CompiledSkill
    from promptkit.declarations.resources import Resource
    from promptkit.declarations.skill_files import SkillFolder
    from promptkit.declarations.skills import Skill

#: What an author's decorator makes, or a folder is.
Definition: TypeAlias = "Prompt[..., Any] | Resource[..., Any] | Skill[Any] | SkillFolder"

#: What only one declaration may have: what it is, and its name or URI template.
Key: TypeAlias = tuple[Literal["prompt", "resource", "skill"], str]


class Declaration(Struct, frozen=True):
    """
    One prompt, resource or skill of a file.

    Args:
        key:
            What no other declaration may have.

        definition:
            What the author's decorator made.

        compiled:
            What is served of it; None if it has an error.
    """

    key: Key
    definition: Definition
    compiled: "CompiledPrompt | CompiledResource | CompiledSkill | None"


def key_of(definition: Definition) -> Key:
    """Return what no other declaration than that of *definition* may have."""
    if isinstance(definition, Prompt):
        return "prompt", definition.options.name
    return definition.kind, definition.uri_template
