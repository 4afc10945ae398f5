"""One connection of a client: HTTP/1.1, with bounds on what the client may send, and how slowly."""

import asyncio
from collections import deque
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from promptkit.transports.http.connection_limits import Connections, Phase, refusal
from promptkit.transports.http.request_cycle import CONTINUE, RequestCycle, scope_of, target
from promptkit.transports.http.settings import ASGIApplication
from promptkit.transports.http.sockets import CAN_SEE_RESET, has_input, is_reset

#: The fields that say where a body ends.
_FRAMING: Final = (b"content-length", b"transfer-encoding")


class HttpConnection(asyncio.Protocol):
    """
    One connection of a client. Its requests are answered one after the other, as calls of an application.

    All deadlines are kept by one sweep a second over all connections, not by a timer for each request.
    """

    transport: Any  # asyncio.Transport has other bases than uvloop's

    def __init__(
        self, application: ASGIApplication, connections: Connections, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.loop = loop
        self.drained: asyncio.Event | None = None  # set once the client has read; None if nothing waits
        self._application = application
        self._connections = connections
        self._limits = connections.limits
        self._parser = self._new_parser()
        self._phase = Phase.FIRST
        self._since = connections.now  # when what is waited for began to be
        self._target, self._fields = b"", list[tuple[bytes, bytes]]()
        self._awaits_continue = False
        self._latest: RequestCycle | None = None  # of which the parser has read a part at least
        self._running: RequestCycle | None = None
        self._waiting: deque[RequestCycle] = deque()
        self._behind = 0  # how many bytes those have together
        self._is_reading = True
        # `_is_fed_again`: whether the parser is given a head that was served already.
        self._upgrades = self._is_fed_again = self._is_at_end = False
        # The bytes since the last that led to anything, and whether those that are parsed now do.
        self._unused, self._is_used = 0, False

    def _new_parser(self) -> HttpRequestParser:
        parser = HttpRequestParser(self)
        # What follows a request that is said to be the last is ignored, and its reply is sent all the same.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    @property
    def date(self) -> bytes:
        """The line of a head that says what time it is."""
        return self._connections.date

    @property
    def is_busy(self) -> bool:
        """Whether a request is still to be answered."""
        cycle = self._latest
        return cycle is not None and not (cycle.is_complete or cycle.is_gone)

    @property
    def is_at_last(self) -> bool:
        """Whether one request is still to be answered, and no other waits behind it."""
        return self.is_busy and not self._waiting

    # What the transport calls.

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request, unless there are too many connections."""
        self.transport = transport
        # A reply is kept until all of it is written.
        transport.set_write_buffer_limits(self._limits.unread_body, 0)
        self._scope = scope_of(transport)
        self._connections.add(self)
        if self._connections.are_too_many:
            self._refuse(503)
            if not self._connections.linger(self):  # others need its descriptor
                transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio gives it)
        """Forget the connection; its work is cancelled."""
        for cycle in (self._running, self._latest):
            if cycle is not None:
                cycle.leave()
        self._waiting.clear()
        self.resume_writing()
        # These lead back to this connection, and nothing of it waits for the garbage collector.
        self._running = self._latest = None
        del self._parser
        self._connections.remove(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless nothing more is wanted."""
        if self._phase is Phase.NOTHING:
            self._since = min(self._connections.now, self._read_until)
            return
        if self._is_used:
            self._unused, self._is_used = 0, False
        self._unused += len(data)
        try:
            while data:
                data = self._parse(data)
        except HttpParserError:
            self._refuse(400)
        else:
            if self._unused > self._limits.head and not self._is_used:
                self._refuse(431 if self._phase is Phase.HEAD else 400)

    def eof_received(self) -> bool:
        """Go on to answer a client that sends no more, unless it has left; return whether to."""
        self._drop_half()
        running = self._running
        last = self._waiting[-1] if self._waiting else running
        if last is None or not last.is_whole or not CAN_SEE_RESET:
            return False
        if running is not None:
            if running.is_begun or running.scope["http_version"] == "1.0":
                return False  # nothing can be written that shows whether it still reads
            self.transport.write(CONTINUE)  # one that has left refuses it
        self._is_at_end = True
        self._read_on()
        last.keep_alive = False
        return True

    def pause_writing(self) -> None:
        """Have cycles wait: the client does not read what it is sent."""
        self.drained = asyncio.Event()
        self._connections.backlogs.hold(self.transport, self._connections.now)

    def resume_writing(self) -> None:
        """Note that the client has read, and begin the next request."""
        self._connections.backlogs.release(self.transport)
        if self.drained is not None:
            self.drained.set()
            self.drained = None
            self._start_next()

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin to measure a head."""
        self._target, self._fields = b"", []
        self._awaits_continue = False
        self._phase = Phase.HEAD
        self._since = self._connections.now

    def on_url(self, piece: bytes) -> None:
        """Keep a part of the target."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field. Trailers come after the scope was made, and are in none."""
        name = name.lower()
        if name == b"expect":
            self._awaits_continue = value.lower() == b"100-continue"
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise HttpParserError  # the body would be passed on as it was encoded
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Serve the request, unless its head is too large, or too many wait already."""
        self._phase, self._is_used = Phase.BODY, True
        if self._is_fed_again:
            self._is_fed_again = False
            return
        limits, parser = self._limits, self._parser
        version = parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._refuse(505)
            raise HttpParserError
        if len(self._fields) > limits.fields or (self._unused > limits.head and self._size() > limits.head):
            self._refuse(431)
            raise HttpParserError
        if self._waiting and (len(self._waiting) >= limits.waiting or self._behind > limits.behind):
            self._refuse(503)
            raise HttpParserError
        self._upgrades = parser.should_upgrade()
        cycle = self._latest = self._cycle(version)
        if self._running is None and self.drained is None:
            self._start(cycle)
        else:
            self._waiting.append(cycle)
            self._behind += cycle.size

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._is_used = True
        cycle = self._latest
        if cycle is not None and not cycle.is_complete:
            cycle.feed(body)
            if cycle is not self._running:
                self._behind += len(body)
                if self._behind > self._limits.behind:
                    self._refuse(503)
                    raise HttpParserError
            elif len(cycle.body) > self._limits.unread_body and self._is_reading:
                self._is_reading = False
                self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """Note the end of the body."""
        self._is_used = True
        if self._upgrades:  # the parser takes the body for the other protocol
            return
        self._phase = Phase.NEXT
        if self._latest is not None:
            self._latest.end_body()

    # What cycles call.

    def resume_reading(self) -> None:
        """Read again, as the application waits for the client."""
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()

    def end_cycle(self, cycle: RequestCycle) -> None:
        """Begin the next request, or wait for it, now that a response is sent."""
        self._running = None
        if self.transport.is_closing():
            return
        if not cycle.keep_alive:
            self._end(cycle)
            return
        if self._waiting:
            self._start_next()
            return
        self.resume_reading()
        if self._phase is not Phase.HEAD:
            self._since = self._connections.now

    # What `Connections` calls.

    def check(self, now: float) -> None:
        """End the connection if it has taken too long at the time *now*, or its client has left."""
        if self._is_at_end and is_reset(self.transport):
            self.transport.abort()
            return
        if self._connections.backlogs.check(self.transport, now) or self.transport.is_closing():
            return
        if now - self._since <= self._connections.patience[self._phase]:
            return
        if self._phase is Phase.HEAD:
            if self._is_reading:
                self._refuse(408)
        elif self._phase is not Phase.NOTHING:
            self.end_if_idle()
        elif not self.is_busy:
            self.transport.close()

    def end_after_reply(self) -> None:
        """Have the reply that has not begun yet say that it is the last one."""
        cycle = self._latest
        if cycle is not None and not cycle.is_begun and not self._waiting:
            cycle.keep_alive = False

    def end_if_idle(self) -> None:
        """Close unless a request is being answered, or has just arrived."""
        if not self.is_busy and not self.transport.is_closing() and not has_input(self.transport):
            self.transport.close()

    def _parse(self, data: bytes) -> bytes:
        """Parse what came, up to the end of a head that asks for another protocol; return the rest."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:  # as Java's client asks for HTTP/2
            rest = data[upgrade.args[0] :]
        else:
            return b""
        # HTTP/1.1 goes on, with a parser that has seen of this head only where the body ends.
        self._upgrades, self._is_fed_again = False, True
        self._parser = self._new_parser()
        fields = [] if self._latest is None else self._latest.scope["headers"]
        framing = b"".join(b"%b: %b\r\n" % field for field in fields if field[0] in _FRAMING)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
        self._unused, self._is_used = len(rest), False
        return rest

    def _size(self) -> int:
        """How many bytes a head has, about."""
        return len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._fields)

    def _cycle(self, version: str) -> RequestCycle:
        """The cycle of a request whose head has arrived."""
        scope = {**self._scope, **target(self._target)}
        scope["http_version"], scope["method"] = version, self._parser.get_method().decode("ascii")
        scope["headers"], self._fields = self._fields, []
        is_current = version == "1.1"
        lives = is_current and not self._connections.draining and self._parser.should_keep_alive()
        return RequestCycle(
            self, scope, keep_alive=lives, awaits_continue=self._awaits_continue and is_current
        )

    def _start(self, cycle: RequestCycle) -> None:
        self._running = cycle
        self._task = self.loop.create_task(cycle.run(self._application))

    def _start_next(self) -> None:
        """Begin what waits, unless that reply would be kept, too."""
        if self._waiting and self._running is None and self.drained is None:
            cycle = self._waiting.popleft()
            self._behind -= cycle.size
            self._start(cycle)

    def _refuse(self, status: int) -> None:
        """Read nothing more, and say why, once, unless an earlier request is still to be answered."""
        if self._phase is Phase.NOTHING:
            return
        self._read_on()
        self._drop_half()
        cycle = self._latest
        if cycle is not None and self.is_busy:
            if self._waiting or cycle.is_begun or cycle.is_whole:
                cycle.keep_alive = False
                return
            cycle.leave()  # the request that is refused is half there
        self.transport.write(refusal(status, self.date))
        self.transport.write_eof()

    def _drop_half(self) -> None:
        """Forget a request behind another one that is half there."""
        if self._waiting and not self._waiting[-1].is_whole:
            self._behind -= self._waiting.pop().size
            self._latest = self._waiting[-1] if self._waiting else self._running

    def _end(self, cycle: RequestCycle) -> None:
        """Close after the last reply; as long as the client sends what nobody needs, the sending side."""
        self._waiting.clear()  # what nobody answers any more keeps no connection open
        self._latest = cycle
        if self._is_at_end or (cycle.is_whole and not has_input(self.transport)):
            self.transport.close()
            return
        self._read_on()
        self.resume_reading()
        self.transport.write_eof()

    def _read_on(self) -> None:
        """From now on, take nothing of what comes."""
        self._phase = Phase.NOTHING
        self._since = self._connections.now
        self._read_until = self._since + self._limits.read_on_at_most_s
