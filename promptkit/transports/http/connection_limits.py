"""
Limits on the connections to one process: their number, their timeouts, and the memory for unread responses.
"""

import time
from collections.abc import Callable
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from math import inf
from typing import Any, Final, Protocol

from msgspec import Struct

from promptkit.memory import return_free_memory
from promptkit.protocol.limits import Limits

#: Minimum rate at which a client must read data that does not fit into its window, in bytes per second.
_MIN_RATE: Final = 4096

#: Minimum time over which a client's rate is measured, in seconds.
_MEASURE_S: Final = 2.0

#: Once this many unread bytes have been held, free memory is returned to the system afterwards.
_TRIM_AFTER: Final = 16 * 1024 * 1024


class Phase(Enum):
    """
    What the server expects from a client next.

    A request takes a connection from `FIRST` or `NEXT` to `HEAD`, `BODY` and `NEXT`. `NOTHING` can follow any
    of them and is final: after an error response, the last reply, or the end of the client's data.
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

        refused:
            Number of further connections that stay open until their clients have read the error response.

        unread:
            Maximum number of unread bytes of all clients together.

        unread_body:
            Maximum number of bytes of a request's body that the application has not read, and of a response
            that the client has not read.

        pipelined_bytes:
            Maximum size of the requests that are queued while an earlier one is answered. Further data is
            read and dropped, so that a disconnect is noticed.

        pipelined:
            Maximum number of queued requests. A single read can contain thousands.

        read_on_s:
            Time without data after which a connection is closed when its last reply has been sent, in
            seconds. Closing it while the client sends would lose the reply.

        read_on_at_most_s:
            Maximum time for which such data is read and dropped, in seconds.
    """

    head: int = 32 * 1024
    fields: int = 100
    head_s: float = 10.0
    keep_alive: float = 30.0
    stall_s: float = 10.0
    connections: int = 10_000
    refused: int = 64
    unread: int = Limits().held
    unread_body: int = 64 * 1024
    pipelined_bytes: int = 64 * 1024
    pipelined: int = 64
    read_on_s: float = 2.0
    read_on_at_most_s: float = 30.0


class _Backlog(Struct, gc=False):
    """
    The unread bytes of one client: how many at first, how many at the last measurement, and when that was.
    """

    size: int
    left: int
    since: float


class Backlogs:
    """
    The unread bytes of slow clients, by transport.

    Args:
        limit:
            Maximum for all clients together. A single client can exceed it.

        seconds:
            Time over which a client's rate is measured.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._by_transport: dict[Any, _Backlog] = {}
        self._size = 0  # bytes held: a reply is held until all of it is read
        self._is_bloated = False

    def hold(self, transport: Any, now: float) -> None:
        """
        Record that a client has unread bytes. Over the limit, the slowest other clients are disconnected.
        """
        self._record(transport, now)
        self.shed(now, excluded=transport)

    def release(self, transport: Any) -> None:
        """Record that a client has no more unread bytes, or has disconnected."""
        backlog = self._by_transport.pop(transport, None)
        if backlog is not None:
            self._size -= backlog.size

    def check(self, transport: Any, now: float) -> bool:
        """
        Disconnect a client that reads too slowly; return whether it has unread bytes.

        Event loops do not report small amounts of unread bytes, so this method looks for them.
        """
        backlog, left = self._by_transport.get(transport), transport.get_write_buffer_size()
        if not left:
            self.release(transport)
        elif backlog is None or left > backlog.left:
            self._record(transport, now)
        elif (rate := self._rate(transport, now, self._seconds)) < _MIN_RATE:
            transport.abort()
        elif rate < inf:
            backlog.left, backlog.since = left, now
        return bool(left)

    def shed(self, now: float, excluded: Any = None) -> None:
        """
        Disconnect the slowest clients until the limit is met.

        Among equally slow clients, and clients without a measured rate, the oldest are disconnected first.
        """
        if self._size <= self._limit:
            return
        candidates = (transport for transport in self._by_transport if transport is not excluded)
        for slowest in sorted(candidates, key=lambda transport: self._rate(transport, now, _MEASURE_S)):
            if self._size <= self._limit or len(self._by_transport) == 1:
                return
            self.release(slowest)
            slowest.abort()

    def trim(self) -> None:
        """Return free memory to the system once there are no unread bytes, because glibc keeps most of it."""
        if not self._is_bloated or self._by_transport:
            return
        self._is_bloated = False
        return_free_memory()

    def _record(self, transport: Any, now: float) -> None:
        self.release(transport)
        size = transport.get_write_buffer_size()
        self._by_transport[transport] = _Backlog(size, size, now)
        self._size += size
        self._is_bloated = self._is_bloated or self._size > _TRIM_AFTER

    def _rate(self, transport: Any, now: float, after: float) -> float:
        """
        Return a client's rate since its last measurement, in bytes per second; infinite if that was recent.
        """
        backlog = self._by_transport[transport]
        seconds = now - backlog.since
        return (backlog.left - transport.get_write_buffer_size()) / seconds if seconds > after else inf


class _Connection(Protocol):
    """The part of a connection that `Connections` uses."""

    transport: Any

    @property
    def is_on_last_request(self) -> bool: ...
    def check(self, now: float) -> None: ...
    def end_if_idle(self) -> None: ...
    def end_after_reply(self) -> None: ...


class Connections:
    """
    All connections to one process.

    Args:
        limits:
            Their limits.

        ended:
            Called when a connection has ended.

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

    def __init__(self, limits: ConnectionLimits, ended: Callable[[], object]) -> None:
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
        self._ended = ended
        self._open: set[_Connection] = set()
        self._refused: set[_Connection] = set()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def are_too_many(self) -> bool:
        """Whether the newest connection must be rejected."""
        return len(self._open) - len(self._refused) > self.limits.connections

    def add(self, connection: _Connection) -> None:
        """Register a connection."""
        self._open.add(connection)

    def linger(self, connection: _Connection) -> bool:
        """Return whether a rejected connection can stay open until the client has read the error response."""
        self._refused.add(connection)
        return len(self._refused) <= self.limits.refused

    def remove(self, connection: _Connection) -> None:
        """Unregister a connection that has ended."""
        self._open.discard(connection)
        self._refused.discard(connection)
        self._ended()

    def sweep(self, now: float) -> None:
        """End connections that have timed out at the time *now*, by the clock of the event loop."""
        # A wait can start up to one sweep after its recorded time: check against the previous sweep.
        previous, self.now = self.now, now
        self.date = _date_line()
        for connection in list(self._open):
            connection.check(previous)
        self.backlogs.shed(previous)
        self.backlogs.trim()

    @property
    def are_on_last_request(self) -> bool:
        """Whether each connection has exactly one unanswered request."""
        return all(connection.is_on_last_request for connection in self._open)

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
