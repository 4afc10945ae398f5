"""
Reads and replaces regular files, whatever lies in their place; tells whose they are, and if they changed.

A pipe in the place of a file would hold a command for ever, a device may have no end, and a link leads
elsewhere. Every server imports this at its start.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

__all__ = [
    "INSTALLED",
    "MAX_SOURCE_BYTES",
    "NotRegularError",
    "Stamp",
    "Stamps",
    "TooLargeError",
    "check_regular",
    "file_stamp",
    "is_another_user",
    "is_foreign",
    "may_exist",
    "read_beginning",
    "read_regular_file",
    "replace_regular_file",
]

#: Tells one state of a file from another without reading it: mtime, size, inode and ctime. Programs can set
#: all of them but the ctime.
Stamp: TypeAlias = tuple[int, int, int, int]

#: By path: the stamp of each file; None if it does not exist.
Stamps: TypeAlias = Mapping[str, Stamp | None]

#: The names of folders of installed packages, which no author edits.
INSTALLED: Final = frozenset({"site-packages", "dist-packages"})

#: A larger file is not source code that people write, and reading it could take all memory.
MAX_SOURCE_BYTES: Final = 1 << 24

_READING: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class NotRegularError(OSError):
    """A pipe, a socket or a device is in the place of a file."""


class TooLargeError(OSError):
    """
    A file is larger than it may be.

    Args:
        size:
            How many bytes it has, or how many were read of it.

        limit:
            How many it may have.

        path:
            The file.
    """

    def __init__(self, size: int, limit: int, path: str | os.PathLike[str]) -> None:
        super().__init__(errno.EFBIG, f"it has more than {limit:,} bytes", os.fspath(path))
        self.size = size


def read_regular_file(
    path: str | os.PathLike[str], limit: int, check: Callable[[os.stat_result], object] = bool
) -> bytes:
    """
    Return what a regular file holds. Links are followed.

    Args:
        path:
            The file.

        limit:
            How many bytes it may hold.

        check:
            Called with the status of what is read, before that. What it raises is raised.

    Raises:
        OSError: If it cannot be read, is no regular file, or holds more than *limit* bytes.
    """
    data = read_beginning(path, limit + 1, check)
    if len(data) > limit:
        raise TooLargeError(len(data), limit, path)
    return data


def read_beginning(
    path: str | os.PathLike[str], size: int, check: Callable[[os.stat_result], object] = bool
) -> bytes:
    """
    Return the first *size* bytes of a regular file, or all of a shorter one. Links are followed.

    Raises:
        OSError: If it cannot be read, or is no regular file.
    """
    check_regular(os.stat(path), path)  # to open a device may already do something
    with open(os.open(path, _READING), "rb") as file:
        check_regular(status := os.fstat(file.fileno()), path)
        check(status)
        return file.read(size)


def replace_regular_file(
    path: str | os.PathLike[str], *data: bytes, mode: int = 0o666, check: Callable[[str], object] = bool
) -> None:
    """
    Write a file, all at once, in place of the regular file that lies there, if one does.

    Args:
        path:
            The file.

        *data:
            What it is to hold.

        mode:
            Who may read and write it, as far as the process lets them.

        check:
            Called with the path of what is written, before it takes its place. What it raises is raised.

    Raises:
        OSError: If it cannot be written, or if a link, a pipe, a device or a folder lies there, which stays.
    """
    with suppress(FileNotFoundError):
        check_regular(os.lstat(path), path)
    scratch = f"{os.fspath(path)}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(os.open(scratch, _NEW, mode), "wb") as file:
            file.write(b"".join(data))
        check(scratch)
        os.replace(scratch, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(scratch)
        raise


def file_stamp(path: str) -> Stamp | None:
    """
    Return the stamp of a file; None if the file does not exist.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # a path with a NUL is that of no file
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def may_exist(path: str) -> bool:
    """
    Return whether a path that someone else wrote exists.

    A path of another machine counts, and is not looked up: Windows would log in there.
    """
    return path.startswith(("//", "\\\\")) or os.path.exists(path)


def check_regular(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Raise OSError unless a status is that of a regular file."""
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a link: put a file in its place", os.fspath(path))
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise NotRegularError(errno.EINVAL, "it is no regular file", os.fspath(path))


def is_another_user(user: int) -> bool:
    """
    Return whether a user is neither that of this process, nor root, nor who has called ``sudo``.
    """
    own = os.geteuid() if hasattr(os, "geteuid") else user
    return user not in (0, own) and not (own == 0 and os.environ.get("SUDO_UID") == str(user))


def is_foreign(path: str | os.PathLike[str], beside: str | os.PathLike[str] | None = None) -> bool:
    """
    Return whether what lies at *path*, itself and not what it leads to, belongs to another user.

    As for git, what belongs to root, or to who has called ``sudo``, is not another user's.

    Args:
        path:
            A file or a folder. What does not exist belongs to nobody.

        beside:
            A folder whose owner is trusted, too.
    """
    try:
        owner = os.lstat(path).st_uid
    except (OSError, ValueError):
        return False
    if not is_another_user(owner):
        return False
    return beside is None or not os.path.exists(beside) or owner != os.stat(beside).st_uid
