"""Framing: splits a stream of bytes into lines."""

from typing import Final

__all__ = ["PREFIX_BYTES", "LineBuffer", "OutOfMemoryLine", "OverlongLine"]

#: How much of a line that is too long is kept: enough to find the id of the request.
PREFIX_BYTES: Final = 4096


class OverlongLine(bytes):
    """
    The beginning of a line that is too long to be read.
    """

    __slots__ = ()


class OutOfMemoryLine(OverlongLine):
    """
    The beginning of a line that did not fit into memory.
    """

    __slots__ = ()


class LineBuffer:
    """
    Splits the bytes that arrive into lines.

    Args:
        limit:
            The longest line, in bytes. A longer one is returned as an `OverlongLine` as soon as its
            length is known, and the rest of it is dropped.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()  # a list of tiny chunks would take many times their size
        self._dropping = False

    def receive_data(self, data: bytes) -> list[bytes]:
        """
        Take bytes as they arrive, and return every line that is now complete, without its newline.

        Args:
            data:
                Any number of bytes. ``b""`` is the end of the stream, which also ends the last line.
        """
        if not data:
            data = b"\n"
        elif b"\n" not in data:
            return self._keep(data)
        first: list[bytes] = []
        if self._dropping or self._pending:
            end = data.index(b"\n")
            first = self._keep(data[:end])
            if not self._dropping:
                first = [self._pop()]
            self._dropping = False
            data = data[end + 1 :]
        *lines, rest = data.split(b"\n")
        if len(data) > self._limit:
            lines = [
                line if len(line) <= self._limit else OverlongLine(line[:PREFIX_BYTES]) for line in lines
            ]
        if first:
            lines = first + lines
        return lines + self._keep(rest) if rest else lines

    def _keep(self, data: bytes) -> list[bytes]:
        """Keep the beginning of a line; return it instead if it is already too long."""
        if self._dropping:
            return []
        try:
            if len(self._pending) + len(data) <= self._limit:
                self._pending += data
                return []
            kind: type[OverlongLine] = OverlongLine
        except MemoryError:
            kind = OutOfMemoryLine
        self._dropping = True
        beginning = self._pending[:PREFIX_BYTES] + data[:PREFIX_BYTES]
        self._pending = bytearray()
        return [kind(beginning[:PREFIX_BYTES])]

    def _pop(self) -> bytes:
        try:
            return bytes(self._pending)
        except MemoryError:
            return OutOfMemoryLine(self._pending[:PREFIX_BYTES])
        finally:
            self._pending = bytearray()
