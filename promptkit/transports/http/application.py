"""
The ASGI application: heads and bodies go to the threads of the server, and their replies to the clients.

See https://asgi.readthedocs.io/en/latest/specs/www.html.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.errors.standard_error import say
from promptkit.protocol.events import Event
from promptkit.protocol.http.endpoint import Accepted, Endpoint
from promptkit.protocol.http.guard import ENDPOINT, Guard, accepts
from promptkit.protocol.http.messages import CLOSE, JSON, Head, Response, read_head, refuse
from promptkit.protocol.http.statuses import response_to
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import Limits
from promptkit.server.shared_server import SharedServer
from promptkit.transports.http.asgi_types import Receive, Scope, Send
from promptkit.transports.http.bodies import Held, Room, read_body
from promptkit.transports.http.channel import Outbox, Posted, Said
from promptkit.transports.http.sweep import Sweep

__all__ = ["BODY_BYTES", "Application"]

#: The longest body, in bytes, unless another limit is given. The official servers have the same.
BODY_BYTES: Final = 4 * 1024 * 1024

#: How many messages are taken from the queue at once.
_MOST_AT_ONCE: Final = 64

_JSON: Final = (b"content-type", JSON)
_ENDED: Final = refuse(503, InternalError("the server has ended"), headers=(CLOSE,))
_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class _LoopSide:
    """What belongs to one event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, room: int, sweep: Callable[[asyncio.AbstractEventLoop], Sweep]
    ) -> None:
        self.loop = loop
        self.room = Room(room)
        self.outbox = Outbox(loop)
        self.sweep = sweep(loop)


class Application:
    """
    Serves a catalog over HTTP, as an ASGI application.

    It needs no lifespan, and works in any number of event loops.

    Args:
        server:
            Answers requests. It is started by the first one, so that processes can be forked before that.

        endpoint:
            Reads messages.

        guard:
            Says who may send them.

        body_limit:
            The longest body, in bytes.

        held_limit:
            How many bytes the bodies of requests that are not answered yet may take together.

        sweep:
            Makes what looks after the requests of an event loop.

    Attributes:
        draining:
            Whether the process is about to end: then every connection is closed after its reply.
    """

    def __init__(  # noqa: PLR0913 (an application has that many properties)
        self,
        server: SharedServer,
        endpoint: Endpoint,
        guard: Guard,
        *,
        body_limit: int = BODY_BYTES,
        held_limit: int = Limits().held,
        sweep: Callable[[asyncio.AbstractEventLoop], Sweep] = Sweep,
    ) -> None:
        self.draining = False
        self._server = server
        self._endpoint = endpoint
        self._guard = guard
        self._body_limit = body_limit
        self._held_limit = held_limit
        self._sweep = sweep
        self._on_start: Callable[[], object] = bool
        self._inbox: SimpleQueue[Posted | None] = SimpleQueue()
        self._side: _LoopSide | None = None
        self._lock = Lock()
        self._is_started = self._is_closed = False
        endpoint.offer(server.capabilities)

    def when_started(self, call: Callable[[], object]) -> None:
        """Have *call* called once the threads of the server are started."""
        self._on_start = call

    def publish(self, catalog: Catalog) -> None:
        """Serve another catalog from now on, and tell the clients what has changed."""
        self._server.replace(catalog)
        self._endpoint.offer(self._server.capabilities)

    def start(self) -> None:
        """Start the threads of the server, unless they are. Nothing may be forked after this."""
        with self._lock:
            if not self._is_started:
                self._server.handle_from(self._next_events, bool)
                self._is_started = True
                self._on_start()

    def close(self, grace: float) -> None:
        """
        End all streams, and answer every request that is not answered yet.

        Args:
            grace:
                How long to wait for running prompts, in seconds.
        """
        self._is_closed = True
        self._inbox.put(None)
        self._server.close(grace)
        self._refuse_rest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI wants it."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        while (event := await receive())["type"] != "lifespan.shutdown":
            if event["type"] == "lifespan.startup":
                self.start()
                await send({"type": "lifespan.startup.complete"})
        await asyncio.to_thread(self.close, 0.0)
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = read_head(scope["method"], _path(scope), scope["headers"])
        if (response := self._health(head) or self._guard.check(head)) is not None:
            await self._send(head, response, send)
            return
        side = self._loop_side()
        held = Held(side.room)
        try:
            body = await read_body(receive, side.sweep, self._body_limit, held)
            if isinstance(body, bytes):
                await self._post(side, head, body, receive, send)
            elif body is not None:
                await self._send(head, body, send)
        finally:
            held.give_up()

    async def _post(self, side: _LoopSide, head: Head, body: bytes, receive: Receive, send: Send) -> None:
        """Have the server answer a message."""
        _, streams = accepts(head.fields.get(b"accept", b"*/*"))
        posted = Posted(head, body, side.outbox, streams=streams)
        side.sweep.begin_waiting(posted, receive)
        try:
            self._inbox.put(posted)
            if self._is_closed:  # nobody may be left to take it
                self._refuse_rest()
            said = await posted.next()
            if isinstance(said, Response):
                await self._send(head, said, send)
            elif said is not None and said.ends:
                await self._send(head, response_to(said.line, modern=posted.modern), send)
            elif said is not None:
                await self._stream(posted, said, send)
        finally:
            side.sweep.end_waiting(posted)
            if not posted.is_over:
                self._drop(posted)

    async def _send(self, head: Head, response: Response, send: Send) -> None:
        headers = [*response.headers]
        if response.status != 204:  # which has no body, not even an empty one
            headers.append((b"content-length", b"%d" % len(response.body)))
        if b"origin" in head.fields:
            headers += self._guard.cors(head)
        if self.draining and CLOSE not in headers:
            headers.append(CLOSE)
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _stream(self, posted: Posted, said: Said | None, send: Send) -> None:
        """Send a stream of events, up to the reply."""
        posted.is_streamed = True
        posted.streaming = task = asyncio.current_task()
        try:
            await self._send_events(posted, said, send)
        except asyncio.CancelledError:
            # A client that does not read may hold up `send` for ever. It is given up then.
            if not posted.is_given_up or task is None or task.uncancel():
                raise

    async def _send_events(self, posted: Posted, said: Said | None, send: Send) -> None:
        headers = [*_EVENTS, *self._guard.cors(posted.head)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while said is not None:
            body = _events(said.line) if said.line or said.ends else b":\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": not said.ends})
            if said.ends:
                return
            next_said = await posted.next()
            said = next_said if isinstance(next_said, Said) else None

    def _drop(self, posted: Posted) -> None:
        """Stop the work for a client that is gone."""
        posted.gone = True
        for request in posted.requests:
            self._server.drop(request)

    def _health(self, head: Head) -> Response | None:
        if head.path not in ("/healthz", "/readyz") or head.method not in ("GET", "HEAD"):
            return None
        is_fine = head.path == "/healthz" or not self.draining
        return Response(
            200 if is_fine else 503, b'{"status":"ok"}' if is_fine else b'{"status":"ending"}', (_JSON,)
        )

    def _loop_side(self) -> _LoopSide:
        loop = asyncio.get_running_loop()
        side = self._side
        if side is None or side.loop is not loop:
            self.start()
            self._side = side = _LoopSide(loop, self._held_limit, self._sweep)
        return side

    def _next_events(self) -> list[Event] | None:
        """Wait for messages, and return the requests in them. The leader of the server calls this."""
        events: list[Event] = []
        posted = self._inbox.get()
        while posted is not None:
            events += self._receive(posted)
            if len(events) >= _MOST_AT_ONCE or self._inbox.empty():
                return events
            posted = self._inbox.get()
        self._inbox.put(None)  # it is still the end, for the next one who waits
        return events or None

    def _refuse_rest(self) -> None:
        """Answer what is posted after the end, or at the same moment. Whoever takes a message answers it."""
        with suppress(Empty):
            while True:
                if (posted := self._inbox.get_nowait()) is not None:
                    posted.respond(_ENDED)
        self._inbox.put(None)

    def _receive(self, posted: Posted) -> list[Event]:
        if posted.gone:
            return []
        try:
            found = self._endpoint.receive(posted.head, posted.body, posted)
        except Exception as error:  # noqa: BLE001 (the next message may be read)
            say(f"a message of {len(posted.body):,} bytes could not be read: {error!r}")
            found = refuse(500, InternalError("this message could not be read"))
        posted.body = b""
        if not isinstance(found, Accepted):
            posted.respond(found)
            return []
        posted.requests, posted.modern = found.requests, found.modern
        return list(found.requests)


def _path(scope: Scope) -> str:
    """The path within the application, which may be mounted somewhere."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if not root or not path.startswith(root):
        return path
    rest = path[len(root) :]
    return rest if rest.strip("/") else ENDPOINT


def _events(lines: bytes) -> bytes:
    return b"".join(b"event: message\ndata: " + line + b"\n\n" for line in lines.splitlines())
