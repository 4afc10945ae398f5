"""Opening the input files that a user names, without waiting for a pipe or reading a device."""

import errno
import os
import re
import stat
from io import BufferedReader
from typing import Final

from promptkit.files.regular import check_regular

__all__ = ["open_input", "open_regular_file"]

_READING: Final = (
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
    file = open(os.open(path, _READING), "rb")  # noqa: SIM115 (the caller closes it)
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
