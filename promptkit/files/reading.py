"""Size-limited reading of users' and repositories' files. Most functions reject pipes and devices."""

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from io import BufferedReader
from typing import Final, TypeAlias

import attrs

#: A file's mtime, size, inode and ctime, which identify its version without reading it. Programs can set all
#: of these except the ctime.
Stamp: TypeAlias = tuple[int, int, int, int]

#: The stamps of files, keyed by path; None for files that do not exist.
Stamps: TypeAlias = Mapping[str, Stamp | None]

#: The names of folders that contain installed packages, which authors do not edit.
INSTALL_FOLDERS: Final = frozenset({"site-packages", "dist-packages"})

#: The maximum size of a source file. Larger files are not written by hand, and could exhaust the memory.
MAX_SOURCE_BYTES: Final = 1 << 24

#: Flags for opening a file. If it is a pipe after all, opening it does not wait for the other end, and
#: writing to it does not block.
OPEN_FLAGS: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)

#: Flags for creating a file that must not exist yet.
CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS


class NotRegularError(OSError):
    """A path refers to a pipe, a socket or a device instead of a file."""


class TooLargeError(OSError):
    """
    A file is larger than the limit.

    Args:
        size:
            The size of the file in bytes, or the number of bytes read.

        limit:
            The maximum number of bytes.

        path:
            The file.
    """

    def __init__(self, size: int, limit: int, path: str | os.PathLike[str]) -> None:
        super().__init__(errno.EFBIG, f"it is larger than {limit:,} bytes", os.fspath(path))
        self.size = size


@attrs.frozen
class HashedBytes:
    """
    Immutable bytes, which are compared by their digest.

    Args:
        data:
            The bytes.

    Attributes:
        digest:
            The SHA-256 of the bytes, in lowercase hexadecimal digits.
    """

    data: bytes = attrs.field(eq=False, repr=False)
    digest: str = attrs.field(init=False)

    @digest.default
    def _hash_data(self) -> str:
        from hashlib import sha256  # imported late: OpenSSL takes 4 MiB

        return sha256(self.data).hexdigest()

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)


def read_regular_file(
    path: str | os.PathLike[str], limit: int, check: Callable[[os.stat_result], object] = bool
) -> bytes:
    """
    Return the content of a regular file. Symbolic links are followed.

    Args:
        path:
            The file.

        limit:
            The maximum number of bytes.

        check:
            Called with the status of the file before it is read, to reject the file by raising an exception.

    Raises:
        OSError: If the file cannot be read, is not a regular file, or has more than *limit* bytes.
    """
    return require_within_limit(limit, read_beginning(path, limit + 1, check), path)


def require_within_limit(limit: int, data: bytes, path: str | os.PathLike[str]) -> bytes:
    """Return *data*, or raise TooLargeError if it has more than *limit* bytes."""
    if len(data) > limit:
        raise TooLargeError(len(data), limit, path)
    return data


def read_beginning(
    path: str | os.PathLike[str], size: int, check: Callable[[os.stat_result], object] = bool
) -> bytes:
    """
    Return the first *size* bytes of a regular file, or all bytes if it is shorter. Links are followed.

    Raises:
        OSError: If the file cannot be read or is not a regular file.
    """
    with open_regular_file(path) as file:
        check(os.fstat(file.fileno()))
        return file.read(size)


def file_stamp(path: str) -> Stamp | None:
    """Return the stamp of a file; None if the file does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: the path contains a null character
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns


def may_exist(path: str) -> bool:
    """
    Return whether a path from an untrusted source might exist.

    The result is always True for a network path, because Windows would log in to another machine to look it
    up.
    """
    return path.startswith(("//", "\\\\")) or os.path.exists(path)


def check_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Raise OSError unless *status* describes a regular file."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "it is a link: replace it with a file", os.fspath(path))
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(errno.EINVAL, "it is not a regular file", os.fspath(path))


def is_untrusted_user(uid: int) -> bool:
    """
    Return whether a user is not root, this process's user, or the user who ran this process with ``sudo``.
    """
    current = os.geteuid() if hasattr(os, "geteuid") else uid
    return uid not in (0, current) and not (current == 0 and os.environ.get("SUDO_UID") == str(uid))


def has_untrusted_owner(
    path: str | os.PathLike[str], trusted_folder: str | os.PathLike[str] | None = None
) -> bool:
    """
    Return whether *path* belongs to an untrusted user. For a symbolic link, its own owner counts.

    As in git, files of root and of the user who called ``sudo`` are trusted.

    Args:
        path:
            A file or a folder. If it does not exist, the result is False.

        trusted_folder:
            A folder whose owner is also trusted.
    """
    try:
        owner = os.lstat(path).st_uid
    except (OSError, ValueError):
        return False
    if not is_untrusted_user(owner):
        return False
    return (
        trusted_folder is None
        or not os.path.exists(trusted_folder)
        or owner != os.stat(trusted_folder).st_uid
    )


#: The paths of pipes that a shell opens for this process: ``<(command)`` and standard input.
_OWN_PIPE: Final = re.compile(r"/dev/(?:fd/[0-9]+|stdin)|/proc/(?:self|[0-9]+)/fd/[0-9]+")


def open_regular_file(path: str | os.PathLike[str]) -> BufferedReader:
    """
    Open a regular file for reading. Symbolic links are followed.

    Raises:
        OSError: If the file cannot be opened, or is a pipe, a device, a socket or a folder.
    """
    check_regular(os.stat(path), path)  # opening a device can have side effects
    file = open(os.open(path, os.O_RDONLY | OPEN_FLAGS), "rb")  # noqa: SIM115 (the caller closes it)
    try:
        check_regular(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def open_input(path: str | os.PathLike[str]) -> BufferedReader:
    """
    Open a regular file for reading, or a pipe that a shell has opened for this process.

    The path of such a pipe is, for example, ``/dev/fd/63`` or ``/proc/self/fd/63``. Links to such a path are
    rejected, because they could be part of a repository.

    Raises:
        OSError: If the file cannot be opened, or is any other pipe, a device, a socket or a folder.
    """
    status = os.stat(path)
    if stat.S_ISFIFO(status.st_mode) and _OWN_PIPE.fullmatch(os.fspath(path)):
        return open(path, "rb")
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        reason = "it is not a regular file; for a pipe, pass - and redirect it to standard input"
        raise OSError(errno.EINVAL, reason, os.fspath(path))
    return open_regular_file(path)


def read_named_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """
    Return the content of a file, device or pipe that the user named. Wait for the writer of a pipe.

    Symbolic links are followed.

    Args:
        path:
            The path.

        limit:
            The maximum number of bytes.

    Raises:
        TooLargeError: If there are more bytes. A file whose size is known is not read in this case.

        OSError: If the content cannot be read.
    """
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > limit:
            raise TooLargeError(status.st_size, limit, path)
        # A file may have grown, and a device has no size.
        return require_within_limit(limit, file.read(limit + 1), path)
