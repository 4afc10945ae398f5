"""Events: what follows from what a client has sent, beside replies that are known at once."""

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

from msgspec import Struct

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import RequestId
from promptkit.protocol.revisions import Revision
from promptkit.standard_error import say

__all__ = ["Batch", "Cancelled", "Event", "Request", "Response"]


class Batch:
    """
    The replies to one array of messages, which leave together.

    See Also:
        https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
    """

    def __init__(self) -> None:
        self.awaited = 0
        self._replies: list[bytes] = []
        self._lock = Lock()  # replies may come from several threads

    def add(self, reply: bytes) -> bytes:
        """
        Take one reply; return the whole line once it was the last, else nothing.
        """
        with self._lock:
            self.awaited -= 1
            if reply:
                self._replies.append(reply.rstrip(b"\n"))
            if self.awaited or not self._replies:
                return b""
            return b"[%b]\n" % b",".join(self._replies)


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
    about: Any = None  # the compiled prompt or resource, once it is found
    held: bool = False  # it is, or was, one that is answered later
    settled: bool = False  # it is answered, or never will be

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
        if self.awaited is not None:
            for call in self.awaited:
                try:
                    call(reply)
                except Exception as error:  # noqa: BLE001 (the client is answered all the same)
                    say(f"a reply could not be noted: {error!r}")
        return reply if self.batch is None else self.batch.add(reply)


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
