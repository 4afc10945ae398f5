"""Images, recordings and other bytes that a prompt sends, written to files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from promptkit.errors.regular_files import replace_regular_file
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import Media

__all__ = ["write_media"]

#: What the files of each type are called. Python's own table lacks some of them.
_SUFFIXES: Final = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/aac": ".aac",
}


def write_media(contents: Iterable[Content], folder: Path, name: str) -> Mapping[int, Path]:
    """
    Write what is bytes to files, in place of those of the last time. Links and pipes that lie there stay.

    Args:
        contents:
            The content of each message.

        folder:
            Where to write. It is made if it does not exist.

        name:
            What the names of the files begin with.

    Returns:
        The files, by the position of their content.

    Raises:
        OSError: If a file cannot be written.
    """
    written: dict[int, Path] = {}
    for position, content in enumerate(contents):
        data, mime_type = _bytes_of(content)
        if data is not None:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{name}-{len(written) + 1}{_suffix(mime_type)}"
            replace_regular_file(file, data)
            written[position] = file
    return written


def _bytes_of(content: Content) -> tuple[bytes | None, str]:
    if isinstance(content, Media):
        return content.data, str(content.mime_type)
    if isinstance(content, EmbeddedResource):
        return content.blob, str(content.mime_type)
    return None, ""


def _suffix(mime_type: str) -> str:
    if mime_type in _SUFFIXES:
        return _SUFFIXES[mime_type]
    from mimetypes import guess_extension

    return guess_extension(mime_type, strict=False) or ".bin"
