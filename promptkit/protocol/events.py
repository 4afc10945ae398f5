"""The events that a session returns for the messages that a client sends."""

from collections.abc import Callable
from math import inf
from threading import Lock
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import CANCELLED, InternalError, Reply, RequestId, encode_error
from promptkit.protocol.principals import Principal
from promptkit.protocol.revisions import Revision
from promptkit.standard_error import say

#: Sends whole lines. It may be called from several threads.
Send: TypeAlias = Callable[[bytes], None]


class Channel(Protocol):
    """The destination of a reply that is not a separate line to the client, such as an HTTP response."""

    @property
    def gone(self) -> bool:
        """Whether the client has disconnected, so that the reply is no longer needed."""

    @property
    def principal(self) -> Principal | None:
        """The caller; None if it is not authenticated."""

    @property
    def address(self) -> str | None:
        """The client's network address, if known."""

    @property
    def subject(self) -> str:
        """
        The key under which requests are counted. It is the same for all requests known to be from one client.
        """

    @property
    def session_id(self) -> str:
        """The id of the client's session; ``""`` if it has none."""

    @property
    def accepts_stream(self) -> bool:
        """Whether lines can be sent before the reply."""

    def add(self, reply: Reply) -> bytes:
        """Take a reply, whose line may be empty. Return the bytes that the caller must send, if any."""

    def sender(self, send: Send) -> Send:
        """Return a function that sends lines before the reply. It may use *send*."""


class Batch:
    """
    The replies to an array of messages, which are sent together as one line.

    Args:
        limit:
            The limit on the total size of the replies, in bytes.

    See Also:
        https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
    """

    def __init__(self, limit: float = inf) -> None:
        self._limit = limit
        self._awaited = self._size = 0
        self._lines: list[memoryview] = []  # without their newlines, and not copied
        self._lock = Lock()  # replies may come from several threads

    def gather(self, events: "list[Event]") -> "list[Event]":
        """
        Collect the replies among *events*, and return the other events.

        If all replies have been collected, a reply with the joined line comes first.
        """
        replies = [event for event in events if isinstance(event, Reply)]
        others = [event for event in events if not isinstance(event, Reply)]
        self._awaited = len(replies) + sum(isinstance(event, Request) for event in others)
        lines = [self.add(reply.line) for reply in replies]
        return [Reply(line) for line in lines if line] + others

    def fit(self, request_id: RequestId, reply: Reply) -> Reply:
        """Return *reply*, or an error if the total size of the replies would exceed the limit."""
        with self._lock:
            if self._size + len(reply.line) <= self._limit:
                self._size += len(reply.line)
                return reply
        msg = f"the replies to the batch exceed {self._limit:,} bytes in total"
        return encode_error(request_id, InternalError(msg))

    def add(self, line: bytes) -> bytes:
        """Collect a line, which may be empty. Return the joined line if this was the last one."""
        with self._lock:
            self._awaited -= 1
            if line:
                self._lines += (memoryview(b","), memoryview(line)[: -len(b"\n")])
            if self._awaited or not self._lines:
                return b""
            return b"".join((b"[", *self._lines[1:], b"]\n"))


class Request(Struct, gc=False):
    """A request to the server, which sends the bytes that `answer` returns."""

    id: RequestId
    method: str
    params: Any  # of the type that `METHODS` has for the method
    revision: Revision
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]
    channel: Channel | None = None
    batch: Batch | None = None
    callbacks: list[Callable[[Reply], object]] = []
    large: bool = False  # the arguments may contain many values
    error_id: str | None = None  # identifies the error on standard error and in the reply

    def when_answered(self, callback: Callable[[Reply], object]) -> None:
        """Call *callback* with the reply, just before the reply is sent."""
        self.callbacks.append(callback)

    def answer(self, reply: Reply) -> bytes:
        """Return the bytes to send for *reply*; ``b""`` if a batch or a channel takes the reply."""
        if self.batch is not None:
            reply = self.batch.fit(self.id, reply)
        while self.callbacks:  # they may reference the request
            callback = self.callbacks.pop(0)
            try:
                callback(reply)
            except Exception as error:  # noqa: BLE001 (the client is answered anyway)
                say(f"a reply could not be recorded: {error!r}")
        if self.batch is not None:
            reply = Reply(self.batch.add(reply.line))
            if not reply.line:
                return b""
        return reply.line if self.channel is None else self.channel.add(reply)

    @property
    def principal(self) -> Principal | None:
        """The caller; None if it is not authenticated, or once the request is closed."""
        return None if self.channel is None else self.channel.principal

    @property
    def address(self) -> str | None:
        """The client's network address; None if it is unknown, or once the request is closed."""
        return None if self.channel is None else self.channel.address

    @property
    def scopes(self) -> frozenset[str] | None:
        """The caller's scopes; None if the caller is not authenticated."""
        principal = self.principal
        return None if principal is None else principal.scopes

    @property
    def session_id(self) -> str:
        """The id of the client's session; ``""`` if it has none, or once the request is closed."""
        return "" if self.channel is None else self.channel.session_id

    @property
    def subject(self) -> str:
        """The key under which requests are counted; ``""`` if there is only one client."""
        return "" if self.channel is None else self.channel.subject

    def discard(self, reply: Reply = CANCELLED) -> None:
        """Close the request without sending *reply*, but report *reply* to the request's observers."""
        self.channel = self.batch = None
        self.answer(reply)

    def sender(self, send: Send) -> Send:
        """Return a function that sends lines before the reply. It is *send* if the request has no channel."""
        return send if self.channel is None else self.channel.sender(send)


class MemoryBudget:
    """A limit on the total size of pending requests, in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = Lock()  # replies may come from several threads

    def reserve(self, size: int, own: int = 0) -> bool:
        """
        Reserve *size* bytes, and return whether they were available.

        If *own* bytes are reserved for the same request, and none for other requests, this always succeeds.
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


class ClientResponse(Struct, tag=True):
    """The client's response to a request from the server."""

    request_id: RequestId
    result: Any  # None if the client responded with an error
    session_id: str = ""  # over HTTP, the session of the client


#: An event that `Session.receive_data` returns.
Event: TypeAlias = Reply | Request | Cancelled | ClientResponse
