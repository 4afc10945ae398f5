"""Bytes of images and sound: where they are read from, what they are, how large they may be."""

from typing import Final

from promptkit.errors.exceptions import MediaError

__all__ = [
    "AUDIO_TYPES",
    "IMAGE_TYPES",
    "MAX_AUDIO_BYTES",
    "MAX_IMAGE_BYTES",
    "MAX_IMAGE_SIDE",
    "checked_type",
    "human_size",
    "sniff",
    "too_large_message",
]

#: What the models behind today's clients accept. Anything else can make every later
#: turn of a client's session fail, so it is refused here, where it can be mended.
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO_TYPES: Final = frozenset(
    {"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4", "audio/aac"}
)

#: 5 MiB of base64, the least that a widely used model API sets as its limit.
MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024 // 4 * 3
MAX_AUDIO_BYTES: Final = 20 * 1024 * 1024

#: Pixels along one side; the same API refuses more, and then every later turn too.
MAX_IMAGE_SIDE: Final = 8000


#: The registered spelling of what the sniffing library, and people, spell otherwise.
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
    Return *size*, in bytes, as people say it: ``20 kB``.
    """
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = round(size / 1000)
    return f"{size} GB"


def sniff(data: bytes) -> str | None:
    """
    Return the MIME type that the first bytes of *data* show, or None.
    """
    import filetype  # type: ignore[import-untyped]  # only media needs it

    mime: str | None = filetype.guess_mime(data)
    return _CANONICAL.get(mime, mime) if mime else None


def checked_type(data: bytes, declared: str | None, accepted: frozenset[str], limit: int) -> str:
    """
    Return the MIME type of *data*, once it is known to be safe to send.

    Args:
        data:
            The whole file.

        declared:
            The type that the author gave, or None.

        accepted:
            The types that clients take.

        limit:
            How many bytes *data* may have.

    Raises:
        MediaError: If *data* is empty or damaged, too large, of no accepted type, or not what was
            declared.
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
    if declared is not None and _CANONICAL.get(declared.lower(), declared.lower()) != found:
        msg = f"the bytes are {found}, not {declared}: leave the type out, or correct it"
        raise MediaError(msg)
    if found in IMAGE_TYPES:
        _check_picture(data, found)
    return found


def too_large_message(size: int, limit: int) -> str:
    """
    Return what is wrong with *size* bytes where *limit* are allowed.
    """
    return f"{size:,} B is more than the {limit:,} B that clients take: shrink it first"


def _check_picture(data: bytes, mime_type: str) -> None:
    """
    Look at the head of an image, and for its end, for what a client would choke on.

    Raises:
        MediaError: If it does not say how large the picture is, or has no end, or the picture is
            too large.
    """
    from io import BytesIO

    import imagesize  # type: ignore[import-untyped]  # only images need it

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


#: What comes last in a picture, whatever may follow the picture in its file.
_ENDS: Final = {"image/png": b"IEND", "image/jpeg": b"\xff\xd9", "image/gif": b"\0;"}


def _has_end(data: bytes, mime_type: str) -> bool:
    """
    Return whether an image is there to its end, as far as its format says what ends it.
    """
    if mime_type == "image/webp":
        return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return data.rfind(_ENDS[mime_type]) >= 0  # from behind: it is near the end mostly
