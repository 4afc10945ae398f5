"""Workflows for OpenAI: messages of chat completions, and input items of responses."""

from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from promptkit.exports.turns import File, Part, Turn, Vendor, turns_of
from promptkit.language.files import IMAGE_TYPES
from promptkit.language.messages import Workflow

__all__ = ["CHAT", "RESPONSES", "openai_chat", "openai_responses"]

_PDF: Final = "application/pdf"

#: Documents that responses take, and the ends of their names.
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


def openai_chat(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``messages`` of a chat completion.

    Args:
        workflow:
            What a prompt rendered to.

        lossy:
            Whether what OpenAI does not take becomes text that says what it was.

    Returns:
        A dictionary for each turn: messages of one role that follow each other are one turn.

    Raises:
        ExportError: If there is anything that OpenAI does not take, unless *lossy*.

    See Also:
        https://platform.openai.com/docs/api-reference/chat/create
    """
    return [_message(turn) for turn in turns_of(workflow, CHAT, lossy=lossy)]


def openai_responses(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``input`` of a response.

    Args:
        workflow:
            What a prompt rendered to.

        lossy:
            Whether what OpenAI does not take becomes text that says what it was.

    Returns:
        A dictionary for each turn: messages of one role that follow each other are one turn.

    Raises:
        ExportError: If there is anything that OpenAI does not take, unless *lossy*.

    See Also:
        https://platform.openai.com/docs/api-reference/responses/create
    """
    return [_message(turn) for turn in turns_of(workflow, RESPONSES, lossy=lossy)]


def _message(turn: Turn) -> dict[str, Any]:
    # Servers that speak this protocol all take strings, and not all take parts.
    if turn.role == "assistant" or (len(turn.parts) == 1 and "text" in turn.parts[0]):
        return {"role": turn.role, "content": "\n\n".join(part["text"] for part in turn.parts)}
    return {"role": turn.role, "content": turn.parts}


def _chat_image(url: str) -> Part:
    return {"type": "image_url", "image_url": {"url": url}}


def _chat_audio(file: File) -> Part:
    form = "wav" if file.mime_type == "audio/wav" else "mp3"
    return {"type": "input_audio", "input_audio": {"data": file.base64, "format": form}}


def _image(url: str) -> Part:
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _named_data(file: File) -> dict[str, str]:
    """A file with its name: the end of its URI, with the suffix of its type."""
    name, suffix = PurePosixPath(unquote(urlsplit(file.uri or "").path)).name, _DOCUMENTS[file.mime_type]
    name = name if name.lower().endswith(suffix) else f"{name or 'document'}{suffix}"
    return {"filename": name, "file_data": file.data_url}


#: https://platform.openai.com/docs/guides/file-inputs says which files each of the two takes.
CHAT: Final = Vendor(
    "OpenAI's chat completions",
    lambda text: {"type": "text", "text": text},
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _chat_image(file.data_url)),
        **dict.fromkeys(("audio/wav", "audio/mpeg"), _chat_audio),
        _PDF: lambda file: {"type": "file", "file": _named_data(file)},
    },
    links=dict.fromkeys(IMAGE_TYPES, _chat_image),
)

RESPONSES: Final = Vendor(
    "OpenAI's responses",
    lambda text: {"type": "input_text", "text": text},
    files={
        **dict.fromkeys(IMAGE_TYPES, lambda file: _image(file.data_url)),
        **dict.fromkeys(_DOCUMENTS, lambda file: {"type": "input_file", **_named_data(file)}),
    },
    links={
        **dict.fromkeys(IMAGE_TYPES, _image),
        **dict.fromkeys(_DOCUMENTS, lambda url: {"type": "input_file", "file_url": url}),
    },
)
