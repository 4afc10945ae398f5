"""Channels: from the threads that answer messages to the event loop that sends the replies."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from promptkit.protocol.events import Request, Send
from promptkit.protocol.http.guard import accepts
from promptkit.protocol.http.messages import Head, Response
from promptkit.protocol.jsonrpc import RequestId
from promptkit.transports.http.asgi_types import Receive

if TYPE_CHECKING:
    from promptkit.protocol.principals import Principal

__all__ = ["Earlier", "Outbox", "Posted", "Said"]

#: How much may wait for a client that does not read its stream: lines, and bytes.
_MAX_LINES: Final = 1024
_MAX_BYTES: Final = 4 * 1024 * 1024


class Earlier(Struct, gc=False):
    """
    A line that comes before the reply; ``b""`` if it only shows that the stream is alive.
    """

    line: bytes


#: What is said to a client. Bytes are the reply, ``b""`` if there is none.
Said: TypeAlias = bytes | Earlier | Response


class Outbox:
    """
    What other threads say to the clients of one event loop.

    Args:
        loop:
            The event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._said: deque[tuple[Posted, Said]] = deque()
        self._is_due = False

    def put(self, posted: "Posted", said: Said) -> None:
        """Have the event loop take it. It may be called from several threads."""
        self._said.append((posted, said))
        if not self._is_due:  # else the loop has not begun to take what is there
            self._is_due = True
            try:
                self.loop.call_soon_threadsafe(self._take)
            except RuntimeError:  # the loop is closed, and its clients are gone
                self._said.clear()

    def _take(self) -> None:
        self._is_due = False
        said = self._said
        while said:
            posted, one = said.popleft()
            posted.take(one)


class Posted:
    """
    One posted message, and the channel to which replies to it go.

    Args:
        head:
            The head of the request.

        receive:
            Returns what else comes from the client.

        outbox:
            That of the event loop on which it waits.

    Attributes:
        client:
            The client's address and port, if the server knows them.

        body:
            The whole body, once it has arrived.

        principal:
            Who sends it; None if nobody asked.

        requests:
            The requests in it, as long as the server has them.

        modern:
            Whether these name their revision.

        gone:
            Whether the client is gone.

        is_over:
            Whether nothing more will be said to it.

        is_streamed:
            Whether its reply is a stream of events.

        reader:
            The task that reads the body.

        watch:
            The task that waits for the client to go away.

        held:
            How many bytes its body takes.

        streaming:
            The task that sends the stream.

        is_given_up:
            Whether that task was cancelled, as the client does not read.

        since:
            When the client began to wait for what it waits for now, by the clock of the event loop.
    """

    # These are what most requests never change, so none pays for them.
    client: Sequence[Any] | None = None
    body = b""
    principal: "Principal | None" = None
    requests: Sequence[Request] = ()
    held = 0
    modern = gone = is_over = is_streamed = is_given_up = False
    streaming: asyncio.Task[object] | None = None
    reader: asyncio.Task[object] | None = None
    watch: asyncio.Task[None] | None = None
    since = 0.0
    _queue: deque[Said] | None = None
    _bytes = 0
    _waiter: "asyncio.Future[Said | None] | None" = None

    def __init__(self, head: Head, receive: Receive, outbox: Outbox) -> None:
        self.head = head
        self.receive = receive
        self._outbox = outbox

    # What follows is called by the threads of the server.

    @property
    def subject(self) -> str:
        """Whose requests are counted together: those of one principal, else of one address."""
        if self.principal is not None:
            return self.principal.identity
        return "" if self.client is None else str(self.client[0])

    def fitting(self, _request_id: RequestId, reply: bytes) -> bytes:
        """Return *reply*: it has no limit but its own."""
        return reply

    def add(self, reply: bytes) -> bytes:
        """Send the reply, and nothing after it."""
        self.is_over = True
        self.forget()
        self._outbox.put(self, reply)
        return b""

    def sender(self, _send: Send) -> Send:
        """Return what sends a line before the reply, if the client takes a stream."""
        _, takes_stream = accepts(self.head.get(b"accept") or b"*/*")
        return self._send_earlier if takes_stream else _drop

    def forget(self) -> None:
        """Let go of the requests, once they are answered or dropped."""
        # They hold this channel, and Python's garbage collector does not look into requests.
        self.requests = ()

    def respond(self, response: Response) -> None:
        """Send a response that needs no server."""
        self.is_over = True
        self._outbox.put(self, response)

    def _send_earlier(self, line: bytes) -> None:
        self._outbox.put(self, Earlier(line))

    # What follows is called on the event loop.

    def take(self, said: Said) -> None:
        """Take what another thread has said. A client that does not read is given up."""
        if self._wake(said):
            return
        if self._queue is None:
            self._queue = deque()
        if isinstance(said, Earlier):
            self._bytes += len(said.line)
            if len(self._queue) >= _MAX_LINES or self._bytes > _MAX_BYTES:
                self._give_up()
                return
        self._queue.append(said)

    def leave(self) -> None:
        """Note that the client is gone. `next` returns None from now on."""
        self.gone = True
        self._queue = None
        self._wake(None)

    def _wake(self, said: Said | None) -> bool:
        """Give it to who waits for it, and keep nothing of it; return whether anybody waits."""
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            return False
        waiter.set_result(said)
        return True

    def _give_up(self) -> None:
        if not self.gone and self.streaming is not None:
            self.is_given_up = True
            self.streaming.cancel()
        self.leave()

    def next(self) -> "asyncio.Future[Said | None]":
        """Return what waits for what is said next; that is None if the client is gone."""
        waiter = self._waiter = self._outbox.loop.create_future()
        if self.gone:
            self._wake(None)
        elif self._queue:
            said = self._queue.popleft()
            if isinstance(said, Earlier):
                self._bytes -= len(said.line)
            self._wake(said)
        return waiter


def _drop(_line: bytes) -> None:
    """What becomes of a line for a client that takes no stream."""
