"""The limits of all connections of one process: how many, how slow, and what may wait for them."""

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

#: How many bytes a client has to read in a second, of what does not fit into its window.
_LEAST_RATE: Final = 4096

#: How long a client is looked at, in seconds, before its rate tells how fast it is.
_LOOK_S: Final = 2.0

#: After so many bytes have waited, free memory is given back to the system.
_TRIM_AFTER: Final = 16 * 1024 * 1024


class Phase(Enum):
    """
    What a client is to send next.

    A request takes a connection from `FIRST` or `NEXT` to `HEAD`, `BODY` and `NEXT`. `NOTHING` may follow any
    of them, and is the last: after a refusal, the last reply, or the end of what the client sends.
    """

    FIRST = "the first request"
    HEAD = "the rest of a head"
    BODY = "the rest of a body"
    NEXT = "another request"
    NOTHING = "nothing: what comes is dropped"


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
            A client that reads less than the least rate over so many seconds is given up.

        connections:
            How many connections a worker has at the same time.

        refused:
            How many more connections stay open until their clients have read that there are too many.

        unread:
            How many bytes may wait for all clients together.

        unread_body:
            How many bytes of a request's body may wait for the application, and of a response's for a client.

        behind:
            How many bytes of requests are kept while an earlier one is answered. More is read and dropped, so
            that a client that leaves is noticed.

        waiting:
            How many requests there may be behind another one. A single read may hold thousands.

        read_on_s:
            How long a client may send nothing after its last reply, in seconds. To close while it sends would
            take the reply from it.

        read_on_at_most_s:
            How long it may go on to send then, in seconds.
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
    behind: int = 64 * 1024
    waiting: int = 64
    read_on_s: float = 2.0
    read_on_at_most_s: float = 30.0


class _Backlog(Struct, gc=False):
    """What waits for one client: how much that was at first, and how much of it was left since when."""

    size: int
    left: int
    since: float


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
        elif (rate := self._rate(transport, now, self._seconds)) < _LEAST_RATE:
            transport.abort()
        elif rate < inf:
            backlog.left, backlog.since = left, now
        return bool(left)

    def shed(self, now: float, besides: Any = None) -> None:
        """
        If too much waits, give up the slowest clients.

        Of equally slow ones, and of those that were not looked at for long enough, these are the first.
        """
        if self._size <= self._limit:
            return
        others = (other for other in self._of if other is not besides)
        for slowest in sorted(others, key=lambda other: self._rate(other, now, _LOOK_S)):
            if self._size <= self._limit or len(self._of) == 1:
                return
            self.release(slowest)
            slowest.abort()

    def trim(self) -> None:
        """Once nothing waits any more, give free memory back to the system: glibc keeps most of it."""
        if not self._is_bloated or self._of:
            return
        self._is_bloated = False
        return_free_memory()

    def _note(self, transport: Any, now: float) -> None:
        self.release(transport)
        size = transport.get_write_buffer_size()
        self._of[transport] = _Backlog(size, size, now)
        self._size += size
        self._is_bloated = self._is_bloated or self._size > _TRIM_AFTER

    def _rate(self, transport: Any, now: float, after: float) -> float:
        """How many bytes a second a client has read since the last look; without end if that was lately."""
        backlog = self._of[transport]
        seconds = now - backlog.since
        return (backlog.left - transport.get_write_buffer_size()) / seconds if seconds > after else inf


class _Swept(Protocol):
    """One connection, as far as it is looked after here."""

    transport: Any

    @property
    def is_at_last(self) -> bool: ...
    def check(self, now: float) -> None: ...
    def end_if_idle(self) -> None: ...
    def end_after_reply(self) -> None: ...


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

        patience:
            How long a client may take in each phase, in seconds. For a body, the application decides.
    """

    def __init__(self, limits: ConnectionLimits, ended: Callable[[], object]) -> None:
        self.limits = limits
        self.now = 0.0
        self.date = _date_line()
        self.draining = False
        self.backlogs = Backlogs(limits.unread, limits.stall_s)
        self.patience = {
            Phase.FIRST: limits.head_s,
            Phase.HEAD: limits.head_s,
            Phase.BODY: inf,
            Phase.NEXT: limits.keep_alive,
            Phase.NOTHING: limits.read_on_s,
        }
        self._ended = ended
        self._open: set[_Swept] = set()
        self._refused: set[_Swept] = set()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def are_too_many(self) -> bool:
        """Whether the newest connection has to be refused."""
        return len(self._open) - len(self._refused) > self.limits.connections

    def add(self, connection: _Swept) -> None:
        """Look after a connection."""
        self._open.add(connection)

    def linger(self, connection: _Swept) -> bool:
        """Return whether a refused connection stays open until the client has read the refusal."""
        self._refused.add(connection)
        return len(self._refused) <= self.limits.refused

    def remove(self, connection: _Swept) -> None:
        """Forget a connection, which has ended."""
        self._open.discard(connection)
        self._refused.discard(connection)
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
        return all(connection.is_at_last for connection in self._open)

    def end_idle(self) -> None:
        """End those without a request."""
        for connection in list(self._open):
            connection.end_if_idle()

    def drain(self) -> None:
        """From now on, end each connection after a reply."""
        self.draining = True
        for connection in list(self._open):
            connection.end_after_reply()

    def abort(self) -> None:
        """End all that are left at once."""
        for connection in list(self._open):
            connection.transport.abort()


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
