"""What all connections of one process share: their limits, the time, and that they have to end."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from promptkit.protocol.limits import Limits
from promptkit.transports.http.backlogs import Backlogs

if TYPE_CHECKING:
    from promptkit.transports.http.connection import Connection

__all__ = ["ConnectionLimits", "Connections", "refusal", "within_descriptors"]

#: How many files prompts may have open besides the connections.
_OTHER_DESCRIPTORS: Final = 512


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """
    What a connection may be, and how long it may do nothing.

    Args:
        head:
            How many bytes the head of a request may have.

        fields:
            How many header fields a request may have.

        head_s:
            How long a head may take from its first byte on, and a new connection until its first byte, in
            seconds.

        keep_alive:
            How long a connection may be idle between two requests, in seconds.

        stall_s:
            Over how long a client has to read at the least rate what waits for it, in seconds.

        connections:
            How many connections a worker has at the same time.

        unread:
            How many bytes may wait for all clients together.
    """

    head: int = 32 * 1024
    fields: int = 100
    head_s: float = 10.0
    keep_alive: float = 30.0
    stall_s: float = 10.0
    connections: int = 10_000
    unread: int = Limits().held


class Connections:
    """
    All connections of one process.

    Args:
        limits:
            What they may be.

        ended:
            Called when a connection has ended.

    Attributes:
        now:
            The time of the last sweep, in seconds.

        date:
            The line of a head that says what time it is.

        draining:
            Whether each connection ends after the next reply.

        backlogs:
            What waits for clients.
    """

    def __init__(self, limits: ConnectionLimits, ended: Callable[[], object]) -> None:
        self.limits = limits
        self.now = 0.0
        self.date = _date_line()
        self.draining = False
        self.backlogs = Backlogs(limits.unread, limits.stall_s)
        self._ended = ended
        self._open: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "Connection") -> None:
        """Look after a connection."""
        self._open.add(connection)

    def remove(self, connection: "Connection") -> None:
        """Forget a connection, which has ended."""
        self._open.discard(connection)
        self._ended()

    def sweep(self, now: float) -> None:
        """End what has taken too long at the time *now*, by the clock of the event loop."""
        # Whatever is waited for began up to one sweep later than it says: nothing may end too early.
        before, self.now = self.now, now
        self.date = _date_line()
        for connection in list(self._open):
            connection.check(before)
        self.backlogs.shed(before)
        self.backlogs.trim()

    @property
    def are_at_last(self) -> bool:
        """Whether each of them has one request that is still to be answered, and no other waits behind it."""
        return all(connection.is_busy and not connection.has_waiting for connection in self._open)

    def end_idle(self) -> None:
        """End those without a request."""
        for connection in list(self._open):
            connection.end_if_idle()

    def drain(self) -> None:
        """From now on, end each connection after a reply."""
        self.draining = True
        for connection in self._open:
            connection.end_after_reply()

    def abort(self) -> None:
        """End all that are left at once."""
        for connection in list(self._open):
            connection.transport.abort()


def within_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    """
    Return the limits for this process. It allows itself more open files, or else fewer connections.

    Args:
        limits:
            What connections may be.
    """
    if sys.platform == "win32":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + _OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY:
        return limits
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < most:
        with suppress(OSError, ValueError):  # the system may have another bound
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    allowed = soft - min(_OTHER_DESCRIPTORS, soft // 2)
    return replace(limits, connections=min(limits.connections, allowed))


def refusal(status: int, date: bytes) -> bytes:
    """
    Return the response to a request that no application sees.

    Args:
        status:
            Its status.

        date:
            The line of a head that says what time it is.
    """
    phrase = HTTPStatus(status).phrase
    retry = "retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    rest = (
        f"content-type: text/plain; charset=utf-8\r\n{retry}"
        f"content-length: {len(phrase)}\r\nconnection: close\r\n\r\n{phrase}"
    )
    return b"HTTP/1.1 %d %b\r\n%b%b" % (status, phrase.encode(), date, rest.encode())


def _date_line() -> bytes:
    return b"date: %b\r\n" % formatdate(time.time(), usegmt=True).encode()
