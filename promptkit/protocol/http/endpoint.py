"""
The endpoint: what a posted message is, in which era, and whether its head agrees with its body.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, structs

from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.events import Channel, Event, MemoryBudget, Request
from promptkit.protocol.http.agreement import disagreement
from promptkit.protocol.http.envelopes import Message, peek
from promptkit.protocol.http.messages import JSON, Head, Response, refuse
from promptkit.protocol.http.sessions import Sessions
from promptkit.protocol.http.statuses import status_of
from promptkit.protocol.jsonrpc import (
    HeaderMismatch,
    InvalidRequest,
    ParseError,
    UnsupportedVersion,
    encode_error,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.methods import METHODS, Method
from promptkit.protocol.revisions import MODERN, REVISIONS, Era, Revision
from promptkit.protocol.session import Session

__all__ = ["Accepted", "Endpoint"]

_VERSION: Final = b"mcp-protocol-version"
_SESSION_ID: Final = b"mcp-session-id"

#: What a request is taken for that names no revision in any way.
_UNNAMED: Final = next(revision for revision in REVISIONS.values() if revision.batches)

_ACCEPTED: Final = Response(202)
_JSON: Final = (b"content-type", JSON)


#: Here a request is of the revision that it names, even if it looks like a handshake.
_INITIALIZE: Final = Method(wire.InitializeParams, modern=False, opens=True, served=False)


class Accepted(Struct, gc=False):
    """
    Requests for the server.

    Args:
        requests:
            One, or those of a batch. Their replies go to the channel.

        modern:
            Whether they name their revision.
    """

    requests: list[Request]
    modern: bool


class _OneMessage(Session):
    """A session of which each message may come from another client: a handshake changes nothing."""

    methods = MappingProxyType({**METHODS, "initialize": _INITIALIZE})
    agreed: Session | None = None

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        self.agreed = Session(self.server_info, structs.replace(self.capabilities, changes=False))
        return self.agreed._initialize(params)  # noqa: SLF001 (it is of this class)


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
        self._observe: Callable[[Request, bytes], object] | None = None
        self._capabilities = Capabilities()
        self._by_revision: dict[Revision | None, _OneMessage] = {}
        self.offer(self._capabilities)

    def offer(
        self, capabilities: Capabilities, observe: Callable[[Request, bytes], object] | None = None
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
        self._capabilities, self._observe = capabilities, observe or self._observe
        legacy = [revision for revision in REVISIONS.values() if revision.era is Era.HANDSHAKE]
        self._by_revision = {revision: self._session(revision) for revision in (None, *legacy)}

    def receive(self, head: Head, body: bytes, channel: Channel) -> Accepted | Response:
        """
        Take one message, or a batch.

        Args:
            head:
                The head of its request, which `promptkit.protocol.http.guard.Guard` has let through.

            body:
                The whole body.

            channel:
                Where replies go.
        """
        session = self._session_of(head)
        if session is None:
            if (ended := peek(body)).method != "initialize":
                msg = "this session has ended: send an initialize request without Mcp-Session-Id"
                return refuse(404, InvalidRequest(msg), ended.id)
            session = self._by_revision[_UNNAMED]
        events = session.receive_message(body, channel)
        if len(events) == 1 and isinstance(request := events[0], Request):
            return self._checked(head, request)
        return self._answered(head, body, session, events)

    def _session_of(self, head: Head) -> _OneMessage | None:
        """The session that a request claims to belong to; None if that has ended."""
        if _is_modern(head):
            return self._by_revision[None]
        revision = REVISIONS.get(head.fields.get(_VERSION, b"").decode("latin-1"))
        if (sealed := head.fields.get(_SESSION_ID)) is None:
            return self._by_revision[revision or _UNNAMED]
        if (known := self._sessions.open(sealed.decode("latin-1"))) is None:
            return None
        return self._session(revision or known.revision, known.client, known.capabilities)

    def _session(
        self,
        revision: Revision | None,
        client: wire.ClientInfo | None = None,
        client_capabilities: dict[str, Any] | None = None,
    ) -> _OneMessage:
        session = _OneMessage(self._server_info, self._capabilities, self._limits, self._budget)
        session.revision, session.client = revision, client
        session.client_capabilities = client_capabilities or {}
        session.observe = self._observe
        return session

    def _checked(self, head: Head, request: Request) -> Accepted | Response:
        """Let a request through if its head agrees with its body."""
        if not request.revision.stateless:
            return Accepted([request], modern=False)
        params = request.params
        name = getattr(params, "name", None) or getattr(params, "uri", None)
        fault = disagreement(head, request.revision.date, request.method, name)
        if fault is None:
            return Accepted([request], modern=True)
        refused = encode_error(request.id, fault)
        request.channel = None  # it has no reply of its own
        request.answer(refused)
        return Response(400, refused[:-1], (_JSON,))

    def _answered(
        self, head: Head, body: bytes, session: _OneMessage, events: list[Event]
    ) -> Accepted | Response:
        """What becomes of a message that is no single request for the server."""
        agreed, session.agreed = session.agreed, None
        message = peek(body)
        if message.elements is not None:
            return self._batch(head, message, events)
        replies = [event for event in events if isinstance(event, bytes)]
        if not replies:
            return self._unanswered(head, message)
        reply = replies[0]
        if not message.is_request:
            return Response(400, reply[:-1], (_JSON,))
        modern = message.names_revision or _is_modern(head)
        if modern and (fault := message.envelope_fault() or _disagreement(head, message)):
            return refuse(400, fault, message.id)
        headers = [_JSON]
        if agreed is not None and agreed.revision is not None:
            sealed = self._sessions.seal(agreed.revision, agreed.client, agreed.client_capabilities)
            headers.append((_SESSION_ID, sealed.encode()))
        return Response(status_of(reply, modern=modern), reply[:-1], tuple(headers))

    def _batch(self, head: Head, message: Message, events: list[Event]) -> Accepted | Response:
        requests = [event for event in events if isinstance(event, Request)]
        revision = _UNNAMED.date.encode()
        if head.fields.get(_VERSION, revision) != revision or message.has_modern_element():
            for request in requests:
                request.channel = None
                request.answer(b"")
            msg = f"only revision {_UNNAMED.date} has batches: send one message a request"
            return refuse(400, InvalidRequest(msg))
        replies = [event for event in events if isinstance(event, bytes)]
        if replies:
            return Response(status_of(replies[0], modern=False), replies[0][:-1], (_JSON,))
        return Accepted(requests, modern=False) if requests else _ACCEPTED

    def _unanswered(self, head: Head, message: Message) -> Response:
        """The response to a notification or a response, or to nothing at all."""
        if message.is_response:
            if _is_modern(head):
                return refuse(400, InvalidRequest("clients of this revision send no responses"))
            return _ACCEPTED
        if not message.is_notification:
            return refuse(400, ParseError("the body is empty: send a message"))
        version = head.fields.get(_VERSION)
        if version is not None and (asked := version.decode("latin-1")) not in REVISIONS:
            msg = f"protocol version {asked!r} is not served"
            return refuse(400, UnsupportedVersion(msg, {"supported": list(MODERN), "requested": asked}))
        return _ACCEPTED


def _is_modern(head: Head) -> bool:
    """Whether a head names a revision of the modern era, or one that nobody knows."""
    if (version := head.fields.get(_VERSION)) is None:
        return False
    revision = REVISIONS.get(version.decode("latin-1"))
    return revision is None or revision.stateless


def _disagreement(head: Head, message: Message) -> HeaderMismatch | None:
    return disagreement(head, message.version, message.method, message.name)
