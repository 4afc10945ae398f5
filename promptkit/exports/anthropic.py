"""Workflows for Anthropic: messages with blocks of content."""

from typing import Any, Final

from promptkit.exports.turns import File, Part, Turn, Vendor, turns_of
from promptkit.language.documents import EmbeddedResource
from promptkit.language.files import IMAGE_TYPES
from promptkit.language.messages import Workflow

__all__ = ["ANTHROPIC", "anthropic_messages"]

_PDF: Final = "application/pdf"

#: In characters.
_MAX_TITLE: Final = 500


def anthropic_messages(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``messages`` of a request to Anthropic's Messages API.

    Args:
        workflow:
            What a prompt rendered to.

        lossy:
            Whether what Anthropic does not take becomes text that says what it was.

    Returns:
        A dictionary for each turn: messages of one role that follow each other are one turn.

    Raises:
        ExportError: If there is anything that Anthropic does not take, unless *lossy*.

    See Also:
        https://docs.anthropic.com/en/api/messages
    """
    return [_message(turn) for turn in turns_of(workflow, ANTHROPIC, lossy=lossy)]


def _message(turn: Turn) -> dict[str, Any]:
    is_text = len(turn.parts) == 1 and turn.parts[0]["type"] == "text"
    return {"role": turn.role, "content": turn.parts[0]["text"] if is_text else turn.parts}


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _data(file: File) -> dict[str, str]:
    return {"type": "base64", "media_type": file.mime_type, "data": file.base64}


def _pdf(file: File) -> Part:
    return {"type": "document", "source": _data(file), "title": (file.uri or "document")[:_MAX_TITLE]}


def _document(resource: EmbeddedResource) -> Part:
    text = resource.text or ""
    if not text.strip() or len(resource.uri) > _MAX_TITLE:  # such blocks are refused
        return _text(str(resource))
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, "title": resource.uri}


ANTHROPIC: Final = Vendor(
    "Anthropic",
    _text,
    files={**dict.fromkeys(IMAGE_TYPES, lambda file: {"type": "image", "source": _data(file)}), _PDF: _pdf},
    links={
        **dict.fromkeys(IMAGE_TYPES, lambda url: {"type": "image", "source": {"type": "url", "url": url}}),
        _PDF: lambda url: {"type": "document", "source": {"type": "url", "url": url}},
    },
    document=_document,
)
