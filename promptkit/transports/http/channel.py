"""Channels: posted messages, whose bodies event loops read, and whose replies the server's threads send."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

from msgspec import Struct

from promptkit.memory import return_free_memory
from promptkit.protocol.events import Event, MemoryBudget, Request, Send
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.head_checks import accepts
from promptkit.protocol.http.messages import CLOSE, RETRY, Head, HttpResponse, refuse
from promptkit.protocol.jsonrpc import InternalError, InvalidRequest, Reply, RequestId, TooManyRequests
from promptkit.protocol.principals import Principal
from promptkit.standard_error import say
from promptkit.transports.http.settings import Receive

#: How much may wait for a client that does not read its stream: lines, and bytes.
_MAX_LINES: Final = 1024
_MAX_BYTES: Final = 4 * 1024 * 1024

#: How much is read of a body that is too long or refused, and dropped. If the server hung up at once, most
#: clients would see a broken connection instead of the reply.
_READ_ON_BYTES: Final = 16 * 1024 * 1024

#: How often open requests are looked at, in seconds, so that none needs a timer.
_LOOK_EVERY_S: Final = 0.1

#: How long a reply may take until it is watched whether the client still waits for it, in seconds.
_WATCH_AFTER_S: Final = 0.05

#: The size of a large reply, in bytes, and how many seconds after it free memory is returned to the system:
#: by then most clients have read the reply.
_LARGE_REPLY: Final = 1024 * 1024
_TRIM_AFTER_S: Final = 5.0


class StreamEvent(Struct, gc=False):
    """A line that comes before the reply; ``b""`` if it only shows that the stream is alive."""

    line: bytes


#: What is sent to a client.
Sent: TypeAlias = Reply | StreamEvent | HttpResponse


class HttpChannel:
    """
    One posted message, and the channel to which replies to it go.

    Args:
        head:
            The head of the request.

        receive:
            Returns what else comes from the client.

        siblings:
            The open requests of the event loop on which the client waits.

    Attributes:
        client:
            The client's address and port, if the server knows them.

        body:
            The whole body, once it has arrived.

        principal:
            Who sends it; None if nobody asked.

        requests:
            The requests in it, until they are answered or dropped: they hold this channel, and Python's
            garbage collector does not look into requests.

        modern:
            Whether these name their revision.

        gone:
            Whether the client is gone.

        is_over:
            Whether nothing more will be said to it.

        is_read:
            Whether the body is read, or nothing more of it.

        is_streamed:
            Whether its reply is a stream of events.

        task:
            The task that reads the body, and sends the reply.

        watch:
            The task that waits for the client to go away.

        held:
            How many bytes its body takes.

        since:
            When the client began to wait for what it waits for now, by the clock of the event loop.
    """

    # These are what most requests never change, so none pays for them.
    client: Sequence[Any] | None = None
    body = b""
    principal: Principal | None = None
    requests: Sequence[Request] = ()
    held = 0
    modern = gone = is_over = is_read = is_streamed = False
    task: asyncio.Task[object] | None = None
    watch: asyncio.Task[None] | None = None
    since = 0.0
    _queue: deque[Sent] | None = None
    _bytes = 0
    _is_given_up = False
    _waiter: "asyncio.Future[Sent | None] | None" = None

    def __init__(self, head: Head, receive: Receive, siblings: "UnansweredRequests") -> None:
        self.head = head
        self.receive = receive
        self._siblings = siblings

    # What follows is called by the threads of the server.

    @property
    def address(self) -> str | None:
        """The client's address without its port, if the server knows it."""
        return None if self.client is None else str(self.client[0])

    @property
    def subject(self) -> str:
        """Whose requests are counted together: those of one principal, else of one address."""
        return (self.address or "") if self.principal is None else self.principal.identity

    def fit_reply(self, _request_id: RequestId, reply: Reply) -> Reply:
        """Return *reply*: it has no limit but its own."""
        return reply

    def add(self, reply: Reply) -> bytes:
        """Send the reply, and nothing after it."""
        self.requests = ()
        self.respond(reply)
        return b""

    def sender(self, _send: Send) -> Send:
        """Return what sends a line before the reply, if the client takes a stream."""
        _, takes_stream = accepts(self.head.get(b"accept") or b"*/*")
        return self._send_event if takes_stream else nowhere

    def respond(self, reply: Reply | HttpResponse) -> None:
        """Send the last that is said to the client."""
        self.is_over = True
        self._siblings.put(self, reply)

    def _send_event(self, line: bytes) -> None:
        self._siblings.put(self, StreamEvent(line))

    # What follows is called on the event loop.

    async def read_body(self, limit: int) -> bytes | HttpResponse | None:
        """Return the body, or the response that refuses it; None if the client is gone."""
        pieces: list[bytes] = []
        size, more, fits = 0, True, True
        try:
            while more and size <= limit + _READ_ON_BYTES:
                event = await self.receive()
                if event["type"] != "http.request":
                    return None
                piece: bytes = event.get("body", b"")
                more = event.get("more_body", False)
                size += len(piece)
                fits = fits and size <= limit and self._siblings.budget.reserve(len(piece), self.held)
                if fits:
                    self.held += len(piece)
                    pieces.append(piece)
                else:
                    pieces.clear()
                    self.release()
        except asyncio.CancelledError:
            if not self.was_given_up():
                raise
            msg = "the body of the request did not arrive in time"
            return refuse(408, InvalidRequest(msg), headers=(CLOSE,))
        except Exception:  # noqa: BLE001 (the server that runs this application decides what it raises)
            return refuse(400, InvalidRequest("the body of the request cannot be read"), headers=(CLOSE,))
        finally:
            self.is_read = True
        if size > limit:
            msg = f"the body of a request has at most {limit:,} bytes"
            return refuse(413, InvalidRequest(msg), headers=(CLOSE,) if more else ())
        if not fits:
            msg = "the bodies of other requests take all the memory there is for them: try again later"
            return refuse(503, TooManyRequests(msg), headers=(RETRY,))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def release(self) -> None:
        """Give back the bytes that the body takes."""
        self._siblings.budget.release(self.held)
        self.held = 0

    def next(self) -> "asyncio.Future[Sent | None]":
        """Return what waits for what is said next; that is None if the client is gone."""
        waiter = self._waiter = self._siblings.loop.create_future()
        if self.gone:
            self._wake(None)
        elif self._queue:
            reply = self._queue.popleft()
            if isinstance(reply, StreamEvent):
                self._bytes -= len(reply.line)
            self._wake(reply)
        return waiter

    def take(self, reply: Sent) -> None:
        """Take what is to be sent. A client that does not read is given up."""
        if isinstance(reply, Reply) and len(reply.line) >= _LARGE_REPLY:
            self._siblings.trim_later()
        if self._wake(reply):
            return
        if self._queue is None:
            self._queue = deque()
        if isinstance(reply, StreamEvent):
            self._bytes += len(reply.line)
            if len(self._queue) >= _MAX_LINES or self._bytes > _MAX_BYTES:
                if not self.gone and self.is_streamed:
                    self.give_up()
                self.leave()
                return
        self._queue.append(reply)

    def leave(self) -> None:
        """Note that the client is gone. `next` returns None from now on."""
        self.gone = True
        self._queue = None
        self._wake(None)

    def give_up(self) -> None:
        """Cancel the task: it would wait for the client for ever."""
        if self.task is not None and not self._is_given_up:
            self._is_given_up = True
            self.task.cancel()

    def was_given_up(self) -> bool:
        """Whether the task was cancelled by `give_up`, and by nobody else. It may go on then."""
        return self._is_given_up and self.task is not None and self.task.uncancel() == 0

    def _wake(self, reply: Sent | None) -> bool:
        """Give it to who waits for it, and keep nothing of it; return whether anybody waits."""
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            return False
        waiter.set_result(reply)
        return True


class UnansweredRequests:
    """
    The requests of one event loop that are not answered yet.

    Args:
        loop:
            The event loop.

        held:
            How many bytes their bodies may take together, whole or not.

        body_within:
            How long a body may take to arrive, in seconds.

        comment_every:
            How often something is said on a stream, in seconds, so that nothing on the way takes it for dead.

    Attributes:
        loop:
            The event loop.

        budget:
            The bytes that bodies take.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, held: int, body_within: float, comment_every: float
    ) -> None:
        self.loop = loop
        self.budget = MemoryBudget(held)
        self._body_within = body_within
        self._comment_every = comment_every
        self._open: dict[HttpChannel, None] = {}
        self._is_looking = False
        self._replies: deque[tuple[HttpChannel, Sent]] = deque()
        self._is_due = self._is_trim_due = False

    def put(self, channel: HttpChannel, reply: Sent) -> None:
        """Have the event loop pass on what is said to a client. It may be called from several threads."""
        self._replies.append((channel, reply))
        if not self._is_due:  # else the loop has not begun to take what is there
            self._is_due = True
            try:
                self.loop.call_soon_threadsafe(self._pass_on)
            except RuntimeError:  # the loop is closed, and its clients are gone
                self._replies.clear()

    def _pass_on(self) -> None:
        self._is_due = False
        while self._replies:
            channel, reply = self._replies.popleft()
            channel.take(reply)

    def begin(self, channel: HttpChannel) -> None:
        """Look after a request, whose body is not read yet, in the task that answers it."""
        channel.task = asyncio.current_task(self.loop)
        channel.since = self.loop.time()
        self._open[channel] = None
        if not self._is_looking:
            self._is_looking = True
            self.loop.call_later(_LOOK_EVERY_S, self._look)

    def end(self, channel: HttpChannel) -> None:
        """Look after a request no longer."""
        del self._open[channel]
        channel.release()
        channel.task = None
        if channel.watch is not None:
            channel.watch.cancel()
            channel.watch = None  # how it ends leads back to the request

    def trim_later(self) -> None:
        """Return free memory to the system once a large reply has been sent."""
        if not self._is_trim_due:
            self._is_trim_due = True
            self.loop.call_later(_TRIM_AFTER_S, self._trim)

    def _trim(self) -> None:
        self._is_trim_due = False
        return_free_memory()

    def _look(self) -> None:
        """Give up bodies that take too long, see whether clients go away, and keep streams alive."""
        now = self.loop.time()
        self._is_looking = bool(self._open)
        if self._is_looking:
            self.loop.call_later(_LOOK_EVERY_S, self._look)
        for channel in list(self._open):
            seconds = now - channel.since
            if not channel.is_read:
                if seconds > self._body_within:
                    channel.give_up()
                continue
            if channel.watch is None and seconds > _WATCH_AFTER_S:
                channel.watch = self.loop.create_task(_watch(channel))
            if channel.is_streamed and seconds > self._comment_every:
                channel.since = now
                channel.take(StreamEvent(b""))


async def _watch(channel: HttpChannel) -> None:
    """Wait until a client goes away."""
    with suppress(Exception):  # the connection is broken
        while (await channel.receive())["type"] != "http.disconnect":
            pass
    channel.leave()


async def drop_body(receive: Receive, seconds: float) -> bool:
    """
    Read a body that is not used; return whether it has arrived whole.

    Args:
        receive:
            Returns the next event from the client.

        seconds:
            How long the body may take to arrive.
    """
    size, more = 0, True
    try:
        async with asyncio.timeout(seconds):
            while more and size <= _READ_ON_BYTES:
                event = await receive()
                size += len(event.get("body", b""))
                more = event.get("more_body", False)
    except Exception:  # noqa: BLE001 (the response is sent in any case)
        return False
    return not more


def nowhere(_line: bytes) -> None:
    """Where lines go that belong to no request, or to that of a client that takes no stream: to nobody."""


_ENDED: Final = refuse(503, InternalError("the server has ended"), headers=(CLOSE,))


class Inbox:
    """
    Messages of many clients, in the order in which they have arrived.

    Args:
        endpoint:
            Reads them.

    Attributes:
        challenge:
            Returns the response to requests whose clients can get the scopes that they lack; else None.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._messages: SimpleQueue[HttpChannel | None] = SimpleQueue()
        self._is_closed = False
        self.challenge: Callable[[Sequence[Request]], HttpResponse | None] | None = None

    def put(self, channel: HttpChannel) -> None:
        """Add a message. It is answered in any case."""
        self._messages.put(channel)
        if self._is_closed:  # nobody may be left to take it
            self.refuse_rest()

    def close(self) -> None:
        """Have nobody wait for messages any more."""
        self._is_closed = True
        self._messages.put(None)

    def refuse_rest(self) -> None:
        """Answer what is posted after the end, or at the same moment. Who takes a message answers it."""
        with suppress(Empty):
            while True:
                if (channel := self._messages.get_nowait()) is not None:
                    channel.respond(_ENDED)
        self._messages.put(None)

    def next_events(self) -> list[Event] | None:
        """Wait for messages, and return the requests in them. The leader of the server calls this."""
        events: list[Event] = []
        channel = self._messages.get()
        while channel is not None:
            events += self._receive(channel)
            if self._messages.empty():
                return events
            channel = self._messages.get()
        self._messages.put(None)  # it is still the end, for the next one who waits
        return events or None

    def _receive(self, channel: HttpChannel) -> list[Request]:
        if channel.gone:
            return []
        try:
            found = self._endpoint.receive(channel.head, channel.body, channel)
            if self.challenge is not None and not isinstance(found, HttpResponse):
                found = self.challenge(found) or found
        except Exception as error:  # noqa: BLE001 (the next message may be read)
            say(f"a message of {len(channel.body):,} bytes could not be read: {error!r}")
            found = refuse(500, InternalError("this message could not be read"))
        channel.body = b""
        if isinstance(found, HttpResponse):
            channel.respond(found)
            return []
        channel.requests, channel.modern = found, found[0].revision.stateless
        return found
