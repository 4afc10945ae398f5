"""Descriptors: how much can be written to one without waiting for whoever reads, and writing that."""

import os
import stat
import sys
from typing import Final

__all__ = ["any_room", "room_of", "write_some"]

#: What a pipe takes in one piece: no child's output is mixed into a line that is shorter.
_CHUNK: Final = 4096

#: How much a socket takes without waiting if it says that it takes anything.
_SOCKET_CHUNK: Final = 2048

#: How much is written to a file at once.
_FILE_CHUNK: Final = 65536


def any_room(_descriptor: int) -> int:
    """
    Return how many bytes to write at once for whoever may wait.
    """
    return _CHUNK


def room_of(descriptor: int) -> int:
    """
    Return how many bytes can be written now without waiting for a reader; none if that is unknown.
    """
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return 0
    if stat.S_ISREG(mode):
        return _FILE_CHUNK
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return 0
    import select  # not at all where nothing is printed

    if sys.platform == "win32":
        return 0
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if not poll.poll(0):
        return 0
    return select.PIPE_BUF if stat.S_ISFIFO(mode) else _SOCKET_CHUNK


def write_some(descriptor: int, data: bytes) -> int:
    """
    Return how much of *data* was written; none if the descriptor does not block, after waiting for it.
    """
    try:
        return os.write(descriptor, data)
    except BlockingIOError:  # somebody who shares it has made it so
        from select import select

        select((), (descriptor,), ())
        return 0
