"""Events: what a connection returns for the lines that a client sends."""

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

#: Takes whole lines to be sent. It may be called from several threads.
Send: TypeAlias = Callable[[bytes], None]


class Channel(Protocol):
    """
    Where the reply to a request goes, if not to the client by itself.
    """

    @property
    def gone(self) -> bool:
        """
        Whether the client is gone, so that nobody waits for the reply.
        """

    @property
    def principal(self) -> "Principal | None":
        """
        Who sends the request; None if nobody asked.
        """

    @property
    def address(self) -> str | None:
        """
        The address of who has connected; None if it has none that is known.
        """

    @property
    def subject(self) -> str:
        """
        Whose requests are counted together: who the client is, as far as that is known.
        """

    def fitting(self, request_id: RequestId, reply: Reply) -> Reply:
        """
        Return *reply*, or a refusal if *reply* is too long for the channel.
        """

    def add(self, reply: Reply) -> bytes:
        """
        Take a reply, also one without a line. Return what its caller has to send.
        """

    def sender(self, send: Send) -> Send:
        """
        Return what sends a line that comes before the reply. The client's own way is *send*.
        """


class Batch:
    """
    The replies to one array of messages, which are sent together.

    Args:
        longest:
            The longest line that they may make, in bytes.

        channel:
            Where that line goes.

    See Also:
        https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
    """

    def __init__(self, longest: float = inf, channel: Channel | None = None) -> None:
        self.awaited = 0
        self._channel = channel
        self._longest = longest
        self._room = longest - len(b"[]\n")
        self._replies: list[memoryview] = []  # without their line ends, and not copied
        self._lock = Lock()  # replies may come from several threads

    @property
    def gone(self) -> bool:
        """
        Whether nobody waits for the replies.
        """
        return self._channel is not None and self._channel.gone

    @property
    def principal(self) -> "Principal | None":
        """
        Who sends the batch; None if nobody asked.
        """
        return None if self._channel is None else self._channel.principal

    @property
    def address(self) -> str | None:
        """
        Where the batch comes from; None if that is not known.
        """
        return None if self._channel is None else self._channel.address

    @property
    def subject(self) -> str:
        """
        Whose requests these are.
        """
        return "" if self._channel is None else self._channel.subject

    def gather(self, events: "list[Event]") -> "list[Event]":
        """
        Collect the replies among *events*, and return the other events.

        If no reply is missing, the whole line is returned, too, and nothing goes to the channel. Room is
        reserved for refusing each request; if even that is too long, a single refusal takes the place of them
        all.
        """
        lines = [event.line for event in events if isinstance(event, Reply)]
        requests = [event for event in events if isinstance(event, Request)]
        others = [event for event in events if not isinstance(event, Reply)]
        self.awaited = len(lines) + len(requests)
        self._room -= sum(len(self._refusal(one.id).line) for one in requests) + sum(map(len, lines))
        if self._room < 0:
            refusal = self._refusal(UNSET)
            for request in requests:
                request.discard(refusal)
            rest: list[Event] = [event for event in others if not isinstance(event, Request)]
            return [refusal, *rest]
        collected = [self._collect(line) for line in lines]
        return [Reply(line) for line in collected if line] + others

    def fitting(self, request_id: RequestId, reply: Reply) -> Reply:
        """
        Return *reply*, or a refusal if *reply* would make the line too long.
        """
        refusal = self._refusal(request_id)
        with self._lock:
            if len(reply.line) > self._room + len(refusal.line):
                return refusal
            self._room += len(refusal.line) - len(reply.line)
            return reply

    def add(self, reply: Reply) -> bytes:
        """
        Collect one reply. After the last one return the whole line, before that ``b""``.
        """
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
        """
        Return what sends a line that comes before the replies.
        """
        return send if self._channel is None else self._channel.sender(send)

    def _refusal(self, request_id: RequestId | UnsetType) -> Reply:
        msg = f"the replies to the batch would have more than {self._longest:,} bytes together"
        return encode_error(request_id, InternalError(msg))


class Request(Struct, gc=False):
    """
    A request for the server: whoever serves it sends what `answer` returns.
    """

    id: RequestId
    method: str
    params: Any  # of the class that `METHODS` has for the method
    revision: Revision
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]
    channel: Channel | None = None
    awaited: list[Callable[[Reply], object]] | None = None
    large: bool = False  # its arguments may hold many values
    error_id: str | None = None  # by which standard error and its reply name what went wrong

    def when_answered(self, call: Callable[[Reply], object]) -> None:
        """
        Have *call* called with the reply, just before the reply is sent.
        """
        if self.awaited is None:
            self.awaited = []
        self.awaited.append(call)

    def answer(self, reply: Reply) -> bytes:
        """
        Return what the caller has to send for *reply*; ``b""`` if a channel takes the reply.
        """
        if self.channel is not None:
            reply = self.channel.fitting(self.id, reply)
        if self.awaited is not None:
            for call in self.awaited:
                try:
                    call(reply)
                except Exception as error:  # noqa: BLE001 (the client is answered anyway)
                    say(f"a reply could not be recorded: {error!r}")
        return reply.line if self.channel is None else self.channel.add(reply)

    @property
    def principal(self) -> "Principal | None":
        """
        Who sends the request; None if nobody asked, or if the request is no longer open.
        """
        return None if self.channel is None else self.channel.principal

    @property
    def address(self) -> str | None:
        """
        The address of who has connected; None if it is not known, or if the request is no longer open.
        """
        return None if self.channel is None else self.channel.address

    @property
    def scopes(self) -> frozenset[str] | None:
        """
        What its sender may do; None if nobody asked who that is.
        """
        principal = self.principal
        return None if principal is None else principal.scopes

    @property
    def unwanted(self) -> bool:
        """
        Whether nobody waits for the reply any more.
        """
        return self.channel is not None and self.channel.gone

    @property
    def subject(self) -> str:
        """
        Whose requests are counted together with this one; ``""`` if there is only one client.
        """
        return "" if self.channel is None else self.channel.subject

    def discard(self, reply: Reply = CANCELLED) -> None:
        """
        Note the *reply* to a request that is answered in another way, or not at all.
        """
        self.channel = None
        self.answer(reply)

    def sender(self, send: Send) -> Send:
        """
        Return what sends a line that comes before the reply. The client's own way is *send*.
        """
        return send if self.channel is None else self.channel.sender(send)


class MemoryBudget:
    """
    How many bytes the requests of one client that are not answered yet may take together.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = Lock()  # replies may come from several threads

    def take(self, request: Request, size: int) -> bool:
        """
        Reserve *size* bytes until *request* is answered, and return whether there was room.

        A request larger than the whole budget is taken if it is the only one.
        """
        if not self.reserve(size):
            return False
        request.when_answered(lambda _reply: self.release(size))
        return True

    def reserve(self, size: int, own: int = 0) -> bool:
        """
        Reserve *size* bytes, and return whether there was room.

        Args:
            size:
                How many.

            own:
                How many the same request has already. If only this machine has any, it gets all it wants.
        """
        with self._lock:
            if self._taken > own and self._taken + size > self._limit:
                return False
            self._taken += size
            return True

    def release(self, size: int) -> None:
        """
        Give *size* bytes back.
        """
        with self._lock:
            self._taken -= size


class Cancelled(Struct):
    """
    The client no longer wants the answer to a request.
    """

    request_id: RequestId


class ClientResponse(Struct):
    """
    The client's answer to a request of the server.
    """

    request_id: RequestId
    result: Any  # None if the client answered with an error


#: What `Connection.receive_data` returns.
Event: TypeAlias = Reply | Request | Cancelled | ClientResponse
