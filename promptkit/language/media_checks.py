"""Checks of media: which types clients take, how large they may be, and whether they are whole."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from typing import Final

from promptkit.errors.exceptions import MediaError

#: What the models behind today's clients accept. Anything else can make every later turn of a client's
#: session fail, so it is refused here, where the author can fix it.
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO_TYPES: Final = frozenset(
    {"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4", "audio/aac"}
)

#: 5 MiB in base64: the lowest limit among widely used model APIs.
MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024 // 4 * 3
MAX_AUDIO_BYTES: Final = 20 * 1024 * 1024

#: In pixels. The same API refuses a longer side, and then every later turn, too.
MAX_IMAGE_SIDE: Final = 8000

#: Types of documents that are text, if their bytes are.
_TEXT_TYPE: Final = (
    r"text/.+|.+\+(?:json|xml|yaml)|application/(?:javascript|json|sql|toml|x-sh|x-tex|x-yaml|xml|yaml)"
)

#: Endings that not every version of Python knows, or that an older one knows by another name.
_ENDINGS: Final = {
    ".js": "text/javascript",
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}

#: The registered names of types that people, or the library that detects them, spell otherwise.
_CANONICAL: Final = {
    "image/jpg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/mp3": "audio/mpeg",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "audio/opus": "audio/ogg",
}


def human_size(size: int) -> str:
    """
    Return *size*, in bytes, as people write it: ``20 kB``.
    """
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = round(size / 1000)
    return f"{size} GB"


def sniff(data: bytes) -> str | None:
    """
    Detect the MIME type of *data* from its first bytes; None if it is unknown.
    """
    import filetype  # type: ignore[import-untyped]  # loaded by the first image or recording

    mime: str | None = filetype.guess_mime(data)
    return _CANONICAL.get(mime, mime) if mime else None


def document_type(name: str, data: bytes, declared: str | None) -> tuple[str, str | None]:
    """
    Return the MIME type of a file, and its text: None if that is not UTF-8, or the type is none of text.

    Args:
        name:
            The file's name. Its ending counts for types of text, whose bytes do not show them.

        data:
            The whole file.

        declared:
            Its type, if somebody has said it.
    """
    text, named = _decoded(data), declared or _type_of_name(name)
    if text is not None and named and re.fullmatch(_TEXT_TYPE, canonical_type(named)):
        return named, text
    found = declared or sniff(data)
    if text is not None and found is None:
        return "text/plain", text
    return found or named or "application/octet-stream", None


def _decoded(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _type_of_name(name: str) -> str | None:
    return _types_by_ending().get(PurePath(name).suffix.lower())


@cache
def _types_by_ending() -> Mapping[str, str]:
    from mimetypes import MimeTypes  # loaded by the first document

    # Python's own types: what a machine knows besides differs among machines.
    return {**MimeTypes().types_map[1], **_ENDINGS}


def canonical_type(mime_type: str) -> str:
    """
    Return the registered name of a MIME type, without parameters.
    """
    name = mime_type.partition(";")[0].strip().lower()
    return _CANONICAL.get(name, name)


def summary(mime_type: str, data: bytes) -> str:
    """
    Return what a transcript shows in place of bytes: ``<image/png 20 kB sha256:0a1b2c3d>``.
    """
    from hashlib import sha256

    return f"<{mime_type} {human_size(len(data))} sha256:{sha256(data).hexdigest()[:8]}>"


def checked_type(data: bytes, declared: str | None, accepted: frozenset[str], limit: int) -> str:
    """
    Return the MIME type of *data*, a whole file, if clients accept it.

    Raises:
        MediaError: If *data* is empty, damaged or longer than *limit* bytes, or its type is not among
            the *accepted* ones, or is not the *declared* one.
    """
    if not data:
        msg = "the data is empty: pass the bytes of the whole file"
        raise MediaError(msg)
    if len(data) > limit:
        raise MediaError(too_large_message(len(data), limit))
    found = sniff(data)
    if found not in accepted:
        known = ", ".join(sorted(accepted))
        msg = f"the bytes are {found or 'of no known format'}; clients take {known}: convert it first"
        raise MediaError(msg)
    if declared is not None and canonical_type(declared) != found:
        msg = f"the bytes are {found}, not {declared}: leave the type out, or correct it"
        raise MediaError(msg)
    if found in IMAGE_TYPES:
        _check_picture(data, found)
    return found


def too_large_message(size: int, limit: int) -> str:
    """
    Say that *size* bytes are more than the *limit*.
    """
    return f"{size:,} B is more than the {limit:,} B that clients take: shrink it first"


def _check_picture(data: bytes, mime_type: str) -> None:
    """Raise MediaError unless an image has a size that is not too large, and an end."""
    from io import BytesIO

    import imagesize  # type: ignore[import-untyped]  # loaded by the first image

    try:
        sides = imagesize.get(BytesIO(data))
    except Exception as error:  # noqa: BLE001 (a parser of foreign bytes may fail in any way)
        msg = f"the image is damaged ({error}): save it anew"
        raise MediaError(msg) from None
    if min(sides) < 1 or not _has_end(data, mime_type):
        msg = "the image is damaged or cut short: save it anew"
        raise MediaError(msg)
    if max(sides) > MAX_IMAGE_SIDE:
        width, height = sides
        msg = (
            f"{width:,} by {height:,} pixels: clients take {MAX_IMAGE_SIDE:,} a side at most: shrink it first"
        )
        raise MediaError(msg)


#: What ends an image. Other data may follow it in the file.
_ENDS: Final = {"image/png": b"IEND", "image/jpeg": b"\xff\xd9", "image/gif": b"\0;"}


def _has_end(data: bytes, mime_type: str) -> bool:
    if mime_type == "image/webp":
        return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return data.rfind(_ENDS[mime_type]) >= 0  # mostly it is near the end
