"""Backlogs: what waits until clients read it, of all connections of one process together."""

import socket
import sys
from contextlib import suppress
from math import inf
from typing import Any, Final

__all__ = ["Backlogs", "keep_little_unsent"]

#: How many bytes a client has to read in a second, of what does not fit into its window.
_LEAST_RATE: Final = 4096

#: How long a client is looked at, in seconds, before its rate tells how fast it is.
_LOOK_S: Final = 2.0

#: After so many bytes have waited, free memory is given back to the system.
_TRIM_AFTER: Final = 16 * 1024 * 1024

#: How much the kernel may keep of what it cannot send yet. By itself, it keeps some MiB for each client, and
#: nobody sees there how fast that is read. What a Unix socket keeps is seen once three quarters are read.
_MOST_UNSENT: Final = 128 * 1024
_MOST_UNSENT_UNIX: Final = 16 * 1024


class _Backlog:
    """What waits for one client: how much that was at first, and how much of it at the last look."""

    def __init__(self, size: int, now: float) -> None:
        self.size = self.left = size
        self._since = now

    def rate(self, left: int, now: float, after: float) -> float:
        """How many bytes a second the client has read since the last look; without end if that was lately."""
        seconds = now - self._since
        return (self.left - left) / seconds if seconds > after else inf

    def look(self, left: int, now: float) -> None:
        """From now on, *left* bytes wait."""
        self.left, self._since = left, now


class Backlogs:
    """
    What waits for clients that read more slowly than is written, by their transports.

    Args:
        limit:
            How many bytes may wait for all of them together. For a single one, more may.

        seconds:
            Over how long the rate is taken at which a client has to read.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._of: dict[Any, _Backlog] = {}
        self._size = 0  # how many bytes are kept: a reply is until all of it is read
        self._is_bloated = False

    def hold(self, transport: Any, now: float) -> None:
        """Note that bytes begin to wait. If too many do, the slowest of the other clients are given up."""
        self._note(transport, now)
        self.shed(now, besides=transport)

    def release(self, transport: Any) -> None:
        """Note that nothing waits any more, or the client is gone."""
        backlog = self._of.pop(transport, None)
        if backlog is not None:
            self._size -= backlog.size

    def check(self, transport: Any, now: float) -> bool:
        """
        Give a client up that reads too slowly; return whether anything waits for it.

        Event loops do not tell of little that waits: it is found here.
        """
        backlog, left = self._of.get(transport), transport.get_write_buffer_size()
        if not left:
            self.release(transport)
        elif backlog is None or left > backlog.left:
            self._note(transport, now)
        elif (rate := backlog.rate(left, now, self._seconds)) < _LEAST_RATE:
            transport.abort()
        elif rate < inf:
            backlog.look(left, now)
        return bool(left)

    def shed(self, now: float, besides: Any = None) -> None:
        """
        If too much waits, give up the slowest clients.

        Of equally slow ones, and of those that were not looked at for long enough, these are the first.
        """
        if self._size <= self._limit:
            return
        others = (other for other in self._of if other is not besides)
        for slowest in sorted(others, key=lambda other: self._rate(other, now)):
            if self._size <= self._limit or len(self._of) == 1:
                return
            self.release(slowest)
            slowest.abort()

    def trim(self) -> None:
        """Once nothing waits any more, give free memory back to the system: glibc keeps most of it."""
        if not self._is_bloated or self._of:
            return
        self._is_bloated = False
        with suppress(OSError):  # no file may be opened any more
            if sys.platform == "linux":
                from ctypes import CDLL  # only after a load

                getattr(CDLL(None), "malloc_trim", int)(0)

    def _note(self, transport: Any, now: float) -> None:
        self.release(transport)
        backlog = self._of[transport] = _Backlog(transport.get_write_buffer_size(), now)
        self._size += backlog.size
        self._is_bloated = self._is_bloated or self._size > _TRIM_AFTER

    def _rate(self, transport: Any, now: float) -> float:
        return self._of[transport].rate(transport.get_write_buffer_size(), now, _LOOK_S)


def keep_little_unsent(accepted: socket.socket) -> None:
    """Have the kernel keep little of what it cannot send yet."""
    with suppress(OSError):  # the client has left
        if accepted.family == getattr(socket, "AF_UNIX", None):
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_UNSENT_UNIX)
        elif hasattr(socket, "TCP_NOTSENT_LOWAT"):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MOST_UNSENT)
