"""
One client's connection, sans I/O: bytes in, events out.

`promptkit.protocol.session` interprets the messages.
"""

from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.decoding import decode_message, leading_id
from promptkit.protocol.events import Event
from promptkit.protocol.jsonrpc import InternalError, Reply, encode_error
from promptkit.protocol.limits import PREFIX_BYTES, CutOff, Limits, OutOfMemoryLine, OverlongLine
from promptkit.protocol.session import Session
from promptkit.standard_error import say


class LineBuffer:
    """
    Splits incoming bytes into lines.

    Args:
        limit:
            The longest line, in bytes. The beginning of a longer line is returned as an `OverlongLine` as
            soon as it exceeds the limit, and the rest of the line is dropped.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()  # a list of tiny chunks would take many times their size
        self._dropping = False

    def receive_data(self, data: bytes) -> list[bytes]:
        """
        Add *data* to the buffer, and return every line that is now complete, without its newline.

        ``b""`` means the end of the stream, which also completes the last line, unless it is `CutOff`.
        """
        if not data:
            if isinstance(data, CutOff):
                self._pending = bytearray()
                return []
            data = b"\n"
        elif b"\n" not in data:
            return self._buffer(data)
        first: list[bytes] = []
        if self._dropping or self._pending:
            end = data.index(b"\n")
            first = self._buffer(data[:end])
            if not self._dropping:
                first = [self._take_pending()]
            self._dropping = False
            data = data[end + 1 :]
        *lines, rest = data.split(b"\n")
        if len(data) > self._limit:
            lines = [
                line if len(line) <= self._limit else OverlongLine(line[:PREFIX_BYTES]) for line in lines
            ]
        if first:
            lines = first + lines
        return lines + self._buffer(rest) if rest else lines

    def _buffer(self, data: bytes) -> list[bytes]:
        """Buffer the beginning of a line. If it is already too long, return it instead."""
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

    def _take_pending(self) -> bytes:
        try:
            return bytes(self._pending)
        except MemoryError:
            return OutOfMemoryLine(self._pending[:PREFIX_BYTES])
        finally:
            self._pending = bytearray()


class Connection(Session):
    """
    A client's connection: a session with one message per line.

    Args:
        server_info:
            The server's name and version.

        capabilities:
            The capabilities that the server declares.

        limits:
            The limits on messages and requests.
    """

    def __init__(
        self,
        server_info: ServerInfo,
        capabilities: Capabilities | None = None,
        limits: Limits = Limits(),  # noqa: B008 (it is immutable)
    ) -> None:
        super().__init__(server_info, capabilities, limits)
        self._lines = LineBuffer(limits.line)

    def receive_data(self, data: bytes) -> list[Event]:
        """
        Return the events of every line that *data* completes.

        Args:
            data:
                The next bytes of the stream, split anywhere. ``b""`` means the end of the stream, which also
                completes the last line, unless it is `CutOff`.
        """
        events: list[Event] = []
        for line in self._lines.receive_data(data):
            if not line or line.isspace():
                continue
            try:
                events += self.receive_message(decode_message(line, self._limits))
            except Exception as error:  # noqa: BLE001 (memory may be short: continue with the next line)
                events.append(_reject_unread(line, error))
        return events


def _reject_unread(line: bytes, error: Exception) -> Reply:
    """Return the reply to a line that could not be processed because of *error*."""
    if isinstance(error, MemoryError):
        reason = "the message is rejected: there is not enough memory for it"
    else:
        say(f"a line of {len(line):,} bytes could not be read: {error!r}")
        reason = "the message could not be read"
    return encode_error(leading_id(line), InternalError(reason))
