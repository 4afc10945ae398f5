"""
The ASGI application: heads and bodies go to the threads of the server, and their replies to the clients.

See https://asgi.readthedocs.io/en/latest/specs/www.html.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.http.endpoint import Endpoint, response_to
from promptkit.protocol.http.head_checks import ENDPOINT, Guard, check_framing
from promptkit.protocol.http.messages import CLOSE, JSON_BODY, Head, HttpResponse, read_head
from promptkit.protocol.http.sessions import Sessions
from promptkit.protocol.jsonrpc import CANCELLED, Reply, encode
from promptkit.protocol.key_ring import KeyRing, RequestStateSigner
from promptkit.protocol.principals import Principal
from promptkit.server.audit import Audit
from promptkit.server.observers import Observer
from promptkit.server.server import SharedServer
from promptkit.transports.http.channel import (
    HttpChannel,
    Inbox,
    Sent,
    StreamEvent,
    UnansweredRequests,
    drop_body,
    nowhere,
)
from promptkit.transports.http.settings import Receive, Scope, Send, Settings
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.server.metrics import Metrics

#: One field of a head.
Field: TypeAlias = tuple[bytes, bytes]

_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
#: What somebody is sent who was asked for a token is not for others.
_PRIVATE: Final = (b"cache-control", b"no-store")
_HEALTH: Final = ("/healthz", "/readyz")

#: The text format of Prometheus, which each of its versions reads.
_PLAIN: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class Application:
    """
    Serves a catalog over HTTP, as an ASGI application.

    It needs no lifespan, and works in any number of event loops. It starts no thread until its first request,
    so that processes can be forked before that.

    Args:
        catalog:
            What is served.

        settings:
            How.

        on_start:
            Called with `replace` and `is_idle` once its threads are started.

    Attributes:
        draining:
            Whether the process is about to end: then it is no longer ready. Connections end as their server
            has it.

        body_within:
            How long a body may take to arrive, in seconds.

        comment_every:
            How often something is said on a stream, in seconds.

    Raises:
        ValueError: If an origin is not one, or a key is too short.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        on_start: Callable[[Callable[[Catalog], None], Callable[[], bool]], object] = lambda *_: None,
    ) -> None:
        self.draining = False
        self.body_within, self.comment_every = 10.0, 15.0
        self._catalog = catalog
        self._settings = settings
        self._on_start = on_start
        self._authorizer = authorizer = settings.authorizer
        self._metrics = settings.metrics
        self._counting = [one for one in (settings.telemetry, settings.metrics) if one is not None]
        self._readable: dict[str, Callable[[Head, Scope], Awaitable[HttpResponse]]] = {}
        self._readable |= dict.fromkeys(_HEALTH, self._health)
        if settings.metrics is not None:
            self._readable["/metrics"] = partial(self._scrape, settings.metrics)
        self._identity = ServerInfo(settings.name, VERSION)
        self._ring = KeyRing(settings.keys, settings.name, settings.own_key)
        documents = MappingProxyType({}) if authorizer is None else authorizer.scheme.documents
        self._guard = Guard(settings.hosts, settings.origins, documents)
        self._endpoint = Endpoint(self._identity, Sessions(self._ring), settings.limits)
        self._inbox = Inbox(self._endpoint)
        self._server: SharedServer | None = None
        self._open: UnansweredRequests | None = None
        self._lock = Lock()

    def replace(self, catalog: Catalog) -> None:
        """Serve another catalog from now on, and tell the clients what has changed."""
        server = self.start()
        server.replace(catalog)
        self._offer(server)
        if self._metrics is not None:
            self._metrics.reloaded()

    def is_idle(self) -> bool:
        """Return whether no request has come for a second."""
        return self._server is None or self._server.is_idle

    def start(self) -> SharedServer:
        """Start the threads of the server, unless they are. The process must not be forked after this."""
        with self._lock:
            if self._server is not None:
                return self._server
            settings = self._settings
            server = SharedServer(
                self._catalog,
                nowhere,
                identity=self._identity,
                page_size=settings.page_size,
                tools=settings.tools,
                changes=settings.changes,
                limits=settings.limits,
                signer=RequestStateSigner(self._ring),
                observers=_observers(settings),
                scopes=settings.scopes,
                waiting_changed=bool if self._metrics is None else self._metrics.waiting_changed,
            )
            self._offer(server)
            if (authorizer := self._authorizer) is not None:
                self._inbox.challenge = lambda requests: authorizer.challenge(requests, server)
            server.handle_from(self._inbox.next_events)
            self._server = server
        self._on_start(self.replace, self.is_idle)
        return server

    def _offer(self, server: SharedServer) -> None:
        self._endpoint.offer(server.capabilities, server.observe)

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
        for one in self._counting:
            one.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI wants it."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        head = read_head(scope["method"], _path(scope), scope["headers"])
        found = await self._check(head, scope)
        if isinstance(found, HttpResponse):
            # A client that expects 100 (Continue) sends no body after a refusal: some servers then take the
            # next request for the body.
            is_read = b"expect" not in head.fields and await drop_body(receive, self.body_within)
            await self._refuse(head, found, send, () if is_read or CLOSE in found.headers else (CLOSE,))
            return
        siblings = self._open_requests()
        channel = HttpChannel(head, receive, siblings)
        channel.client = scope.get("client")
        private: Iterable[Field] = ()
        if found is not None:
            channel.principal, private = found, (_PRIVATE,)
        siblings.begin(channel)
        try:
            body = await channel.read_body(self._settings.body_limit)
            reply: Sent | None
            if isinstance(body, bytes):
                channel.body = body
                self._inbox.put(channel)
                reply = await channel.next()
            else:
                reply = body
            if isinstance(reply, Reply):
                await self._send(head, response_to(reply, modern=channel.modern), send, private)
            elif isinstance(reply, HttpResponse):
                await self._refuse(head, reply, send, private)
            elif reply is not None:
                await self._stream(channel, reply, send)
        finally:
            siblings.end(channel)
            if not channel.is_over:
                self._drop(channel)

    async def _check(self, head: Head, scope: Scope) -> HttpResponse | Principal | None:
        """Return the response to a request whose body is not used; else its principal, if known."""
        if (refused := check_framing(head)) is not None:
            return refused
        if head.path in self._readable:
            return await self._readable[head.path](head, scope)
        if (response := self._guard.check(head)) is not None or self._authorizer is None:
            return response
        return await self._authorizer.check(head, scope.get("query_string", b""))

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start and end with the process; there are no web sockets."""
        if scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1000})
            return
        while (event := await receive())["type"] != "lifespan.shutdown":
            if event["type"] == "lifespan.startup":
                self.start()
                await send({"type": "lifespan.startup.complete"})
        await asyncio.to_thread(self.close, 0.0)
        await send({"type": "lifespan.shutdown.complete"})

    async def _refuse(self, head: Head, response: HttpResponse, send: Send, fields: Iterable[Field]) -> None:
        """Send a response that is no reply of the server."""
        if response.status >= 400 and head.path not in _HEALTH:
            for one in self._counting:
                one.refused(response.status)
        await self._send(head, response, send, fields)

    async def _send(self, head: Head, response: HttpResponse, send: Send, fields: Iterable[Field]) -> None:
        """Send a response, with more *fields* in its head."""
        headers = [*response.headers, *fields]
        if response.status != 204:  # which has no body, not even an empty one
            headers.append((b"content-length", b"%d" % len(response.body)))
        if b"origin" in head.fields:
            headers += self._guard.cors(head)
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _stream(self, channel: HttpChannel, reply: Sent | None, send: Send) -> None:
        """Send a stream of events, up to the reply."""
        channel.is_streamed = True
        headers = [*_EVENTS, *self._guard.cors(channel.head)]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while isinstance(reply, StreamEvent):
                if not reply.line and await self._has_ended(channel):
                    reply = CANCELLED
                    break
                body = _events(reply.line) or b":\n\n"
                await send({"type": "http.response.body", "body": body, "more_body": True})
                reply = await channel.next()
            if isinstance(reply, Reply):
                await send({"type": "http.response.body", "body": _events(reply.line)})
        except asyncio.CancelledError:
            if not channel.was_given_up():  # a client that does not read may hold up `send` for ever
                raise

    async def _has_ended(self, channel: HttpChannel) -> bool:
        """Whether a stream of changes was opened with a token that is no longer valid, or allows others."""
        if self._authorizer is None or channel.principal is None:
            return False
        listens = any(request.method == "subscriptions/listen" for request in channel.requests)
        return listens and not await self._authorizer.still_admits(channel.head, channel.principal)

    def _drop(self, channel: HttpChannel) -> None:
        """Stop the work for a client that is gone."""
        channel.gone = True
        server = self.start()
        for request in channel.requests:
            server.drop(request)
        channel.requests = ()

    async def _health(self, head: Head, _scope: Scope) -> HttpResponse:
        """Say that the process lives, or whether it is ready; to who has the keys, also for which catalog."""
        if head.method not in ("GET", "HEAD"):
            return HttpResponse(405, headers=((b"allow", b"GET, HEAD"),))
        if head.path == "/healthz":
            return HttpResponse(200, b'{"status":"ok"}', (JSON_BODY,))
        if self.draining:
            return HttpResponse(503, b'{"status":"ending"}', (JSON_BODY,))
        server = self.start()
        if not server.is_reading:
            return HttpResponse(503, b'{"status":"nobody reads requests"}', (JSON_BODY,))
        ready: dict[str, Any] = {"status": "ready", "errors": self._settings.faulty()}
        if self._ring.is_shared:
            digest = await asyncio.to_thread(lambda: server.snapshot.digest)  # it may take a while
            # It covers what is hidden, and nobody asks for a token here: who guesses must not learn it.
            ready["catalog"] = self._ring.digest("catalog", digest.encode())
        return HttpResponse(200, encode(ready), (JSON_BODY,))

    async def _scrape(self, metrics: "Metrics", head: Head, scope: Scope) -> HttpResponse:
        """Answer Prometheus. Metrics name prompts, so who reads them is asked for what all clients are."""
        if (refused := self._guard.check_reading(head)) is not None:
            return refused
        if self._authorizer is not None:
            found = await self._authorizer.check(head, scope.get("query_string", b""))
            if isinstance(found, HttpResponse):
                return found
        text = await asyncio.to_thread(metrics.text, self._settings.faulty())
        return HttpResponse(200, text, (_PLAIN, _PRIVATE))

    def _open_requests(self) -> UnansweredRequests:
        """Those of this event loop."""
        loop = asyncio.get_running_loop()
        found = self._open
        if found is None or found.loop is not loop:
            self.start()
            found = self._open = UnansweredRequests(
                loop,
                held=self._settings.limits.held,
                body_within=self.body_within,
                comment_every=self.comment_every,
            )
        return found


def _observers(settings: Settings) -> list[Observer]:
    """What is notified of each request. Each process opens the audit by itself."""
    observers: list[Observer] = [one for one in (settings.telemetry, settings.metrics) if one is not None]
    if settings.audit is not None:
        observers.insert(0, Audit(settings.audit))
    return observers


def _path(scope: Scope) -> str:
    """The path within the application, which may be mounted somewhere."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if not root or not (root := root.rstrip("/")) or not path.startswith(root):
        return path
    rest = path[len(root) :]
    return rest if rest.strip("/") else ENDPOINT


def _events(lines: bytes) -> bytes:
    return b"".join(b"event: message\ndata: " + line + b"\n\n" for line in lines.splitlines())
