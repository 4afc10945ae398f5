"""
One client's session, without I/O: messages go in; replies, and requests to handle, come out.

A `Session` answers the handshake and rejects invalid requests itself. It returns all other requests, with
their protocol revision, so that the server can handle them. It never blocks, and does not depend on prompts.
Over stdio, it splits the input into lines, each of which contains one message; over HTTP, it gets each
message separately.

A request whose ``_meta`` (its envelope) names a revision belongs to the modern era, even if it is otherwise
invalid. See https://modelcontextprotocol.io/specification/2026-07-28/basic#request-metadata.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Raw

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.capabilities import (
    METHODS,
    Capabilities,
    Method,
    ResultEncoder,
    ServerInfo,
    method_not_found,
)
from promptkit.protocol.decoding import Message, check_params, decode_message, find_leading_id
from promptkit.protocol.events import (
    Batch,
    Cancelled,
    Channel,
    ClientResponse,
    Event,
    MemoryBudget,
    Request,
)
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InternalError,
    InvalidParams,
    InvalidRequest,
    JsonRpcError,
    ParseError,
    Reply,
    RequestId,
    TooManyRequests,
    UnsupportedVersion,
    encode_error,
    encode_result,
)
from promptkit.protocol.limits import (
    LARGE_MESSAGE,
    MAX_PARAMS,
    PREFIX_BYTES,
    CutOff,
    Limits,
    OutOfMemoryLine,
    OverlongLine,
)
from promptkit.protocol.revisions import LATEST_HANDSHAKE, MODERN, Revision, negotiate
from promptkit.protocol.subscriptions import Subscriptions
from promptkit.standard_error import say

Observe: TypeAlias = Callable[[Request, Reply], object]

_decode_params: Final = msgspec.json.Decoder(wire.Params).decode


#: The methods that a session answers itself.
_ANSWERED_BY_SESSION: Final = frozenset({"ping", "initialize", "server/discover"})


class LineBuffer:
    """
    Splits incoming bytes into lines.

    Args:
        limit:
            The maximum length of a line, in bytes. The beginning of a longer line is returned as an
            `OverlongLine` as soon as the line exceeds the limit, and the rest of the line is dropped.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()  # a list of tiny chunks would take many times as much memory
        self._dropping = False

    def receive_data(self, data: bytes) -> list[bytes]:
        """
        Add *data* to the buffer, and return every line that is now complete, without its newline.

        ``b""`` means the end of the stream, which also completes the last line, unless *data* is a `CutOff`.
        """
        if not data:
            if isinstance(data, CutOff):
                self._pending = bytearray()
                return []
            data = b"\n"
        elif b"\n" not in data:
            return self._buffer(data)
        first: list[bytes] = []
        if self._dropping or self._pending:
            end = data.index(b"\n")
            first = self._buffer(data[:end])
            if not self._dropping:
                first = [self._take_pending_line()]
            self._dropping = False
            data = data[end + 1 :]
        *lines, rest = data.split(b"\n")
        if len(data) > self._limit:
            lines = [
                line if len(line) <= self._limit else OverlongLine(line[:PREFIX_BYTES]) for line in lines
            ]
        if first:
            lines = first + lines
        return lines + self._buffer(rest) if rest else lines

    def _buffer(self, data: bytes) -> list[bytes]:
        """Buffer the beginning of a line. If the line is already too long, return its beginning instead."""
        if self._dropping:
            return []
        try:
            if len(self._pending) + len(data) <= self._limit:
                self._pending += data
                return []
            kind: type[OverlongLine] = OverlongLine
        except MemoryError:
            kind = OutOfMemoryLine
        self._dropping = True
        beginning = self._pending[:PREFIX_BYTES] + data[:PREFIX_BYTES]
        self._pending = bytearray()
        return [kind(beginning[:PREFIX_BYTES])]

    def _take_pending_line(self) -> bytes:
        try:
            return bytes(self._pending)
        except MemoryError:
            return OutOfMemoryLine(self._pending[:PREFIX_BYTES])
        finally:
            self._pending = bytearray()


class Session:
    """
    The session of one client. Its `capabilities` can be replaced at any time.

    Args:
        server_info:
            The server's name and version.

        capabilities:
            The capabilities that the server declares.

        limits:
            The limits on messages and requests.

        budget:
            The memory budget for large requests. By default, the session has its own budget, whose size
            *limits* determines.

    Attributes:
        methods:
            The methods of the protocol.

        observe:
            A callback that gets each request that the session answers itself, and the reply.

        revision:
            The revision that was negotiated in the handshake; None before the handshake.

        client:
            The client's name and version, from the handshake.

        client_capabilities:
            The capabilities that the client declared in the handshake.

        subscriptions:
            The client's subscriptions.

        id:
            The id of the session, which the client's requests carry over HTTP.
    """

    methods: Mapping[str, Method] = METHODS

    def __init__(
        self,
        server_info: ServerInfo,
        capabilities: Capabilities | None = None,
        limits: Limits = Limits(),  # noqa: B008 (it is immutable)
        budget: MemoryBudget | None = None,
    ) -> None:
        self.server_info = server_info
        self.capabilities = capabilities or Capabilities()
        self.observe: Observe | None = None
        self.revision: Revision | None = None
        self.client: wire.ClientInfo | None = None
        self.client_capabilities: dict[str, Any] = {}
        self.subscriptions = Subscriptions()
        self.id = ""
        self._limits = limits
        # Params up to this length cannot exceed the limits on arguments and values.
        self._small_params = min(limits.argument, limits.arguments * len('"":0,'), limits.values, MAX_PARAMS)
        self._budget = budget or MemoryBudget(limits.held)
        self._lines = LineBuffer(limits.line)

    def receive_data(self, data: bytes) -> list[Event]:
        """
        Return the events of every line that *data* completes.

        Args:
            data:
                The next bytes of the stream, split anywhere. ``b""`` means the end of the stream, which also
                completes the last line, unless *data* is a `CutOff`.
        """
        events: list[Event] = []
        for line in self._lines.receive_data(data):
            if not line or line.isspace():
                continue
            try:
                events += self.receive_message(decode_message(line, self._limits))
            except Exception as error:  # noqa: BLE001 (memory may be short: continue with the next line)
                events.append(_reject_unreadable(line, error))
        return events

    def receive_message(
        self, message: Message, channel: Channel | None = None, batch: Batch | None = None
    ) -> list[Event]:
        """
        Return the events of one message.

        Args:
            message:
                The message, which may be an array of messages.

            channel:
                The destination of replies. By default, each reply is sent as a separate line.

            batch:
                The replies to the array that contains the message; None for a message outside an array.
        """
        event: Event | None
        if message.elements is not None and message.error is None and batch is None:
            return self._receive_array(message.elements, channel)
        if message.is_response:
            # Revisions with arrays have no elicitation, so responses in an array are ignored.
            event = self._receive_response(message) if batch is None else None
        elif message.is_notification:
            event = self._receive_notification(message)
        elif message.error is not None or message.id is UNSET:
            event = encode_error(
                message.id, message.error or InvalidRequest("a message must be a JSON object")
            )
        else:
            event = self._answer(message, message.id, channel, batch)
        return [] if event is None else [event]

    def _answer(
        self, message: Message, request_id: RequestId, channel: Channel | None, batch: Batch | None
    ) -> Request | Reply:
        event: Request | Reply
        try:
            event = self._receive_request(message, request_id, channel, batch)
        except JsonRpcError as error:
            event = encode_error(request_id, error)
        if self.observe is not None and isinstance(event, Reply):
            self._observe_reply(self.observe, message, event, channel)
        return event

    def _observe_reply(
        self, observe: Observe, message: Message, reply: Reply, channel: Channel | None
    ) -> None:
        revision, client = self.revision or LATEST_HANDSHAKE, self.client
        method = self._find_method(message.method)
        meta = decode_meta(message.params)
        if meta.has_revision and (method is None or method.enveloped):
            *_, newest = MODERN.values()
            revision, client = MODERN.get(str(meta.protocol_version), newest), None
            with suppress(InvalidParams):  # the reply may report the same error
                client = _read_client(meta)
        request_id: Any = message.id
        observe(Request(request_id, message.method, wire.Params(), revision, client, {}, channel), reply)

    def _receive_notification(self, message: Message) -> Cancelled | None:
        """Return the event for a notification, or None if it is unknown or malformed."""
        if message.method == "notifications/cancelled":
            with suppress(*UNREADABLE):
                return Cancelled(msgspec.json.decode(message.params, type=wire.CancelledParams).request_id)
        if message.method == "notifications/initialized" and self.revision is not None:
            self.subscriptions.has_session = True
        return None

    def _find_method(self, name: str) -> Method | None:
        return self.methods.get(name) if name != "tools/call" or self.capabilities.has_tools else None

    def _receive_request(
        self, message: Message, request_id: RequestId, channel: Channel | None, batch: Batch | None
    ) -> Request | Reply:
        """
        Return the request if the server must handle it, or the reply if the session can answer it itself.

        Raises:
            JsonRpcError: If the request is invalid.
        """
        name = message.method
        if (method := self._find_method(name)) is None:
            raise _request_error(name, None, message.params)
        if large := len(message.params) > self._small_params:
            check_params(name, method.params, message.params, self._limits)
        try:
            params = method.decode(message.params)
        except UNREADABLE as error:
            raise _request_error(name, method, message.params, error) from None
        revision, client, capabilities = self._find_sender(name, method, params.meta, batch)
        if name in _ANSWERED_BY_SESSION:
            return encode_result(request_id, self._result(params, name, revision))
        request = Request(
            request_id, name, params, revision, client, capabilities, channel, batch, large=large
        )
        if message.size > LARGE_MESSAGE:
            if not self._budget.reserve(message.size):
                msg = f"the pending requests exceed {self._limits.held:,} bytes: wait for their replies"
                raise TooManyRequests(msg)
            size = message.size
            request.when_answered(lambda _: self._budget.release(size))
        return request

    def _find_sender(
        self, name: str, method: Method, meta: wire.Meta | None, batch: Batch | None
    ) -> tuple[Revision, wire.ClientInfo | None, dict[str, Any]]:
        """
        Return the revision of a request, the client, and the client's capabilities.

        Raises:
            JsonRpcError: If the request names a revision, but is not valid under it, or if there is no
                session.
        """
        envelope = meta if meta and meta.has_revision and method.enveloped else None
        if batch is not None and (envelope or name == "initialize"):
            msg = f"{name} cannot be part of a batch here: send it separately"
            raise InvalidRequest(msg)
        if not envelope:
            return self._session_revision(name, method), self.client, self.client_capabilities
        sender = read_envelope(envelope)
        if not method.modern:
            raise method_not_found(name)
        return sender

    def _session_revision(self, name: str, method: Method) -> Revision:
        """Return the session's revision. Raise JsonRpcError if there is none, or if it lacks the method."""
        if self.revision is not None and method.handshake:
            return self.revision
        if self.revision is not None:
            raise method_not_found(name)
        if method.before_handshake:
            return LATEST_HANDSHAKE
        missing = [wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES]
        msg = (
            f"{name} was sent before initialize, and its params._meta has no {missing[0]!r}: "
            "open a session first, or name the revision in every request"
        )
        raise InvalidParams(msg, {"missing": missing})

    def _result(self, params: wire.Params, name: str, revision: Revision) -> bytes:
        """Return the encoded result of a request that the session answers itself."""
        if isinstance(params, wire.InitializeParams):
            return self._initialize(params)
        return self._discover(revision) if name == "server/discover" else b"{}"

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        """Negotiate a revision, which a second handshake can change, and return the encoded result."""
        self.revision = negotiate(params.protocol_version)
        self.client, self.client_capabilities = params.client_info, params.capabilities or {}
        self.subscriptions.open_session(self.capabilities)
        result = wire.InitializeResult(
            self.revision.date,
            self.capabilities.as_data(self.revision),
            self.server_info.implementation(self.revision),
            self.server_info.instructions or None,
        )
        return ResultEncoder(self.revision, self.server_info).encode(result)

    def _discover(self, revision: Revision) -> bytes:
        result = wire.DiscoverResult(
            list(MODERN),
            self.capabilities.as_data(revision),
            self.server_info.instructions or None,
        )
        encoder = ResultEncoder(revision, self.server_info, full_identity=True)
        return encoder.encode_cacheable(result, can_change=self.capabilities.changes)

    def _receive_response(self, response: Message) -> ClientResponse | None:
        """Return the event for a response, or None if it has no id."""
        if response.id is UNSET:
            return None
        value = None
        if response.result is not UNSET:
            with suppress(*UNREADABLE):  # a result that cannot be decoded is handled like an error
                value = msgspec.json.decode(response.result)
        return ClientResponse(response.id, value, self.id)

    def _receive_array(self, elements: list[Raw], channel: Channel | None) -> list[Event]:
        if self.revision is None or not self.revision.batches:
            msg = "batches are not supported in this revision: send each message separately"
            return [encode_error(UNSET, InvalidRequest(msg))]
        if not 0 < len(elements) <= self._limits.messages:
            msg = f"the batch has {len(elements):,} messages: it must have 1 to {self._limits.messages:,}"
            return [encode_error(UNSET, InvalidRequest(msg))]
        batch = Batch(self._limits.reply)
        events: list[Event] = []
        for element in elements:
            events += self.receive_message(decode_message(bytes(element), self._limits), channel, batch)
        return batch.gather(events)


def decode_meta(params: Raw) -> wire.Meta:
    """Return the ``_meta`` in *params*, or an empty one if it is missing or *params* cannot be decoded."""
    with suppress(*UNREADABLE):
        return _decode_params(params).meta or wire.Meta()
    return wire.Meta()


def read_envelope(meta: wire.Meta) -> tuple[Revision, wire.ClientInfo | None, dict[str, Any]]:
    """
    Return the revision that a request names, the client, and the client's capabilities.

    Raises:
        UnsupportedVersion: If requests cannot name this revision.

        InvalidParams: If a member is missing or has the wrong type.
    """
    version, capabilities = meta.protocol_version, meta.client_capabilities
    if version is UNSET or capabilities is UNSET:
        required = ((wire.PROTOCOL_VERSION, version), (wire.CLIENT_CAPABILITIES, capabilities))
        missing = [key for key, value in required if value is UNSET]
        msg = f"every request must have {' and '.join(map(repr, missing))} in params._meta"
        raise InvalidParams(msg, {"missing": missing})
    if not isinstance(version, str):
        raise _invalid_member(wire.PROTOCOL_VERSION)
    if (revision := MODERN.get(version)) is None:
        requested, served = shortened(version), ", ".join(MODERN)
        msg = (
            f"protocol version {requested!r} is not supported without a session: use {served}, or call "
            "initialize"
        )
        raise UnsupportedVersion(msg, {"supported": list(MODERN), "requested": requested})
    if not isinstance(capabilities, dict):
        raise _invalid_member(wire.CLIENT_CAPABILITIES)
    if meta.log_level is not None and meta.log_level not in get_args(wire.LogLevel):
        raise _invalid_member(wire.LOG_LEVEL)
    return revision, _read_client(meta), capabilities


def _read_client(meta: wire.Meta) -> wire.ClientInfo | None:
    if meta.client_info is None:
        return None
    try:
        return msgspec.convert(meta.client_info, wire.ClientInfo)
    except msgspec.ValidationError:
        raise _invalid_member(wire.CLIENT_INFO) from None


def _invalid_member(key: str) -> InvalidParams:
    return InvalidParams(f"params._meta has an invalid value for {key!r}")


def _request_error(
    name: str, method: Method | None, params: Raw, error: Exception | None = None
) -> JsonRpcError:
    """
    Return the error for a request whose *method* is unknown, or whose params cannot be decoded.

    Raises:
        JsonRpcError: If the request names a revision, but its envelope is invalid.
    """
    if bytes(memoryview(params)[:1]) != b"{":
        return InvalidRequest("params must be an object")
    if isinstance(error, RecursionError):
        return ParseError("the params are nested too deeply")
    if (method is None or method.enveloped) and (meta := decode_meta(params)).has_revision:
        read_envelope(meta)
        if method is not None and not method.modern:
            return method_not_found(name)
    if method is None:
        return method_not_found(name)
    return InvalidParams(f"the params of {name} are invalid: {error}")


def _reject_unreadable(line: bytes, error: Exception) -> Reply:
    """Report *error*, and return the reply to the line that could not be processed because of it."""
    say(f"a line of {len(line):,} bytes could not be read: {error!r}")
    return encode_error(find_leading_id(line), InternalError("the message could not be read"))
