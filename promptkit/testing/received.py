"""Data that a client receives, decoded from JSON: messages, lists, resources and errors."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from promptkit.errors.exceptions import PromptkitError
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text


class ListedArgument(Struct, frozen=True):
    """
    An argument of a prompt, as ``prompts/list`` returns it.

    Args:
        name:
            The name that the client sends.

        title:
            The title shown in place of the name.

        description:
            What to enter.

        required:
            Whether the argument is required.
    """

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


class ListedIcon(Struct, frozen=True, rename="camel"):
    """
    An icon of a prompt or tool, as the list returns it.

    Args:
        src:
            Its URI.

        mime_type:
            Its MIME type.

        sizes:
            The sizes that it is meant for, such as ``48x48``.

        theme:
            ``"light"`` or ``"dark"``.
    """

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] = ()
    theme: str | None = None


class ListedPrompt(Struct, frozen=True):
    """
    A prompt, as ``prompts/list`` returns it. Fields that its revision lacks are None or empty.

    Args:
        name:
            The name to request it with.

        title:
            The title shown in place of the name.

        description:
            The purpose of the prompt.

        arguments:
            Its arguments, in the order of its signature.

        icons:
            Its icons.

        meta:
            Its ``_meta``.
    """

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[ListedArgument, ...] = ()
    icons: tuple[ListedIcon, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class ListedResource(Struct, frozen=True, rename="camel"):
    """
    A resource, as ``resources/list`` returns it.

    Args:
        uri:
            The URI to read it with.

        name:
            The name that the author gave it.

        title:
            The title shown in place of the name.

        description:
            A description of the resource.

        mime_type:
            Its MIME type.
    """

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class ListedResourceTemplate(Struct, frozen=True, rename="camel"):
    """
    A resource template, as ``resources/templates/list`` returns it.

    Args:
        uri_template:
            The URI template, with variables in braces.

        name:
            The name that the author gave it.

        title:
            The title shown in place of the name.

        description:
            A description of its resources.

        mime_type:
            The MIME type of its resources.
    """

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class ToolHints(Struct, frozen=True):
    """
    Hints about a tool's behaviour. Hints that the server omits are None.

    Args:
        read_only:
            Whether the tool changes nothing.

        idempotent:
            Whether a repeated call has no further effect.

        open_world:
            Whether it interacts with anything outside the recipes.

        destructive:
            Whether its changes can destroy data.
    """

    read_only: bool | None = field(default=None, name="readOnlyHint")
    idempotent: bool | None = field(default=None, name="idempotentHint")
    open_world: bool | None = field(default=None, name="openWorldHint")
    destructive: bool | None = field(default=None, name="destructiveHint")


class ListedTool(Struct, frozen=True, rename="camel"):
    """
    A tool, as ``tools/list`` returns it. Fields that its revision lacks are None or empty.

    Args:
        name:
            The name to call it with.

        input_schema:
            The JSON Schema of its arguments.

        title:
            The title shown in place of the name.

        description:
            The purpose of the tool.

        annotations:
            Hints about its behaviour.

        icons:
            Its icons.

        meta:
            Its ``_meta``.
    """

    name: str
    input_schema: dict[str, Any]
    title: str | None = None
    description: str | None = None
    annotations: ToolHints = ToolHints()
    icons: tuple[ListedIcon, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class CalledTool(Struct, frozen=True):
    """
    The result of a tool call.

    Args:
        content:
            One block per part. If there are several turns, each starts with a text block such as
            ``[assistant]``.

        is_error:
            Whether the content is an error message.
    """

    content: tuple[Content, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All its text, with a blank line between blocks."""
        return "\n\n".join("\n".join(content.texts) for content in self.content)


def called_tool_of(result: Mapping[str, Any]) -> CalledTool:
    """Decode a result of ``tools/call``."""
    return CalledTool(tuple(map(_content, result["content"])), result.get("isError", False))


def workflow_of(result: Mapping[str, Any]) -> Workflow:
    """Decode the messages of a ``prompts/get`` result."""
    return Workflow(Message(message["role"], _content(message["content"])) for message in result["messages"])


def document_of(contents: Mapping[str, Any], **annotations: Any) -> EmbeddedResource:
    """Decode the contents of a resource, from a message or a ``resources/read`` result."""
    blob = contents.get("blob")
    return EmbeddedResource(
        contents["uri"],
        text=contents.get("text"),
        blob=None if blob is None else b64decode(blob),
        mime_type=contents.get("mimeType"),
        **annotations,
    )


def _content(block: Mapping[str, Any]) -> Content:
    fields = block.get("annotations", {})
    annotations = {name: fields[key] for name, key in _ANNOTATIONS.items() if key in fields}
    return _DECODERS[block["type"]](block, annotations)


def _link(block: Mapping[str, Any], annotations: Mapping[str, Any]) -> ResourceLink:
    return ResourceLink(
        block["uri"],
        name=block["name"],
        title=block.get("title"),
        description=block.get("description"),
        mime_type=block.get("mimeType"),
        size=block.get("size"),
        **annotations,
    )


#: The names of annotations in a content block.
_ANNOTATIONS: Final = {"audience": "audience", "priority": "priority", "last_modified": "lastModified"}

#: Functions that decode a content block, by its type.
_DECODERS: Final[dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Content]]] = {
    "text": lambda block, annotations: Text(block["text"], **annotations),
    "image": lambda block, annotations: Image(b64decode(block["data"]), block["mimeType"], **annotations),
    "audio": lambda block, annotations: Audio(b64decode(block["data"]), block["mimeType"], **annotations),
    "resource": lambda block, annotations: document_of(block["resource"], **annotations),
    "resource_link": _link,
}


class ProtocolError(PromptkitError):
    """
    The response to a request is an error.

    Args:
        code:
            The error code: -32602 for an unknown name, invalid arguments or a `PromptError`; -32603 if
            rendering failed.

        message:
            The message for the user.

        data:
            Machine-readable details; None if there are none.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message
