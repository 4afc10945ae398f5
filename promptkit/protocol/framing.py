"""Framing: a stream of bytes, cut anywhere, becomes lines."""

from typing import Final

__all__ = ["MOST_KEPT", "Lines", "Overlong"]

#: How much is kept of a line that is too long: enough to find out whom to answer.
MOST_KEPT: Final = 4096


class Overlong(bytes):
    """
    The beginning of a line that is too long to be read.
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
        self._pending: list[bytes] = []
        self._size = 0
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
        if self._dropping:
            data = data[data.index(b"\n") + 1 :]
            self._dropping = False
        whole = self._size + len(data)
        try:
            *lines, rest = (b"".join((*self._pending, data)) if self._pending else data).split(b"\n")
        except MemoryError:  # a line that does not fit into memory is too long, whatever the limit
            rest = data[data.index(b"\n") + 1 :]
            return [self._cut_off(), *(self.receive_data(rest) if rest else ())]
        if self._pending:
            self._pending.clear()
            self._size = 0
        if whole > self._limit:
            lines = [line if len(line) <= self._limit else Overlong(line[:MOST_KEPT]) for line in lines]
        return lines + self._keep(rest) if rest else lines

    def _keep(self, data: bytes) -> list[bytes]:
        """
        Keep the beginning of a line, unless it is too long already.
        """
        if self._dropping:
            return []
        self._pending.append(data)
        self._size += len(data)
        if self._size <= self._limit:
            return []
        self._dropping = True
        return [self._cut_off()]

    def _cut_off(self) -> Overlong:
        """
        Return the beginning of the line that is kept, and let go of the rest.
        """
        beginning: list[bytes] = []
        for piece in self._pending:
            beginning.append(piece[:MOST_KEPT])
            if len(beginning) * len(beginning[0]) >= MOST_KEPT:
                break
        self._pending.clear()
        self._size = 0
        return Overlong(b"".join(beginning)[:MOST_KEPT])
