"""Results besides handshakes and prompts: lists with their entries, calls, completions, questions."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from promptkit.protocol.wire.content import Content, ResourceContents
from promptkit.protocol.wire.params import Result

__all__ = [
    "CallToolResult",
    "CompleteResult",
    "CompletionValues",
    "GetSkillResult",
    "IconEntry",
    "InputRequiredResult",
    "ListPromptsResult",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListSkillsResult",
    "ListToolsResult",
    "PromptArgument",
    "PromptEntry",
    "ReadResourceResult",
    "ResourceEntry",
    "ResourceTemplate",
    "SkillEntry",
    "SkillFileEntry",
    "ToolAnnotations",
    "ToolEntry",
]


class ReadResourceResult(Result):
    """
    The contents of a resource.
    """

    contents: list[ResourceContents]


class CallToolResult(Result, rename="camel"):
    """
    What a call gives: content, or what was wrong. That it is an error comes first, where a log looks for it.
    """

    is_error: bool | UnsetType = UNSET
    content: list[Content] = field(default_factory=list)


class IconEntry(Struct, rename="camel"):
    """
    A picture that a client may show.
    """

    src: str
    mime_type: str | UnsetType = UNSET
    sizes: tuple[str, ...] | UnsetType = UNSET
    theme: str | UnsetType = UNSET


class PromptArgument(Struct):
    """
    An argument in an entry of ``prompts/list``.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class PromptEntry(Struct):
    """
    An entry of ``prompts/list``.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    icons: list[IconEntry] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


class ListPromptsResult(Result, rename="camel"):
    """
    One page of the prompts, each already encoded.
    """

    prompts: list[Raw]
    next_cursor: str | UnsetType = UNSET


class ResourceEntry(Struct, rename="camel"):
    """
    An entry of ``resources/list``.
    """

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class ResourceTemplate(Struct, rename="camel"):
    """
    An entry of ``resources/templates/list``.
    """

    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class ListResourcesResult(Result, rename="camel"):
    """
    One page of the resources, each already encoded.
    """

    resources: list[Raw]
    next_cursor: str | UnsetType = UNSET


class ListResourceTemplatesResult(Result, rename="camel"):
    """
    One page of the resource templates, each already encoded.
    """

    resource_templates: list[Raw]
    next_cursor: str | UnsetType = UNSET


class ListToolsResult(Result, rename="camel"):
    """
    One page of the tools, each already encoded.
    """

    tools: list[Raw]
    next_cursor: str | UnsetType = UNSET


class SkillFileEntry(Struct):
    """
    A file of a skill, and what tells whether it is still the same.
    """

    uri: str
    digest: str
    size: int


class SkillEntry(Struct):
    """
    An entry of ``skills/list``: the frontmatter of a skill, and all of its files.
    """

    uri: str
    frontmatter: Mapping[str, Any]
    resources: list[SkillFileEntry]


class ListSkillsResult(Result, rename="camel"):
    """
    One page of the skills, each already encoded.
    """

    skills: list[Raw]
    next_cursor: str | UnsetType = UNSET


class GetSkillResult(Result):
    """
    One skill.
    """

    skill: SkillEntry


class CompletionValues(Struct, rename="camel"):
    """
    Values to offer while a person types.
    """

    values: tuple[str, ...]
    total: int
    has_more: bool


class CompleteResult(Result):
    """
    The answer to ``completion/complete``.
    """

    completion: CompletionValues


class InputRequiredResult(Result, rename="camel"):
    """
    The questions that a client must answer before its request can be served.
    """

    input_requests: dict[str, Any]
    request_state: str


class ToolAnnotations(Struct, rename="camel"):
    """
    What a client may expect of a call, without trusting it.
    """

    read_only_hint: bool
    idempotent_hint: bool
    open_world_hint: bool
    destructive_hint: bool | UnsetType = UNSET


class ToolEntry(Struct, rename="camel"):
    """
    An entry of ``tools/list``.
    """

    name: str
    input_schema: dict[str, Any]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    icons: list[IconEntry] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")
