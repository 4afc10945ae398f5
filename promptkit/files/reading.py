"""Reads files of users and repositories: at most a limit, and pipes or devices only where they are wanted."""

import errno
import os
import re
import select
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Final, TypeAlias

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


#: Opens a folder to open files in it. With O_PATH (Linux) it need not be readable.
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)


def read_confined_file(root: Path, file: Path, limit: int) -> bytes:
    """
    Return the content of a regular file.

    Args:
        root:
            A folder. Links in its own path are followed.

        file:
            The path of a file below it, in which all links are resolved.

        limit:
            How many bytes it may have.

    Raises:
        TooLargeError: If it has more. A file of a known size is not read then.

        OSError: If it cannot be read, is not a regular file, or is a link meanwhile, or a folder above it is.
    """
    with open(file, "rb", opener=partial(_open_below, root)) as stream:
        status = os.fstat(stream.fileno())
        check_regular(status, file)
        if status.st_size > limit:
            raise TooLargeError(status.st_size, limit, file)
        data = stream.read(limit + 1)  # the file may have grown
    if len(data) > limit:
        raise TooLargeError(len(data), limit, file)
    return data


def _open_below(root: Path, file: str, flags: int) -> int:
    """Open *file* without following links below *root*; return its descriptor."""
    if sys.platform == "win32" or os.open not in os.supports_dir_fd:  # links need privileges there
        return os.open(file, flags)
    *folders, name = Path(file).relative_to(root).parts
    here = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        # If a pipe has taken the file's place, opening it must not wait for a writer.
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


_READING_INPUT: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)

#: The names that shells give to a pipe of the process: ``<(command)``, or standard input.
_OWN_PIPE: Final = re.compile(r"/dev/(?:fd/[0-9]+|stdin)|/proc/(?:self|[0-9]+)/fd/[0-9]+")


def open_regular_file(path: str | os.PathLike[str]) -> BufferedReader:
    """
    Open a regular file for reading. Links are followed.

    Raises:
        OSError: If it cannot be opened, or is a pipe, a device, a socket or a folder.
    """
    check_regular(os.stat(path), path)  # opening a device can have effects
    file = open(os.open(path, _READING_INPUT), "rb")  # noqa: SIM115 (the caller closes it)
    try:
        check_regular(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def open_input(path: str | os.PathLike[str]) -> BufferedReader:
    """
    Open a regular file for reading, or a pipe that a shell has opened for this process.

    A shell names such a pipe ``/dev/fd/63`` or ``/proc/self/fd/63``. Links to it are refused, because a
    repository can have them.

    Raises:
        OSError: If it cannot be opened, or is another pipe, a device, a socket or a folder.
    """
    status = os.stat(path)
    if stat.S_ISFIFO(status.st_mode) and _OWN_PIPE.fullmatch(os.fspath(path)):
        return open(path, "rb")
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        reason = "it is not a regular file; for a pipe, write - and redirect it to standard input"
        raise OSError(errno.EINVAL, reason, os.fspath(path))
    return open_regular_file(path)


_READING_NAMED: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
)

#: How long a pipe may have no writer, in milliseconds.
_WRITER_WITHIN_MS: Final = 1_000


def read_named_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """
    Return the content of a file, a device or a pipe. Links are followed.

    Args:
        path:
            The file.

        limit:
            How many bytes it may have.

    Raises:
        TooLargeError: If it has more. A file of a known size is not read then.

        OSError: If it cannot be read, or is a pipe that no process writes to.
    """
    with open(os.open(path, _READING_NAMED), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > limit:
            raise TooLargeError(status.st_size, limit, path)
        first = _first_byte(file.fileno(), path) if stat.S_ISFIFO(status.st_mode) else b""
        if hasattr(os, "set_blocking"):
            os.set_blocking(file.fileno(), True)
        data = first + file.read(limit + 1)  # a file may have grown, and a device has no size
    if len(data) > limit:
        raise TooLargeError(len(data), limit, path)
    return data


def _first_byte(pipe: int, path: str | os.PathLike[str]) -> bytes:
    """Return a byte that had to be read to see that a pipe has a writer. Raises OSError if it has none."""
    if sys.platform == "win32":  # whose named pipes are not files
        return b""
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    if waiting.poll(_WRITER_WITHIN_MS):  # there is something to read, or the last writer has ended
        return b""
    try:
        first = os.read(pipe, 1)
    except BlockingIOError:  # a process has opened it, and writes later
        return b""
    if not first:
        raise OSError(errno.EPIPE, "it is a pipe that no process writes to", os.fspath(path))
    return first
