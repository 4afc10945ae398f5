"""Request cycles: one HTTP request and its response, with the ASGI calls that read and write them."""

import asyncio
from collections.abc import Iterable
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import unquote

from httptools import HttpParserInvalidURLError, parse_url

from promptkit.errors.tracebacks import format_exception
from promptkit.protocol.http.messages import CLOSE
from promptkit.standard_error import say
from promptkit.transports.http.settings import ASGIApplication, Event, Scope

#: Maximum size of a body that is copied after the head to send both in one call. Above it, copying takes
#: longer than a second call.
JOINED_BYTES: Final = 64 * 1024

#: Asks the client for the body. Clients that did not expect it ignore it (RFC 9110, section 15.2). Some
#: clients know no other interim response.
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"

#: Statuses of responses without a body.
_EMPTY: Final = (204, 304)

_FAILED: Final = b"Internal Server Error"


class _Connection(Protocol):
    """The part of a connection that its cycles use."""

    loop: asyncio.AbstractEventLoop
    transport: Any
    drained: asyncio.Event | None

    @property
    def date(self) -> bytes: ...
    def resume_reading(self) -> None: ...
    def end_cycle(self, cycle: "RequestCycle") -> None: ...


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
            The part of the body that has arrived and was not read yet.

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
    body: bytes | bytearray = b""
    is_received = is_started = is_complete = is_disconnected = False
    _is_read = _is_chunked = False
    _pending_head = b""
    _waiter: "asyncio.Future[None] | None" = None

    def __init__(
        self, connection: _Connection, scope: Scope, *, keep_alive: bool, awaits_continue: bool
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self._connection = connection
        self._awaits_continue = awaits_continue

    @property
    def size(self) -> int:
        """The number of bytes that the request uses: its target, its header fields and its unread body."""
        fields = sum(len(name) + len(value) for name, value in self.scope["headers"])
        return len(self.scope["raw_path"]) + len(self.scope["query_string"]) + fields + len(self.body)

    async def run(self, application: ASGIApplication) -> None:
        """Run an application that answers the request."""
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
        if not self.body:
            self.body = piece  # almost always the only one
        elif isinstance(self.body, bytearray):
            self.body += piece
        else:
            self.body = bytearray(self.body + piece)
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
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Called by the application.

    async def receive(self) -> Event:
        """
        Return the next piece of the body, or a disconnect if the response is complete or the client is gone.
        """
        if self._awaits_continue and not self.is_disconnected:
            self._awaits_continue = False
            self._connection.transport.write(CONTINUE)
        if not self.body and (self._is_read or not self.is_received):
            await self._wait()
        if self.is_disconnected or self.is_complete:
            return {"type": "http.disconnect"}
        self._is_read = self.is_received
        body, self.body = bytes(self.body), b""
        return {"type": "http.request", "body": body, "more_body": not self.is_received}

    async def _wait(self) -> None:
        """Wait until the client sends more or disconnects, or the response is complete."""
        if not (self.is_disconnected or self.is_complete):
            self._connection.resume_reading()
            self._waiter = self._connection.loop.create_future()
            await self._waiter

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
            msg = "the response is sent already"
            raise RuntimeError(msg)
        else:
            self._write(message.get("body", b""), more=message.get("more_body", False))

    def _start_response(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Store the head, which is sent with the first part of the body."""
        has_close = CLOSE in headers
        # The rest of an incomplete body must not be parsed as another request.
        self.keep_alive = self.keep_alive and self.is_received and not has_close
        if not (self.keep_alive or has_close):
            headers = (*headers, CLOSE)
        lines, has_length = [_status_line(status), self._connection.date], False
        for name, value in headers:
            is_length = name == b"content-length" and value.isdigit()  # not cached: it varies
            lines += (name, b": ", value, b"\r\n") if is_length else (_header_line(name, value),)
            has_length = has_length or is_length
        if not has_length and status not in _EMPTY and self.scope["method"] != "HEAD":
            # HTTP/1.0 has no chunks: the body ends with the connection.
            self._is_chunked = self.scope["http_version"] == "1.1"
            if self._is_chunked:
                lines.append(_CHUNKED)
        self._pending_head = b"".join(lines) + b"\r\n"
        self.is_started, self._awaits_continue = True, False

    def _write(self, body: bytes, *, more: bool) -> None:
        """Write a part of the body, preceded by the head if that was not sent yet."""
        if self._is_chunked:
            body = _chunk(body) if more else _chunk(body) + b"0\r\n\r\n"
        elif self.scope["method"] == "HEAD":
            body = b""
        transport = self._connection.transport
        head, self._pending_head = self._pending_head, b""
        if head and len(body) > JOINED_BYTES:
            transport.write(head)
            head = b""
        transport.write(head + body if head else body)
        if not more:
            self.is_complete = True
            self.body = b""  # no longer needed, but the connection may stay open
            self._wake()
            self._connection.end_cycle(self)


@cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


@lru_cache(maxsize=64)  # most responses have the same few fields
def _header_line(name: bytes, value: bytes) -> bytes:
    line = b"%b: %b" % (name, value)
    if b"\n" in line or b"\r" in line:
        msg = "a header has a line break"
        raise RuntimeError(msg)
    return line + b"\r\n"


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""


def base_scope(transport: Any) -> Scope:
    """Return the part of the ASGI scope that all requests on a connection share."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "client": _address(transport.get_extra_info("peername")),
        "server": _address(transport.get_extra_info("sockname")),
    }


@lru_cache(maxsize=16)
def parse_target(url: bytes) -> Scope:
    """
    Return the path of a request, decoded and raw, and its query, as ASGI defines them.

    Raises:
        HttpParserInvalidURLError: If the target is not a path. An absolute URL, as sent to proxies, would
            have to override the field ``host``.

    See Also:
        https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2
    """
    if not url.startswith(b"/"):
        raise HttpParserInvalidURLError
    parts = parse_url(url)
    path = unquote(parts.path.decode("ascii"))
    return {"path": path, "raw_path": parts.path, "query_string": parts.query or b""}


def _address(address: Any) -> tuple[str, int] | None:
    """Return an address in ASGI's form; None for a Unix socket."""
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) and address else None
