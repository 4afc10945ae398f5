"""
One client's connection, sans I/O: bytes in, replies or requests out; and requests to the client.

See `promptkit.protocol.session` for what the messages mean.
"""

from itertools import count
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.decoding import Message
from promptkit.protocol.events import ClientResponse, Event
from promptkit.protocol.jsonrpc import UNREADABLE, RequestId, encode_notification, encode_request
from promptkit.protocol.limits import PREFIX_BYTES, CutOff, Limits, OutOfMemoryLine, OverlongLine
from promptkit.protocol.message_checks import refuse_unread
from promptkit.protocol.session import Session

_decode_any: Final = msgspec.json.Decoder().decode


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
                Any number of bytes. ``b""`` is the end of the stream, which also ends the last line,
                unless it is `CutOff`.
        """
        if not data:
            if isinstance(data, CutOff):
                self._pending = bytearray()
                return []
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


class Connection(Session):
    """
    One client, from its first byte to its last: a session with a message on each line.

    Args:
        server_info:
            The server's name and version.

        capabilities:
            What the server declares that it can do.

        limits:
            How much the client may send.
    """

    def __init__(
        self,
        server_info: ServerInfo,
        capabilities: Capabilities | None = None,
        limits: Limits = Limits(),  # noqa: B008 (it is immutable)
    ) -> None:
        super().__init__(server_info, capabilities, limits)
        self._lines = LineBuffer(limits.line)
        self._expected: set[RequestId] = set()
        self._numbers = count(1)

    def receive_data(self, data: bytes) -> list[Event]:
        """
        Take bytes as they arrive, cut anywhere, and return the events of every line that is now complete.

        Args:
            data:
                Any number of bytes. ``b""`` is the end of the stream, which also ends the last line,
                unless it is `CutOff`.
        """
        events: list[Event] = []
        for line in self._lines.receive_data(data):
            try:
                events += self._receive(line)
            except Exception as error:  # noqa: BLE001 (memory may be short: go on with the next line)
                events.append(refuse_unread(line, error))
        return events

    def ask(self, method: str, params: Any) -> tuple[RequestId, bytes]:
        """
        Return the id and the line of a request to the client. Call `expect` before the line is sent.
        """
        request_id = f"promptkit-{next(self._numbers)}"
        return request_id, encode_request(request_id, method, params)

    def expect(self, request_id: RequestId) -> None:
        """
        From now on, `receive_data` returns the client's answer to this request, as a `ClientResponse`.
        """
        self._expected.add(request_id)

    def withdraw(self, request_id: RequestId) -> bytes:
        """
        Ignore the client's answer to this request; return the line that cancels the request.
        """
        self._expected.discard(request_id)
        return encode_notification("notifications/cancelled", wire.CancelledParams(request_id))

    def _receive_response(self, response: Message) -> ClientResponse | None:
        """Ignore a response that was not expected."""
        number, result = response.id, response.result
        if isinstance(number, UnsetType) or number not in self._expected:
            return None
        self._expected.discard(number)  # not remove(): another thread may have withdrawn it
        try:
            found = None if result is UNSET else _decode_any(result)
        except UNREADABLE:  # a number may be too large: handled like an error
            found = None
        return ClientResponse(number, found)
