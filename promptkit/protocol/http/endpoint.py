"""
The MCP endpoint: determines the era of posted messages, compares their headers, and maps replies to statuses.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import structs

from promptkit.protocol import wire
from promptkit.protocol.capabilities import METHODS, Capabilities, Method, ServerInfo
from promptkit.protocol.decoding import Message, find_excess
from promptkit.protocol.events import Channel, Event, MemoryBudget, Request
from promptkit.protocol.http.envelopes import Envelope, find_header_mismatch, peek
from promptkit.protocol.http.messages import JSON_BODY, RETRY, Head, HttpResponse, refuse
from promptkit.protocol.http.sessions import Sessions
from promptkit.protocol.jsonrpc import (
    HeaderMismatch,
    InvalidRequest,
    MethodNotFound,
    MissingCapability,
    ParseError,
    Reply,
    TooManyRequests,
    UnsupportedVersion,
    encode_error,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import MODERN, REVISIONS, Revision
from promptkit.protocol.session import Observe, Session

if TYPE_CHECKING:
    pass

#: The HTTP status of each error code; 200 for all others. This includes rate limits, because the official
#: Python client 1.x ends its session at any status of 400 or above.
_STATUSES: Final[Mapping[int | None, int]] = {
    ParseError.code: 400,
    InvalidRequest.code: 400,
    MethodNotFound.code: 404,
    HeaderMismatch.code: 400,
    MissingCapability.code: 400,
    UnsupportedVersion.code: 400,
}

#: Errors of the message itself. In the older era only these have an error status, because clients treat it as
#: a broken connection.
_INVALID_MESSAGE: Final = (ParseError.code, InvalidRequest.code)

_VERSION: Final = b"mcp-protocol-version"
_SESSION_ID: Final = b"mcp-session-id"

#: The revision of requests that do not name one.
_UNNAMED: Final = next(revision.date.encode() for revision in REVISIONS.values() if revision.batches)

#: The revisions with a handshake, by the value of the version header.
_LEGACY: Final[Mapping[bytes | None, Revision]] = {
    revision.date.encode(): revision for revision in REVISIONS.values() if not revision.stateless
}

_ACCEPTED: Final = HttpResponse(202)

#: An ``initialize`` request may name a revision here, which then applies to it.
_INITIALIZE: Final = Method(wire.InitializeParams, modern=False, opens=True, served=False)


class _MessageSession(Session):
    """A session whose messages may come from different clients, so that a handshake does not change it."""

    methods = MappingProxyType({**METHODS, "initialize": _INITIALIZE})
    negotiated: Session | None = None

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        self.negotiated = Session(self.server_info, structs.replace(self.capabilities, changes=False))
        return self.negotiated._initialize(params)  # noqa: SLF001 (the same class)

    def _observe_reply(
        self, observe: Observe, message: Message, reply: Reply, channel: Channel | None
    ) -> None:
        """Report a handshake with the client and the revision that it has negotiated."""
        if self.negotiated is None:
            super()._observe_reply(observe, message, reply, channel)
        else:
            self.negotiated._observe_reply(observe, message, reply, channel)  # noqa: SLF001 (as above)

    def exceeds_limits(self, body: bytes) -> bool:
        """Return whether a body exceeds a limit, so that it must not be decoded again."""
        return find_excess(body, self._limits) is not None


#: Sessions by the revision in the version header; None is the modern era, in which messages name it.
_SessionsByVersion: TypeAlias = dict[bytes | None, _MessageSession]


class Endpoint:
    """
    The MCP endpoint, which receives messages from many clients.

    Args:
        server_info:
            The server's name and version.

        sessions:
            The issuer of session ids, which contain the result of a handshake.

        limits:
            The limits on messages and requests.
    """

    def __init__(self, server_info: ServerInfo, sessions: Sessions, limits: Limits) -> None:
        self._server_info = server_info
        self._sessions = sessions
        self._limits = limits
        self._budget = MemoryBudget(limits.held)
        self._observe: Observe | None = None
        self.offer(Capabilities())

    def offer(
        self,
        capabilities: Capabilities,
        observe: Observe | None = None,
    ) -> None:
        """
        Declare these capabilities to clients from now on.

        Args:
            capabilities:
                The capabilities of the server. Clients with a handshake are not notified of changes, because
                they have no stream.

            observe:
                A callback for each request that is answered here, and the reply.
        """
        self._observe = observe
        versions = (None, *_LEGACY)
        self._sessions_by_version = {
            version: self._session(capabilities, _LEGACY.get(version)) for version in versions
        }

    def receive(self, head: Head, body: bytes, channel: Channel) -> list[Request] | HttpResponse:
        """
        Return the requests in one message or batch, all of one era, or the response if there are none.

        Args:
            head:
                The head of the HTTP request, which `promptkit.protocol.http.head_checks.Guard` has accepted.

            body:
                The whole body.

            channel:
                The destination of replies.
        """
        if head.repeated and (response := _check_repeated(head, body)) is not None:
            return response
        by_version = self._sessions_by_version
        session = self._find_session(head, channel, by_version)
        if session is None:
            message = peek(body)
            if message.method != "initialize" and not message.names_revision:
                msg = "this session has ended: send an initialize request without Mcp-Session-Id"
                return refuse(404, InvalidRequest(msg), message.id)
            session = by_version[_UNNAMED]
        events = session.receive_message(body, channel)
        if len(events) == 1 and isinstance(request := events[0], Request) and request.channel is channel:
            return self._check_headers(head, request)
        return self._respond(head, body, session, events, channel)

    def _find_session(
        self, head: Head, channel: Channel, by_version: _SessionsByVersion
    ) -> _MessageSession | None:
        """Return the session that a request names, or None if the session has ended."""
        version = head.get(_VERSION)
        if version is not None and version not in _LEGACY:
            return by_version[None]
        if (session_id := head.get(_SESSION_ID)) is None:
            return by_version[version or _UNNAMED]
        if (opened := self._sessions.open(session_id.decode("latin-1"), _owner(channel))) is None:
            return None
        revision = opened.revision if version is None else _LEGACY[version]
        return self._session(by_version[None].capabilities, revision, opened.client, opened.capabilities)

    def _session(
        self,
        capabilities: Capabilities,
        revision: Revision | None,
        client: wire.ClientInfo | None = None,
        client_capabilities: dict[str, Any] | None = None,
    ) -> _MessageSession:
        session = _MessageSession(self._server_info, capabilities, self._limits, self._budget)
        session.revision, session.client = revision, client
        session.client_capabilities = client_capabilities or {}
        session.observe = self._observe
        return session

    def _check_headers(self, head: Head, request: Request) -> list[Request] | HttpResponse:
        """Return the request if its headers match its body, otherwise the error response."""
        if not request.revision.stateless:
            return [request]
        params = request.params
        name = getattr(params, "name", None)
        if name is None:
            name = getattr(params, "uri", None)
        error = find_header_mismatch(head, request.revision.date, request.method, name)
        if error is None:
            return [request]
        reply = encode_error(request.id, error)
        if self._observe is not None:
            self._observe(request, reply)
        request.discard(reply)
        return response_to(reply, modern=True)

    def _respond(
        self, head: Head, body: bytes, session: _MessageSession, events: list[Event], channel: Channel
    ) -> list[Request] | HttpResponse:
        """Return the requests or the response for any message but a single request for the server."""
        negotiated, session.negotiated = session.negotiated, None
        reply = next((event for event in events if isinstance(event, Reply)), None)
        if reply is not None and session.exceeds_limits(body):
            return response_to(reply, modern=False)
        message = peek(body)
        if message.elements is not None:
            return self._batch(head, message, events)
        if reply is None:
            return self._respond_without_reply(head, message)
        if not message.is_request:
            return response_to(reply, modern=False)
        return self._respond_to_request(head, message, reply, negotiated, channel)

    def _respond_to_request(
        self, head: Head, message: Envelope, reply: Reply, negotiated: Session | None, channel: Channel
    ) -> HttpResponse:
        """Return the response to a request that the session has answered itself."""
        modern = message.names_revision or self._is_modern(head)
        if modern:
            error = message.find_envelope_error() or find_header_mismatch(
                head, message.version, message.method, message.name
            )
            if error is not None:
                return refuse(400, error, message.id)
        response = response_to(reply, modern=modern)
        if negotiated is not None and negotiated.revision is not None:
            opened = negotiated.revision, negotiated.client, negotiated.client_capabilities
            session_id = self._sessions.seal(*opened, _owner(channel))
            response.headers += ((_SESSION_ID, session_id.encode()),)
        return response

    def _batch(self, head: Head, message: Envelope, events: list[Event]) -> list[Request] | HttpResponse:
        requests = [event for event in events if isinstance(event, Request)]
        is_old = head.get(_VERSION) in (None, _UNNAMED)
        if not is_old or message.has_modern_element(self._limits.messages):
            for request in requests:
                request.discard()
            msg = f"only revision {_UNNAMED.decode()} has batches, and none of its requests names another"
            return refuse(400, InvalidRequest(msg))
        reply = next((event for event in events if isinstance(event, Reply)), None)
        if reply is not None:
            return response_to(reply, modern=False)
        return requests or _ACCEPTED

    def _respond_without_reply(self, head: Head, message: Envelope) -> HttpResponse:
        """Return the response to a notification, a response, or an empty body."""
        if message.is_response:
            if self._is_modern(head):
                return refuse(400, InvalidRequest("clients of this revision send no responses"))
            return _ACCEPTED
        if not message.is_notification:
            return refuse(400, ParseError("the body is empty: send a message"))
        version = head.get(_VERSION)
        if version is not None and (requested := version.decode("latin-1")) not in REVISIONS:
            msg = f"protocol version {requested!r} is not served"
            return refuse(400, UnsupportedVersion(msg, {"supported": list(MODERN), "requested": requested}))
        return _ACCEPTED

    def _is_modern(self, head: Head) -> bool:
        """Return whether a head names a modern or an unknown revision."""
        version = head.get(_VERSION)
        return version is not None and version not in _LEGACY


def _owner(channel: Channel) -> str:
    """Return the identity that owns the caller's sessions; ``""`` without authentication."""
    return "" if channel.principal is None else channel.principal.identity


def _check_repeated(head: Head, body: bytes) -> HttpResponse | None:
    """Return the error response if a header that selects the session is repeated."""
    for name in (_VERSION, _SESSION_ID):
        if name in head.repeated and not (message := peek(body)).names_revision:
            msg = f"{name.decode()} was sent more than once"
            return refuse(400, InvalidRequest(msg), message.id)
    return None


def response_to(reply: Reply, *, modern: bool) -> HttpResponse:
    """
    Return the response that carries a reply.

    Its status depends on whether the request names its revision (*modern*).

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    code, body = reply.code, reply.line[:-1]
    status = _STATUSES.get(code, 200) if modern or code in _INVALID_MESSAGE else 200
    if code != TooManyRequests.code:
        return HttpResponse(status, body, (JSON_BODY,))
    retry = RETRY if reply.retry_after is None else (RETRY[0], b"%d" % reply.retry_after)
    return HttpResponse(status, body, (JSON_BODY, retry))
