"""
HTTP/1.1 connections and their requests.

Limits apply to the number of connections, to the size and the slowness of requests, and to the memory for
unread responses.
"""

import asyncio
import time
from collections.abc import Iterable
from email.utils import formatdate
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from math import inf
from typing import Any, Final
from urllib.parse import unquote

from httptools import (
    HttpParserError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
    parse_url,
)
from msgspec import Struct

from promptkit.errors.tracebacks import format_exception
from promptkit.protocol.http.messages import CLOSE
from promptkit.protocol.limits import Limits
from promptkit.standard_error import say
from promptkit.transports.http.settings import ASGIApplication, Event, Scope

#: Minimum rate at which a client must read data that does not fit into its TCP window, in bytes per second.
_MIN_RATE: Final = 4096


class Phase(Enum):
    """
    What the server expects from a client next.

    A request takes a connection from `FIRST` or `NEXT` to `HEAD`, `BODY` and `NEXT`. `NOTHING` can follow any
    phase, after an error response or the last reply, and is final.
    """

    FIRST = "the first request"
    HEAD = "the rest of a head"
    BODY = "the rest of a body"
    NEXT = "another request"
    NOTHING = "nothing: its input is dropped"


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """
    Limits and timeouts for connections.

    Args:
        head:
            Maximum size of a request's head, in bytes.

        fields:
            Maximum number of header fields in a request.

        head_s:
            Maximum time for the rest of a head to arrive after its first byte, and for the first byte of a
            new connection to arrive, in seconds.

        keep_alive:
            Maximum idle time between two requests, in seconds.

        stall_s:
            Time over which a client must read at the minimum rate, in seconds. A slower client is
            disconnected.

        connections:
            Maximum number of connections per worker.

        rejected:
            Maximum number of rejected connections that stay open until their clients have read the error
            response.

        unread:
            Maximum total of unread bytes across all clients.

        unread_body:
            Maximum number of bytes of a request's body that have arrived, but that the application has not
            read.

        read_on_s:
            How long data is read and dropped once the last reply has been sent, in seconds. If a connection
            were closed while the client is sending, the reply would be lost.
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
    The unread bytes of one client: *size* when it stopped reading, and *left* at the last measurement.

    *since* is the time of that measurement.
    """

    size: int
    left: int
    since: float


class Backlogs:
    """
    The number of bytes that each client has not read yet, keyed by transport.

    Args:
        limit:
            Maximum total of unread bytes across all clients. If only one client has unread bytes, it may
            exceed the limit.

        seconds:
            Interval over which each client's reading rate is measured.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._by_transport: dict[Any, _Backlog] = {}  # in the order in which the clients stopped reading
        self._size = 0  # bytes held in memory; a reply is held until all of it has been read

    def hold(self, transport: Any, now: float) -> None:
        """
        Record that a client has unread bytes.

        If the limit is exceeded, the clients that have had unread bytes for the longest time are
        disconnected.
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
    The HTTP connections to one process.

    Args:
        limits:
            The limits on the connections.

    Attributes:
        now:
            The time of the last sweep, in seconds.

        date:
            The ``date`` header line.

        draining:
            Whether each connection is closed after its next reply.

        backlogs:
            The number of bytes that each client has not read yet.

        timeouts:
            Maximum time in each phase, in seconds. The time for a body is limited by the application instead.
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
        self._open: set[HttpConnection] = set()
        self._rejected: set[HttpConnection] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "HttpConnection") -> bool:
        """Register a connection. Return False if it must be rejected, because there are too many."""
        self._open.add(connection)
        return len(self._open) - len(self._rejected) <= self.limits.connections

    def add_rejected(self, connection: "HttpConnection") -> bool:
        """Register a rejected connection. Return whether it can stay open until its client has the error."""
        self._rejected.add(connection)
        return len(self._rejected) <= self.limits.rejected

    def remove(self, connection: "HttpConnection") -> None:
        """Unregister a closed connection."""
        self._open.discard(connection)
        self._rejected.discard(connection)

    def sweep(self, now: float) -> None:
        """Close connections that have timed out at the time *now*, by the clock of the event loop."""
        # A wait can start up to one interval after its recorded time, so compare with the previous sweep.
        previous, self.now = self.now, now
        self.date = _date_line()
        for connection in list(self._open):
            connection.check(previous)
        self.backlogs.sweep(previous)

    @property
    def all_busy(self) -> bool:
        """Whether each connection has an unanswered request."""
        return all(connection.is_busy for connection in self._open)

    def close_idle(self) -> None:
        """Close the connections that have no unanswered request."""
        for connection in list(self._open):
            connection.end_if_idle()

    def drain(self) -> None:
        """From now on, close each connection after its next reply."""
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
            The status of the response.

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


#: Header fields that delimit the body.
_FRAMING: Final = (b"content-length", b"transfer-encoding")

_CHUNKED: Final = b"transfer-encoding: chunked\r\n"

#: Statuses of responses without a body.
_EMPTY: Final = (204, 304)

_FAILED: Final = b"Internal Server Error"

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


class HttpConnection(asyncio.Protocol):
    """
    A client's connection. Each request is answered by a call to an application.

    If a client sends a request before it has read the reply to the previous one (pipelining), it gets only
    that reply, and the connection is closed. A client that closes its sending side counts as disconnected,
    because it cannot be distinguished from a client that is gone.

    A sweep over all connections each second enforces their deadlines, without a timer for each request.
    """

    transport: Any  # uvloop's transports do not inherit from asyncio.Transport

    def __init__(
        self, application: ASGIApplication, connections: Connections, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.loop = loop
        self.drained: asyncio.Event | None = None  # set once the client has read all data; None if it has
        self._application = application
        self.connections = connections
        self._limits = connections.limits
        self._parser = self._create_parser()
        self._phase = Phase.FIRST
        self._since = connections.now  # start of the current wait
        self._target, self._fields = b"", list[tuple[bytes, bytes]]()
        self._cycle: RequestCycle | None = None  # the cycle of the last request
        self._is_reading = True
        # `_is_replaying_head`: a new parser is reading a head that has already been handled.
        self._upgrades = self._is_replaying_head = False
        # Bytes since the last progress of the parser, and whether the current data makes progress.
        self._idle_bytes, self._has_progressed = 0, False

    def _create_parser(self) -> HttpRequestParser:
        parser = HttpRequestParser(self)
        # Ignore data after a request with "connection: close", but still send the reply to that request.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    @property
    def is_busy(self) -> bool:
        """Whether a request has not been answered yet."""
        cycle = self._cycle
        return cycle is not None and not (cycle.is_complete or cycle.is_disconnected)

    # Called by the transport.

    def connection_made(self, transport: Any) -> None:
        """Prepare for the first request, or reject the connection if there are too many."""
        self.transport = transport
        # Report even a single unread byte, because a reply stays in memory until all of it has been written.
        transport.set_write_buffer_limits(0)
        self._scope = _base_scope(transport)
        if not self.connections.add(self):
            self._reject(503)
            if not self.connections.add_rejected(self):  # other connections need its descriptor
                transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio passes it)
        """Cancel the connection's request, and release its resources."""
        if self._cycle is not None:
            self._cycle.disconnect()
        self.resume_writing()
        # Break reference cycles, so that the connection is freed without the garbage collector.
        self._cycle = None
        del self._parser
        self.connections.remove(self)

    def data_received(self, data: bytes) -> None:
        """Parse data, unless no more data is expected."""
        if self._phase is Phase.NOTHING:
            return
        if self._has_progressed:
            self._idle_bytes, self._has_progressed = 0, False
        self._idle_bytes += len(data)
        try:
            while data:
                data = self._parse(data)
        except HttpParserError:
            self._reject(400)
        else:
            if self._idle_bytes > self._limits.head and not self._has_progressed:
                self._reject(431 if self._phase is Phase.HEAD else 400)

    def eof_received(self) -> None:
        """Cancel the request, because the client sends no more. The transport then closes the connection."""
        if self._cycle is not None:
            self._cycle.disconnect()

    def pause_writing(self) -> None:
        """Make the request wait, because the client has not read all data."""
        self.drained = asyncio.Event()
        self.connections.backlogs.hold(self.transport, self.connections.now)

    def resume_writing(self) -> None:
        """Let the request continue, because the client has read all data."""
        self.connections.backlogs.release(self.transport)
        if self.drained is not None:
            self.drained.set()
            self.drained = None

    # Called by the parser.

    def on_message_begin(self) -> None:
        """Prepare for a new head."""
        self._target, self._fields = b"", []
        self._phase = Phase.HEAD
        self._since = self.connections.now

    def on_url(self, piece: bytes) -> None:
        """Add a part of the request target."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field. Trailers arrive after the scope was created and are ignored."""
        name = name.lower()
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise HttpParserError  # the application would get a body that is not decoded
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Start the request, or reject it if its head is invalid or the last reply has not been read."""
        self._phase, self._has_progressed = Phase.BODY, True
        if self._is_replaying_head:
            self._is_replaying_head = False
            return
        limits, parser = self._limits, self._parser
        version = parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._reject(505)
            raise HttpParserError
        if len(self._fields) > limits.fields or (
            self._idle_bytes > limits.head and self._head_size() > limits.head
        ):
            self._reject(431)
            raise HttpParserError
        if self.is_busy or self.drained is not None:
            self._reject(503)
            raise HttpParserError
        self._upgrades = parser.should_upgrade()
        self._cycle = cycle = self._create_cycle(version)
        self._task = self.loop.create_task(cycle.run(self._application))

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        self._has_progressed = True
        cycle = self._cycle
        if cycle is not None and not cycle.is_complete:
            cycle.feed(body)
            if len(cycle.body) > self._limits.unread_body and self._is_reading:
                self._is_reading = False
                self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """Mark the body as complete."""
        self._has_progressed = True
        if self._upgrades:  # the parser treats the body as data of the other protocol
            return
        self._phase = Phase.NEXT
        if self._cycle is not None:
            self._cycle.end_body()

    # Called by request cycles.

    def resume_reading(self) -> None:
        """Resume reading, because the application is waiting for the client."""
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()

    def end_cycle(self, *, keep_alive: bool) -> None:
        """After a response has been sent, prepare for the next request or for the end of the connection."""
        if self.transport.is_closing():
            return
        self.resume_reading()
        if not keep_alive:
            self._discard_input()
            self.transport.write_eof()
        elif self._phase is not Phase.HEAD:
            self._since = self.connections.now

    # Called by `Connections`.

    def check(self, now: float) -> None:
        """Close the connection if it has timed out at the time *now*."""
        if self.drained is not None or self.transport.is_closing():
            return
        if now - self._since <= self.connections.timeouts[self._phase]:
            return
        if self._phase is Phase.HEAD:
            self._reject(408)
        else:
            self.end_if_idle()

    def end_after_reply(self) -> None:
        """Announce in the current reply that it is the last one, unless its head has already been sent."""
        if self._cycle is not None and not self._cycle.is_started:
            self._cycle.keep_alive = False

    def end_if_idle(self) -> None:
        """Close the connection unless a request is being answered."""
        if not self.is_busy and not self.transport.is_closing():
            self.transport.close()

    def _parse(self, data: bytes) -> bytes:
        """Parse data, but stop after a head that asks for another protocol. Return the remaining data."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:  # Java's client asks for HTTP/2
            remaining = data[upgrade.args[0] :]
        else:
            return b""
        # Continue with HTTP/1.1, and a new parser that gets only the framing of this head.
        self._upgrades, self._is_replaying_head = False, True
        self._parser = self._create_parser()
        fields = [] if self._cycle is None else self._cycle.scope["headers"]
        framing = b"".join(b"%b: %b\r\n" % field for field in fields if field[0] in _FRAMING)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
        self._idle_bytes, self._has_progressed = len(remaining), False
        return remaining

    def _head_size(self) -> int:
        """Return the approximate size of the head, in bytes."""
        return len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._fields)

    def _create_cycle(self, version: str) -> "RequestCycle":
        """Return a cycle for the request whose head has arrived."""
        scope = {**self._scope, **_parse_target(self._target)}
        scope["http_version"], scope["method"] = version, self._parser.get_method().decode("ascii")
        scope["headers"], self._fields = self._fields, []
        is_current = version == "1.1"
        keep_alive = is_current and not self.connections.draining and self._parser.should_keep_alive()
        awaits_continue = is_current and (b"expect", b"100-continue") in scope["headers"]
        return RequestCycle(self, scope, keep_alive=keep_alive, awaits_continue=awaits_continue)

    def _reject(self, status: int) -> None:
        """Discard further input and send an error response, unless an earlier request is being answered."""
        if self._phase is Phase.NOTHING:
            return
        self._discard_input()
        cycle = self._cycle
        if cycle is not None and self.is_busy:
            if cycle.is_started or cycle.is_received:
                cycle.keep_alive = False
                return
            cycle.disconnect()  # the rejected request is incomplete
        self.transport.write(error_response(status, self.connections.date))
        self.transport.write_eof()

    def _discard_input(self) -> None:
        """
        Start discarding all input.

        Closing the connection while the client is still sending would lose the reply.
        """
        self._phase = Phase.NOTHING
        self._since = self.connections.now


class RequestCycle:
    """
    One request on a connection, and its response.

    Args:
        connection:
            The connection.

        scope:
            The ASGI scope of the request.

        keep_alive:
            Whether the connection stays open after the response.

        awaits_continue:
            Whether the client waits for 100 (Continue) before it sends the body.

    Attributes:
        body:
            The part of the body that has arrived but has not been read yet.

        is_received:
            Whether all of the body has arrived.

        is_started:
            Whether the head of the response has been sent, or is about to be.

        is_complete:
            Whether the response has been sent.

        is_disconnected:
            Whether the client has disconnected.
    """

    # Defaults on the class, because most requests never change them.
    is_received = is_started = is_complete = is_disconnected = False
    _is_read = _is_chunked = False
    _pending_head = b""

    def __init__(
        self, connection: HttpConnection, scope: Scope, *, keep_alive: bool, awaits_continue: bool
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.body = bytearray()
        self._waiter: asyncio.Future[None] | None = None  # twice as fast as an asyncio.Event
        self._connection = connection
        self._awaits_continue = awaits_continue

    async def run(self, application: ASGIApplication) -> None:
        """Run the application, which answers the request."""
        try:
            await application(self.scope, self.receive, self.send)
        except BaseException as error:  # noqa: BLE001 (other requests must not fail)
            say(f"a request was not answered:\n{format_exception(error).rstrip()}")
        if self.is_complete or self.is_disconnected:
            return
        if self.is_started:
            self._connection.transport.close()
        else:
            length = (b"content-length", b"%d" % len(_FAILED))
            self._start_response(500, ((b"content-type", b"text/plain; charset=utf-8"), length, CLOSE))
            self._write(_FAILED, more=False)

    # Called by the connection.

    def feed(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self.body += piece
        self._wake()

    def end_body(self) -> None:
        """Mark the body as complete."""
        self.is_received = True
        self._wake()

    def disconnect(self) -> None:
        """Mark the client as disconnected."""
        self.is_disconnected = True
        self._wake()

    def _wake(self) -> None:
        """Wake the application if it is waiting in `receive`."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Called by the application.

    async def receive(self) -> Event:
        """
        Return the next piece of the body, or a disconnect event if the response or the connection is over.
        """
        if self._awaits_continue and not self.is_disconnected:
            self._awaits_continue = False
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._has_unread_body or self.is_disconnected or self.is_complete):
            self._connection.resume_reading()
            self._waiter = self._connection.loop.create_future()
            await self._waiter
        if self.is_disconnected or self.is_complete:
            return {"type": "http.disconnect"}
        self._is_read = self.is_received
        body = bytes(self.body)
        self.body.clear()
        return {"type": "http.request", "body": body, "more_body": not self.is_received}

    @property
    def _has_unread_body(self) -> bool:
        """Whether a part of the body, or its end, has not been read yet."""
        return bool(self.body) or (self.is_received and not self._is_read)

    async def send(self, message: Event) -> None:
        """
        Write a part of the response.

        Header names must be in lower case. A content-length, if given, must match the body.

        Raises:
            RuntimeError: If a header contains a line break, or the response is already complete.
        """
        drained = self._connection.drained
        if drained is not None:
            await drained.wait()
        if self.is_disconnected:
            return
        if not self.is_started:
            self._start_response(message["status"], message["headers"])
        elif self.is_complete:
            msg = "the response has already been sent"
            raise RuntimeError(msg)
        else:
            self._write(message.get("body", b""), more=message.get("more_body", False))

    def _start_response(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Store the head, which is sent with the first part of the body."""
        has_close = CLOSE in headers
        # If the body is incomplete, its rest must not be parsed as another request.
        self.keep_alive = self.keep_alive and self.is_received and not has_close
        if not (self.keep_alive or has_close):
            headers = (*headers, CLOSE)
        lines = [_STATUS_LINES[status], self._connection.connections.date]
        has_length = False
        for name, value in headers:
            if b"\n" in value or b"\r" in value:
                msg = "a header contains a line break"
                raise RuntimeError(msg)
            lines.append(b"%b: %b\r\n" % (name, value))
            has_length = has_length or name == b"content-length"
        if not has_length and status not in _EMPTY and self.scope["method"] != "HEAD":
            # HTTP/1.0 has no chunks, so the end of the connection marks the end of the body.
            self._is_chunked = self.scope["http_version"] == "1.1"
            if self._is_chunked:
                lines.append(_CHUNKED)
        self._pending_head = b"".join(lines) + b"\r\n"
        self.is_started, self._awaits_continue = True, False

    def _write(self, body: bytes, *, more: bool) -> None:
        """Write a part of the body, preceded by the head if the head has not been sent yet."""
        if self._is_chunked:
            body = _chunk(body) if more else _chunk(body) + b"0\r\n\r\n"
        elif self.scope["method"] == "HEAD":
            body = b""
        head, self._pending_head = self._pending_head, b""
        self._connection.transport.write(head + body)
        if not more:
            self.is_complete = True
            self.body.clear()  # no longer needed, but the connection may stay open
            self._wake()
            self._connection.end_cycle(keep_alive=self.keep_alive)


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""


def _base_scope(transport: Any) -> Scope:
    """Return the part of the ASGI scope that all requests on a connection share."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "scheme": "http",
        "root_path": "",
        "client": _address(transport.get_extra_info("peername")),
        "server": _address(transport.get_extra_info("sockname")),
    }


@lru_cache(maxsize=16)
def _parse_target(url: bytes) -> Scope:
    """
    Return the decoded path, the raw path and the query of a request, as ASGI defines them.

    Raises:
        HttpParserInvalidURLError: If the target is not a path. An absolute URL, as sent to proxies, would
            have to override the ``host`` header.

    See Also:
        https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2
    """
    if not url.startswith(b"/"):
        raise HttpParserInvalidURLError
    parts = parse_url(url)
    path = unquote(parts.path.decode("ascii"))
    return {"path": path, "raw_path": parts.path, "query_string": parts.query or b""}


def _address(address: Any) -> tuple[str, int] | None:
    """Return an address in the form that ASGI requires, or None for a Unix socket."""
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) and address else None
