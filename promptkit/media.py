"""Bytes of images and sound: where they are read from, what they are, how large they may be."""

import sys
from contextvars import ContextVar
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final, Protocol, TypeAlias

from promptkit.errors import MediaError

__all__ = [
    "AUDIO_TYPES",
    "IMAGE_TYPES",
    "MAX_AUDIO_BYTES",
    "MAX_IMAGE_BYTES",
    "MAX_IMAGE_SIDE",
    "Showable",
    "checked_type",
    "confine",
    "human_size",
    "png_of",
    "read_below",
    "read_own",
    "reads",
    "sniff",
    "source_folder",
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

#: While the loader imports a module: the files that the module reads. Else nobody listens.
reads: Final[ContextVar[list[Path] | None]] = ContextVar("reads", default=None)

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


class _ShowsPng(Protocol):
    """
    What notebooks ask of an object that shows itself: PIL images have it.
    """

    def _repr_png_(self) -> bytes | None: ...


class _SavesFigure(Protocol):
    """
    What matplotlib and its descendants call a figure.
    """

    def savefig(self, *args: Any, **kwargs: Any) -> Any: ...


#: Anything that can show itself as PNG.
Showable: TypeAlias = _ShowsPng | _SavesFigure


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
        msg = f"{len(data):,} B is more than the {limit:,} B that clients take: shrink it first"
        raise MediaError(msg)
    found = sniff(data)
    if found not in accepted:
        known = ", ".join(sorted(accepted))
        msg = f"the bytes are {found or 'of no known format'}; clients take {known}: convert it first"
        raise MediaError(msg)
    if declared is not None and _CANONICAL.get(declared.lower(), declared.lower()) != found:
        msg = f"the bytes are {found}, not {declared}: leave the type out, or correct it"
        raise MediaError(msg)
    if found in IMAGE_TYPES:
        _check_picture(data)
    return found


def _check_picture(data: bytes) -> None:
    """
    Look at the head of an image, whose type is known, for what a client would choke on.

    Raises:
        MediaError: If it does not say how large the picture is, or the picture is too large.
    """
    from io import BytesIO

    import imagesize  # type: ignore[import-untyped]  # only images need it

    try:
        sides = imagesize.get(BytesIO(data))
    except Exception as error:  # noqa: BLE001 (a parser of foreign bytes may fail in any way)
        msg = f"the image is damaged ({error}): save it anew"
        raise MediaError(msg) from None
    if min(sides) < 1:
        msg = "the image is damaged or cut short: save it anew"
        raise MediaError(msg)
    if max(sides) > MAX_IMAGE_SIDE:
        width, height = sides
        msg = (
            f"{width:,} by {height:,} pixels: clients take {MAX_IMAGE_SIDE:,} a side at most: shrink it first"
        )
        raise MediaError(msg)


def png_of(value: Any) -> bytes | None:
    """
    Return *value* as PNG if it can show itself so (``_repr_png_``, ``savefig``), else None.

    Notebooks, PIL images and matplotlib figures agree on these two methods.
    """
    if isinstance(value, type):
        return None
    if callable(show := getattr(value, "_repr_png_", None)):
        data = show()
        return data if isinstance(data, bytes) else None
    if callable(savefig := getattr(value, "savefig", None)):
        from io import BytesIO

        buffer = BytesIO()
        savefig(buffer, format="png")
        return buffer.getvalue()
    return None


def source_folder(depth: int) -> Path:
    """
    Return the folder of the file whose code called, *depth* frames above the caller.

    Code that has no file (a console, ``exec``) counts as being in the current folder.
    """
    file = sys._getframe(depth + 1).f_globals.get("__file__")  # noqa: SLF001 (inspect offers the same, slower)
    return Path(file).resolve().parent if file else Path.cwd()


def read_own(path: Path) -> bytes:
    """
    Return the bytes of a file that the author has named, and no client.

    Raises:
        OSError: If it cannot be read.
    """
    if (listener := reads.get()) is not None:
        listener.append(path.resolve())
    return path.read_bytes()


def confine(path: str | Path, root: Path) -> Path:
    """
    Return the file that *path* names below *root*, wherever *path* comes from.

    Args:
        path:
            A relative path, foreign: whoever sends it may try anything.

        root:
            The folder that must hold the file, after every symbolic link is followed.

    Raises:
        MediaError: If *path* is absolute, has ``..``, a drive, a NUL byte or a URL's
            scheme, leads out of *root*, or names anything but a regular file.
    """
    text = str(path)
    # Both families on every platform: what is harmless on one may be a device on another.
    pure = (PurePosixPath(text), PureWindowsPath(text))
    if "\0" in text or ":" in text or any(".." in p.parts or p.anchor for p in pure):
        msg = f"{text!r} is not a plain relative path below {root.name!r}"
        raise MediaError(msg)
    root = root.resolve()
    try:
        found = (root / text).resolve()
        inside, exists = found.is_relative_to(root), found.is_file()
    except (OSError, RuntimeError, ValueError):  # too long, a circle of links, no text for a path
        inside, exists = True, False
    if not inside:
        msg = f"{text!r} leads out of {root.name!r}"
        raise MediaError(msg)
    if not exists:
        msg = f"there is no file {text!r} in {root.name!r}"
        raise MediaError(msg)
    return found


def read_below(path: str | Path, root: Path) -> bytes:
    """
    Return the bytes of the file that *path* names below *root*, wherever *path* comes from.

    Args:
        path:
            A relative path, foreign: whoever sends it may try anything.

        root:
            The folder that must hold the file.

    Raises:
        MediaError: If *path* is refused by `confine`, or the file cannot be read.
    """
    try:
        return confine(path, root).read_bytes()
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror}"
        raise MediaError(msg) from error
