"""
The ASGI application: passes requests to the server's threads, and their replies to the clients.

See https://asgi.readthedocs.io/en/latest/specs/www.html.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from http import HTTPStatus
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from promptkit.catalog.catalog import Catalog
from promptkit.errors.exceptions import shortened
from promptkit.protocol.http.endpoint import Endpoint, make_response
from promptkit.protocol.http.guard import Guard, check_framing
from promptkit.protocol.http.messages import (
    CLOSE,
    ENDPOINT,
    JSON_BODY,
    RETRY,
    STREAM,
    Head,
    HttpResponse,
    read_head,
)
from promptkit.protocol.jsonrpc import CANCELLED, Reply, TooManyRequests, encode
from promptkit.protocol.key_ring import KeyRing, RequestStateSigner, Sessions
from promptkit.protocol.principals import Principal
from promptkit.server.audit import Audit
from promptkit.server.server import SharedServer
from promptkit.standard_error import say
from promptkit.transports.http.channel import (
    HttpChannel,
    Inbox,
    Outgoing,
    PendingRequests,
    discard,
)
from promptkit.transports.http.settings import Event, Receive, Scope, Send, Settings

if TYPE_CHECKING:
    from promptkit.server.metrics import Metrics
    from promptkit.transports.http.supervisor import Siblings  # only this needs httptools

#: A header field.
Field: TypeAlias = tuple[bytes, bytes]

_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
#: The header for responses to requests with a token, which must not be cached.
_PRIVATE: Final = (b"cache-control", b"no-store")
#: The methods whose replies are streams of notifications.
_STREAMS: Final = ("subscriptions/listen", STREAM)
_HEALTH: Final = ("/healthz", "/readyz")

#: The text format that all versions of Prometheus read.
_PLAIN: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class Application:
    """
    Serves a catalog over HTTP, as an ASGI application.

    It does not need lifespan events, and can be used on several event loops. No thread is started before the
    first request, so the process can fork until then.

    Args:
        catalog:
            The catalog to serve.

        settings:
            The settings of the server.

        on_start:
            Called with the methods `replace` and `is_idle` once the threads have started.

    Attributes:
        draining:
            Whether the process is shutting down and reports that it is not ready. Closing connections is up
            to the server that runs the application.

        body_timeout:
            Maximum time for a body to arrive, in seconds.

        comment_interval:
            Keep-alive interval of streams, in seconds.

    Raises:
        ValueError: If an origin is invalid, or a key is too short.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        on_start: Callable[[Callable[[Catalog], None], Callable[[], bool]], object] = lambda *_: None,
    ) -> None:
        self.draining = False
        self.body_timeout, self.comment_interval = 10.0, 15.0
        self._catalog = catalog
        self._settings = settings
        self._on_start = on_start
        self._siblings: tuple[Siblings, int] | None = None
        self._authorizer = authorizer = settings.authorizer
        self._metrics = settings.metrics
        self._routes: dict[str, Callable[[Head, Scope], Awaitable[HttpResponse]]] = {}
        self._routes |= dict.fromkeys(_HEALTH, self._health)
        if settings.metrics is not None:
            self._routes["/metrics"] = partial(self._scrape, settings.metrics)
        self._ring = KeyRing(settings.keys, settings.identity.name, settings.own_key)
        documents = MappingProxyType({}) if authorizer is None else authorizer.scheme.documents
        self._guard = Guard(settings.hosts, settings.origins, documents)
        self._endpoint = Endpoint(settings.identity, Sessions(self._ring), settings.limits)
        self._inbox = Inbox(self._endpoint)
        self._server: SharedServer | None = None
        self._open: PendingRequests | None = None
        self._lock = Lock()

    def replace(self, catalog: Catalog) -> None:
        """Start serving another catalog, and notify clients of the changes."""
        server = self.start()
        server.replace(catalog)
        self._declare_capabilities(server)

    def join(self, siblings: "Siblings", number: int) -> None:
        """
        Let this worker exchange messages with the other workers. Call this method before the first request.

        Args:
            siblings:
                The sockets of all workers of the supervisor that has started this process.

            number:
                The number of this worker, from 0.
        """
        self._siblings = siblings, number

    def is_idle(self) -> bool:
        """Return whether the last request was more than a second ago."""
        return self._server is None or self._server.is_idle

    def start(self) -> SharedServer:
        """Start the server's threads, if needed. The process must not fork afterwards."""
        with self._lock:
            if self._server is not None:
                return self._server
            settings = self._settings
            # Each process opens the audit log itself.
            audit = None if settings.audit is None else Audit(settings.audit)
            observers = (audit, settings.telemetry, settings.metrics)
            server = SharedServer(
                self._catalog,
                discard,
                identity=settings.identity,
                page_size=settings.page_size,
                tools=settings.tools,
                skills_as=settings.skills_as,
                changes=settings.changes,
                limits=settings.limits,
                signer=RequestStateSigner(self._ring),
                observers=[each for each in observers if each is not None],
                scopes=settings.scopes,
                count_waiting=bool if self._metrics is None else self._metrics.count_waiting,
            )
            self._declare_capabilities(server)
            if self._siblings is None:
                server.join()
            else:
                self._exchange(server, *self._siblings)
            if (authorizer := self._authorizer) is not None:
                self._inbox.challenge = lambda requests: authorizer.challenge(requests, server)
            server.handle_from(self._inbox.next_events)
            self._server = server
        self._on_start(self.replace, self.is_idle)
        return server

    def _exchange(self, server: SharedServer, siblings: "Siblings", number: int) -> None:
        """Start exchanging messages with the other workers."""

        def receive(message: bytes) -> None:
            if (answer := server.receive_from_worker(message)) is not None:
                self._inbox.put(answer)

        server.join(number, len(siblings), siblings.send)
        siblings.receive(number, receive)

    def _declare_capabilities(self, server: SharedServer) -> None:
        self._endpoint.declare_capabilities(server.capabilities, server.observe)

    def close(self, grace: float) -> None:
        """
        End all streams, and answer all pending requests.

        Args:
            grace:
                How long to wait for running prompts, in seconds.
        """
        self._inbox.close()
        if self._server is not None:
            self._server.close(grace)
        self._inbox.reject_late_messages()
        if self._settings.telemetry is not None:
            self._settings.telemetry.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI request."""
        if scope["type"] != "http":
            await self._handle_other_scope(scope, receive, send)
            return
        head = read_head(scope["method"], _path(scope), scope["headers"])
        checked = await self._check(head, scope)
        pending = self._pending_requests()
        channel = HttpChannel(head, receive, pending)
        pending.begin(channel)
        try:
            if isinstance(checked, HttpResponse):
                # A client that expects 100 (Continue) sends no body after an error, but some servers then
                # parse its next request as the body.
                is_read = b"expect" not in head.fields and await channel.drop_body()
                fields = () if is_read or CLOSE in checked.headers else (CLOSE,)
                await self._send_and_count(head, checked, send, fields)
            else:
                channel.client, channel.principal = scope.get("client"), checked
                await self._answer(channel, send)
        finally:
            pending.end(channel)
            if not channel.is_answered:
                self._drop(channel)

    async def _answer(self, channel: HttpChannel, send: Send) -> None:
        """Answer a posted message."""
        head, private = channel.head, () if channel.principal is None else (_PRIVATE,)
        body = await channel.read_body(self._settings.body_limit)
        reply: Outgoing | None
        if isinstance(body, bytes):
            channel.body = body
            self._inbox.put(channel)
            reply = await channel.next()
        else:
            reply = body
        if isinstance(reply, Reply):
            response = make_response(reply, modern=channel.modern)
            if head.method == STREAM:  # there is no request whose client could read the error
                response.status = HTTPStatus.SERVICE_UNAVAILABLE
            await self._send(head, response, send, private)
        elif isinstance(reply, HttpResponse):
            await self._send_and_count(head, reply, send, private)
        elif reply is not None:
            await self._stream(channel, reply, send)

    async def _check(self, head: Head, scope: Scope) -> HttpResponse | Principal | None:
        """Return the response if it does not depend on the body, otherwise the principal, if there is one."""
        if (rejected := check_framing(head)) is not None:
            return rejected
        if head.path in self._routes:
            return await self._routes[head.path](head, scope)
        if (response := self._guard.check(head)) is not None or self._authorizer is None:
            return response
        return await self._authorizer.check(head, scope.get("query_string", b""))

    async def _handle_other_scope(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle lifespan events, and reject WebSockets."""
        if scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1000})
            return
        while (event := await receive())["type"] != "lifespan.shutdown":
            if event["type"] == "lifespan.startup":
                self.start()
                await send({"type": "lifespan.startup.complete"})
        await asyncio.to_thread(self.close, 0.0)
        await send({"type": "lifespan.shutdown.complete"})

    async def _send_and_count(
        self, head: Head, response: HttpResponse, send: Send, fields: Iterable[Field]
    ) -> None:
        """Send a response that was created outside the server's threads. Count it if it is an error."""
        if self._metrics is not None and response.status >= 400 and head.path not in _HEALTH:
            self._metrics.count_rejection(response.status)
        await self._send(head, response, send, fields)

    async def _send(self, head: Head, response: HttpResponse, send: Send, fields: Iterable[Field]) -> None:
        """Send a response with additional header *fields*."""
        headers = [*response.headers, *fields]
        if response.status != 204:  # 204 must have no content-length
            headers.append((b"content-length", b"%d" % len(response.body)))
        if b"origin" in head.fields:
            headers += self._guard.cors_headers(head)
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _stream(self, channel: HttpChannel, reply: Outgoing | None, send: Send) -> None:
        """Send a stream of events that ends with the reply."""
        channel.watch()
        headers = [*_EVENTS, *self._guard.cors_headers(channel.head)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while isinstance(reply, bytes):
            if not reply and await self._must_end(channel):
                reply = CANCELLED
                break
            body = _events(reply) or b":\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
            reply = await channel.next_event(self.comment_interval)
        if isinstance(reply, Reply):
            await send({"type": "http.response.body", "body": _events(reply.line)})

    async def _must_end(self, channel: HttpChannel) -> bool:
        """Return whether a stream must end, because its token is no longer valid or now has other scopes."""
        if self._authorizer is None or channel.principal is None:
            return False
        listens = any(request.method in _STREAMS for request in channel.requests)
        return listens and not await self._authorizer.still_admits(channel.head, channel.principal)

    def _drop(self, channel: HttpChannel) -> None:
        """Cancel the work for a client that has disconnected."""
        channel.gone = True
        server = self.start()
        for request in channel.requests:
            server.drop(request)
        channel.requests = ()

    async def _health(self, head: Head, _scope: Scope) -> HttpResponse:
        """
        Answer a liveness or readiness probe. With shared keys, readiness includes a digest of the catalog.
        """
        if head.method not in ("GET", "HEAD"):
            return HttpResponse(405, headers=((b"allow", b"GET, HEAD"),))
        if head.path == "/healthz":
            return HttpResponse(200, b'{"status":"ok"}', (JSON_BODY,))
        if self.draining:
            return HttpResponse(503, b'{"status":"ending"}', (JSON_BODY,))
        server = self.start()
        if not server.is_reading:
            return HttpResponse(503, b'{"status":"no thread reads requests"}', (JSON_BODY,))
        ready: dict[str, Any] = {"status": "ready", "errors": self._settings.count_invalid()}
        if self._ring.is_shared:
            digest = await asyncio.to_thread(lambda: server.snapshot.digest)  # can be slow
            # The digest is public and covers hidden prompts, so it is keyed, to prevent guessing.
            ready["catalog"] = self._ring.digest("catalog", digest.encode())
        return HttpResponse(200, encode(ready), (JSON_BODY,))

    async def _scrape(self, metrics: "Metrics", head: Head, scope: Scope) -> HttpResponse:
        """Answer Prometheus. Metrics contain names of prompts, so a scrape needs a token like any request."""
        if (rejected := self._guard.check_page(head)) is not None:
            return rejected
        if self._authorizer is not None:
            result = await self._authorizer.check(head, scope.get("query_string", b""))
            if isinstance(result, HttpResponse):
                return result
        text = await asyncio.to_thread(metrics.encode, self._settings.count_invalid())
        return HttpResponse(200, text, (_PLAIN, _PRIVATE))

    def _pending_requests(self) -> PendingRequests:
        """Return the `PendingRequests` of the running event loop, creating the object if needed."""
        loop, pending = asyncio.get_running_loop(), self._open
        if pending is None or pending.loop is not loop:
            self.start()
            held, timeout = self._settings.limits.held, self.body_timeout
            pending = self._open = PendingRequests(loop, self._drop, max_bytes=held, body_timeout=timeout)
        return pending


class LoggedApplication(Application):
    """
    Serves a catalog over HTTP and logs each request in the ``logfmt`` format.

    Log lines do not contain the body, the URL's query or header fields, and therefore no arguments or tokens.
    The status is 499 if the client disconnected before the response started. A request that exceeds a limit
    is logged with status 200 and its error code.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI request and log it."""
        started, status, size, code = time.perf_counter(), 499, 0, ""

        async def send_and_count(event: Event) -> None:
            nonlocal status, size, code
            if event.get("status") == HTTPStatus.OK and any(name == RETRY[0] for name, _ in event["headers"]):
                code = f" code={TooManyRequests.code}"
            status = event.get("status", status)
            size += len(event.get("body", b""))
            await send(event)

        try:
            await super().__call__(scope, receive, send_and_count)
        finally:
            address = scope["client"][0] if scope.get("client") else "-"
            path = json.dumps(shortened(scope["path"]))  # ASCII only: no line endings or control sequences
            elapsed = (time.perf_counter() - started) * 1000
            say(
                f"access address={address} method={scope['method']} path={path} "
                f"status={status}{code} bytes={size} ms={elapsed:.1f}"
            )


def _path(scope: Scope) -> str:
    """Return the path relative to the mount point of the application."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if not root or not (root := root.rstrip("/")) or not path.startswith(root):
        return path
    inner = path[len(root) :]
    return inner if inner.strip("/") else ENDPOINT


def _events(lines: bytes) -> bytes:
    return b"".join(b"event: message\ndata: " + line + b"\n\n" for line in lines.splitlines())
