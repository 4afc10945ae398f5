"""The messages of requests to OpenAI, Anthropic and Gemini."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

from promptkit.exports.turns import File, Part, Turn, Vendor, turns_of
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import AUDIO_TYPES, IMAGE_TYPES
from promptkit.language.messages import Workflow

_PDF: Final = "application/pdf"

#: Types of documents that OpenAI's responses accept, with their file suffixes.
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

#: The key that marks a cache breakpoint; only parts before an explicit cache point have it.
_OPENAI_BREAKPOINT: Final = "prompt_cache_breakpoint"

#: The maximum length of a document's title at Anthropic, in characters.
_MAX_TITLE: Final = 500

#: Gemini's names for the file types it accepts. Animations are not supported:
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
    Return the ``messages`` of a chat completion.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

        system_role:
            The role of the system part. Many servers that are compatible with OpenAI's support only
            ``"system"``.

    Returns:
        One dictionary for the system part, if there is one, and one per turn. Consecutive messages of the
        same role form one turn.

    Raises:
        ExportError: If there is unsupported content, unless *lossy*.

    See Also:
        https://platform.openai.com/docs/api-reference/chat/create
    """
    messages = [_openai_message(turn) for turn in turns_of(workflow, _CHAT, lossy=lossy, has_system=True)]
    if workflow.system is not None:
        messages[0]["role"] = system_role
    return messages


def openai_responses(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``input`` of a response.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

    Returns:
        One dictionary per turn. Consecutive messages of the same role form one turn.

    Raises:
        ExportError: If there is unsupported content, unless *lossy*, or a system part, which belongs in the
            ``instructions``: see `openai_responses_request`.

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
        One dictionary per turn. Consecutive messages of the same role form one turn.

    Raises:
        ExportError: If there is unsupported content, unless *lossy*, or a system part, which has its own
            field: see `anthropic_request`.

    See Also:
        https://docs.anthropic.com/en/api/messages
    """
    return [_anthropic_message(turn) for turn in turns_of(workflow, _ANTHROPIC, lossy=lossy)]


def anthropic_parts(workflow: Workflow, *, lossy: bool) -> tuple[list[Part], list[Any]]:
    """
    Return the blocks of the system part, and the messages without it.

    Raises:
        ExportError: If there is unsupported content, unless *lossy*.
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
        One dictionary per turn. Consecutive messages of the same role form one turn. Files are `bytes`, as
        the SDK expects them; in JSON they are base64.

    Raises:
        ExportError: If there is unsupported content, unless *lossy*, or a system part, which has its own
            field: see `gemini_request`.

    See Also:
        https://ai.google.dev/api/caching#Content
    """
    turns = turns_of(workflow, _GEMINI, lossy=lossy)
    return [{"role": "user" if turn.role == "user" else "model", "parts": turn.parts} for turn in turns]


def _openai_message(turn: Turn) -> dict[str, Any]:
    # All compatible servers accept strings; not all accept lists of parts.
    parts = turn.parts
    if len(parts) == 1 and "text" in parts[0] and _OPENAI_BREAKPOINT not in parts[0]:
        return {"role": turn.role, "content": parts[0]["text"]}
    if turn.role == "user" or any(_OPENAI_BREAKPOINT in part for part in parts):
        return {"role": turn.role, "content": parts}
    return {"role": turn.role, "content": "".join(part["text"] for part in parts)}


def _mark_for_openai(part: Part) -> None:
    part[_OPENAI_BREAKPOINT] = {"mode": "explicit"}


def _chat_image(url: str) -> Part:
    return {"type": "image_url", "image_url": {"url": url}}


def _chat_audio(file: File) -> Part:
    audio_format = "wav" if file.mime_type == "audio/wav" else "mp3"
    return {"type": "input_audio", "input_audio": {"data": file.base64, "format": audio_format}}


def _response_image(url: str) -> Part:
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _named_data(file: File) -> dict[str, str]:
    """Return a file with its name: the last segment of its URI, with the suffix of its type."""
    name, suffix = PurePosixPath(unquote(urlsplit(file.uri or "").path)).name, _DOCUMENTS[file.mime_type]
    name = name if name.lower().endswith(suffix) else f"{name or 'document'}{suffix}"
    return {"filename": name, "file_data": file.data_url}


def _anthropic_message(turn: Turn) -> dict[str, Any]:
    return {"role": turn.role, "content": turn.content}


def _mark_for_anthropic(part: Part) -> None:
    part["cache_control"] = {"type": "ephemeral"}


def _typed_text(text: str) -> Part:
    return {"type": "text", "text": text}


def _source(file: File) -> dict[str, str]:
    return {"type": "base64", "media_type": file.mime_type, "data": file.base64}


def _document(resource: EmbeddedResource) -> Part:
    text = resource.text or ""
    if not text.strip() or len(resource.uri) > _MAX_TITLE:  # the API rejects such blocks
        return _typed_text(str(resource))
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, "title": resource.uri}


def _pdf(file: File) -> Part:
    return {"type": "document", "source": _source(file), "title": (file.uri or "document")[:_MAX_TITLE]}


def _anthropic_link(kind: str) -> Callable[[str], Part]:
    return lambda url: {"type": kind, "source": {"type": "url", "url": url}}


def _gemini_link(name: str) -> Callable[[str], Part]:
    return lambda url: {"file_data": {"mime_type": name, "file_uri": url}}


#: https://platform.openai.com/docs/guides/file-inputs lists the files that each API accepts.
_CHAT: Final = Vendor(
    "OpenAI's chat completions",
    _typed_text,
    request="openai_chat_request",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _chat_image(file.data_url)),
        **dict.fromkeys(("audio/wav", "audio/mpeg"), _chat_audio),
        _PDF: lambda file: {"type": "file", "file": _named_data(file)},
    },
    links=dict.fromkeys(IMAGE_TYPES, _chat_image),
    mark=_mark_for_openai,
    joins_assistant=True,
)

_RESPONSES: Final = Vendor(
    "OpenAI's responses",
    lambda text: {"type": "input_text", "text": text},
    request="openai_responses_request",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _response_image(file.data_url)),
        **dict.fromkeys(_DOCUMENTS, lambda file: {"type": "input_file", **_named_data(file)}),
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
    _typed_text,
    request="anthropic_request",
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: {"type": "image", "source": _source(file)}),
        _PDF: _pdf,
    },
    links={
        **dict.fromkeys(IMAGE_TYPES, _anthropic_link("image")),
        _PDF: _anthropic_link("document"),
    },
    document=_document,
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
