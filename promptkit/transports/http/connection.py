"""One connection of a client: HTTP/1.1, with bounds on what the client may send, and how slowly."""

import asyncio
import select
import sys
from collections import deque
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from promptkit.transports.http.asgi_types import ASGIApplication, Scope
from promptkit.transports.http.connections import Connections, refusal
from promptkit.transports.http.cycles import Cycle
from promptkit.transports.http.heads import address, target
from promptkit.transports.http.upgrades import parser_after

__all__ = ["Connection"]

#: How long a refused client may go on to send, in seconds: an early close would take the reply from it.
_READ_ON_S: Final = 2.0

#: How much of a body may wait for the application to read it, and how much requests behind another one may
#: have together before nothing more is read.
_MOST_UNREAD: Final = 64 * 1024

#: How many requests may wait behind another one: a single read may hold thousands.
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
        self._parser = HttpRequestParser(self)
        # What follows a request that is said to be the last is ignored, and its reply is sent all the same.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._latest: Cycle | None = None  # of which the parser has read a part at least
        self._running: Cycle | None = None
        self._waiting: deque[Cycle] = deque()
        self._is_reading = True
        # Since when what is waited for has been waited for: the first byte, the rest of a head, another head.
        self._since = connections.now
        self._in_head = self._is_refused = self._upgrades = self._awaits_continue = False
        # How many bytes came since the last that led to anything.
        self._unused = 0
        self._is_used = False
        self._backlog = 0
        self._stalled_since: float | None = None

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
        self._scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "client": address(transport.get_extra_info("peername")),
            "server": address(transport.get_extra_info("sockname")),
        }
        self._connections.add(self)
        if len(self._connections) > self._limits.connections:
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio gives it)
        """Forget the connection; its work is cancelled."""
        for cycle in (self._running, self._latest):
            if cycle is not None:
                cycle.leave()
        self.resume_writing()
        self._waiting.clear()
        del self._parser  # it leads back to this connection
        self._connections.remove(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came. Nothing more is read after a refusal."""
        if self._is_refused:
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

    def pause_writing(self) -> None:
        """Have cycles wait: the client does not read what it is sent."""
        self.drained = asyncio.Event()

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._stalled_since = None
        if self.drained is not None:
            self.drained.set()
            self.drained = None

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin to measure a head."""
        self._url, self._headers = b"", []
        self._awaits_continue = False
        self._in_head = True
        self._since = self._connections.now

    def on_url(self, url: bytes) -> None:
        """Keep a part of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field."""
        name = name.lower()
        if name == b"expect":
            self._awaits_continue = value.lower() == b"100-continue"
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise HttpParserError  # the body would be passed on as it was encoded
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Serve the request, unless its head is too large, or too many wait already."""
        self._in_head, self._is_used = False, True
        limits, headers = self._limits, self._headers
        if len(headers) > limits.fields or (self._unused > limits.head and self._head_size() > limits.head):
            self._refuse(431)
            raise HttpParserError
        if len(self._waiting) >= _MOST_WAITING:
            self._refuse(503)
            raise HttpParserError
        self._headers = []  # trailers are no headers
        self._upgrades = self._parser.should_upgrade()
        cycle = self._latest = self._cycle(headers)
        if self._running is None:
            self._start(cycle)
        else:
            self._waiting.append(cycle)
            if self._is_full:  # until then, it is read on: else nobody would see that the client has left
                self._pause_reading()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._is_used = True
        cycle = self._latest
        if cycle is not None and not cycle.is_complete:
            cycle.feed(body)
            if len(cycle.body) > _MOST_UNREAD:
                self._pause_reading()

    def on_message_complete(self) -> None:
        """Note the end of the body."""
        self._is_used = True
        if self._latest is not None and not self._upgrades:
            self._latest.end_body()

    # What cycles call.

    def resume_reading(self) -> None:
        """Read again, as the application waits for the client, unless too much waits for the application."""
        if not self._is_reading and not self._is_full:
            self._is_reading = True
            self.transport.resume_reading()

    def end_cycle(self, cycle: Cycle) -> None:
        """Begin the next request, or wait for it, now that a response is sent."""
        self._running = None
        if not cycle.keep_alive:
            self.transport.close()
        if self.transport.is_closing():
            return
        if self._waiting:
            self._start(self._waiting.popleft())
            return
        self.resume_reading()
        if not self._in_head:
            self._since = self._connections.now

    # What `Connections` calls.

    def check(self, now: float) -> None:
        """End the connection if it has taken too long at the time *now*."""
        if self.drained is not None or self.transport.is_closing():
            self._check_reader(now)
            return
        self._stalled_since = None
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
        if not self.is_busy and not self.transport.is_closing() and not self._has_input():
            self.transport.close()

    def _cycle(self, headers: list[tuple[bytes, bytes]]) -> Cycle:
        """The cycle of a request whose head has arrived."""
        parser, version = self._parser, self._parser.get_http_version()
        path, raw_path, query = target(self._url)
        scope: Scope = {
            **self._scope,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": headers,
        }
        is_current = version == "1.1"
        lives = is_current and not self._connections.draining and parser.should_keep_alive()
        return Cycle(self, scope, keep_alive=lives, awaits_continue=self._awaits_continue and is_current)

    @property
    def _is_full(self) -> bool:
        """Whether the requests behind the one that is answered have as many bytes as they may."""
        return sum(cycle.size for cycle in self._waiting) > _MOST_UNREAD

    def _start(self, cycle: Cycle) -> None:
        self._running = cycle
        self._task = self.loop.create_task(cycle.run(self._application))

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self.transport.pause_reading()

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
        return len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers)

    def _refuse(self, status: int) -> None:
        """Read nothing more, and say why unless an earlier request is still to be answered."""
        self._is_refused = True
        self._since = self._connections.now
        cycle = self._latest
        if cycle is not None and self.is_busy:
            if self._waiting or cycle.is_begun or cycle.is_whole:
                cycle.keep_alive = False
                return
            cycle.leave()  # the request that is refused is half there
        self.transport.write(refusal(status, self.date))
        if self.transport.can_write_eof():
            self.transport.write_eof()
