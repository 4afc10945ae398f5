"""The lists that clients page through, with their entries; completions, and questions."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from promptkit.protocol.wire.results import Result

__all__ = [
    "CompleteResult",
    "CompletionValues",
    "IconEntry",
    "InputRequiredResult",
    "ListPromptsResult",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListToolsResult",
    "PromptArgument",
    "PromptEntry",
    "ResourceEntry",
    "ResourceTemplate",
    "ToolAnnotations",
    "ToolEntry",
]


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
