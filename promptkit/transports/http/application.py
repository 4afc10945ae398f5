"""
The ASGI application: heads and bodies go to the threads of the server, and their replies to the clients.

See https://asgi.readthedocs.io/en/latest/specs/www.html.
"""

import asyncio
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Final

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.guard import ENDPOINT, Guard
from promptkit.protocol.http.messages import CLOSE, JSON_BODY, Head, Response, read_head
from promptkit.protocol.http.statuses import response_to
from promptkit.protocol.jsonrpc import encode
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.limits import Limits
from promptkit.server.shared_server import SharedServer
from promptkit.transports.http.asgi_types import Receive, Scope, Send
from promptkit.transports.http.bodies import Room, read_body
from promptkit.transports.http.channel import Earlier, Outbox, Posted, Said
from promptkit.transports.http.inbox import Inbox
from promptkit.transports.http.sweep import Sweep

if TYPE_CHECKING:
    from promptkit.protocol.principals import Principal
    from promptkit.server.telemetry import Telemetry
    from promptkit.transports.authorization.authorizer import Authorizer

__all__ = ["BODY_BYTES", "Application"]

#: The longest body, in bytes, unless another limit is given. The official servers have the same.
BODY_BYTES: Final = 4 * 1024 * 1024

_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
#: What somebody is sent who was asked for a token is not for others.
_PRIVATE: Final = (b"cache-control", b"no-store")
_HEALTH: Final = frozenset(("/healthz", "/readyz"))


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
        make_server:
            Makes what answers requests. It is called with the first one, so that processes can be forked
            before that.

        endpoint:
            Reads messages.

        guard:
            Says who may send them.

        body_limit:
            The longest body, in bytes.

        held_limit:
            How many bytes the bodies of requests that are not answered yet may take together.

        on_start:
            Called with the application once its threads are started.

        sweep:
            Makes what looks after the requests of an event loop.

        authorizer:
            Finds who sends a request; None if nobody asks.

        ring:
            The keys that replicas share, by which their catalogs are compared; None if they share none.

        telemetry:
            Is told of requests that are refused here, and never reach the server, and of the end.

    Attributes:
        draining:
            Whether the process is about to end: then it is no longer ready. Connections end as their server
            has it.
    """

    def __init__(  # noqa: PLR0913 (an application has that many properties)
        self,
        make_server: Callable[[], SharedServer],
        endpoint: Endpoint,
        guard: Guard,
        *,
        body_limit: int = BODY_BYTES,
        held_limit: int = Limits().held,
        on_start: "Callable[[Application], object]" = bool,
        sweep: Callable[[asyncio.AbstractEventLoop], Sweep] = Sweep,
        authorizer: "Authorizer | None" = None,
        ring: KeyRing | None = None,
        telemetry: "Telemetry | None" = None,
    ) -> None:
        self.draining = False
        self._make_server = make_server
        self._server: SharedServer | None = None
        self._endpoint = endpoint
        self._guard = guard
        self._body_limit = body_limit
        self._held_limit = held_limit
        self._sweep = sweep
        self._on_start = on_start
        self._authorizer = authorizer
        self._ring = ring
        self._telemetry = telemetry
        self._inbox = Inbox(endpoint)
        self._side: _LoopSide | None = None
        self._lock = Lock()

    def replace(self, catalog: Catalog) -> None:
        """Serve another catalog from now on, and tell the clients what has changed."""
        server = self.start()
        server.replace(catalog)
        self._offer(server)

    def start(self) -> SharedServer:
        """Start the threads of the server, unless they are. The process must not be forked after this."""
        if self._server is not None:
            return self._server
        with self._lock:
            if self._server is not None:
                return self._server
            server = self._make_server()
            self._offer(server)
            # With metadata, clients know where to get a token that allows more.
            if self._authorizer is not None and self._authorizer.scheme.documents:
                from promptkit.transports.authorization.step_up import StepUp

                self._inbox.step_up = StepUp(self._authorizer.scheme, server)
            server.handle_from(self._inbox.next_events, bool)
            self._server = server
        self._on_start(self)
        return server

    def _offer(self, server: SharedServer) -> None:
        self._endpoint.offer(server.capabilities, server.observe, server.capabilities_for)

    def close(self, grace: float) -> None:
        """
        End all streams, and answer every request that is not answered yet.

        Args:
            grace:
                How long to wait for running prompts, in seconds.
        """
        self._inbox.close()
        if self._server is not None:
            self._server.close(grace)
        self._inbox.refuse_rest()
        if self._telemetry is not None:
            self._telemetry.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI wants it."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        head = read_head(scope["method"], _path(scope), scope["headers"])
        found: Response | Principal | None
        found = await self._health(head) if head.path in _HEALTH else self._guard.check(head)
        if found is None and self._authorizer is not None:
            found = await self._authorizer.check(head, scope.get("query_string", b""))
        if isinstance(found, Response):
            await self._send_own(head, _before_body(head, found), send)
            return
        side = self._loop_side()
        posted = Posted(head, receive, side.outbox)
        posted.client = scope.get("client")
        if found is not None:
            posted.principal = found
        side.sweep.begin(posted)
        try:
            said: Said | None = await read_body(posted, side.sweep, side.room, self._body_limit)
            if isinstance(said, bytes):
                said = await self._post(posted, said)
            if isinstance(said, bytes):
                said = response_to(said, modern=posted.modern)
                await self._send(head, said if posted.principal is None else _private(said), send)
            elif isinstance(said, Response):
                await self._send_own(head, said if posted.principal is None else _private(said), send)
            elif said is not None:
                await self._stream(posted, said, send)
        finally:
            side.sweep.end(posted)
            side.room.give_back(posted)
            if not posted.is_over:
                self._drop(posted)

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
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

    def _post(self, posted: Posted, body: bytes) -> "asyncio.Future[Said | None]":
        """Have the server answer a message. Return what waits for the first that is said to it."""
        posted.body = body
        self._inbox.put(posted)
        return posted.next()

    async def _send_own(self, head: Head, response: Response, send: Send) -> None:
        """Send a response that is no reply of the server."""
        if self._telemetry is not None and response.status >= 400 and head.path not in _HEALTH:
            self._telemetry.refused(response.status)
        await self._send(head, response, send)

    async def _send(self, head: Head, response: Response, send: Send) -> None:
        headers = [*response.headers]
        if response.status != 204:  # which has no body, not even an empty one
            headers.append((b"content-length", b"%d" % len(response.body)))
        if b"origin" in head.fields:
            headers += self._guard.cors(head)
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
        while isinstance(said, Earlier):
            if not said.line and await self._has_ended(posted):
                said = b""
                break
            body = _events(said.line) or b":\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
            said = await posted.next()
        if isinstance(said, bytes):
            await send({"type": "http.response.body", "body": _events(said)})

    async def _has_ended(self, posted: Posted) -> bool:
        """Whether the token is no longer valid, or another one, with which a stream of changes was opened."""
        if self._authorizer is None or posted.principal is None:
            return False
        listens = any(request.method == "subscriptions/listen" for request in posted.requests)
        return listens and not await self._authorizer.still_admits(posted.head, posted.principal)

    def _drop(self, posted: Posted) -> None:
        """Stop the work for a client that is gone."""
        posted.gone = True
        server = self.start()
        for request in posted.requests:
            server.drop(request)
        posted.forget()

    async def _health(self, head: Head) -> Response:
        """Say that the process lives, or whether it is ready; to who has the keys, also for which catalog."""
        if head.method not in ("GET", "HEAD"):
            return Response(405, headers=((b"allow", b"GET, HEAD"),))
        if head.path == "/healthz":
            return Response(200, b'{"status":"ok"}', (JSON_BODY,))
        if self.draining:
            return Response(503, b'{"status":"ending"}', (JSON_BODY,))
        server = self.start()
        if not server.reads:
            return Response(503, b'{"status":"nobody reads requests"}', (JSON_BODY,))
        ready = {"status": "ready"}
        if self._ring is not None:
            digest = await asyncio.to_thread(lambda: server.digest)  # of a large catalog, it takes a while
            # It covers what is hidden, and nobody asks for a token here: who guesses must not learn it.
            ready["catalog"] = self._ring.digest("catalog", digest.encode())
        return Response(200, encode(ready), (JSON_BODY,))

    def _loop_side(self) -> _LoopSide:
        loop = asyncio.get_running_loop()
        side = self._side
        if side is None or side.loop is not loop:
            self.start()
            self._side = side = _LoopSide(loop, self._held_limit, self._sweep)
        return side


def _path(scope: Scope) -> str:
    """The path within the application, which may be mounted somewhere."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if not root or not (root := root.rstrip("/")) or not path.startswith(root):
        return path
    rest = path[len(root) :]
    return rest if rest.strip("/") else ENDPOINT


def _before_body(head: Head, response: Response) -> Response:
    """A response in place of 100 (Continue): some servers take what follows for the body that never comes."""
    if b"expect" not in head.fields:
        return response
    return Response(response.status, response.body, (*response.headers, CLOSE))


def _private(response: Response) -> Response:
    """A response to somebody who was asked for a token."""
    return Response(response.status, response.body, (*response.headers, _PRIVATE))


def _events(lines: bytes) -> bytes:
    return b"".join(b"event: message\ndata: " + line + b"\n\n" for line in lines.splitlines())
