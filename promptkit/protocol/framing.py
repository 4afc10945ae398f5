"""Framing: a stream of bytes, cut anywhere, becomes lines."""

from typing import Final

__all__ = ["MOST_KEPT", "Lines", "Overlong", "Unheld"]

#: How much is kept of a line that is too long: enough to find out whom to answer.
MOST_KEPT: Final = 4096


class Overlong(bytes):
    """
    The beginning of a line that is too long to be read.
    """

    __slots__ = ()


class Unheld(Overlong):
    """
    The beginning of a line for which there is not enough memory.
    """

    __slots__ = ()


class Lines:
    """
    Cuts what arrives into lines.

    Args:
        limit:
            How long a line may be, in bytes. Of a longer one the beginning is returned as soon
            as that is known, and the rest is dropped.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()  # of crumbs, a list would take many times their size
        self._dropping = False

    def receive_data(self, data: bytes) -> list[bytes]:
        """
        Take bytes as they arrive.

        Args:
            data:
                Any number of bytes; ``b""`` says that the stream has ended, and a last line
                without its end counts.

        Returns:
            Every line that is complete by now, without its end; `Overlong` for one that is
            too long.
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
                first = [self._taken()]
            self._dropping = False
            data = data[end + 1 :]
        *lines, rest = data.split(b"\n")
        if len(data) > self._limit:
            lines = [line if len(line) <= self._limit else Overlong(line[:MOST_KEPT]) for line in lines]
        if first:
            lines = first + lines
        return lines + self._keep(rest) if rest else lines

    def _keep(self, data: bytes) -> list[bytes]:
        """
        Keep the beginning of a line, unless it is too long already.
        """
        if self._dropping:
            return []
        try:
            if len(self._pending) + len(data) <= self._limit:
                self._pending += data
                return []
            kind: type[Overlong] = Overlong
        except MemoryError:
            kind = Unheld
        self._dropping = True
        beginning = self._pending[:MOST_KEPT] + data[:MOST_KEPT]
        self._pending = bytearray()
        return [kind(beginning[:MOST_KEPT])]

    def _taken(self) -> bytes:
        """
        Return the line that was kept, and keep it no longer.
        """
        try:
            return bytes(self._pending)
        except MemoryError:
            return Unheld(self._pending[:MOST_KEPT])
        finally:
            self._pending = bytearray()
