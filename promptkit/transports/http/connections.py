"""
Connections: uvicorn's HTTP protocol with bounds on what a client may send, and how slowly.

All deadlines are kept by one sweep a second over all connections, not by a timer for each request.
"""

import select
import sys
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from promptkit.transports.http.responses import ResponseCycle

__all__ = ["BoundedConnection", "ConnectionLimits", "Connections"]

#: How long a refused client may go on to send, in seconds: an early close would take the reply from it.
_READ_ON_S: Final = 2.0


#: The fields that say where a body ends.
_FRAMING: Final = (b"content-length", b"transfer-encoding")


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
            How long a client may read nothing of what waits for it, in seconds.

        connections:
            How many connections a worker has at the same time.
    """

    head: int = 32 * 1024
    fields: int = 100
    head_s: float = 10.0
    keep_alive: float = 30.0
    stall_s: float = 10.0
    connections: int = 10_000


class Connections(ServerState):
    """
    What all connections of one worker share.

    Args:
        limits:
            What they may be.

        ended:
            Called when a connection has ended.

    Attributes:
        now:
            The time of the last sweep, in seconds.

        draining:
            Whether each connection ends after the next reply.
    """

    connections: set["BoundedConnection"]  # type: ignore[assignment]  # uvicorn names its own protocols

    def __init__(self, limits: ConnectionLimits, ended: Callable[[], object]) -> None:
        super().__init__()
        self.ended = ended
        self.limits = limits
        self.now = 0.0
        self.draining = False

    def sweep(self, now: float) -> None:
        """End what has taken too long at the time *now*."""
        # Whatever is waited for began up to one sweep later than it says: nothing may end too early.
        before, self.now = self.now, now
        for connection in list(self.connections):
            connection.check(before)

    @property
    def are_busy(self) -> bool:
        """Whether each of them has a request that is still to be answered."""
        return all(connection.is_busy for connection in self.connections)

    def end_idle(self) -> None:
        """End those without a request."""
        for connection in list(self.connections):
            connection.end_if_idle()

    def drain(self) -> None:
        """From now on, end each connection after a reply."""
        self.draining = True
        for connection in self.connections:
            connection.end_after_reply()


class BoundedConnection(HttpToolsProtocol):
    """One connection of a client, made by uvicorn."""

    server_state: Connections

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request, unless there are too many connections."""
        super().connection_made(transport)
        self._limits = self.server_state.limits
        # Since when what is waited for has been waited for: the first byte, the rest of a head, another head.
        self._since = self.server_state.now
        self._in_head = False
        self._is_refused = False
        self._upgrades = False
        # How many bytes came since the last that led to anything.
        self._unused = 0
        self._is_used = False
        self._backlog = 0
        self._stalled_since: float | None = None
        self._running: RequestResponseCycle | None = None
        if len(self.connections) > self._limits.connections:
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; its work is cancelled."""
        if self._running is not None:  # uvicorn tells the last request, which may wait for this one
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)
        self.server_state.ended()

    @property
    def is_busy(self) -> bool:
        """Whether a request is still to be answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Parse what came. Nothing more is read after a refusal."""
        if self._is_refused:
            return
        if self._is_used:
            self._unused, self._is_used = 0, False
        self._unused += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
        except HttpParserError:
            if not self._is_refused:
                self._refuse(400)
        else:
            if self._unused > self._limits.head and not self._is_used:
                self._refuse(431 if self._in_head else 400)

    def on_message_begin(self) -> None:
        """Begin to measure a head."""
        super().on_message_begin()
        self._in_head = True
        self._since = self.server_state.now

    def on_headers_complete(self) -> None:
        """Serve the request, unless its head is too large."""
        self._in_head, self._is_used = False, True
        limits, headers = self._limits, self.headers
        if len(headers) > limits.fields or (self._unused > limits.head and self._head_size() > limits.head):
            self._refuse(431)
            raise HttpParserError
        super().on_headers_complete()
        # Uvicorn's method, which is long, names the class in its middle. The cycle has not run yet.
        self.cycle.__class__ = ResponseCycle
        self._upgrades = self.parser.should_upgrade()
        self.headers = []  # trailers are no headers
        if self.server_state.draining:
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # One at a time runs. Uvicorn keeps a set of them, and has a callback for each that ends.
        self._running = cycle
        self._task = self.loop.create_task(cycle.run_asgi(app))

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._is_used = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of the body."""
        self._is_used = True
        if not self._upgrades:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin the next request, or wait for it without a timer."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if not self._in_head:
            self._since = self.server_state.now

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (uvicorn gives it)
        """Refuse what is no HTTP. Uvicorn's own version would close at once."""
        self._refuse(400)

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._stalled_since = None
        super().resume_writing()

    def check(self, now: float) -> None:
        """End the connection if it has taken too long at the time *now*."""
        if self.flow.write_paused or self.transport.is_closing():
            self._check_reader(now)
            return
        self._stalled_since = None
        waited, limits = now - self._since, self._limits
        if self._is_refused and not self.is_busy:
            if waited > _READ_ON_S:
                self.transport.close()
        elif self._in_head:
            if waited > limits.head_s and not self.flow.read_paused:
                self._refuse(408)
        elif not self.is_busy and waited > (limits.head_s if self.cycle is None else limits.keep_alive):
            self.end_if_idle()

    def end_after_reply(self) -> None:
        """Have the reply that has not begun yet say that it is the last one."""
        if self.is_busy and not self.cycle.response_started and not self.pipeline:
            self.cycle.keep_alive = False

    def end_if_idle(self) -> None:
        """Close unless a request is being answered, or has just arrived."""
        if not self.is_busy and not self.transport.is_closing() and not self._has_input():
            self.transport.close()

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read the body of a request that asks for another protocol, as Java's client does for HTTP/2."""
        # The parser takes the rest for the other protocol. One that has not seen the wish goes on.
        self._upgrades = False
        framing = [pair for pair in self.scope["headers"] if pair[0] in _FRAMING]
        self.parser = HttpRequestParser(_AfterRepetition(self))
        self.parser.feed_data(_repeated_head(framing))
        self._unused -= len(rest)
        self.data_received(rest)

    def _has_input(self) -> bool:
        """Whether bytes wait in the kernel. To close then would answer them with a reset."""
        descriptor = self.transport.get_extra_info("socket").fileno()
        if sys.platform == "win32":  # it has no poll
            return bool(select.select([descriptor], [], [], 0)[0])
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def _check_reader(self, now: float) -> None:
        """Drop a client that reads nothing."""
        backlog = self.transport.get_write_buffer_size()
        if self._stalled_since is None or backlog < self._backlog:
            self._stalled_since = now
        elif now - self._stalled_since > self._limits.stall_s:
            self.transport.abort()
        self._backlog = backlog

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse(self, status: int) -> None:
        """Read nothing more, and say why unless an earlier request is still to be answered."""
        self._is_refused = True
        self._since = self.server_state.now
        if self.is_busy:
            cycle = self.cycle
            if self.pipeline or cycle.response_started or not cycle.more_body:
                self._end_after_last_reply()
                return
            cycle.disconnected = True  # the request that is refused is half there
            cycle.message_event.set()
        self.transport.write(_refusal(status))
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _end_after_last_reply(self) -> None:
        if self.is_busy:
            self.cycle.keep_alive = False
        else:
            self.transport.close()


class _AfterRepetition:
    """What a parser calls that is told a head again: nothing until that has ended."""

    def __init__(self, connection: BoundedConnection) -> None:
        self._connection = connection
        self._is_over = False
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete

    def on_message_begin(self) -> None:
        if self._is_over:
            self._connection.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._is_over:
            self._connection.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_over:
            self._connection.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._is_over:
            self._connection.on_headers_complete()
        self._is_over = True


def _repeated_head(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"POST / HTTP/1.1\r\n%b\r\n" % b"".join(b"%b: %b\r\n" % field for field in fields)


def _refusal(status: int) -> bytes:
    phrase = HTTPStatus(status).phrase
    retry = "retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    return (
        f"HTTP/1.1 {status} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n{retry}"
        f"content-length: {len(phrase)}\r\nconnection: close\r\n\r\n{phrase}"
    ).encode()
