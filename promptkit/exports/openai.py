"""Workflows for OpenAI: messages of chat completions, and input items of responses."""

from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from promptkit.exports.turns import File, Link, Part, Turn, Vendor, joined_text, turns_of
from promptkit.language.messages import Workflow
from promptkit.language.mime import IMAGE_TYPES

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
    is_text = turn.role == "assistant" or (len(turn.parts) == 1 and "text" in turn.parts[0])
    return {"role": turn.role, "content": joined_text(turn.parts) if is_text else turn.parts}


def _chat_text(text: str) -> Part:
    return {"type": "text", "text": text}


def _chat_image(file: File) -> Part:
    return {"type": "image_url", "image_url": {"url": file.data_url}}


def _chat_linked_image(link: Link) -> Part:
    return {"type": "image_url", "image_url": {"url": link.uri}}


def _chat_audio(file: File) -> Part:
    form = "wav" if file.mime_type == "audio/wav" else "mp3"
    return {"type": "input_audio", "input_audio": {"data": file.base64, "format": form}}


def _chat_file(file: File) -> Part:
    return {"type": "file", "file": {"filename": _name(file), "file_data": file.data_url}}


def _name(file: File) -> str:
    """What a file is called: the end of its URI, with the suffix of its type."""
    name, suffix = PurePosixPath(unquote(urlsplit(file.uri or "").path)).name, _DOCUMENTS[file.mime_type]
    return name if name.lower().endswith(suffix) else f"{name or 'document'}{suffix}"


def _text(text: str) -> Part:
    return {"type": "input_text", "text": text}


def _image(file: File) -> Part:
    return {"type": "input_image", "image_url": file.data_url, "detail": "auto"}


def _linked_image(link: Link) -> Part:
    return {"type": "input_image", "image_url": link.uri, "detail": "auto"}


def _file(file: File) -> Part:
    return {"type": "input_file", "filename": _name(file), "file_data": file.data_url}


def _linked_file(link: Link) -> Part:
    return {"type": "input_file", "file_url": link.uri}


#: https://platform.openai.com/docs/guides/file-inputs says which files each of the two takes.
CHAT: Final = Vendor(
    "OpenAI's chat completions",
    _chat_text,
    files={
        **dict.fromkeys(IMAGE_TYPES, _chat_image),
        "audio/wav": _chat_audio,
        "audio/mpeg": _chat_audio,
        _PDF: _chat_file,
    },
    links=dict.fromkeys(IMAGE_TYPES, _chat_linked_image),
)

RESPONSES: Final = Vendor(
    "OpenAI's responses",
    _text,
    files={**dict.fromkeys(IMAGE_TYPES, _image), **dict.fromkeys(_DOCUMENTS, _file)},
    links={**dict.fromkeys(IMAGE_TYPES, _linked_image), **dict.fromkeys(_DOCUMENTS, _linked_file)},
)
