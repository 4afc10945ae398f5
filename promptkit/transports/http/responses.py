"""Responses: where those of one connection are written."""

from asyncio import Transport
from typing import Final

__all__ = ["CONTINUE", "JOINED_BYTES", "Responses"]

#: What uvicorn writes before a response if a client waits for it.
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

#: Up to so many bytes are sent together with the head before them; to copy more takes longer than a call.
JOINED_BYTES: Final = 64 * 1024


class Responses:
    """
    Writes each head in one piece with the beginning of its body.

    Uvicorn writes the two by themselves, and each costs a call of the system.

    Args:
        transport:
            The connection.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._head = b""
        self._has_begun = False
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write a part of a response. The first one is its head."""
        if not self._has_begun and data != CONTINUE:
            self._has_begun, self._head = True, data
            return
        if self._head and len(data) <= JOINED_BYTES:
            data = self._head + data
        elif self._head:
            self._transport.write(self._head)
        self._head = b""
        self._transport.write(data)

    def end(self) -> None:
        """Note that a response is written."""
        self._has_begun = False

    def close(self) -> None:
        """Write what is left, and close."""
        self._transport.write(self._head)
        self._transport.close()
