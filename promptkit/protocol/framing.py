"""Framing: a stream of bytes, cut anywhere, becomes lines."""

__all__ = ["Lines"]


class Lines:
    """
    Cuts what arrives into lines.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
    """

    def __init__(self) -> None:
        self._pending: list[bytes] = []

    def receive_data(self, data: bytes) -> list[bytes]:
        """
        Take bytes as they arrive.

        Args:
            data:
                Any number of bytes; ``b""`` says that the stream has ended, and a last line
                without its end counts.

        Returns:
            Every line that is complete by now, without its end.
        """
        if not data:
            data = b"\n"
        elif b"\n" not in data:
            self._pending.append(data)
            return []
        if self._pending:
            data = b"".join((*self._pending, data))
            self._pending.clear()
        *lines, rest = data.split(b"\n")
        if rest:
            self._pending.append(rest)
        return lines
