"""
The endpoint: what a posted message is, in which era, if its head agrees with its body; a reply's status.

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
from promptkit.protocol.http.envelopes import Envelope, disagreement, peek
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

#: The status of each error, by its code. Others have 200: one request over a limit does, too, because the
#: official Python client 1.x ends its session at any status of 400 or more.
_STATUSES: Final[Mapping[int | None, int]] = {
    ParseError.code: 400,
    InvalidRequest.code: 400,
    MethodNotFound.code: 404,
    HeaderMismatch.code: 400,
    MissingCapability.code: 400,
    UnsupportedVersion.code: 400,
}

#: What is wrong with the message itself. Clients of the older era take each such status for a broken
#: connection, so there only what no client sends by chance has one.
_BROKEN: Final = (ParseError.code, InvalidRequest.code)

_VERSION: Final = b"mcp-protocol-version"
_SESSION_ID: Final = b"mcp-session-id"

#: The revision of requests that name none in any way.
_UNNAMED: Final = next(revision.date.encode() for revision in REVISIONS.values() if revision.batches)

#: The revisions with a handshake, by what a header says.
_LEGACY: Final[Mapping[bytes | None, Revision]] = {
    revision.date.encode(): revision for revision in REVISIONS.values() if not revision.stateless
}

_ACCEPTED: Final = HttpResponse(202)


#: Here a request is of the revision that it names, even if it looks like a handshake.
_INITIALIZE: Final = Method(wire.InitializeParams, modern=False, opens=True, served=False)


class _OneMessage(Session):
    """A session of which each message may come from another client: a handshake changes nothing."""

    methods = MappingProxyType({**METHODS, "initialize": _INITIALIZE})
    agreed: Session | None = None

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        self.agreed = Session(self.server_info, structs.replace(self.capabilities, changes=False))
        return self.agreed._initialize(params)  # noqa: SLF001 (it is of this class)

    def _note(self, observe: Observe, message: Message, reply: Reply, channel: Channel | None) -> None:
        """Note a handshake with the client and the revision that it has agreed upon."""
        if self.agreed is None:
            super()._note(observe, message, reply, channel)
        else:
            self.agreed._note(observe, message, reply, channel)  # noqa: SLF001 (as above)

    def exceeds_limits(self, body: bytes) -> bool:
        """Whether a body holds so much that it is not decoded to say more of it."""
        return find_excess(body, self._limits) is not None


#: What messages are read with, by the revision that a head names; None in the modern era: messages name it.
_ByVersion: TypeAlias = dict[bytes | None, _OneMessage]


class Endpoint:
    """
    Takes messages from many clients, each with the head of its request.

    Args:
        server_info:
            The server's name and version.

        sessions:
            Seals what a handshake has agreed upon, so that the client may bring it along.

        limits:
            How much a client may send.
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
        From now on, declare these capabilities.

        Args:
            capabilities:
                What the server declares that it can do. Clients with a handshake are told of no changes, as
                they have no stream.

            observe:
                Called with each request that is answered here, and the reply.
        """
        self._observe = observe
        versions = (None, *_LEGACY)
        self._side = {version: self._session(capabilities, _LEGACY.get(version)) for version in versions}

    def receive(self, head: Head, body: bytes, channel: Channel) -> list[Request] | HttpResponse:
        """
        Take one message, or a batch. Return its requests for the server, of one era, or else the response.

        Args:
            head:
                The head of its request, which `promptkit.protocol.http.head_checks.Guard` has let through.

            body:
                The whole body.

            channel:
                Where replies go.
        """
        if head.repeated and (refused := _refuse_repeated(head, body)) is not None:
            return refused
        side = self._side
        session = self._session_of(head, channel, side)
        if session is None:
            ended = peek(body)
            if ended.method != "initialize" and not ended.names_revision:
                msg = "this session has ended: send an initialize request without Mcp-Session-Id"
                return refuse(404, InvalidRequest(msg), ended.id)
            session = side[_UNNAMED]
        events = session.receive_message(body, channel)
        if len(events) == 1 and isinstance(request := events[0], Request) and request.channel is channel:
            return self._checked(head, request)
        return self._answered(head, body, session, events, channel)

    def _session_of(self, head: Head, channel: Channel, side: _ByVersion) -> _OneMessage | None:
        """The session that a request claims to belong to; None if that has ended."""
        version = head.get(_VERSION)
        if version is not None and version not in _LEGACY:
            return side[None]
        if (sealed := head.get(_SESSION_ID)) is None:
            return side[version or _UNNAMED]
        if (known := self._sessions.open(sealed.decode("latin-1"), _owner(channel))) is None:
            return None
        revision = known.revision if version is None else _LEGACY[version]
        return self._session(side[None].capabilities, revision, known.client, known.capabilities)

    def _session(
        self,
        capabilities: Capabilities,
        revision: Revision | None,
        client: wire.ClientInfo | None = None,
        client_capabilities: dict[str, Any] | None = None,
    ) -> _OneMessage:
        session = _OneMessage(self._server_info, capabilities, self._limits, self._budget)
        session.revision, session.client = revision, client
        session.client_capabilities = client_capabilities or {}
        session.observe = self._observe
        return session

    def _checked(self, head: Head, request: Request) -> list[Request] | HttpResponse:
        """Let a request through if its head agrees with its body."""
        if not request.revision.stateless:
            return [request]
        params = request.params
        name = getattr(params, "name", None)
        if name is None:
            name = getattr(params, "uri", None)
        fault = disagreement(head, request.revision.date, request.method, name)
        if fault is None:
            return [request]
        refused = encode_error(request.id, fault)
        if self._observe is not None:
            self._observe(request, refused)
        request.discard(refused)
        return response_to(refused, modern=True)

    def _answered(
        self, head: Head, body: bytes, session: _OneMessage, events: list[Event], channel: Channel
    ) -> list[Request] | HttpResponse:
        """What becomes of a message that is no single request for the server."""
        agreed, session.agreed = session.agreed, None
        reply = next((event for event in events if isinstance(event, Reply)), None)
        if reply is not None and session.exceeds_limits(body):
            return response_to(reply, modern=False)
        message = peek(body)
        if message.elements is not None:
            return self._batch(head, message, events)
        if reply is None:
            return self._unanswered(head, message)
        if not message.is_request:
            return response_to(reply, modern=False)
        return self._replied(head, message, reply, agreed, channel)

    def _replied(
        self, head: Head, message: Envelope, reply: Reply, agreed: Session | None, channel: Channel
    ) -> HttpResponse:
        """The response to a request that needs no server."""
        modern = message.names_revision or self._is_modern(head)
        if modern:
            fault = message.envelope_fault() or disagreement(
                head, message.version, message.method, message.name
            )
            if fault is not None:
                return refuse(400, fault, message.id)
        response = response_to(reply, modern=modern)
        if agreed is not None and agreed.revision is not None:
            opened = agreed.revision, agreed.client, agreed.client_capabilities
            sealed = self._sessions.seal(*opened, _owner(channel))
            response.headers += ((_SESSION_ID, sealed.encode()),)
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

    def _unanswered(self, head: Head, message: Envelope) -> HttpResponse:
        """The response to a notification or a response, or to nothing at all."""
        if message.is_response:
            if self._is_modern(head):
                return refuse(400, InvalidRequest("clients of this revision send no responses"))
            return _ACCEPTED
        if not message.is_notification:
            return refuse(400, ParseError("the body is empty: send a message"))
        version = head.get(_VERSION)
        if version is not None and (asked := version.decode("latin-1")) not in REVISIONS:
            msg = f"protocol version {asked!r} is not served"
            return refuse(400, UnsupportedVersion(msg, {"supported": list(MODERN), "requested": asked}))
        return _ACCEPTED

    def _is_modern(self, head: Head) -> bool:
        """Whether a head names a revision of the modern era, or one that nobody knows."""
        version = head.get(_VERSION)
        return version is not None and version not in _LEGACY


def _owner(channel: Channel) -> str:
    """Whose sessions these are; nobody's by name if nobody asked."""
    return "" if channel.principal is None else channel.principal.identity


def _refuse_repeated(head: Head, body: bytes) -> HttpResponse | None:
    """Refuse a request of a session if nobody can tell of which one."""
    for name in (_VERSION, _SESSION_ID):
        if name in head.repeated and not (message := peek(body)).names_revision:
            msg = f"{name.decode()} was sent more than once"
            return refuse(400, InvalidRequest(msg), message.id)
    return None


def response_to(reply: Reply, *, modern: bool) -> HttpResponse:
    """
    Return the response that carries a reply.

    Args:
        reply:
            A result, or an error.

        modern:
            Whether the request names its revision.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    code, body = reply.code, reply.line[:-1]
    status = _STATUSES.get(code, 200) if modern or code in _BROKEN else 200
    if code != TooManyRequests.code:
        return HttpResponse(status, body, (JSON_BODY,))
    retry = RETRY if reply.retry_after is None else (RETRY[0], b"%d" % reply.retry_after)
    return HttpResponse(status, body, (JSON_BODY, retry))
