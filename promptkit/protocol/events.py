"""Events: what follows from what a client has sent, beside replies that are known at once."""

from collections.abc import Callable
from math import inf
from threading import Lock
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from promptkit.errors.standard_error import say
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InternalError, RequestId, encode_error
from promptkit.protocol.revisions import Revision

__all__ = ["Batch", "Cancelled", "Event", "Held", "Request", "Response"]


class Batch:
    """
    The replies to one array of messages, which leave together.

    Args:
        longest:
            How long they may be together, in bytes.

    See Also:
        https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
    """

    def __init__(self, longest: float = inf) -> None:
        self.awaited = 0
        self._longest = longest
        self._room = longest - len(b"[]\n")
        self._replies: list[memoryview] = []  # without their line ends, and not copied
        self._lock = Lock()  # replies may come from several threads

    def gather(self, events: "list[Event]") -> "list[Event]":
        """
        Return *events* with the replies among them taken, and with the whole line if nothing is awaited.

        There is room for a refusal of each request among them; if there is not, one takes the place
        of them all.
        """
        replies = [event for event in events if isinstance(event, bytes)]
        requests = [event for event in events if isinstance(event, Request)]
        others = [event for event in events if not isinstance(event, bytes)]
        self.awaited = len(replies) + len(requests)
        self._room -= sum(len(self._refusal(request.id)) for request in requests) + sum(map(len, replies))
        if self._room < 0:
            rest: list[Event] = [event for event in others if not isinstance(event, Request)]
            return [self._refusal(UNSET), *rest]
        lines = [self.add(reply) for reply in replies]
        return [line for line in lines if line] + others

    def fitting(self, request_id: RequestId, reply: bytes) -> bytes:
        """
        Return *reply*, or a refusal if it makes the whole line too long.
        """
        refusal = self._refusal(request_id)
        with self._lock:
            if len(reply) > self._room + len(refusal):
                return refusal
            self._room += len(refusal) - len(reply)
            return reply

    def add(self, reply: bytes) -> bytes:
        """
        Take one reply; return the whole line once it was the last, else nothing.
        """
        with self._lock:
            self.awaited -= 1
            if reply:
                self._replies += (memoryview(b","), memoryview(reply)[: -len(b"\n")])
            if self.awaited or not self._replies:
                return b""
            return b"".join((b"[", *self._replies[1:], b"]\n"))

    def _refusal(self, request_id: RequestId | UnsetType) -> bytes:
        msg = f"the replies to the batch would have more than {self._longest:,} bytes together"
        return encode_error(request_id, InternalError(msg))


class Request(Struct, gc=False):
    """
    Something to be done: work out a result, and `answer` with it.
    """

    id: RequestId
    method: str
    params: Any  # of the class that `METHODS` has for the method
    revision: Revision
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]
    batch: Batch | None = None
    awaited: list[Callable[[bytes], object]] | None = None
    large: bool = False  # its arguments may hold many values

    def when_answered(self, call: Callable[[bytes], object]) -> None:
        """
        Have *call* called with the reply, right before that is sent.
        """
        if self.awaited is None:
            self.awaited = []
        self.awaited.append(call)

    def answer(self, reply: bytes) -> bytes:
        """
        Return what to send, once *reply* is known.

        Args:
            reply:
                One line; ``b""`` if the request was cancelled and is not answered.
        """
        if self.batch is not None:
            reply = self.batch.fitting(self.id, reply)
        if self.awaited is not None:
            for call in self.awaited:
                try:
                    call(reply)
                except Exception as error:  # noqa: BLE001 (the client is answered all the same)
                    say(f"a reply could not be noted: {error!r}")
        return reply if self.batch is None else self.batch.add(reply)


class Held:
    """
    How much memory a client claims by requests that are not answered yet.

    Args:
        most:
            How much it may be, in bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._lock = Lock()  # replies may come from several threads

    def take(self, request: Request, size: int) -> bool:
        """
        Return whether there is room for *request*, which takes it until it is answered.

        One that has more than all is taken if there is no other.
        """
        with self._lock:
            if self._taken and self._taken + size > self._most:
                return False
            self._taken += size
        request.when_answered(lambda _reply: self._give_back(size))
        return True

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._taken -= size


class Cancelled(Struct):
    """
    The client no longer wants the answer to a request.
    """

    request_id: RequestId


class Response(Struct):
    """
    The client's answer to what the server has asked.
    """

    request_id: RequestId
    result: Any  # None if the client has answered with an error


#: What `Connection.receive_data` returns: a reply, to be sent, or work, to be done.
Event: TypeAlias = bytes | Request | Cancelled | Response
