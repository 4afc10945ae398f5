"""
The MCP endpoint: finds the era of each posted message, checks its headers, and maps replies to HTTP statuses.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.capabilities import METHODS, Capabilities, Method, ServerInfo
from promptkit.protocol.decoding import Message, decode_message
from promptkit.protocol.events import Channel, ClientResponse, Event, MemoryBudget, Request
from promptkit.protocol.http.messages import (
    JSON_BODY,
    RETRY,
    SESSION_ID,
    STREAM,
    Head,
    HttpResponse,
    read_session_id,
    reject,
)
from promptkit.protocol.jsonrpc import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingCapability,
    ParseError,
    Reply,
    TooManyRequests,
    UnsupportedVersion,
    encode_error,
)
from promptkit.protocol.key_ring import Sessions
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import MODERN, REVISIONS, Revision
from promptkit.protocol.session import Observe, Session, decode_meta, read_envelope

#: The HTTP status for each error code. All other codes get 200, including those of exceeded rate limits,
#: because the official Python client 1.x ends its session after any status of 400 or above.
_STATUSES: Final[Mapping[int | None, int]] = {
    ParseError.code: 400,
    InvalidRequest.code: 400,
    MethodNotFound.code: 404,
    HeaderMismatch.code: 400,
    MissingCapability.code: 400,
    UnsupportedVersion.code: 400,
}

#: Errors in the message itself. In the handshake era, all other errors get status 200, because clients treat
#: an error status as a broken connection.
_INVALID_MESSAGE: Final = (ParseError.code, InvalidRequest.code)

_VERSION: Final = b"mcp-protocol-version"

#: The methods whose requests repeat a name or URI in a header.
_METHODS_WITH_NAME: Final = frozenset(("prompts/get", "resources/read", "tools/call"))

_ENCODED: Final = re.compile(rb"=\?base64\?(.*)\?=")

#: The revision that is assumed for requests that do not name one.
_ASSUMED_REVISION: Final = next(revision.date.encode() for revision in REVISIONS.values() if revision.batches)

#: The revisions with a handshake, by the value of the version header.
_LEGACY: Final[Mapping[bytes | None, Revision]] = {
    revision.date.encode(): revision for revision in REVISIONS.values() if not revision.stateless
}

_ENDED: Final = "this session has ended: send an initialize request without Mcp-Session-Id"

#: The response to a notification or a response.
ACCEPTED: Final = HttpResponse(202)

#: Over HTTP, an ``initialize`` request can name a revision, and is then handled under that revision.
_INITIALIZE: Final = Method(wire.InitializeParams, modern=False, before_handshake=True)


class _HttpSession(Session):
    methods = MappingProxyType({**METHODS, "initialize": _INITIALIZE})


class Endpoint:
    """
    The MCP endpoint, which receives messages from many clients.

    Args:
        server_info:
            The server's name and version.

        sessions:
            Issues session ids, each of which contains the result of a handshake.

        limits:
            The limits on messages and requests.
    """

    def __init__(self, server_info: ServerInfo, sessions: Sessions, limits: Limits) -> None:
        self._server_info = server_info
        self._sessions = sessions
        self._limits = limits
        self._budget = MemoryBudget(limits.held)
        self.declare_capabilities(Capabilities())

    def declare_capabilities(self, capabilities: Capabilities, observe: Observe | None = None) -> None:
        """
        Declare these capabilities to clients from now on.

        Args:
            capabilities:
                The capabilities of the server.

            observe:
                A callback that gets each request that the endpoint answers itself, and the reply.
        """
        self._capabilities, self._observe = capabilities, observe
        self._modern_session = self._create_session()  # messages of the modern era do not change its state

    def receive(
        self, head: Head, body: bytes, channel: Channel
    ) -> list[Request] | ClientResponse | HttpResponse:
        """
        Return the requests in a message or batch, which all belong to one era.

        If there are none, return the response to send. If the message is the client's answer to a question
        from the server, return the answer. Its HTTP response is `ACCEPTED`.

        Args:
            head:
                The head of the HTTP request, which `promptkit.protocol.http.guard.Guard` has accepted.

            body:
                The whole body.

            channel:
                Where replies are sent.
        """
        if head.method == STREAM:
            return self._open_stream(head, channel)
        message = decode_message(body, self._limits)
        if head.repeated and (response := _check_repeated(head, message)) is not None:
            return response
        session = self._find_session(head, message, channel)
        if session is None:
            return reject(404, InvalidRequest(_ENDED), message.id)
        events = session.receive_message(message, channel)
        if len(events) == 1 and isinstance(request := events[0], Request) and request.batch is None:
            return self._check_headers(head, request)
        if len(events) == 1 and isinstance(answer := events[0], ClientResponse) and answer.session_id:
            return answer
        return self._respond(head, message, session, events, channel)

    def _open_stream(self, head: Head, channel: Channel) -> list[Request] | HttpResponse:
        """Return the request that opens a session's stream, or the response that rejects it."""
        opened = self._sessions.open(read_session_id(head), _owner(channel))
        if opened is None or SESSION_ID in head.repeated:
            return reject(404, InvalidRequest(_ENDED))
        return [
            Request("", STREAM, wire.Params(), opened.revision, opened.client, opened.capabilities, channel)
        ]

    def _find_session(self, head: Head, message: Message, channel: Channel) -> _HttpSession | None:
        """Return the session of a message, or None if the message names a session that has ended."""
        version, session_id = head.get(_VERSION), read_session_id(head)
        if message.method != "initialize" and version is not None and version not in _LEGACY:
            return self._modern_session
        session = self._create_session()
        if message.method == "initialize":
            return session
        session.revision = _LEGACY[version or _ASSUMED_REVISION]
        if head.get(SESSION_ID) is None:
            return session
        opened = self._sessions.open(session_id, _owner(channel))
        if opened is None:
            return session if decode_meta(message.params).has_revision else None
        session.revision = opened.revision if version is None else _LEGACY[version]
        session.id = session_id
        session.client, session.client_capabilities = opened.client, opened.capabilities
        return session

    def _create_session(self) -> _HttpSession:
        session = _HttpSession(self._server_info, self._capabilities, self._limits, self._budget)
        session.observe = self._observe
        return session

    def _check_headers(self, head: Head, request: Request) -> list[Request] | HttpResponse:
        """Return the request if its headers match its body; otherwise the error response."""
        if not request.revision.stateless:
            return [request]
        params = request.params
        name = getattr(params, "name", getattr(params, "uri", None))
        error = find_header_mismatch(head, request.revision.date, request.method, name)
        if error is None:
            return [request]
        reply = encode_error(request.id, error)
        if self._observe is not None:
            self._observe(request, reply)
        request.discard(reply)
        return make_response(reply, modern=True)

    def _respond(
        self, head: Head, message: Message, session: _HttpSession, events: list[Event], channel: Channel
    ) -> list[Request] | HttpResponse:
        """Return the requests or the response for any message other than a single request for the server."""
        reply = next((event for event in events if isinstance(event, Reply)), None)
        if reply is None:
            requests = [event for event in events if isinstance(event, Request)]
            return requests or _respond_without_reply(head, message)
        if message.error is not None or message.elements is not None:
            return make_response(reply, modern=False)
        meta = decode_meta(message.params)
        modern = meta.has_revision or _is_modern(head)
        if modern and (error := _find_envelope_error(head, message.method, meta)) is not None:
            return reject(400, error, message.id)
        response = make_response(reply, modern=modern)
        if message.method == "initialize" and session.revision is not None:
            opened = session.revision, session.client, session.client_capabilities
            session_id = self._sessions.seal(*opened, _owner(channel))
            response.headers += ((SESSION_ID, session_id.encode()),)
        return response


def _respond_without_reply(head: Head, message: Message) -> HttpResponse:
    """
    Return the HTTP response to a body that needs no JSON-RPC reply.

    The body contains a notification, a response, or an array of them.
    """
    if message.is_response and _is_modern(head):
        return reject(400, InvalidRequest("in this revision, clients must not send responses"))
    version = head.get(_VERSION)
    if message.is_notification and version is not None:
        requested = version.decode("latin-1")
        if requested not in REVISIONS:
            msg = f"protocol version {requested!r} is not supported"
            return reject(400, UnsupportedVersion(msg, {"supported": list(MODERN), "requested": requested}))
    return ACCEPTED


def _is_modern(head: Head) -> bool:
    """Return whether a head names a modern or an unknown revision."""
    version = head.get(_VERSION)
    return version is not None and version not in _LEGACY


def _owner(channel: Channel) -> str:
    """Return the identity that owns the caller's sessions; ``""`` if the caller is not authenticated."""
    return "" if channel.principal is None else channel.principal.identity


def _check_repeated(head: Head, message: Message) -> HttpResponse | None:
    """Return the error response if a header that selects the session is repeated."""
    for name in (_VERSION, SESSION_ID):
        if name in head.repeated and not decode_meta(message.params).has_revision:
            msg = f"the header {name.decode()} was sent more than once"
            return reject(400, InvalidRequest(msg), message.id)
    return None


def _find_envelope_error(head: Head, method: str, meta: wire.Meta) -> InvalidParams | HeaderMismatch | None:
    """
    Return the error if a request's envelope is invalid or does not match the headers; otherwise None.

    An unsupported revision is not reported again, because the reply already contains this error.
    """
    try:
        read_envelope(meta)
    except InvalidParams as error:
        return error.with_traceback(None)
    except UnsupportedVersion:
        pass
    return find_header_mismatch(head, meta.protocol_version, method)


def find_header_mismatch(
    head: Head, version: str, method: str, name: str | None = None
) -> HeaderMismatch | None:
    """
    Return the error if the headers do not match the body, or None.

    Args:
        head:
            The head of the HTTP request.

        version:
            The revision that the body names.

        method:
            The method in the body.

        name:
            The name of the prompt, or the URI of the resource, in the body, if any.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    named = name if method in _METHODS_WITH_NAME else None
    for key, value in ((_VERSION, version), (b"mcp-method", method), (b"mcp-name", named)):
        if value is not None and (error := _find_mismatch(head, key, value)) is not None:
            return error
    return None


def _find_mismatch(head: Head, key: bytes, value: str) -> HeaderMismatch | None:
    """Return the error if a header field does not have this value, or None."""
    sent, name = head.get(key), key.decode().title()
    if key in head.repeated:
        return HeaderMismatch(f"the header {name} was sent more than once")
    if sent is None:
        return HeaderMismatch(f"the header {name} is missing: every request under this revision must have it")
    text = _decode_value(sent) if key == b"mcp-name" else _decode_printable(sent)
    if text == value:
        return None
    hint = "send printable ASCII, or Base64 as =?base64?...?="
    return HeaderMismatch(f"the header {name} does not match {shortened(value)!r} in the body: {hint}")


@lru_cache(maxsize=64)
def _decode_printable(value: bytes) -> str | None:
    text = value.decode("latin-1")
    return text if text.isascii() and text.isprintable() else None


@lru_cache(maxsize=64)
def _decode_value(value: bytes) -> str | None:
    if (encoded := _ENCODED.fullmatch(value)) is None:
        return _decode_printable(value)
    try:
        decoded = b64decode(encoded[1], validate=True)
        # Excess bits must be zero, because other decoders may reject other bits, or decode them differently.
        return decoded.decode() if b64encode(decoded) == encoded[1] else None
    except (Error, UnicodeDecodeError):
        return None


def make_response(reply: Reply, *, modern: bool) -> HttpResponse:
    """
    Return the response that carries a reply.

    The status of an error depends on whether the request names its revision (*modern*).

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    code, body = reply.code, reply.line[:-1]
    status = _STATUSES.get(code, 200) if modern or code in _INVALID_MESSAGE else 200
    return HttpResponse(status, body, (JSON_BODY, RETRY) if code == TooManyRequests.code else (JSON_BODY,))
