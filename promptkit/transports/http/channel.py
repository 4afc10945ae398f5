"""Channels: from the threads that answer messages to the event loop that sends the replies."""

import asyncio
from collections import deque
from typing import Final

from msgspec import Struct

from promptkit.protocol.events import Request, Send
from promptkit.protocol.http.messages import Head, Response
from promptkit.protocol.jsonrpc import RequestId

__all__ = ["Outbox", "Posted", "Said"]

#: How much may wait for a client that does not read its stream: lines, and bytes.
_MAX_LINES: Final = 1024
_MAX_BYTES: Final = 4 * 1024 * 1024


class Said(Struct, gc=False):
    """
    One thing that is sent to a client.

    Args:
        line:
            A reply, or a line that comes before it; ``b""`` if there is none.

        ends:
            Whether nothing comes after it.
    """

    line: bytes
    ends: bool = True


class Outbox:
    """
    What other threads say to the clients of one event loop.

    Args:
        loop:
            The event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._said: deque[tuple[Posted, Said | Response]] = deque()
        self._is_due = False

    def put(self, posted: "Posted", said: "Said | Response") -> None:
        """Have the event loop take it. It may be called from several threads."""
        self._said.append((posted, said))
        if not self._is_due:  # else the loop has not begun to take what is there
            self._is_due = True
            try:
                self._loop.call_soon_threadsafe(self._take)
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

        body:
            The whole body.

        outbox:
            That of the event loop on which it waits.

        streams:
            Whether the client takes a stream of events.

    Attributes:
        requests:
            The requests in it, once the server has them.

        modern:
            Whether these name their revision.

        gone:
            Whether the client is gone.

        is_over:
            Whether nothing more will be said to it.

        is_streamed:
            Whether its reply is a stream of events.

        streaming:
            The task that sends the stream.

        is_given_up:
            Whether that task was cancelled, as the client does not read.
    """

    def __init__(self, head: Head, body: bytes, outbox: Outbox, *, streams: bool) -> None:
        self.head = head
        self.body = body
        self.requests: list[Request] = []
        self.modern = False
        self.gone = self.is_over = self.is_streamed = self.is_given_up = False
        self.streaming: asyncio.Task[object] | None = None
        self._outbox = outbox
        self._streams = streams
        self._taken: deque[Said | Response] = deque()
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None

    # What follows is called by the threads of the server.

    def fitting(self, _request_id: RequestId, reply: bytes) -> bytes:
        """Return *reply*: it has no limit but its own."""
        return reply

    def add(self, reply: bytes) -> bytes:
        """Send the reply, and nothing after it."""
        self.is_over = True
        self._outbox.put(self, Said(reply))
        return b""

    def sender(self, _send: Send) -> Send:
        """Return what sends a line before the reply, if the client takes a stream."""
        return self._send_before if self._streams else _drop

    def respond(self, response: Response) -> None:
        """Send a response that needs no server."""
        self.is_over = True
        self._outbox.put(self, response)

    def _send_before(self, line: bytes) -> None:
        self._outbox.put(self, Said(line, ends=False))

    # What follows is called on the event loop.

    def take(self, said: Said | Response) -> None:
        """Take what another thread has said. A client that does not read is given up."""
        if isinstance(said, Said) and not said.ends:
            self._bytes += len(said.line)
            if len(self._taken) > _MAX_LINES or self._bytes > _MAX_BYTES:
                self._give_up()
                return
        self._taken.append(said)
        self._wake()

    def _give_up(self) -> None:
        if not self.gone and self.streaming is not None:
            self.is_given_up = True
            self.streaming.cancel()
        self.leave()

    def leave(self) -> None:
        """Note that the client is gone. `next` returns None from now on."""
        self.gone = True
        self._taken.clear()
        self._wake()

    async def next(self) -> Said | Response | None:
        """Wait for what is said next; None if the client is gone."""
        if not self._taken and not self.gone:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.gone:
            return None
        said = self._taken.popleft()
        if isinstance(said, Said) and not said.ends:
            self._bytes -= len(said.line)
        return said

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _drop(_line: bytes) -> None:
    """What becomes of a line for a client that takes no stream."""
