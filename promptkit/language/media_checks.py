"""Checks of media: type, size and completeness."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from typing import Final

from promptkit.errors.exceptions import MediaError

#: Types that the models of today's clients accept. Any other type can make every later turn of a client's
#: session fail, so it is rejected here, where the author can fix it.
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO_TYPES: Final = frozenset(
    {"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4", "audio/aac"}
)

#: 5 MiB in base64: the lowest limit among widely used model APIs.
MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024 // 4 * 3
MAX_AUDIO_BYTES: Final = 20 * 1024 * 1024

#: In pixels. The same API rejects longer sides, and then every later turn as well.
MAX_IMAGE_SIDE: Final = 8000

#: MIME types of text documents.
_TEXT_TYPE: Final = (
    r"text/.+|.+\+(?:json|xml|yaml)|application/(?:javascript|json|sql|toml|x-sh|x-tex|x-yaml|xml|yaml)"
)

#: File extensions that some versions of Python do not know, or map to another type.
_EXTENSIONS: Final = {
    ".js": "text/javascript",
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}

#: Registered names of types for which authors, or the detecting library, use other names.
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
    """Return *size*, in bytes, in readable form: ``20 kB``."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = round(size / 1000)
    return f"{size} GB"


def sniff(data: bytes) -> str | None:
    """Detect the MIME type of *data* from its first bytes; return None if it is unknown."""
    import filetype  # type: ignore[import-untyped]  # imported on first use

    mime: str | None = filetype.guess_mime(data)
    return _CANONICAL.get(mime, mime) if mime else None


def document_type(name: str, data: bytes, declared: str | None) -> tuple[str, str | None]:
    """
    Return the MIME type of a file, and its text; the text is None unless the file is a UTF-8 text document.

    Args:
        name:
            The file's name. Its extension determines the type of text, which bytes do not show.

        data:
            The content of the file.

        declared:
            The MIME type that the author declares; None to detect it.
    """
    text, declared_or_named = _decoded(data), declared or _type_of_name(name)
    if text is not None and declared_or_named and re.fullmatch(_TEXT_TYPE, canonical_type(declared_or_named)):
        return declared_or_named, text
    detected = declared or sniff(data)
    if text is not None and detected is None:
        return "text/plain", text
    return detected or declared_or_named or "application/octet-stream", None


def _decoded(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _type_of_name(name: str) -> str | None:
    return _types_by_extension().get(PurePath(name).suffix.lower())


@cache
def _types_by_extension() -> Mapping[str, str]:
    from mimetypes import MimeTypes  # imported on first use

    # Only Python's built-in types: those of the system differ between machines.
    return {**MimeTypes().types_map[1], **_EXTENSIONS}


def canonical_type(mime_type: str) -> str:
    """Return the registered name of a MIME type, without parameters."""
    name = mime_type.partition(";")[0].strip().lower()
    return _CANONICAL.get(name, name)


def summary(mime_type: str, data: bytes) -> str:
    """Return a transcript's placeholder for bytes: ``<image/png 20 kB sha256:0a1b2c3d>``."""
    from hashlib import sha256

    return f"<{mime_type} {human_size(len(data))} sha256:{sha256(data).hexdigest()[:8]}>"


def checked_type(data: bytes, declared: str | None, accepted: frozenset[str], limit: int) -> str:
    """
    Return the MIME type of *data*, the content of a file, if clients accept it.

    Raises:
        MediaError: If *data* is empty, damaged or longer than *limit* bytes, or its type is not among
            the *accepted* types, or is not the *declared* type.
    """
    if not data:
        msg = "the data is empty: pass the bytes of the whole file"
        raise MediaError(msg)
    if len(data) > limit:
        raise MediaError(too_large_message(len(data), limit))
    detected = sniff(data)
    if detected not in accepted:
        types = ", ".join(sorted(accepted))
        msg = f"the bytes are {detected or 'of no known format'}; clients take {types}: convert it first"
        raise MediaError(msg)
    if declared is not None and canonical_type(declared) != detected:
        msg = f"the bytes are {detected}, not {declared}: leave the type out, or correct it"
        raise MediaError(msg)
    if detected in IMAGE_TYPES:
        _check_picture(data, detected)
    return detected


def too_large_message(size: int, limit: int) -> str:
    """Return the error message for *size* bytes that exceed *limit*."""
    return f"{size:,} B is more than the {limit:,} B that clients take: shrink it first"


def _check_picture(data: bytes, mime_type: str) -> None:
    """Raise MediaError unless an image is complete and its width and height are within the limit."""
    from io import BytesIO

    import imagesize  # type: ignore[import-untyped]  # imported on first use

    try:
        sides = imagesize.get(BytesIO(data))
    except Exception as error:  # noqa: BLE001 (a parser of untrusted bytes can fail in any way)
        msg = f"the image is damaged ({error}): save it again"
        raise MediaError(msg) from None
    if min(sides) < 1 or not _has_end(data, mime_type):
        msg = "the image is damaged or cut short: save it again"
        raise MediaError(msg)
    if max(sides) > MAX_IMAGE_SIDE:
        width, height = sides
        msg = (
            f"{width:,} by {height:,} pixels: clients take {MAX_IMAGE_SIDE:,} a side at most: shrink it first"
        )
        raise MediaError(msg)


#: The end markers of images. Other data can follow them in the file.
_END_MARKERS: Final = {"image/png": b"IEND", "image/jpeg": b"\xff\xd9", "image/gif": b"\0;"}


def _has_end(data: bytes, mime_type: str) -> bool:
    if mime_type == "image/webp":
        return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return data.rfind(_END_MARKERS[mime_type]) >= 0  # from the right, because it is usually near the end
