"""Bytes of images and sound: where they are read from, what they are, how large they may be."""

import os
import sys
from contextvars import ContextVar
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from stat import S_ISREG
from typing import Any, BinaryIO, Final, Protocol, TypeAlias

from promptkit.errors.exceptions import MediaError, shortened

__all__ = [
    "AUDIO_TYPES",
    "IMAGE_TYPES",
    "MAX_AUDIO_BYTES",
    "MAX_IMAGE_BYTES",
    "MAX_IMAGE_SIDE",
    "MAX_PATH_LENGTH",
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

#: Characters of a path that comes from outside; no common system opens a longer one.
MAX_PATH_LENGTH: Final = 4096

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
        raise MediaError(_too_large(len(data), limit))
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


def _too_large(size: int, limit: int) -> str:
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


def read_own(path: Path, limit: int) -> bytes:
    """
    Return the bytes of a file that the author has named, and no client.

    Args:
        path:
            Any path.

        limit:
            How many bytes it may have; of a larger file no more is read.

    Raises:
        OSError: If it cannot be read.

        MediaError: If it is too large.
    """
    if (listener := reads.get()) is not None:
        listener.append(path.resolve())
    with path.open("rb") as file:
        return _read(file, path, limit)


def confine(path: str | Path, root: Path) -> Path:
    """
    Return the file that *path* names below *root*, wherever *path* comes from.

    A hard link is a file like any other: whoever can make one in *root* can put the file's
    content there as well.

    Args:
        path:
            A relative path, foreign: whoever sends it may try anything.

        root:
            The folder that must hold the file, after every symbolic link is followed.

    Raises:
        MediaError: If *path* is absolute, has ``..``, a drive, a NUL byte or a URL's
            scheme, is too long, leads out of *root*, or names anything but a regular file.
    """
    text = str(path)
    if len(text) > MAX_PATH_LENGTH:  # looking up each of very many folders would take minutes
        msg = f"{shortened(text)!r} has {len(text):,} characters: a path has {MAX_PATH_LENGTH:,} at most"
        raise MediaError(msg)
    # Both families on every platform: what is harmless on one may be a device on another.
    pure = (PurePosixPath(text), PureWindowsPath(text))
    if "\0" in text or ":" in text or any(".." in p.parts or p.anchor for p in pure):
        msg = f"{shortened(text)!r} is not a plain relative path below {root.name!r}"
        raise MediaError(msg)
    root = root.resolve()
    try:
        found = (root / text).resolve()
        inside, exists = found.is_relative_to(root), found.is_file() and not _names_folder(text)
    except (OSError, RuntimeError, ValueError):  # a name too long, a circle of links, no text for a path
        raise MediaError(_no_file(text, root)) from None
    if not inside:
        msg = f"{shortened(text)!r} leads out of {root.name!r}"
        raise MediaError(msg)
    if not exists:
        raise MediaError(_no_file(text, root))
    return found


def _names_folder(text: str) -> bool:
    """
    Return whether the path *text* can only be a folder, as ``a/`` and ``a/.`` can.
    """
    return text.rpartition("/")[2] in ("", ".")


def _no_file(text: str, root: Path) -> str:
    """
    Return that *text* names no regular file below *root*.
    """
    return f"there is no file {shortened(text)!r} in {root.name!r}"


def read_below(path: str | Path, root: Path, limit: int = MAX_AUDIO_BYTES) -> bytes:
    """
    Return the bytes of the file that *path* names below *root*, wherever *path* comes from.

    Args:
        path:
            A relative path, foreign: whoever sends it may try anything.

        root:
            The folder that must hold the file.

        limit:
            How many bytes the file may have; of a larger one no more is read.

    Raises:
        MediaError: If *path* is refused by `confine`, or the file cannot be read or is too large.
    """
    found = confine(path, root)
    try:
        with open(found, "rb", opener=partial(_open_below, root.resolve())) as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MediaError(_no_file(str(path), root))
            return _read(file, path, limit)
    except OSError as error:
        msg = f"{shortened(str(path))!r} cannot be read: {error.strerror}"
        raise MediaError(msg) from error


def _open_below(root: Path, file: str, flags: int) -> int:
    """
    Open *file*, which has been found below *root*, without following any link from there on.

    Whoever puts a link in its way after `confine` has looked is thereby too late.

    Returns:
        The descriptor.

    Raises:
        OSError: If there is a link on the way, or *file* cannot be opened.
    """
    # On Windows it takes privileges to make a link.
    if sys.platform == "win32" or os.open not in os.supports_dir_fd:
        return os.open(file, flags)
    *folders, name = Path(file).relative_to(root).parts
    here = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        # A pipe that has taken the file's place must not be waited for.
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


#: Opens a folder only to go on from there, for which, on Linux, it need not be readable.
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)


def _read(file: BinaryIO, path: str | Path, limit: int) -> bytes:
    """
    Return the content of *file*, which is called *path*.

    Raises:
        MediaError: If it has more than *limit* bytes, which are not read.
    """
    size = os.fstat(file.fileno()).st_size
    if size <= limit:
        data = file.read(limit + 1)  # it may have grown, and a device has no size
        if len(data) <= limit:
            return data
        size = len(data)
    msg = f"{shortened(str(path))!r}: {_too_large(size, limit)}"
    raise MediaError(msg)
