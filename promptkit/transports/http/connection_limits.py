"""
Limits on the connections to one process: their number, their timeouts, and the memory for unread responses.
"""

import time
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from math import inf
from typing import Any, Final

from msgspec import Struct

from promptkit.protocol.limits import Limits

#: Minimum rate at which a client must read data that does not fit into its window, in bytes per second.
_MIN_RATE: Final = 4096


class Phase(Enum):
    """
    What the server expects from a client next.

    A request takes a connection from `FIRST` or `NEXT` to `HEAD`, `BODY` and `NEXT`. `NOTHING` can follow any
    of them and is final: after an error response or the last reply.
    """

    FIRST = "the first request"
    HEAD = "the rest of a head"
    BODY = "the rest of a body"
    NEXT = "another request"
    NOTHING = "nothing: its input is dropped"


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """
    Limits and timeouts of a connection.

    Args:
        head:
            Maximum size of a request's head, in bytes.

        fields:
            Maximum number of header fields in a request.

        head_s:
            Maximum time for a head from its first byte, and for the first byte of a new connection, in
            seconds.

        keep_alive:
            Maximum idle time between two requests, in seconds.

        stall_s:
            Time over which a client must read at the minimum rate, in seconds; a slower client is
            disconnected.

        connections:
            Maximum number of connections per worker.

        rejected:
            Number of further connections that stay open until their clients have read the error response.

        unread:
            Maximum number of unread bytes of all clients together.

        unread_body:
            Maximum number of bytes of a request's body that the application has not read.

        read_on_s:
            Maximum time for which data is read and dropped once the last reply has been sent, in seconds.
            Closing a connection while the client sends would lose the reply.
    """

    head: int = 32 * 1024
    fields: int = 100
    head_s: float = 10.0
    keep_alive: float = 30.0
    stall_s: float = 10.0
    connections: int = 10_000
    rejected: int = 64
    unread: int = Limits().held
    unread_body: int = 64 * 1024
    read_on_s: float = 10.0


class _Backlog(Struct, gc=False):
    """
    The unread bytes of one client: how many at first, how many at the last measurement, and when that was.
    """

    size: int
    left: int
    since: float


class Backlogs:
    """
    The unread bytes of clients, by transport.

    Args:
        limit:
            Maximum for all clients together. A single client can exceed it.

        seconds:
            Time over which a client's rate is measured.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._by_transport: dict[Any, _Backlog] = {}  # in the order in which the clients stopped reading
        self._size = 0  # bytes held: a reply is held until all of it is read

    def hold(self, transport: Any, now: float) -> None:
        """
        Record that a client has unread bytes.

        Over the limit, the clients that have had unread bytes for the longest time are disconnected.
        """
        size = transport.get_write_buffer_size()
        self._by_transport[transport] = _Backlog(size, size, now)
        self._size += size
        while self._size > self._limit and len(self._by_transport) > 1:
            slowest = next(iter(self._by_transport))
            self.release(slowest)
            slowest.abort()

    def release(self, transport: Any) -> None:
        """Record that a client has no more unread bytes, or has disconnected."""
        backlog = self._by_transport.pop(transport, None)
        if backlog is not None:
            self._size -= backlog.size

    def sweep(self, now: float) -> None:
        """Disconnect the clients that read too slowly."""
        for transport, backlog in list(self._by_transport.items()):
            seconds = now - backlog.since
            if seconds > self._seconds:
                left = transport.get_write_buffer_size()
                if (backlog.left - left) / seconds < _MIN_RATE:
                    transport.abort()
                backlog.left, backlog.since = left, now


class Connections:
    """
    All connections to one process, which are of the class `HttpConnection`.

    Args:
        limits:
            Their limits.

    Attributes:
        now:
            The time of the last sweep, in seconds.

        date:
            The ``date`` header line.

        draining:
            Whether each connection ends after its next reply.

        backlogs:
            The bytes that clients have not read.

        timeouts:
            Maximum time in each phase, in seconds. For a body, the application decides.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.now = 0.0
        self.date = _date_line()
        self.draining = False
        self.backlogs = Backlogs(limits.unread, limits.stall_s)
        self.timeouts = {
            Phase.FIRST: limits.head_s,
            Phase.HEAD: limits.head_s,
            Phase.BODY: inf,
            Phase.NEXT: limits.keep_alive,
            Phase.NOTHING: limits.read_on_s,
        }
        self._open: set[Any] = set()
        self._rejected: set[Any] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Any) -> bool:
        """Register a connection. Return False if it must be rejected, because there are too many."""
        self._open.add(connection)
        return len(self._open) - len(self._rejected) <= self.limits.connections

    def linger(self, connection: Any) -> bool:
        """Return whether a rejected connection can stay open until its client has read the error response."""
        self._rejected.add(connection)
        return len(self._rejected) <= self.limits.rejected

    def remove(self, connection: Any) -> None:
        """Unregister a connection that has ended."""
        self._open.discard(connection)
        self._rejected.discard(connection)

    def sweep(self, now: float) -> None:
        """End connections that have timed out at the time *now*, by the clock of the event loop."""
        # A wait can start up to one sweep after its recorded time: check against the previous sweep.
        previous, self.now = self.now, now
        self.date = _date_line()
        for connection in list(self._open):
            connection.check(previous)
        self.backlogs.sweep(previous)

    @property
    def are_busy(self) -> bool:
        """Whether each connection has an unanswered request."""
        return all(connection.is_busy for connection in self._open)

    def end_idle(self) -> None:
        """End the connections that have no request."""
        for connection in list(self._open):
            connection.end_if_idle()

    def drain(self) -> None:
        """From now on, end each connection after its reply."""
        self.draining = True
        for connection in list(self._open):
            connection.end_after_reply()

    def abort(self) -> None:
        """Abort all remaining connections."""
        for connection in list(self._open):
            connection.transport.abort()


def error_response(status: int, date: bytes) -> bytes:
    """
    Return an error response that is sent without calling the application.

    Args:
        status:
            Its status.

        date:
            The ``date`` header line.
    """
    phrase = HTTPStatus(status).phrase
    retry = "retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    remainder = (
        f"content-type: text/plain; charset=utf-8\r\n{retry}"
        f"content-length: {len(phrase)}\r\nconnection: close\r\n\r\n{phrase}"
    )
    return b"HTTP/1.1 %d %b\r\n%b%b" % (status, phrase.encode(), date, remainder.encode())


def _date_line() -> bytes:
    return b"date: %b\r\n" % formatdate(time.time(), usegmt=True).encode()
