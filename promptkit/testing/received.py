"""What a client receives, from JSON to values: messages, lists, what resources hold, and errors."""

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

__all__ = [
    "CalledTool",
    "ListedArgument",
    "ListedIcon",
    "ListedPrompt",
    "ListedResource",
    "ListedResourceTemplate",
    "ListedTool",
    "ProtocolError",
    "ToolHints",
    "called_tool_of",
    "document_of",
    "workflow_of",
]


class ListedArgument(Struct, frozen=True):
    """
    An argument of a prompt, as a client sees it in the list.

    Args:
        name:
            What it is sent under.

        title:
            What people see in place of the name.

        description:
            What to enter.

        required:
            Whether it has to be sent.
    """

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


class ListedIcon(Struct, frozen=True, rename="camel"):
    """
    A picture of a prompt, as a client sees it in the list.

    Args:
        src:
            Its URI.

        mime_type:
            Its type.

        sizes:
            The sizes that it may be shown in, as in ``48x48``.

        theme:
            ``"light"`` or ``"dark"``.
    """

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] = ()
    theme: str | None = None


class ListedPrompt(Struct, frozen=True):
    """
    A prompt, as a client sees it in the list. What its revision does not have is None or empty.

    Args:
        name:
            What is asked for.

        title:
            What people see in place of the name.

        description:
            What it is for.

        arguments:
            What it may be asked, in the order of its signature.

        icons:
            Its pictures.

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
    A resource, as a client sees it in the list.

    Args:
        uri:
            What it is read under.

        name:
            What its author calls it.

        title:
            What people see in place of the name.

        description:
            What it is.

        mime_type:
            Its type.
    """

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class ListedResourceTemplate(Struct, frozen=True, rename="camel"):
    """
    A family of resources, as a client sees it in the list.

    Args:
        uri_template:
            The URIs that it has, with variables in braces.

        name:
            What its author calls it.

        title:
            What people see in place of the name.

        description:
            What it is.

        mime_type:
            The type of each.
    """

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class ToolHints(Struct, frozen=True):
    """
    What a client may expect of a tool. What is not said is None.

    Args:
        read_only:
            Whether a call changes nothing.

        idempotent:
            Whether a second call has no further effect.

        open_world:
            Whether it uses things outside of the recipes.

        destructive:
            Whether what it changes may be lost.
    """

    read_only: bool | None = field(default=None, name="readOnlyHint")
    idempotent: bool | None = field(default=None, name="idempotentHint")
    open_world: bool | None = field(default=None, name="openWorldHint")
    destructive: bool | None = field(default=None, name="destructiveHint")


class ListedTool(Struct, frozen=True, rename="camel"):
    """
    A tool, as a client sees it in the list. What its revision does not have is None or empty.

    Args:
        name:
            What is called.

        input_schema:
            The JSON Schema of its arguments.

        title:
            What people see in place of the name.

        description:
            What it is for.

        annotations:
            What a client may expect of it.

        icons:
            Its pictures.

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
    What a client receives for a call of a tool.

    Args:
        content:
            One block for each part. Of several turns, a text such as ``[assistant]`` begins each.

        is_error:
            Whether the content says what was wrong.
    """

    content: tuple[Content, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All text in it, with a blank line between the blocks."""
        return "\n\n".join("\n".join(content.texts) for content in self.content)


def called_tool_of(result: Mapping[str, Any]) -> CalledTool:
    """
    Return a result of ``tools/call``.
    """
    return CalledTool(tuple(map(_content, result["content"])), result.get("isError", False))


def workflow_of(result: Mapping[str, Any]) -> Workflow:
    """
    Return the messages of a result of ``prompts/get``.
    """
    return Workflow(Message(message["role"], _content(message["content"])) for message in result["messages"])


def document_of(contents: Mapping[str, Any], **annotations: Any) -> EmbeddedResource:
    """
    Return one document, of a message or of a result of ``resources/read``.
    """
    blob = contents.get("blob")
    return EmbeddedResource(
        contents["uri"],
        text=contents.get("text"),
        blob=None if blob is None else b64decode(blob),
        mime_type=contents.get("mimeType"),
        **annotations,
    )


def _content(block: Mapping[str, Any]) -> Content:
    said = block.get("annotations", {})
    annotations = {name: said[key] for name, key in _ANNOTATIONS.items() if key in said}
    return _KINDS[block["type"]](block, annotations)


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


#: What each annotation of content is called in a block.
_ANNOTATIONS: Final = {"audience": "audience", "priority": "priority", "last_modified": "lastModified"}

#: What makes content of a block, by the block's type.
_KINDS: Final[dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Content]]] = {
    "text": lambda block, said: Text(block["text"], **said),
    "image": lambda block, said: Image(b64decode(block["data"]), block["mimeType"], **said),
    "audio": lambda block, said: Audio(b64decode(block["data"]), block["mimeType"], **said),
    "resource": lambda block, said: document_of(block["resource"], **said),
    "resource_link": _link,
}


class ProtocolError(PromptkitError):
    """
    A request was answered with an error.

    Args:
        code:
            What kind of error it is: -32602 for a name or for arguments that do not fit, and for what
            the prompt's author tells people; -32603 where the prompt failed.

        message:
            What the person at the client reads.

        data:
            The same for machines; None if there is nothing more to say.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message
