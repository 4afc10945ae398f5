"""Content, messages and the result of ``prompts/get``: what the first prompt needs, and no more."""

from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.protocol.wire.params import Result

__all__ = [
    "AudioContent",
    "Content",
    "ContentAnnotations",
    "EmbeddedContent",
    "GetPromptResult",
    "ImageContent",
    "PromptMessage",
    "ResourceContents",
    "ResourceLinkContent",
    "TextContent",
]


class ContentAnnotations(Struct, rename="camel"):
    """
    Who content is for, how much it matters, and how old it is.
    """

    audience: tuple[str, ...] | UnsetType = UNSET
    priority: float | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET


class TextContent(Struct, tag_field="type", tag="text", gc=False):
    """
    Text.
    """

    text: str
    annotations: ContentAnnotations | UnsetType = UNSET


class ImageContent(Struct, tag_field="type", tag="image", rename="camel"):
    """
    An image, in base64.
    """

    data: Raw
    mime_type: str
    annotations: ContentAnnotations | UnsetType = UNSET


class AudioContent(Struct, tag_field="type", tag="audio", rename="camel"):
    """
    A recording, in base64.
    """

    data: Raw
    mime_type: str
    annotations: ContentAnnotations | UnsetType = UNSET


class ResourceContents(Struct, rename="camel"):
    """
    The contents of a resource: either text, or bytes in base64.
    """

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: Raw | UnsetType = UNSET


class EmbeddedContent(Struct, tag_field="type", tag="resource"):
    """
    A resource inside a message.
    """

    resource: ResourceContents
    annotations: ContentAnnotations | UnsetType = UNSET


class ResourceLinkContent(Struct, tag_field="type", tag="resource_link", rename="camel"):
    """
    A link to a resource that the client may read.
    """

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    annotations: ContentAnnotations | UnsetType = UNSET


Content = TextContent | ImageContent | AudioContent | EmbeddedContent | ResourceLinkContent


class PromptMessage(Struct, gc=False):
    """
    One content block, and whose it is.
    """

    role: str
    content: Content


class GetPromptResult(Result):
    """
    A rendered prompt.
    """

    messages: list[PromptMessage]
    description: str | UnsetType = UNSET
