"""An HTTP/1.1 connection, with limits on the size and the slowness of requests."""

import asyncio
from collections import deque
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from promptkit.transports.http.connection_limits import Connections, Phase, error_response
from promptkit.transports.http.request_cycle import CONTINUE, RequestCycle, base_scope, parse_target
from promptkit.transports.http.settings import ASGIApplication
from promptkit.transports.http.sockets import CAN_SEE_RESET, has_input, is_reset

#: Header fields that delimit the body.
_FRAMING: Final = (b"content-length", b"transfer-encoding")


class HttpConnection(asyncio.Protocol):
    """
    One connection of a client. Its requests are answered in order, each by a call of an application.

    A sweep over all connections each second enforces their deadlines, without a timer for each request.
    """

    transport: Any  # uvloop's transports do not inherit from asyncio.Transport

    def __init__(
        self, application: ASGIApplication, connections: Connections, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.loop = loop
        self.drained: asyncio.Event | None = None  # set once the client has read; None if nothing is unread
        self._application = application
        self._connections = connections
        self._limits = connections.limits
        self._parser = self._new_parser()
        self._phase = Phase.FIRST
        self._since = connections.now  # start of the current wait
        self._target, self._fields = b"", list[tuple[bytes, bytes]]()
        self._awaits_continue = False
        self._last_cycle: RequestCycle | None = None  # of the request that the parser has read last
        self._current: RequestCycle | None = None
        self._pipeline: deque[RequestCycle] = deque()
        self._pipeline_bytes = 0  # their total size
        self._is_reading = True
        # `_is_replaying_head`: a new parser is reading a head that was handled already.
        self._upgrades = self._is_replaying_head = self._has_eof = False
        # Bytes since the last progress of the parser, and whether the current data makes progress.
        self._idle_bytes, self._has_progressed = 0, False

    def _new_parser(self) -> HttpRequestParser:
        parser = HttpRequestParser(self)
        # Ignore data after a request with "connection: close", and still send its reply.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    @property
    def date(self) -> bytes:
        """The ``date`` header line."""
        return self._connections.date

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet."""
        cycle = self._last_cycle
        return cycle is not None and not (cycle.is_complete or cycle.is_disconnected)

    @property
    def is_on_last_request(self) -> bool:
        """Whether exactly one request is not answered yet."""
        return self.is_busy and not self._pipeline

    # Called by the transport.

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request, unless there are too many connections."""
        self.transport = transport
        # A reply stays in memory until all of it is written.
        transport.set_write_buffer_limits(self._limits.unread_body, 0)
        self._scope = base_scope(transport)
        self._connections.add(self)
        if self._connections.are_too_many:
            self._refuse(503)
            if not self._connections.linger(self):  # other connections need its descriptor
                transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio passes it)
        """Cancel the work of the connection and release it."""
        for cycle in (self._current, self._last_cycle):
            if cycle is not None:
                cycle.disconnect()
        self._pipeline.clear()
        self.resume_writing()
        # Break reference cycles, so that the connection is freed without the garbage collector.
        self._current = self._last_cycle = None
        del self._parser
        self._connections.remove(self)

    def data_received(self, data: bytes) -> None:
        """Parse data, unless no more is expected."""
        if self._phase is Phase.NOTHING:
            self._since = min(self._connections.now, self._discard_until)
            return
        if self._has_progressed:
            self._idle_bytes, self._has_progressed = 0, False
        self._idle_bytes += len(data)
        try:
            while data:
                data = self._parse(data)
        except HttpParserError:
            self._refuse(400)
        else:
            if self._idle_bytes > self._limits.head and not self._has_progressed:
                self._refuse(431 if self._phase is Phase.HEAD else 400)

    def eof_received(self) -> bool:
        """
        Return whether to keep the connection open after the client's end of data, to answer its last request.
        """
        self._drop_incomplete()
        current = self._current
        last = self._pipeline[-1] if self._pipeline else current
        if last is None or not last.is_received or not CAN_SEE_RESET:
            return False
        if current is not None:
            if current.is_started or current.scope["http_version"] == "1.0":
                return False  # no write can show whether it still reads
            self.transport.write(CONTINUE)  # a client that is gone resets the connection
        self._has_eof = True
        self._discard_input()
        last.keep_alive = False
        return True

    def pause_writing(self) -> None:
        """Make cycles wait, because the client does not read."""
        self.drained = asyncio.Event()
        self._connections.backlogs.hold(self.transport, self._connections.now)

    def resume_writing(self) -> None:
        """Continue cycles and start the next request, because the client has read."""
        self._connections.backlogs.release(self.transport)
        if self.drained is not None:
            self.drained.set()
            self.drained = None
            self._start_next()

    # Called by the parser.

    def on_message_begin(self) -> None:
        """Start a new head."""
        self._target, self._fields = b"", []
        self._awaits_continue = False
        self._phase = Phase.HEAD
        self._since = self._connections.now

    def on_url(self, piece: bytes) -> None:
        """Add a part of the target."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field. Trailers arrive after the scope was created and are ignored."""
        name = name.lower()
        if name == b"expect":
            self._awaits_continue = value.lower() == b"100-continue"
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise HttpParserError  # the body would be passed on encoded
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Start or queue the request, unless its head is too large or too many requests are queued."""
        self._phase, self._has_progressed = Phase.BODY, True
        if self._is_replaying_head:
            self._is_replaying_head = False
            return
        limits, parser = self._limits, self._parser
        version = parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._refuse(505)
            raise HttpParserError
        if len(self._fields) > limits.fields or (
            self._idle_bytes > limits.head and self._size() > limits.head
        ):
            self._refuse(431)
            raise HttpParserError
        if self._pipeline and (
            len(self._pipeline) >= limits.pipelined or self._pipeline_bytes > limits.pipelined_bytes
        ):
            self._refuse(503)
            raise HttpParserError
        self._upgrades = parser.should_upgrade()
        cycle = self._last_cycle = self._new_cycle(version)
        if self._current is None and self.drained is None:
            self._start(cycle)
        else:
            self._pipeline.append(cycle)
            self._pipeline_bytes += cycle.size

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        self._has_progressed = True
        cycle = self._last_cycle
        if cycle is not None and not cycle.is_complete:
            cycle.feed(body)
            if cycle is not self._current:
                self._pipeline_bytes += len(body)
                if self._pipeline_bytes > self._limits.pipelined_bytes:
                    self._refuse(503)
                    raise HttpParserError
            elif len(cycle.body) > self._limits.unread_body and self._is_reading:
                self._is_reading = False
                self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """Mark the body as complete."""
        self._has_progressed = True
        if self._upgrades:  # the parser treats the body as the other protocol
            return
        self._phase = Phase.NEXT
        if self._last_cycle is not None:
            self._last_cycle.end_body()

    # Called by request cycles.

    def resume_reading(self) -> None:
        """Resume reading, because the application waits for the client."""
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()

    def end_cycle(self, cycle: RequestCycle) -> None:
        """Start the next request, or wait for it, after a response has been sent."""
        self._current = None
        if self.transport.is_closing():
            return
        if not cycle.keep_alive:
            self._end(cycle)
            return
        if self._pipeline:
            self._start_next()
            return
        self.resume_reading()
        if self._phase is not Phase.HEAD:
            self._since = self._connections.now

    # Called by `Connections`.

    def check(self, now: float) -> None:
        """End the connection if it has timed out at the time *now*, or its client is gone."""
        if self._has_eof and is_reset(self.transport):
            self.transport.abort()
            return
        if self._connections.backlogs.check(self.transport, now) or self.transport.is_closing():
            return
        if now - self._since <= self._connections.timeouts[self._phase]:
            return
        if self._phase is Phase.HEAD:
            if self._is_reading:
                self._refuse(408)
        elif self._phase is not Phase.NOTHING:
            self.end_if_idle()
        elif not self.is_busy:
            self.transport.close()

    def end_after_reply(self) -> None:
        """Announce in the next reply that it is the last one, if its head was not sent yet."""
        cycle = self._last_cycle
        if cycle is not None and not cycle.is_started and not self._pipeline:
            cycle.keep_alive = False

    def end_if_idle(self) -> None:
        """Close unless a request is being answered or has just arrived."""
        if not self.is_busy and not self.transport.is_closing() and not has_input(self.transport):
            self.transport.close()

    def _parse(self, data: bytes) -> bytes:
        """Parse data up to the end of a head that asks for another protocol; return the remaining data."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:  # Java's client asks for HTTP/2
            remaining = data[upgrade.args[0] :]
        else:
            return b""
        # Continue with HTTP/1.1, and a new parser that gets only the framing of this head.
        self._upgrades, self._is_replaying_head = False, True
        self._parser = self._new_parser()
        fields = [] if self._last_cycle is None else self._last_cycle.scope["headers"]
        framing = b"".join(b"%b: %b\r\n" % field for field in fields if field[0] in _FRAMING)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
        self._idle_bytes, self._has_progressed = len(remaining), False
        return remaining

    def _size(self) -> int:
        """Return the approximate size of the head in bytes."""
        return len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._fields)

    def _new_cycle(self, version: str) -> RequestCycle:
        """Return the cycle of a request whose head has arrived."""
        scope = {**self._scope, **parse_target(self._target)}
        scope["http_version"], scope["method"] = version, self._parser.get_method().decode("ascii")
        scope["headers"], self._fields = self._fields, []
        is_current = version == "1.1"
        keep_alive = is_current and not self._connections.draining and self._parser.should_keep_alive()
        return RequestCycle(
            self, scope, keep_alive=keep_alive, awaits_continue=self._awaits_continue and is_current
        )

    def _start(self, cycle: RequestCycle) -> None:
        self._current = cycle
        self._task = self.loop.create_task(cycle.run(self._application))

    def _start_next(self) -> None:
        """Start the next queued request, unless its reply would have to be held for the client as well."""
        if self._pipeline and self._current is None and self.drained is None:
            cycle = self._pipeline.popleft()
            self._pipeline_bytes -= cycle.size
            self._start(cycle)

    def _refuse(self, status: int) -> None:
        """Stop reading and send an error response, unless an earlier request is not answered yet."""
        if self._phase is Phase.NOTHING:
            return
        self._discard_input()
        self._drop_incomplete()
        cycle = self._last_cycle
        if cycle is not None and self.is_busy:
            if self._pipeline or cycle.is_started or cycle.is_received:
                cycle.keep_alive = False
                return
            cycle.disconnect()  # the rejected request is incomplete
        self.transport.write(error_response(status, self.date))
        self.transport.write_eof()

    def _drop_incomplete(self) -> None:
        """Drop a queued request that is incomplete."""
        if self._pipeline and not self._pipeline[-1].is_received:
            self._pipeline_bytes -= self._pipeline.pop().size
            self._last_cycle = self._pipeline[-1] if self._pipeline else self._current

    def _end(self, cycle: RequestCycle) -> None:
        """Close after the last reply, or only the sending side while the client still sends."""
        self._pipeline.clear()  # unanswered requests must not keep the connection open
        self._last_cycle = cycle
        if self._has_eof or (cycle.is_received and not has_input(self.transport)):
            self.transport.close()
            return
        self._discard_input()
        self.resume_reading()
        self.transport.write_eof()

    def _discard_input(self) -> None:
        """From now on, discard all input."""
        self._phase = Phase.NOTHING
        self._since = self._connections.now
        self._discard_until = self._since + self._limits.read_on_at_most_s
