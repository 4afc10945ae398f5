"""One connection of a client: HTTP/1.1, with bounds on what the client may send, and how slowly."""

import asyncio
from collections import deque
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from promptkit.transports.http.asgi_types import ASGIApplication, Scope
from promptkit.transports.http.connections import Connections, refusal
from promptkit.transports.http.cycles import CONTINUE, Cycle
from promptkit.transports.http.heads import Head, scope_of
from promptkit.transports.http.sockets import can_see_reset, end_writing, has_input, is_reset
from promptkit.transports.http.upgrades import parser_after

__all__ = ["Connection"]

#: After its last reply, how long a client may send nothing, and how long it may go on to send, in seconds: to
#: close while it sends would take the reply from it.
_READ_ON_S: Final = 2.0
_READ_ON_AT_MOST_S: Final = 30.0

#: How much of a body may wait for the application to read it, and how much that is written for the client.
_MOST_UNREAD: Final = 64 * 1024

#: How much the requests behind another one may have together, and how many they may be: a single read may
#: hold thousands. More is read and not kept: else nobody would see that the client has left.
_MOST_BEHIND: Final = 64 * 1024
_MOST_WAITING: Final = 64


class Connection(asyncio.Protocol):
    """
    One connection of a client. Its requests are answered one after the other, as calls of an application.

    All deadlines are kept by one sweep a second over all connections, not by a timer for each request.

    Args:
        application:
            What answers the requests.

        connections:
            What all connections of the process share.

        loop:
            The event loop.

    Attributes:
        loop:
            The event loop.

        transport:
            Where bytes are written.

        drained:
            Set once the client has read enough of what it was sent; None if nothing has to wait for that.
    """

    transport: Any  # asyncio.Transport has other bases than uvloop's

    def __init__(
        self, application: ASGIApplication, connections: Connections, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.loop = loop
        self.drained: asyncio.Event | None = None
        self._application = application
        self._connections = connections
        self._limits = connections.limits
        self._head = Head()
        self.on_url, self.on_header = self._head.add_to_target, self._head.add_field  # for the parser
        self._parser = HttpRequestParser(self)
        # What follows a request that is said to be the last is ignored, and its reply is sent all the same.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._latest: Cycle | None = None  # of which the parser has read a part at least
        self._running: Cycle | None = None
        self._waiting: deque[Cycle] = deque()
        self._behind = 0  # how many bytes those have together
        self._is_reading = True
        # Since when what is waited for has been waited for: the first byte, the rest of a head, another head.
        self._since = connections.now
        self._in_head = self._is_refused = self._upgrades = self._is_at_end = False
        # How many bytes came since the last that led to anything.
        self._unused, self._is_used = 0, False

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
    def has_waiting(self) -> bool:
        """Whether requests wait for the reply to another one."""
        return bool(self._waiting)

    # What the transport calls.

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request, unless there are too many connections."""
        self.transport = transport
        transport.set_write_buffer_limits(_MOST_UNREAD, 0)  # a reply is kept until all of it is written
        self._scope = scope_of(transport)
        self._connections.add(self)
        if len(self._connections) > self._limits.connections:  # it may not even keep its descriptor
            transport.write(refusal(503, self.date))
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
        """Parse what came. Nothing more is read after a refusal."""
        if self._is_refused:
            self._since = min(self._connections.now, self._read_until)
            return
        if self._is_used:
            self._unused, self._is_used = 0, False
        self._unused += len(data)
        try:
            while data:
                data = self._parse(data)
        except HttpParserError:
            if not self._is_refused:
                self._refuse(400)
        else:
            if self._unused > self._limits.head and not self._is_used:
                self._refuse(431 if self._in_head else 400)

    def eof_received(self) -> bool:
        """Go on to answer a client that sends no more, unless it has left; return whether to."""
        self._drop_half()
        running = self._running
        last = self._waiting[-1] if self._waiting else running
        if last is None or not last.is_whole or not can_see_reset():
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
        self._head.begin()
        self._in_head = True
        self._since = self._connections.now

    def on_headers_complete(self) -> None:
        """Serve the request, unless its head is too large, or too many wait already."""
        self._in_head, self._is_used = False, True
        limits, head = self._limits, self._head
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            self._refuse(505)
            raise HttpParserError
        if len(head.fields) > limits.fields or (self._unused > limits.head and head.size > limits.head):
            self._refuse(431)
            raise HttpParserError
        if self._waiting and (len(self._waiting) >= _MOST_WAITING or self._behind > _MOST_BEHIND):
            self._refuse(503)
            raise HttpParserError
        self._upgrades = self._parser.should_upgrade()
        cycle = self._latest = self._cycle()
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
                if self._behind > _MOST_BEHIND:
                    self._refuse(503)
                    raise HttpParserError
            elif len(cycle.body) > _MOST_UNREAD and self._is_reading:
                self._is_reading = False
                self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """Note the end of the body."""
        self._is_used = True
        if self._latest is not None and not self._upgrades:
            self._latest.end_body()

    # What cycles call.

    def resume_reading(self) -> None:
        """Read again, as the application waits for the client."""
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()

    def end_cycle(self, cycle: Cycle) -> None:
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
        if not self._in_head:
            self._since = self._connections.now

    # What `Connections` calls.

    def check(self, now: float) -> None:
        """End the connection if it has taken too long at the time *now*, or its client has left."""
        if self._is_at_end and is_reset(self.transport):
            self.transport.abort()
            return
        if self._connections.backlogs.check(self.transport, now) or self.transport.is_closing():
            return
        waited, limits = now - self._since, self._limits
        if self._is_refused and not self.is_busy:
            if waited > _READ_ON_S:
                self.transport.close()
        elif self._in_head:
            if waited > limits.head_s and self._is_reading:
                self._refuse(408)
        elif not self.is_busy and waited > (limits.head_s if self._latest is None else limits.keep_alive):
            self.end_if_idle()

    def end_after_reply(self) -> None:
        """Have the reply that has not begun yet say that it is the last one."""
        cycle = self._latest
        if cycle is not None and not cycle.is_begun and not self._waiting:
            cycle.keep_alive = False

    def end_if_idle(self) -> None:
        """Close unless a request is being answered, or has just arrived."""
        if not self.is_busy and not self.transport.is_closing() and not has_input(self.transport):
            self.transport.close()

    def _cycle(self) -> Cycle:
        """The cycle of a request whose head has arrived."""
        parser, head = self._parser, self._head
        version = parser.get_http_version()
        scope: Scope = {
            **self._scope,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            **head.scope(),
        }
        is_current = version == "1.1"
        lives = is_current and not self._connections.draining and parser.should_keep_alive()
        return Cycle(self, scope, keep_alive=lives, awaits_continue=head.awaits_continue and is_current)

    def _end(self, cycle: Cycle) -> None:
        """Close after the last reply; as long as the client sends what nobody needs, the sending side."""
        self._waiting.clear()  # what nobody answers any more keeps no connection open
        self._latest = cycle
        if self._is_at_end or (cycle.is_whole and not has_input(self.transport)):
            self.transport.close()
            return
        self._read_on()
        self.resume_reading()
        end_writing(self.transport)

    def _read_on(self) -> None:
        """From now on, take nothing of what comes."""
        self._is_refused = True
        self._since = self._connections.now
        self._read_until = self._since + _READ_ON_AT_MOST_S

    def _drop_half(self) -> None:
        """Forget a request behind another one that is half there."""
        if self._waiting and not self._waiting[-1].is_whole:
            self._behind -= self._waiting.pop().size
            self._latest = self._waiting[-1] if self._waiting else self._running

    def _start_next(self) -> None:
        """Begin what waits, unless that reply would be kept, too."""
        if self._waiting and self._running is None and self.drained is None:
            cycle = self._waiting.popleft()
            self._behind -= cycle.size
            self._start(cycle)

    def _start(self, cycle: Cycle) -> None:
        self._running = cycle
        self._task = self.loop.create_task(cycle.run(self._application))

    def _parse(self, data: bytes) -> bytes:
        """Parse what came, up to the end of a head that asks for another protocol; return the rest."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:  # as Java's client asks for HTTP/2
            rest = data[upgrade.args[0] :]
        else:
            return b""
        # The parser takes the rest for the other protocol. One that has not seen the wish goes on.
        self._upgrades = False
        if self._latest is not None:
            self._parser = parser_after(self._latest.scope["headers"], self)
        self._unused, self._is_used = len(rest), False
        return rest

    def _refuse(self, status: int) -> None:
        """Read nothing more, and say why unless an earlier request is still to be answered."""
        self._read_on()
        self._drop_half()
        cycle = self._latest
        if cycle is not None and self.is_busy:
            if self._waiting or cycle.is_begun or cycle.is_whole:
                cycle.keep_alive = False
                return
            cycle.leave()  # the request that is refused is half there
        self.transport.write(refusal(status, self.date))
        end_writing(self.transport)
