"""
The messages of requests to OpenAI, Anthropic and Gemini: the turns of a workflow, in a vendor's format.

Each `Vendor` defines which files it supports, and their format. Any other file is an error, or is replaced
with text.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import attrs
from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import AUDIO_TYPES, IMAGE_TYPES, Media, canonical_type
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.language.validation import Role

#: A part of a turn, in a vendor's format.
Part: TypeAlias = dict[str, Any]

#: The maximum number of MIME types that a hint names.
_MAX_NAMED: Final = 4

#: The maximum number of cache breakpoints in a request to OpenAI or Anthropic.
_MAX_BREAKPOINTS: Final = 4


class UnsupportedPart(Struct, frozen=True):
    """
    A message that a vendor does not support.

    Args:
        message:
            The number of the message in the workflow, starting with 1; 0 for the system part.

        role:
            The role of the message: ``"user"``, ``"assistant"`` or ``"system"``.

        kind:
            The MIME type of the message's content; ``"text"`` for the system part.

        hint:
            How to fix the problem.
    """

    message: int
    role: str
    kind: str
    hint: str

    def __str__(self) -> str:
        if self.role == "system":
            return f"the rendering has a system part: {self.hint}"
        return f"message {self.message} ({self.role}) contains {self.kind}: {self.hint}"


class ExportError(PromptkitError, ValueError):
    """
    A workflow has content that a vendor does not support.

    Args:
        vendor:
            The vendor's name.

        parts:
            The unsupported messages, each with a hint on how to fix the problem.
    """

    def __init__(self, vendor: str, parts: tuple[UnsupportedPart, ...]) -> None:
        super().__init__(vendor, parts)
        self.vendor = vendor
        self.parts = parts

    def __str__(self) -> str:
        return f"{self.reason} (lossy=True replaces unsupported content with text)"

    @property
    def reason(self) -> str:
        """The error message without the note about ``lossy=True``."""
        return f"{self.vendor} cannot represent the rendering: {'; '.join(map(str, self.parts))}"


@attrs.frozen
class File:
    """
    An image, an audio file or another file in a message.

    Args:
        mime_type:
            The file's MIME type.

        data:
            The content of the file.

        base64:
            The content of the file, encoded as base64.

        uri:
            The file's URI; None if it has no URI.
    """

    mime_type: str
    data: bytes = attrs.field(repr=False)
    base64: str = attrs.field(repr=False)
    uri: str | None = None

    @property
    def data_url(self) -> str:
        """The file as a ``data:`` URL."""
        return f"data:{self.mime_type};base64,{self.base64}"


@attrs.frozen
class Turn:
    """
    Consecutive messages with the same role.

    Args:
        role:
            The role of the messages; ``"system"`` for the system part.

        parts:
            The content of the messages, in the vendor's format.
    """

    role: Role | Literal["system"]
    parts: list[Part]

    @property
    def content(self) -> str | list[Part]:
        """The text, if the only part is text without a cache breakpoint; otherwise the parts."""
        if len(self.parts) == 1 and self.parts[0].keys() == {"type", "text"}:
            return str(self.parts[0]["text"])
        return self.parts


@attrs.frozen
class Vendor:
    """
    The content that a vendor supports in user turns, and its format. Assistant turns can contain only text.

    Args:
        name:
            The vendor's name for error messages.

        text:
            A function that formats text as a part.

        files:
            Functions that format files as parts, keyed by the MIME types that the vendor supports.

        links:
            Functions that format the URI of a file that the vendor can fetch, keyed by MIME type.

        schemes:
            The URI schemes of the files that the vendor can fetch.

        document:
            A function that formats an embedded text resource as a part; None if the vendor has no format for
            such resources.

        request:
            The name of the function that returns a whole request, including the system part.

        mark:
            A function that adds a cache breakpoint to a part; None if the vendor has no cache breakpoints.

        marks_assistant:
            Whether parts of assistant turns can have a cache breakpoint.

        joins_assistant:
            Whether to put a blank line between consecutive assistant messages, because their text is joined.
    """

    name: str
    text: Callable[[str], Part]
    files: Mapping[str, Callable[[File], Part]]
    request: str
    links: Mapping[str, Callable[[str], Part]] = MappingProxyType({})
    schemes: tuple[str, ...] = ("https",)
    document: Callable[[EmbeddedResource], Part] | None = None
    mark: Callable[[Part], object] | None = None
    marks_assistant: bool = True
    joins_assistant: bool = False


def turns_of(workflow: Workflow, vendor: Vendor, *, lossy: bool, has_system: bool = False) -> list[Turn]:
    """
    Convert *workflow* to turns in the vendor's format.

    Args:
        workflow:
            The rendering of a prompt.

        vendor:
            The vendor.

        lossy:
            Whether to replace unsupported content with text, and the system part with a user turn.

        has_system:
            Whether the vendor supports the system part as the first turn, with the role ``"system"``.

    Raises:
        ExportError: If the workflow has content that the vendor does not support, and *lossy* is False.
    """
    turns: list[Turn] = []
    unsupported: list[UnsupportedPart] = []
    if workflow.system is not None and not has_system:
        hint = f"build the whole request with {vendor.request}(...)"
        unsupported.append(UnsupportedPart(0, "system", "text", hint))
    breakpoints = _CacheBreakpoints(workflow, vendor) if workflow.cache_points and vendor.mark else None
    messages = workflow.shown if has_system else workflow.sent
    for index, message in enumerate(messages, len(workflow) - len(messages)):  # the system part is -1
        parts = _parts(message, vendor)
        if parts is None:
            unsupported.append(_unsupported_part(index + 1, message, vendor))
            parts = [vendor.text(str(message.content))]
        if breakpoints is not None:
            parts = breakpoints.split_parts(index, message, parts)
        if turns and turns[-1].role == message.role:
            if message.role == "assistant" and vendor.joins_assistant:
                turns[-1].parts[-1]["text"] += "\n\n"
            turns[-1].parts.extend(parts)
        else:
            turns.append(Turn(message.role, parts))
    if unsupported and not lossy:
        raise ExportError(vendor.name, tuple(unsupported))
    if breakpoints is not None and vendor.mark:
        breakpoints.add_to_parts(vendor.mark)
    return turns


class _CacheBreakpoints:
    """
    The cache breakpoints of a request.

    Each cache point of the workflow becomes a breakpoint on the last part before it that can have a
    breakpoint.
    """

    def __init__(self, workflow: Workflow, vendor: Vendor) -> None:
        self._workflow = workflow
        self._vendor = vendor
        self._candidates: list[Part] = []  # the parts that can have a breakpoint
        self._counts: set[int] = set()  # the number of candidates before each cache point

    def split_parts(self, index: int, message: Message, parts: list[Part]) -> list[Part]:
        """Return the parts of a message. If the message has cache points, its text is split there."""
        cuts = [offset for point, offset in self._workflow.cache_points if point == index]
        before = len(self._candidates)
        if message.role == "assistant" and not self._vendor.marks_assistant:
            self._counts.update([before] if cuts else ())
            return parts
        starts = sorted({0, *cuts})
        if len(starts) > 1:
            text = str(message.content)
            pieces = pairwise([*starts, len(text)])
            parts = [self._vendor.text(text[begin:end]) for begin, end in pieces if begin < end]
        self._candidates += parts
        self._counts |= {before + starts.index(cut) for cut in cuts}
        return parts

    def add_to_parts(self, mark: Callable[[Part], object]) -> None:
        """Add the breakpoints. If there are too many, add only the last ones, whose prefixes are longest."""
        if any(index == len(self._workflow) for index, _ in self._workflow.cache_points):
            self._counts.add(len(self._candidates))
        for count in sorted(self._counts - {0})[-_MAX_BREAKPOINTS:]:
            mark(self._candidates[count - 1])


def _parts(message: Message, vendor: Vendor) -> list[Part] | None:
    """Return the parts of a message; None if the vendor does not support its content."""
    content, is_user = message.content, message.role == "user"
    if isinstance(content, Text):
        return [vendor.text(content.text)]
    if isinstance(content, ResourceLink):
        return [vendor.text(str(content)), *(_linked_parts(content, vendor) if is_user else ())]
    file = _file_of(content)
    if file is None:
        assert isinstance(content, EmbeddedResource)  # noqa: S101 (all other content was handled above)
        return [vendor.document(content) if is_user and vendor.document else vendor.text(str(content))]
    write = vendor.files.get(file.mime_type) if is_user else None
    return None if write is None else [write(file)]


def _linked_parts(link: ResourceLink, vendor: Vendor) -> list[Part]:
    """Return a part that makes the vendor fetch the target of a link; ``[]`` if it cannot fetch it."""
    write = vendor.links.get(canonical_type(link.mime_type or ""))
    if write is None or urlsplit(link.uri).scheme.lower() not in vendor.schemes:
        return []
    return [write(link.uri)]


def _file_of(content: Content) -> File | None:
    """Return the file in *content*; None if *content* is text."""
    if isinstance(content, Media):
        return File(str(content.mime_type), content.data, content.base64)
    if isinstance(content, EmbeddedResource) and content.blob is not None:
        mime_type = canonical_type(str(content.mime_type))
        return File(mime_type, content.blob, content.base64, content.uri)
    return None


def _unsupported_part(number: int, message: Message, vendor: Vendor) -> UnsupportedPart:
    """Return a description of an unsupported message, with a hint on how to fix the problem."""
    file = _file_of(message.content)
    kind = file.mime_type if file else type(message.content).__name__
    family = kind.partition("/")[0]
    alternatives = sorted(mime_type for mime_type in vendor.files if mime_type.partition("/")[0] == family)
    if message.role == "assistant":
        hint = "move it to a user turn, because assistant turns can contain only text"
    elif family == "text":
        hint = "embed it with text= instead of blob="
    elif alternatives:
        hint = f"send another type instead: {', '.join(alternatives[:_MAX_NAMED])}"
    else:
        hint = "write its content as text"
    return UnsupportedPart(number, message.role, kind, hint)


_PDF: Final = "application/pdf"

#: The types of documents that the OpenAI Responses API accepts, with their file suffixes.
_DOCUMENTS: Final = {
    _PDF: ".pdf",
    "application/msword": ".doc",
    "application/rtf": ".rtf",
    "application/vnd.ms-excel": ".xls",
    "application/vnd.ms-powerpoint": ".ppt",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
}

#: The key that marks a part as a cache breakpoint. Only parts directly before a cache point have it.
_OPENAI_BREAKPOINT: Final = "prompt_cache_breakpoint"

#: The maximum length of a document's title in Anthropic's API, in characters.
_MAX_TITLE: Final = 500

#: Gemini's names for the file types that it accepts. Animated images are not supported:
#: https://ai.google.dev/gemini-api/docs/image-understanding.
_GEMINI_TYPES: Final = {
    **{f"image/{name}": f"image/{name}" for name in ("png", "jpeg", "webp", "heic", "heif")},
    **{name: name for name in (*sorted(AUDIO_TYPES), _PDF)},
    "audio/mpeg": "audio/mp3",
}


def openai_chat(
    workflow: Workflow, *, lossy: bool = False, system_role: Literal["developer", "system"] = "developer"
) -> list[Any]:
    """
    Return the ``messages`` of a request to OpenAI's Chat Completions API.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

        system_role:
            The role of the system part. Many OpenAI-compatible servers support only ``"system"``.

    Returns:
        One dictionary for the system part, if there is one, and one for each turn. Consecutive messages with
        the same role form one turn.

    Raises:
        ExportError: If the rendering has content that OpenAI does not support, and *lossy* is False.

    See Also:
        https://platform.openai.com/docs/api-reference/chat/create
    """
    messages = [_openai_message(turn) for turn in turns_of(workflow, _CHAT, lossy=lossy, has_system=True)]
    if workflow.system is not None:
        messages[0]["role"] = system_role
    return messages


def openai_responses(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``input`` of a request to OpenAI's Responses API.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

    Returns:
        One dictionary for each turn. Consecutive messages with the same role form one turn.

    Raises:
        ExportError: If the rendering has a system part or content that OpenAI does not support, and *lossy*
            is False. A system part belongs in the ``instructions``: see `openai_responses_request`.

    See Also:
        https://platform.openai.com/docs/api-reference/responses/create
    """
    return [_openai_message(turn) for turn in turns_of(workflow, _RESPONSES, lossy=lossy)]


def anthropic_messages(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``messages`` of a request to Anthropic's Messages API.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that Anthropic does not support with a text description.

    Returns:
        One dictionary for each turn. Consecutive messages with the same role form one turn.

    Raises:
        ExportError: If the rendering has a system part or content that Anthropic does not support, and
            *lossy* is False. A system part belongs in a separate field: see `anthropic_request`.

    See Also:
        https://docs.anthropic.com/en/api/messages
    """
    return [_anthropic_message(turn) for turn in turns_of(workflow, _ANTHROPIC, lossy=lossy)]


def anthropic_parts(workflow: Workflow, *, lossy: bool) -> tuple[list[Part], list[Any]]:
    """
    Return the blocks of the system part, and the messages without the system part.

    Raises:
        ExportError: If the workflow has content that Anthropic does not support, and *lossy* is False.
    """
    turns = turns_of(workflow, _ANTHROPIC, lossy=lossy, has_system=True)
    head = [] if workflow.system is None else turns.pop(0).parts
    return head, [_anthropic_message(turn) for turn in turns]


def gemini_contents(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``contents`` of a request to Gemini.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that Gemini does not support with a text description.

    Returns:
        One dictionary for each turn. Consecutive messages with the same role form one turn. The content of
        files is `bytes`, as the SDK expects; in JSON, encode it as base64.

    Raises:
        ExportError: If the rendering has a system part or content that Gemini does not support, and *lossy*
            is False. A system part belongs in a separate field: see `gemini_request`.

    See Also:
        https://ai.google.dev/api/caching#Content
    """
    turns = turns_of(workflow, _GEMINI, lossy=lossy)
    return [{"role": "user" if turn.role == "user" else "model", "parts": turn.parts} for turn in turns]


def _openai_message(turn: Turn) -> dict[str, Any]:
    content = turn.content
    # Not all OpenAI-compatible servers accept a list of parts in turns of other roles.
    if turn.role != "user" and not any(_OPENAI_BREAKPOINT in part for part in turn.parts):
        content = "".join(part["text"] for part in turn.parts)
    return {"role": turn.role, "content": content}


def _mark_for_openai(part: Part) -> None:
    part[_OPENAI_BREAKPOINT] = {"mode": "explicit"}


def _chat_image(url: str) -> Part:
    return {"type": "image_url", "image_url": {"url": url}}


def _chat_audio(file: File) -> Part:
    audio_format = "wav" if file.mime_type == "audio/wav" else "mp3"
    return {"type": "input_audio", "input_audio": {"data": file.base64, "format": audio_format}}


def _response_image(url: str) -> Part:
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _named_file(file: File) -> dict[str, str]:
    """Return a file and its name, which is the last segment of its URI, with the suffix for its type."""
    name, suffix = PurePosixPath(unquote(urlsplit(file.uri or "").path)).name, _DOCUMENTS[file.mime_type]
    name = name if name.lower().endswith(suffix) else f"{name or 'document'}{suffix}"
    return {"filename": name, "file_data": file.data_url}


def _anthropic_message(turn: Turn) -> dict[str, Any]:
    return {"role": turn.role, "content": turn.content}


def _mark_for_anthropic(part: Part) -> None:
    part["cache_control"] = {"type": "ephemeral"}


def _text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def _base64_source(file: File) -> dict[str, str]:
    return {"type": "base64", "media_type": file.mime_type, "data": file.base64}


def _anthropic_document(resource: EmbeddedResource) -> Part:
    text = resource.text or ""
    if not text.strip() or len(resource.uri) > _MAX_TITLE:  # the API rejects such documents
        return _text_part(str(resource))
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, "title": resource.uri}


def _anthropic_pdf(file: File) -> Part:
    return {
        "type": "document",
        "source": _base64_source(file),
        "title": (file.uri or "document")[:_MAX_TITLE],
    }


def _anthropic_link(kind: str) -> Callable[[str], Part]:
    return lambda url: {"type": kind, "source": {"type": "url", "url": url}}


def _gemini_link(name: str) -> Callable[[str], Part]:
    return lambda url: {"file_data": {"mime_type": name, "file_uri": url}}


#: The files that each API accepts are listed at https://platform.openai.com/docs/guides/file-inputs.
_CHAT: Final = Vendor(
    "the OpenAI Chat Completions API",
    _text_part,
    request="openai_chat_request",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _chat_image(file.data_url)),
        **dict.fromkeys(("audio/wav", "audio/mpeg"), _chat_audio),
        _PDF: lambda file: {"type": "file", "file": _named_file(file)},
    },
    links=dict.fromkeys(IMAGE_TYPES, _chat_image),
    mark=_mark_for_openai,
    joins_assistant=True,
)

_RESPONSES: Final = Vendor(
    "the OpenAI Responses API",
    lambda text: {"type": "input_text", "text": text},
    request="openai_responses_request",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _response_image(file.data_url)),
        **dict.fromkeys(_DOCUMENTS, lambda file: {"type": "input_file", **_named_file(file)}),
    },
    links={
        **dict.fromkeys(IMAGE_TYPES, _response_image),
        **dict.fromkeys(_DOCUMENTS, lambda url: {"type": "input_file", "file_url": url}),
    },
    mark=_mark_for_openai,
    marks_assistant=False,  # the API rejects input_text there, and output_text has no breakpoints
    joins_assistant=True,
)

_ANTHROPIC: Final = Vendor(
    "Anthropic",
    _text_part,
    request="anthropic_request",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: {"type": "image", "source": _base64_source(file)}),
        _PDF: _anthropic_pdf,
    },
    links={
        **dict.fromkeys(IMAGE_TYPES, _anthropic_link("image")),
        _PDF: _anthropic_link("document"),
    },
    document=_anthropic_document,
    mark=_mark_for_anthropic,
)

_GEMINI: Final = Vendor(
    "Gemini",
    lambda text: {"text": text},
    request="gemini_request",
    files=dict.fromkeys(
        _GEMINI_TYPES,
        lambda file: {"inline_data": {"mime_type": _GEMINI_TYPES[file.mime_type], "data": file.data}},
    ),
    links={mime_type: _gemini_link(name) for mime_type, name in _GEMINI_TYPES.items()},
    schemes=("https", "gs"),
)
