"""
One client's session, sans I/O: messages in, replies or requests out.

A `Session` answers the handshake and rejects invalid requests itself. It returns all other requests, with
their protocol revision, for the server. It never blocks, and does not depend on prompts.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from promptkit.protocol import wire
from promptkit.protocol.capabilities import (
    METHODS,
    Capabilities,
    Method,
    ResultEncoder,
    ServerInfo,
    method_not_found,
)
from promptkit.protocol.decoding import Message, check_params, decode_message, find_excess
from promptkit.protocol.events import Batch, Cancelled, Channel, Event, MemoryBudget, Request
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InvalidRequest,
    JsonRpcError,
    Reply,
    RequestId,
    TooManyRequests,
    encode_error,
    encode_result,
)
from promptkit.protocol.limits import LARGE_MESSAGE, MAX_PARAMS, Limits
from promptkit.protocol.message_checks import (
    decode_again,
    decode_sender,
    no_session,
    not_in_a_batch,
    refuse_batch,
    refuse_envelope,
    refuse_unknown,
    refuse_unread,
)
from promptkit.protocol.revisions import LATEST_HANDSHAKE, MODERN, Revision, negotiate
from promptkit.protocol.subscriptions import Subscriptions

Observe: TypeAlias = Callable[[Request, Reply], object]

_decode_cancelled: Final = msgspec.json.Decoder(wire.CancelledParams).decode


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
            The memory budget for large requests. The default is that of the limits.

    Attributes:
        methods:
            The methods that always exist.

        observe:
            A callback for each request that the session answers itself, and the reply.

        revision:
            The revision negotiated in the handshake; None before.

        client:
            The client's name and version, from the handshake.

        client_capabilities:
            The capabilities that the client declared in the handshake.

        subscriptions:
            The client's subscriptions.
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
        self.methods = type(self).methods  # an instance attribute is faster to look up
        self.observe: Observe | None = None
        self.revision: Revision | None = None
        self.client: wire.ClientInfo | None = None
        self.client_capabilities: dict[str, Any] = {}
        self.subscriptions = Subscriptions()
        self._limits = limits
        # Params up to this length cannot exceed the limits on arguments and values.
        self._small_params = min(limits.argument, limits.arguments * len('"":0,'), limits.values, MAX_PARAMS)
        self._budget = budget or MemoryBudget(limits.held)

    def receive_message(self, message: bytes, channel: Channel | None = None) -> list[Event]:
        """Return the events of one message or batch, in JSON. Replies go to *channel*, if there is one."""
        try:
            return self._receive(message, channel)
        except Exception as error:  # noqa: BLE001 (memory may be short: continue with the next message)
            return [refuse_unread(message, error)]

    def _receive(self, line: bytes, channel: Channel | None = None) -> list[Event]:
        if not line or line.isspace():
            return []
        message = decode_message(line, find_excess(line, self._limits))
        if message.elements is not None and message.error is None and not isinstance(channel, Batch):
            return self._receive_array(message.elements, channel)
        event: Event | None
        if message.is_response:
            event = self._receive_response(message)
        elif message.is_notification:
            event = self._receive_notification(message)
        elif message.error is not None or isinstance(message.id, UnsetType):
            event = encode_error(
                message.id, message.error or InvalidRequest("a message must be a JSON object")
            )
        else:
            event = self._answer(message, message.id, channel)
            if isinstance(event, Request) and len(line) > LARGE_MESSAGE:
                event = self._reserve(event, line)
        return [] if event is None else [event]

    def _answer(self, message: Message, request_id: RequestId, channel: Channel | None) -> Request | Reply:
        event: Request | Reply
        try:
            event = self._receive_request(message, request_id, channel)
        except JsonRpcError as error:
            event = encode_error(request_id, error)
        if self.observe is not None and isinstance(event, Reply):
            self._observe_reply(self.observe, message, event, channel)
        return event

    def _reserve(self, request: Request, line: bytes) -> Request | Reply:
        """Reserve memory for a large request, or return the error if the budget is exhausted."""
        # Decoded non-ASCII text takes up to four times as much memory.
        if self._budget.take(request, len(line) * (1 if line.isascii() else 4)):
            return request
        msg = f"requests of more than {self._limits.held:,} bytes are open: wait for their answers"
        error_reply = encode_error(request.id, TooManyRequests(msg))
        if self.observe is not None:
            self.observe(request, error_reply)
        return error_reply

    def _observe_reply(
        self, observe: Observe, message: Message, reply: Reply, channel: Channel | None
    ) -> None:
        method = self.methods.get(message.method) or self.capabilities.method(message.method)
        sender = decode_sender(message.params) if method is None or method.enveloped else None
        revision, client = sender or (self.revision or LATEST_HANDSHAKE, self.client)
        request_id: Any = message.id
        observe(Request(request_id, message.method, wire.Params(), revision, client, {}, channel), reply)

    def _receive_notification(self, message: Message) -> Cancelled | Reply | None:
        """Return the event for a notification, or None if it is unknown or malformed."""
        if message.method == "notifications/cancelled":
            try:
                return Cancelled(_decode_cancelled(message.params).request_id)
            except UNREADABLE:
                return None
        if message.method == "notifications/initialized" and self.revision is not None:
            notifications = self.subscriptions.ready()
            return Reply(notifications) if notifications else None
        return None

    def _receive_request(
        self, message: Message, request_id: RequestId, channel: Channel | None
    ) -> Request | Reply:
        """
        Return the request if the server must handle it, or the reply if the session can answer it itself.

        Raises:
            JsonRpcError: If the request is invalid.
        """
        name = message.method
        if (method := self.methods.get(name) or self.capabilities.method(name)) is None:
            raise refuse_unknown(name, message.params)
        if large := len(message.params) > self._small_params:
            check_params(name, method.params, message.params, self._limits)
        try:
            params = method.decode(message.params)
        except UNREADABLE as error:
            params = decode_again(name, method, message.params, error)
        meta = params.meta
        if meta and meta.protocol_version is not UNSET and method.enveloped:
            revision = self._named_revision(name, method, message.params, meta, channel)
            client, capabilities = meta.client_info or None, meta.client_capabilities or {}
        else:
            revision = self._session_revision(name, method)
            client, capabilities = self.client, self.client_capabilities
        if method.served:
            return Request(request_id, name, params, revision, client, capabilities, channel, None, large)
        if method.static is not None:
            return encode_result(request_id, method.static)
        if isinstance(params, wire.InitializeParams):
            if isinstance(channel, Batch):
                raise not_in_a_batch(name)
            return encode_result(request_id, self._initialize(params))
        return encode_result(request_id, self._discover(revision))

    def _named_revision(
        self, name: str, method: Method, params: Raw, meta: wire.Meta, channel: Channel | None
    ) -> Revision:
        """Return the revision that a request names; raise JsonRpcError if the request cannot use it."""
        revision = MODERN.get(meta.protocol_version)  # type: ignore[arg-type]  # it is set
        in_batch = isinstance(channel, Batch)
        if not in_batch and revision is not None and method.modern and meta.client_capabilities is not UNSET:
            return revision
        raise refuse_envelope(name, params, in_batch=in_batch)

    def _session_revision(self, name: str, method: Method) -> Revision:
        """Return the session's revision; raise JsonRpcError if there is none, or it lacks the method."""
        if self.revision is None and method.opens:
            return LATEST_HANDSHAKE
        if self.revision is not None and method.handshake:
            return self.revision
        raise no_session(name) if self.revision is None else method_not_found(name)

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        """Negotiate a revision. A second handshake can change it."""
        self.revision = negotiate(params.protocol_version)
        self.client, self.client_capabilities = params.client_info, params.capabilities
        self.subscriptions.open_session(self.capabilities)
        result = wire.InitializeResult(
            self.revision.date,
            self.capabilities.declared(self.revision),
            wire.Implementation(self.server_info.name, self.server_info.version),
            self.server_info.instructions or UNSET,
        )
        return ResultEncoder(self.revision, self.server_info).encode(result)

    def _discover(self, revision: Revision) -> bytes:
        result = wire.DiscoverResult(
            list(MODERN),
            self.capabilities.declared(revision),
            self.server_info.instructions or UNSET,
        )
        encoder = ResultEncoder(revision, self.server_info)
        return encoder.encode_cacheable(result, changes=self.capabilities.changes)

    def _receive_response(self, response: Message) -> Event | None:  # noqa: ARG002
        """Ignore a response, because the session sends no requests."""
        return None

    def _receive_array(self, elements: list[Raw], channel: Channel | None) -> list[Event]:
        is_allowed = self.revision is not None and self.revision.batches
        if not (is_allowed and 0 < len(elements) <= self._limits.messages):
            return [encode_error(UNSET, refuse_batch(self.revision, len(elements), self._limits))]
        batch = Batch(self._limits.reply, channel)
        events: list[Event] = []
        for element in elements:
            events += self._receive(bytes(element), batch)
        return batch.gather(events)
