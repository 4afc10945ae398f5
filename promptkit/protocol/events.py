"""The events that a connection returns for the lines that a client sends."""

from collections.abc import Callable
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import CANCELLED, InternalError, Reply, RequestId, encode_error
from promptkit.protocol.revisions import Revision
from promptkit.standard_error import say

if TYPE_CHECKING:
    from promptkit.protocol.principals import Principal

#: Sends whole lines. It may be called from several threads.
Send: TypeAlias = Callable[[bytes], None]


class Channel(Protocol):
    """The destination of a reply that is not sent to the client as a line by itself."""

    @property
    def gone(self) -> bool:
        """Whether the client has disconnected, so that the reply is no longer needed."""

    @property
    def principal(self) -> "Principal | None":
        """The caller; None without authentication."""

    @property
    def address(self) -> str | None:
        """The client's network address, if known."""

    @property
    def subject(self) -> str:
        """
        The key by which requests are counted: requests of the same client share it, as far as that is known.
        """

    def fit_reply(self, request_id: RequestId, reply: Reply) -> Reply:
        """Return *reply*, or an error if *reply* is too long for the channel."""

    def add(self, reply: Reply) -> bytes:
        """Add a reply, which may have no line. Return the bytes that the caller must send."""

    def sender(self, send: Send) -> Send:
        """Return a function that sends lines before the reply. By default they go through *send*."""


class Batch:
    """
    The replies to an array of messages, which are sent together as one line.

    Args:
        longest:
            The limit on the length of that line, in bytes.

        channel:
            The destination of that line.

    See Also:
        https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
    """

    def __init__(self, limit: float = inf, channel: Channel | None = None) -> None:
        self.awaited = 0
        self._channel = channel
        self._limit = limit
        self._remaining = limit - len(b"[]\n")
        self._replies: list[memoryview] = []  # without their newlines, and not copied
        self._lock = Lock()  # replies may come from several threads

    @property
    def gone(self) -> bool:
        """Whether the client has disconnected."""
        return self._channel is not None and self._channel.gone

    @property
    def principal(self) -> "Principal | None":
        """The caller; None without authentication."""
        return None if self._channel is None else self._channel.principal

    @property
    def address(self) -> str | None:
        """The client's network address, if known."""
        return None if self._channel is None else self._channel.address

    @property
    def subject(self) -> str:
        """The key by which requests are counted; ``""`` without a channel."""
        return "" if self._channel is None else self._channel.subject

    def gather(self, events: "list[Event]") -> "list[Event]":
        """
        Collect the replies among *events*, and return the other events.

        If no reply is pending, the complete line is returned as well, and nothing goes to the channel. Space
        for an error is reserved for each request. If not even the errors fit, a single error replaces all
        replies.
        """
        lines = [event.line for event in events if isinstance(event, Reply)]
        requests = [event for event in events if isinstance(event, Request)]
        other_events = [event for event in events if not isinstance(event, Reply)]
        self.awaited = len(lines) + len(requests)
        reserved = sum(len(self._reply_too_long(request.id).line) for request in requests)
        self._remaining -= reserved + sum(map(len, lines))
        if self._remaining < 0:
            error = self._reply_too_long(UNSET)
            for request in requests:
                request.discard(error)
            remaining: list[Event] = [event for event in other_events if not isinstance(event, Request)]
            return [error, *remaining]
        collected = [self._collect(line) for line in lines]
        return [Reply(line) for line in collected if line] + other_events

    def fit_reply(self, request_id: RequestId, reply: Reply) -> Reply:
        """Return *reply*, or an error if *reply* would make the line too long."""
        error = self._reply_too_long(request_id)
        with self._lock:
            if len(reply.line) > self._remaining + len(error.line):
                return error
            self._remaining += len(error.line) - len(reply.line)
            return reply

    def add(self, reply: Reply) -> bytes:
        """Collect a reply. Return the complete line after the last one, and ``b""`` before that."""
        line = self._collect(reply.line)
        return line if self._channel is None or not line else self._channel.add(Reply(line))

    def _collect(self, line: bytes) -> bytes:
        with self._lock:
            self.awaited -= 1
            if line:
                self._replies += (memoryview(b","), memoryview(line)[: -len(b"\n")])
            if self.awaited or not self._replies:
                return b""
            return b"".join((b"[", *self._replies[1:], b"]\n"))

    def sender(self, send: Send) -> Send:
        """Return a function that sends lines before the replies."""
        return send if self._channel is None else self._channel.sender(send)

    def _reply_too_long(self, request_id: RequestId | UnsetType) -> Reply:
        msg = f"the replies to the batch would have more than {self._limit:,} bytes together"
        return encode_error(request_id, InternalError(msg))


class Request(Struct, gc=False):
    """A request for the server, which sends what `answer` returns."""

    id: RequestId
    method: str
    params: Any  # of the type that `METHODS` has for the method
    revision: Revision
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]
    channel: Channel | None = None
    awaited: list[Callable[[Reply], object]] | None = None
    large: bool = False  # the arguments may contain many values
    error_id: str | None = None  # identifies the error on standard error and in the reply

    def when_answered(self, call: Callable[[Reply], object]) -> None:
        """Call *call* with the reply just before it is sent."""
        if self.awaited is None:
            self.awaited = []
        self.awaited.append(call)

    def answer(self, reply: Reply) -> bytes:
        """Return the bytes to send for *reply*, or ``b""`` if the reply goes to a channel."""
        if self.channel is not None:
            reply = self.channel.fit_reply(self.id, reply)
        if self.awaited is not None:
            for call in self.awaited:
                try:
                    call(reply)
                except Exception as error:  # noqa: BLE001 (the client is answered anyway)
                    say(f"a reply could not be recorded: {error!r}")
        return reply.line if self.channel is None else self.channel.add(reply)

    @property
    def principal(self) -> "Principal | None":
        """The caller; None without authentication, or once the request is closed."""
        return None if self.channel is None else self.channel.principal

    @property
    def address(self) -> str | None:
        """The client's network address; None if it is unknown, or once the request is closed."""
        return None if self.channel is None else self.channel.address

    @property
    def scopes(self) -> frozenset[str] | None:
        """The caller's scopes; None without authentication."""
        principal = self.principal
        return None if principal is None else principal.scopes

    @property
    def subject(self) -> str:
        """The key by which requests are counted; ``""`` if there is only one client."""
        return "" if self.channel is None else self.channel.subject

    def discard(self, reply: Reply = CANCELLED) -> None:
        """Close the request without sending *reply*, and report *reply* to the observers of the request."""
        self.channel = None
        self.answer(reply)

    def sender(self, send: Send) -> Send:
        """Return a function that sends lines before the reply. By default they go through *send*."""
        return send if self.channel is None else self.channel.sender(send)


class MemoryBudget:
    """A limit on the total size of the pending requests of one client, in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = Lock()  # replies may come from several threads

    def take(self, request: Request, size: int) -> bool:
        """
        Reserve *size* bytes until *request* is answered, and return whether they were available.

        A request larger than the whole budget is accepted if it is the only one.
        """
        if not self.reserve(size):
            return False
        request.when_answered(lambda _reply: self.release(size))
        return True

    def reserve(self, size: int, own: int = 0) -> bool:
        """
        Reserve *size* bytes, and return whether they were available.

        A request that already holds *own* bytes always succeeds if no other request holds memory.
        """
        with self._lock:
            if self._taken > own and self._taken + size > self._limit:
                return False
            self._taken += size
            return True

    def release(self, size: int) -> None:
        """Release *size* bytes."""
        with self._lock:
            self._taken -= size


class Cancelled(Struct):
    """The client's cancellation of a request."""

    request_id: RequestId


class ClientResponse(Struct):
    """The client's response to a request of the server."""

    request_id: RequestId
    result: Any  # None if the client responded with an error


#: An event that `Connection.receive_data` returns.
Event: TypeAlias = Reply | Request | Cancelled | ClientResponse
