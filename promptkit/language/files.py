"""Files that become content: an author's own, and those that a client names below one folder."""

import os
import sys
from contextvars import ContextVar
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from stat import S_ISREG
from typing import BinaryIO, Final

from promptkit.errors.exceptions import MediaError, shortened
from promptkit.language.mime import MAX_AUDIO_BYTES, too_large_message

__all__ = ["MAX_PATH_LENGTH", "confine", "files_read", "read_authors_file", "read_below", "source_folder"]


#: Characters of a path that comes from outside; no common system opens a longer one.
MAX_PATH_LENGTH: Final = 4096


#: While the loader imports a module: the files that the module reads. Else nobody listens.
files_read: Final[ContextVar[list[Path] | None]] = ContextVar("files_read", default=None)


def source_folder(depth: int) -> Path:
    """
    Return the folder of the file whose code called, *depth* frames above the caller.

    Code that has no file (a console, ``exec``) counts as being in the current folder.
    """
    file = sys._getframe(depth + 1).f_globals.get("__file__")  # noqa: SLF001 (inspect offers the same, slower)
    return Path(file).resolve().parent if file else Path.cwd()


def read_authors_file(path: Path, limit: int) -> bytes:
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
    if (listener := files_read.get()) is not None:
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
    if os.open not in os.supports_dir_fd:  # on Windows, where it takes privileges to make a link
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
    msg = f"{shortened(str(path))!r}: {too_large_message(size, limit)}"
    raise MediaError(msg)
