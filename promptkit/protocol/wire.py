"""
What goes over the wire, as structs: one for each object of the published schemas.

A member that a revision lacks, or that nobody set, is `UNSET` and is not sent.
"""

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

__all__ = [
    "Annotations",
    "AudioContent",
    "CancelledParams",
    "ClientInfo",
    "Content",
    "EmbeddedContent",
    "GetPromptParams",
    "GetPromptResult",
    "Icon",
    "ImageContent",
    "Implementation",
    "InitializeParams",
    "InitializeResult",
    "ListPromptsResult",
    "PageParams",
    "Params",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "ResourceContents",
    "ResourceLinkContent",
    "TextContent",
]


class Params(Struct):
    """
    Params of which nothing is asked but that they are an object.
    """


class ClientInfo(Struct):
    """
    How a client calls itself.
    """

    name: str
    version: str = ""


class InitializeParams(Params, rename="camel"):
    """
    The opening of a handshake.
    """

    protocol_version: str
    capabilities: dict[str, Any] = field(default_factory=dict)
    client_info: ClientInfo | None = None


class PageParams(Params):
    """
    Which page of a list is wanted.
    """

    cursor: str | UnsetType = UNSET


class GetPromptParams(Params):
    """
    Which prompt is wanted, and for what.

    By the schema the arguments are strings. Some clients send other JSON values; whether
    one fits is for the argument to say.
    """

    name: str
    arguments: dict[str, Any] | None = None


class CancelledParams(Params, rename="camel"):
    """
    Which request need not be answered.
    """

    request_id: int | str


class Annotations(Struct, rename="camel"):
    """
    For whom content is, how much it matters, how old it is.
    """

    audience: tuple[str, ...] | UnsetType = UNSET
    priority: float | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET


class TextContent(Struct, tag_field="type", tag="text"):
    """
    Text.
    """

    text: str
    annotations: Annotations | UnsetType = UNSET


class ImageContent(Struct, tag_field="type", tag="image", rename="camel"):
    """
    An image, in base64.
    """

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET


class AudioContent(Struct, tag_field="type", tag="audio", rename="camel"):
    """
    A recording, in base64.
    """

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET


class ResourceContents(Struct, rename="camel"):
    """
    A document: either text, or bytes in base64.
    """

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET


class EmbeddedContent(Struct, tag_field="type", tag="resource"):
    """
    A document inside a message.
    """

    resource: ResourceContents
    annotations: Annotations | UnsetType = UNSET


class ResourceLinkContent(Struct, tag_field="type", tag="resource_link", rename="camel"):
    """
    A document that may be fetched.
    """

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET


Content = TextContent | ImageContent | AudioContent | EmbeddedContent | ResourceLinkContent


class PromptMessage(Struct):
    """
    One content block and who says it.
    """

    role: str
    content: Content


class GetPromptResult(Struct):
    """
    A rendered prompt.
    """

    messages: list[PromptMessage]
    description: str | UnsetType = UNSET


class Icon(Struct, rename="camel"):
    """
    A picture that a client may show.
    """

    src: str
    mime_type: str | UnsetType = UNSET
    sizes: tuple[str, ...] | UnsetType = UNSET
    theme: str | UnsetType = UNSET


class PromptArgument(Struct):
    """
    What a prompt may be asked, as a list shows it.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class Prompt(Struct):
    """
    A prompt, as a list shows it.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


class ListPromptsResult(Struct, rename="camel"):
    """
    One page of the prompts.
    """

    prompts: list[Prompt]
    next_cursor: str | UnsetType = UNSET


class Implementation(Struct):
    """
    How the server calls itself.
    """

    name: str
    version: str


class InitializeResult(Struct, rename="camel"):
    """
    The answer to the opening of a handshake.
    """

    protocol_version: str
    capabilities: dict[str, Any]
    server_info: Implementation
    instructions: str | UnsetType = UNSET
