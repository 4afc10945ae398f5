"""Responses: what a request to uvicorn is answered with, written in as few pieces as possible."""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from promptkit.protocol.http.messages import CLOSE

__all__ = ["JOINED_BYTES", "ResponseCycle"]

#: Up to so many bytes are sent together with the head before them; to copy more takes longer than a call.
JOINED_BYTES: Final = 64 * 1024

_CHUNKED: Final = (b"transfer-encoding", b"chunked")

#: The statuses of responses that have no body.
_EMPTY: Final = (204, 304)


class ResponseCycle(RequestResponseCycle):
    """
    Writes each head in one piece with the beginning of its body.

    Uvicorn writes the two by themselves, and each costs a call of the system. It also searches the name and
    the value of each header for what no header may have, and counts what is sent of a body. Neither is needed
    here: `Application` writes names in small letters, and the length of a body is that of what it sends.
    """

    _head = b""

    async def send(self, message: Any) -> None:
        """
        Write a part of the response, as ASGI wants it.

        Raises:
            RuntimeError: If a header has a line break, or nothing more may be sent.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started:
            self._begin(message["status"], [*self.default_headers, *message["headers"]])
        elif self.response_complete:
            msg = "the response is sent already"
            raise RuntimeError(msg)
        else:
            self._go_on(message.get("body", b""), more=message.get("more_body", False))

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep the head for the beginning of the body."""
        self.response_started, self.waiting_for_100_continue = True, False
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE)
        is_sized = any(name == b"content-length" for name, _ in headers)
        self.chunked_encoding = not is_sized and status not in _EMPTY and self.scope["method"] != "HEAD"
        if self.chunked_encoding:
            headers.append(_CHUNKED)
        self._head = STATUS_LINE[status] + _encoded(headers)

    def _go_on(self, body: bytes, *, more: bool) -> None:
        if self.chunked_encoding:
            body = _chunk(body) if more else _chunk(body) + b"0\r\n\r\n"
        elif self.scope["method"] == "HEAD":
            body = b""
        head, self._head = self._head, b""
        if head and len(body) > JOINED_BYTES:
            self.transport.write(head)
            head = b""
        self.transport.write(head + body if head else body)
        if not more:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()


def _encoded(headers: list[tuple[bytes, bytes]]) -> bytes:
    """The lines of a head after the first one."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        msg = "a header has a line break"
        raise RuntimeError(msg)
    return lines + b"\r\n"


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""
