"""Channels that pass posted messages from event loops to the server's threads, and replies back."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

from promptkit.memory import return_free_memory
from promptkit.protocol.events import ClientResponse, Event, MemoryBudget, Request, Send
from promptkit.protocol.http.endpoint import ACCEPTED, Endpoint
from promptkit.protocol.http.guard import parse_accept
from promptkit.protocol.http.messages import (
    CLOSE,
    RETRY,
    Head,
    HttpResponse,
    read_session_id,
    reject,
)
from promptkit.protocol.jsonrpc import InternalError, InvalidRequest, Reply, TooManyRequests
from promptkit.protocol.principals import Principal
from promptkit.standard_error import say
from promptkit.transports.http.settings import Receive

#: Limits on the queue for a client that does not read its stream, in lines and in bytes.
_MAX_LINES: Final = 1024
_MAX_BYTES: Final = 4 * 1024 * 1024

#: How many bytes of an oversized or rejected body are read and dropped. If the server closed the connection
#: immediately, most clients would see a broken connection instead of the response.
_READ_ON_BYTES: Final = 16 * 1024 * 1024

#: Interval between sweeps over pending requests, in seconds. Sweeps avoid a timer for each request.
_SWEEP_EVERY_S: Final = 0.1

#: Time after which the client of a pending request is watched for a disconnect, in seconds.
_WATCH_AFTER_S: Final = 0.05

#: The size of a large reply, in bytes, and the delay after which free memory is returned to the system, in
#: seconds. Most clients have read the reply by then.
_LARGE_REPLY: Final = 1024 * 1024
_TRIM_AFTER_S: Final = 5.0


#: A message to a client. Bytes are a line sent before the reply; ``b""`` is a keep-alive comment.
Outgoing: TypeAlias = Reply | bytes | HttpResponse


class HttpChannel:
    """
    One posted message, and the channel for its replies.

    Args:
        head:
            The head of the request.

        receive:
            Returns the next ASGI event from the client.

        pending:
            The pending requests on the event loop that serves the client.

    Attributes:
        client:
            The client's address and port, if known.

        body:
            The complete body, once it has arrived.

        principal:
            The principal of the request, or None if requests do not need tokens.

        requests:
            The requests in the message. It is emptied once they are answered or dropped, because they refer
            back to this channel, and the garbage collector does not traverse requests.

        modern:
            Whether each request names its protocol revision, as stateless revisions require.

        gone:
            Whether the client has disconnected.

        is_answered:
            Whether the final reply has been sent.

        reserved:
            Number of bytes reserved for the body.

        since:
            When the request started, by the clock of the event loop.

        is_read:
            Whether reading the body has ended, successfully or not.
    """

    # Defaults on the class, because most requests never change them.
    client: Sequence[Any] | None = None
    body = b""
    principal: Principal | None = None
    requests: Sequence[Request] = ()
    reserved = 0
    modern = gone = is_answered = is_read = False
    since = 0.0
    _is_expired = False
    _task: asyncio.Task[Any] | None = None
    _watching: asyncio.Task[None] | None = None
    _waiter: "asyncio.Future[None] | None" = None
    _queued_bytes = 0

    def __init__(self, head: Head, receive: Receive, pending: "PendingRequests") -> None:
        self.head = head
        self._receive = receive
        self._pending = pending
        self._queue: deque[Outgoing] = deque()

    # Called on the server's threads.

    @property
    def session_id(self) -> str:
        """The id of the client's session, if the request names one."""
        return read_session_id(self.head)

    @property
    def accepts_stream(self) -> bool:
        """Whether the client accepts a stream of events that ends with the reply."""
        _, events = parse_accept(self.head.get(b"accept") or b"*/*")
        return events

    @property
    def address(self) -> str | None:
        """The client's address without its port, if known."""
        return None if self.client is None else str(self.client[0])

    @property
    def subject(self) -> str:
        """
        The key under which requests are counted: the principal, or the address if there is no principal.
        """
        return (self.address or "") if self.principal is None else self.principal.identity

    def add(self, reply: Reply) -> bytes:
        """Send the final reply."""
        self.requests = ()
        self.respond(reply)
        return b""

    def sender(self, _send: Send) -> Send:
        """
        Return a function that sends lines before the reply, or `discard` if the client accepts only a reply.
        """
        return self._deliver if self.accepts_stream else discard

    def respond(self, reply: Reply | HttpResponse) -> None:
        """Send the final reply or response."""
        self.is_answered = True
        self._deliver(reply)

    def _deliver(self, message: Outgoing) -> None:
        with suppress(RuntimeError):  # the event loop is closed, and its clients are gone
            self._pending.loop.call_soon_threadsafe(self.enqueue, message)

    # Called on the event loop.

    async def read_body(self, limit: int) -> bytes | HttpResponse | None:
        """Return the body or the response that rejects it, or None if the client has disconnected."""
        pieces: list[bytes] = []
        size, more, fits = 0, True, True
        self._task = asyncio.current_task()
        try:
            while more and size <= limit + _READ_ON_BYTES:
                event = await self._receive()
                if event["type"] != "http.request":
                    return None
                piece: bytes = event.get("body", b"")
                more = event.get("more_body", False)
                size += len(piece)
                fits = fits and size <= limit and self._pending.budget.reserve(len(piece), self.reserved)
                if fits:
                    self.reserved += len(piece)
                    pieces.append(piece)
                else:
                    pieces.clear()
                    self.release()
        except asyncio.CancelledError:
            if not self._is_expired or self._task is None or self._task.uncancel():
                raise
            msg = "the body of the request did not arrive in time"
            return reject(408, InvalidRequest(msg), headers=(CLOSE,))
        except Exception:  # noqa: BLE001 (ASGI servers raise errors of any type)
            return reject(400, InvalidRequest("the body of the request cannot be read"), headers=(CLOSE,))
        finally:
            self.is_read, self._task = True, None
        if size > limit:
            msg = f"the body of a request can be at most {limit:,} bytes long"
            return reject(413, InvalidRequest(msg), headers=(CLOSE,) if more else ())
        if not fits:
            msg = "all memory for request bodies is in use: try again later"
            return reject(503, TooManyRequests(msg), headers=(RETRY,))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def drop_body(self) -> bool:
        """Read and discard the body. Return whether all of it has arrived."""
        result = await self.read_body(0)
        return isinstance(result, bytes) or (result is not None and CLOSE not in result.headers)

    def expire(self) -> None:
        """Stop reading the body, because it did not arrive in time."""
        if self._task is not None and not self._is_expired:
            self._is_expired = True
            self._task.cancel()

    def release(self) -> None:
        """Release the memory reserved for the body."""
        self._pending.budget.release(self.reserved)
        self.reserved = 0

    async def next_event(self, seconds: float) -> Outgoing | None:
        """
        Wait for the next message on a stream and return it, or None if the client has disconnected.

        Args:
            seconds:
                Time after which a keep-alive comment is returned instead.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self.next()
        except TimeoutError:
            return b""

    async def next(self) -> Outgoing | None:
        """Wait for the next message to the client and return it, or None if the client has disconnected."""
        while not self._queue and not self.gone:
            self._waiter = self._pending.loop.create_future()  # takes half the time of an asyncio.Queue
            await self._waiter
        if self.gone:
            return None
        message = self._queue.popleft()
        if isinstance(message, bytes):
            self._queued_bytes -= len(message)
        return message

    def watch(self) -> None:
        """Start watching for a disconnect of the client."""
        if self._watching is None:
            self._watching = self._pending.loop.create_task(self._wait_for_disconnect())

    async def _wait_for_disconnect(self) -> None:
        with suppress(Exception):  # the connection is broken
            while (await self._receive())["type"] != "http.disconnect":
                pass
        self.disconnect()

    def stop_watching(self) -> None:
        """Stop watching for a disconnect of the client."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None  # its result refers back to the request

    def enqueue(self, reply: Outgoing) -> None:
        """Queue a message to the client. A client that does not read its stream counts as disconnected."""
        if isinstance(reply, Reply) and len(reply.line) >= _LARGE_REPLY:
            self._pending.trim_later()
        if isinstance(reply, bytes):
            self._queued_bytes += len(reply)
            if len(self._queue) >= _MAX_LINES or self._queued_bytes > _MAX_BYTES:
                self.disconnect()
                return
        self._queue.append(reply)
        self._wake()

    def disconnect(self) -> None:
        """Cancel the work for the client, and drop its messages."""
        self.gone = True
        self._queue.clear()
        self._wake()
        self._pending.drop(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class PendingRequests:
    """
    The requests on one event loop that are not answered yet.

    Args:
        loop:
            The event loop.

        drop:
            Called to cancel the requests in a message.

        max_bytes:
            Maximum total size of the bodies that have not been decoded, in bytes.

        body_timeout:
            Maximum time for a body to arrive, in seconds.

    Attributes:
        loop:
            The event loop.

        budget:
            The memory budget for bodies.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        drop: Callable[[HttpChannel], object],
        *,
        max_bytes: int,
        body_timeout: float,
    ) -> None:
        self.loop = loop
        self.drop = drop
        self.budget = MemoryBudget(max_bytes)
        self._body_timeout = body_timeout
        self._open: dict[HttpChannel, None] = {}
        self._is_sweeping = False
        self._trimming: asyncio.TimerHandle | None = None

    def begin(self, channel: HttpChannel) -> None:
        """Register a request whose body has not been read yet."""
        channel.since = self.loop.time()
        self._open[channel] = None
        if not self._is_sweeping:
            self._is_sweeping = True
            self.loop.call_later(_SWEEP_EVERY_S, self._sweep)

    def end(self, channel: HttpChannel) -> None:
        """Unregister a request."""
        del self._open[channel]
        channel.release()
        channel.stop_watching()

    def _sweep(self) -> None:
        """Stop reading bodies that arrive too slowly, and start watching for disconnects."""
        now = self.loop.time()
        self._is_sweeping = bool(self._open)
        if self._is_sweeping:
            self.loop.call_later(_SWEEP_EVERY_S, self._sweep)
        for channel in list(self._open):
            seconds = now - channel.since
            if channel.is_read and seconds > _WATCH_AFTER_S:
                channel.watch()
            elif not channel.is_read and seconds > self._body_timeout:
                channel.expire()

    def trim_later(self) -> None:
        """Schedule free memory to be returned to the system a few seconds after a large reply."""
        if self._trimming is not None:
            self._trimming.cancel()
        self._trimming = self.loop.call_later(_TRIM_AFTER_S, return_free_memory)


def discard(_line: bytes) -> None:
    """Discard a line that does not belong to a request, or whose client does not accept a stream."""


_ENDED: Final = reject(503, InternalError("the server has shut down"), headers=(CLOSE,))


class Inbox:
    """
    A queue of messages from many clients, in order of arrival.

    Args:
        endpoint:
            Parses the messages.

    Attributes:
        challenge:
            Returns the response to requests whose missing scopes clients can get, or None to handle the
            requests. It is None if requests do not need tokens.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._messages: SimpleQueue[HttpChannel | ClientResponse | None] = SimpleQueue()
        self._is_closed = False
        self.challenge: Callable[[Sequence[Request]], HttpResponse | None] | None = None

    def put(self, message: HttpChannel | ClientResponse) -> None:
        """
        Add a posted message, or a client's response that another worker has received.

        Posted messages that are added after `close` are rejected.
        """
        self._messages.put(message)
        if self._is_closed:  # no thread may be left to take the message
            self.reject_late_messages()

    def close(self) -> None:
        """Stop the threads that wait for messages."""
        self._is_closed = True
        self._messages.put(None)

    def reject_late_messages(self) -> None:
        """Reject the messages that arrive during or after shutdown."""
        with suppress(Empty):
            while True:
                if isinstance(message := self._messages.get_nowait(), HttpChannel):
                    message.respond(_ENDED)
        self._messages.put(None)

    def next_events(self) -> list[Event] | None:
        """Wait for messages and return their events, or None after `close`. Called by the server's leader."""
        events: list[Event] = []
        message = self._messages.get()
        while message is not None:
            events += self._receive(message) if isinstance(message, HttpChannel) else (message,)
            if self._messages.empty():
                return events
            message = self._messages.get()
        self._messages.put(None)  # also end the next thread that waits
        return events or None

    def _receive(self, channel: HttpChannel) -> Sequence[Event]:
        if channel.gone:
            return []
        try:
            result = self._endpoint.receive(channel.head, channel.body, channel)
            if self.challenge is not None and isinstance(result, list):
                result = self.challenge(result) or result
        except Exception as error:  # noqa: BLE001 (other messages must not fail)
            say(f"a message of {len(channel.body):,} bytes could not be read: {error!r}")
            result = reject(500, InternalError("this message could not be read"))
        channel.body = b""
        if isinstance(result, ClientResponse):
            channel.respond(ACCEPTED)
            return [result]
        if isinstance(result, HttpResponse):
            channel.respond(result)
            return []
        channel.requests, channel.modern = result, result[0].revision.stateless
        return result
