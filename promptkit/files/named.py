"""Files that a user or an author has named: devices and pipes are read, too, as in ``@/dev/stdin``."""

import errno
import os
import select
import stat
import sys
from typing import Final

from promptkit.files.regular import TooLargeError

__all__ = ["read_named_file"]

_READING: Final = (
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
    with open(os.open(path, _READING), "rb") as file:
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
