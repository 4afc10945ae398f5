"""Cycles: one request and its response, as an ASGI application reads the one and writes the other."""

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

#: Up to so many bytes are sent together with the head before them; to copy more takes longer than a call.
JOINED_BYTES: Final = 64 * 1024

#: Says that a client may send the body. One that has not asked passes over it (RFC 9110, section 15.2). Some
#: clients know no other interim response.
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"

#: The statuses of responses that have no body.
_EMPTY: Final = (204, 304)

_FAILED: Final = b"Internal Server Error"


class _Connection(Protocol):
    """A connection, as far as the cycles on it use it."""

    loop: asyncio.AbstractEventLoop
    transport: Any
    drained: asyncio.Event | None

    @property
    def date(self) -> bytes: ...
    def resume_reading(self) -> None: ...
    def end_cycle(self, cycle: "RequestCycle") -> None: ...


class RequestCycle:
    """
    One request on a connection, and the response to it.

    Args:
        connection:
            The connection.

        scope:
            The request's head, as ASGI has it.

        keep_alive:
            Whether the connection goes on after the response.

        awaits_continue:
            Whether the client waits for 100 (Continue) before it sends the body.

    Attributes:
        body:
            What has arrived of the body, and was not read yet.

        is_whole:
            Whether all of the body has arrived.

        is_begun:
            Whether the head of the response is sent, or about to be.

        is_complete:
            Whether the response is sent.

        is_gone:
            Whether the client is.
    """

    # These are what most requests never change, so none pays for them.
    body: bytes | bytearray = b""
    is_whole = is_begun = is_complete = is_gone = False
    _is_read = _is_chunked = False
    _head = b""
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
        """How many bytes it keeps of the request: of the target, the fields, and the body."""
        fields = sum(len(name) + len(value) for name, value in self.scope["headers"])
        return len(self.scope["raw_path"]) + len(self.scope["query_string"]) + fields + len(self.body)

    async def run(self, application: ASGIApplication) -> None:
        """Have an application answer the request."""
        try:
            await application(self.scope, self.receive, self.send)
        except BaseException as error:  # noqa: BLE001 (other requests go on)
            say(f"a request was not answered:\n{format_exception(error).rstrip()}")
        if self.is_complete or self.is_gone:
            return
        if self.is_begun:
            self._connection.transport.close()
        else:
            length = (b"content-length", b"%d" % len(_FAILED))
            self._begin(500, ((b"content-type", b"text/plain; charset=utf-8"), length, CLOSE))
            self._write(_FAILED, more=False)

    # What the client does.

    def feed(self, piece: bytes) -> None:
        """Take a piece of the body."""
        if not self.body:
            self.body = piece  # nearly always the only one
        elif isinstance(self.body, bytearray):
            self.body += piece
        else:
            self.body = bytearray(self.body + piece)
        self._wake()

    def end_body(self) -> None:
        """Note that the body is whole."""
        self.is_whole = True
        self._wake()

    def leave(self) -> None:
        """Note that the client is gone."""
        self.is_gone = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the application does.

    async def receive(self) -> Event:
        """Return what has arrived of the body, or say that the client is gone, or needs nothing more."""
        if self._awaits_continue and not self.is_gone:
            self._awaits_continue = False
            self._connection.transport.write(CONTINUE)
        if not self.body and (self._is_read or not self.is_whole):
            await self._wait()
        if self.is_gone or self.is_complete:
            return {"type": "http.disconnect"}
        self._is_read = self.is_whole
        body, self.body = bytes(self.body), b""
        return {"type": "http.request", "body": body, "more_body": not self.is_whole}

    async def _wait(self) -> None:
        """Wait until something comes from the client, or nothing more is needed from it."""
        if not (self.is_gone or self.is_complete):
            self._connection.resume_reading()
            self._waiter = self._connection.loop.create_future()
            await self._waiter

    async def send(self, message: Event) -> None:
        """
        Write a part of the response.

        The names of headers are in small letters, and the length of a body, if it is said, is that of what
        is sent of it.

        Raises:
            RuntimeError: If a header has a line break, or nothing more may be sent.
        """
        drained = self._connection.drained
        if drained is not None:
            await drained.wait()
        if self.is_gone:
            return
        if not self.is_begun:
            self._begin(message["status"], message["headers"])
        elif self.is_complete:
            msg = "the response is sent already"
            raise RuntimeError(msg)
        else:
            self._write(message.get("body", b""), more=message.get("more_body", False))

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep the head for the beginning of the body."""
        says_close = CLOSE in headers
        # What comes of a body that is not whole must not be taken for another request.
        self.keep_alive = self.keep_alive and self.is_whole and not says_close
        if not (self.keep_alive or says_close):
            headers = (*headers, CLOSE)
        lines, has_length = [_status_line(status), self._connection.date], False
        for name, value in headers:
            is_length = name == b"content-length" and value.isdigit()  # not kept: it differs each time
            lines += (name, b": ", value, b"\r\n") if is_length else (_line(name, value),)
            has_length = has_length or is_length
        if not has_length and status not in _EMPTY and self.scope["method"] != "HEAD":
            # A client of HTTP/1.0 knows no chunks. What it is sent ends with the connection.
            self._is_chunked = self.scope["http_version"] == "1.1"
            if self._is_chunked:
                lines.append(_CHUNKED)
        self._head = b"".join(lines) + b"\r\n"
        self.is_begun, self._awaits_continue = True, False

    def _write(self, body: bytes, *, more: bool) -> None:
        """Write a part of the body, the first with the head before it."""
        if self._is_chunked:
            body = _chunk(body) if more else _chunk(body) + b"0\r\n\r\n"
        elif self.scope["method"] == "HEAD":
            body = b""
        transport = self._connection.transport
        head, self._head = self._head, b""
        if head and len(body) > JOINED_BYTES:
            transport.write(head)
            head = b""
        transport.write(head + body if head else body)
        if not more:
            self.is_complete = True
            self.body = b""  # which nobody reads any more, while the connection may live on
            self._wake()
            self._connection.end_cycle(self)


@cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


@lru_cache(maxsize=64)  # most responses have the same few
def _line(name: bytes, value: bytes) -> bytes:
    """A field of a head, as it is sent."""
    line = b"%b: %b" % (name, value)
    if b"\n" in line or b"\r" in line:
        msg = "a header has a line break"
        raise RuntimeError(msg)
    return line + b"\r\n"


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""


def scope_of(transport: Any) -> Scope:
    """Return what ASGI says of each request of a connection."""
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
def target(url: bytes) -> Scope:
    """
    Return the path of a request, decoded and as it was sent, and its query, as ASGI has them.

    Raises:
        HttpParserInvalidURLError: If the target is no path. One that names a host, as proxies are sent it,
            would have to take the place of the field ``host``.

    See Also:
        https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2
    """
    if not url.startswith(b"/"):
        raise HttpParserInvalidURLError
    parts = parse_url(url)
    path = unquote(parts.path.decode("ascii"))
    return {"path": path, "raw_path": parts.path, "query_string": parts.query or b""}


def _address(found: Any) -> tuple[str, int] | None:
    """An address as ASGI has it; None for that of a Unix socket."""
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) and found else None
