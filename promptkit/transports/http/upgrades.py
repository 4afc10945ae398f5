"""Requests that ask for another protocol: HTTP/1.1 goes on, as the server speaks no other."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from httptools import HttpRequestParser

if TYPE_CHECKING:
    from promptkit.transports.http.connection import Connection

__all__ = ["parser_after"]

#: The fields that say where a body ends.
_FRAMING: Final = (b"content-length", b"transfer-encoding")


def parser_after(fields: Iterable[tuple[bytes, bytes]], connection: "Connection") -> HttpRequestParser:
    """
    Return a parser for what follows a head. It tells the connection nothing of that head again.

    Args:
        fields:
            The fields of the head. The parser is not told of the wish for another protocol.

        connection:
            What the parser calls.
    """
    parser = HttpRequestParser(_AfterRepetition(connection))
    framing = [b"%b: %b\r\n" % field for field in fields if field[0] in _FRAMING]
    parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % b"".join(framing))
    return parser


class _AfterRepetition:
    """What a parser calls that is told a head again: nothing until that has ended."""

    def __init__(self, connection: "Connection") -> None:
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
