"""Workflows for Gemini: contents with parts."""

from collections.abc import Callable
from typing import Any, Final

from promptkit.exports.turns import File, Part, Vendor, turns_of
from promptkit.language.files import AUDIO_TYPES
from promptkit.language.messages import Workflow

__all__ = ["GEMINI", "gemini_contents"]

#: https://ai.google.dev/gemini-api/docs/image-understanding: animations are not among them.
_IMAGES: Final = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_FILES: Final = (*_IMAGES, *sorted(AUDIO_TYPES), "application/pdf")

#: What Gemini calls these types.
_NAMES: Final = {name: name for name in _FILES} | {"audio/mpeg": "audio/mp3"}

_ROLES: Final = {"user": "user", "assistant": "model"}


def gemini_contents(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the ``contents`` of a request to Gemini.

    Args:
        workflow:
            What a prompt rendered to.

        lossy:
            Whether what Gemini does not take becomes text that says what it was.

    Returns:
        A dictionary for each turn: messages of one role that follow each other are one turn. Files are
        `bytes`, as the SDK takes them; in JSON they are base64.

    Raises:
        ExportError: If there is anything that Gemini does not take, unless *lossy*.

    See Also:
        https://ai.google.dev/api/caching#Content
    """
    turns = turns_of(workflow, GEMINI, lossy=lossy)
    return [{"role": _ROLES[turn.role], "parts": turn.parts} for turn in turns]


def _file(file: File) -> Part:
    return {"inline_data": {"mime_type": _NAMES[file.mime_type], "data": file.data}}


def _linked_file(name: str) -> Callable[[str], Part]:
    return lambda url: {"file_data": {"mime_type": name, "file_uri": url}}


GEMINI: Final = Vendor(
    "Gemini",
    lambda text: {"text": text},
    files=dict.fromkeys(_FILES, _file),
    links={mime_type: _linked_file(name) for mime_type, name in _NAMES.items()},
    schemes=("https", "gs"),
)
