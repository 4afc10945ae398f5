"""
One client's session, sans I/O: messages in, replies or requests out.

A `Session` answers the handshake and refuses invalid requests by itself. It returns all other requests
with their protocol revision, for the server. It never blocks, and knows nothing about prompts.
"""

from collections.abc import Callable, Iterable, Mapping
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
from promptkit.protocol.events import Batch, Cancelled, Channel, Event, MemoryBudget, Request
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    Incoming,
    InvalidRequest,
    JsonRpcError,
    ParseError,
    RequestId,
    TooManyRequests,
    encode_error,
    encode_result,
)
from promptkit.protocol.limits import LARGE_MESSAGE, PREFIX_BYTES, Limits, OverlongLine
from promptkit.protocol.message_checks import (
    convert_params,
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

__all__ = ["Observe", "Session"]

#: The first byte of an array, as an int, which is faster to find in a line than a byte string.
_ARRAY: Final = ord("[")

Observe: TypeAlias = Callable[[Request, bytes], object]

_decode_incoming: Final = msgspec.json.Decoder(Incoming).decode
_decode_id: Final = msgspec.json.Decoder(int | str).decode
_decode_cancelled: Final = msgspec.json.Decoder(wire.CancelledParams).decode


# Code that only refusals, batches and large messages need is imported when first used: a client waits for the
# first list, which needs none of it.
class Session:
    """
    One client, from its first message to its last. The `capabilities` may be replaced at any time.

    Args:
        server_info:
            The server's name and version.

        capabilities:
            What the server declares that it can do.

        limits:
            How much the client may send.

        budget:
            How many bytes large requests may take together; that of the limits by default.

    Attributes:
        methods:
            The methods that there always are.

        observe:
            Called with each request that the session answers by itself, and the reply.

        revision:
            The revision that was agreed upon in a handshake; None before.

        client:
            The client's name and version, from the handshake.

        client_capabilities:
            What the client declared in the handshake.

        subscriptions:
            What the client wants to be notified of.
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
        self.methods = type(self).methods  # found faster here, for every request
        self.observe: Observe | None = None
        self.revision: Revision | None = None
        self.client: wire.ClientInfo | None = None
        self.client_capabilities: dict[str, Any] = {}
        self.subscriptions = Subscriptions()
        self._limits = limits
        # A line of at most this length, without arrays, is complete, and cannot be nested too deeply.
        self._shallow = min(limits.line, PREFIX_BYTES - 1, limits.depth * len('{"":}'))
        # Params of at most this length cannot exceed the limits on arguments and values.
        self._harmless = min(limits.argument, limits.arguments * len('"":0,'), limits.values)
        self._budget = budget or MemoryBudget(limits.held)

    def receive_message(self, message: bytes, channel: Channel | None = None) -> list[Event]:
        """
        Take one message, or a batch, and return its events.

        Args:
            message:
                JSON.

            channel:
                Where the reply to a request goes, if not to the client by itself.
        """
        try:
            return list(self._receive(message, channel))
        except Exception as error:  # noqa: BLE001 (memory may be short: go on with the next message)
            return [refuse_unread(message, error)]

    def _receive(self, line: bytes, channel: Channel | None = None) -> Iterable[Event]:
        if ((size := len(line)) > self._shallow or _ARRAY in line) and (refusal := self._excess(line, size)):
            return self._receive_other(line, channel, refusal)
        try:
            if size > LARGE_MESSAGE:
                return self._receive_large(line, channel)
            if not line.isascii():
                str(line, "utf-8")  # the decoder does not check the UTF-8 of what it skips
            incoming = _decode_incoming(line)
        except msgspec.ValidationError:
            return self._receive_other(line, channel)
        except UNREADABLE:  # an incomplete object may also be nested too deeply
            if not line:  # as at the end of the input
                return ()
            return self._receive_other(line, channel, self._excess(line, size))
        event = self._receive_message(incoming, channel)
        return () if event is None else (event,)

    def _excess(self, line: bytes, size: int) -> JsonRpcError | None:
        """Return the error for a line that exceeds a limit; None if it does not."""
        limits = self._limits
        if not isinstance(line, OverlongLine):
            # These are upper bounds: brackets and commas in strings are counted, too.
            depth = line.count(b"{") + line.count(b"[")
            if depth <= limits.depth and (size <= limits.values or line.count(b",") + depth <= limits.values):
                return None
        from promptkit.protocol.limit_checks import find_excess

        return find_excess(line, limits)

    def _receive_large(self, line: bytes, channel: Channel | None) -> Iterable[Event]:
        from promptkit.protocol.partial_decoding import check_text, decode_large

        is_ascii = line.isascii()
        if not is_ascii:
            check_text(line)
        event = self._receive_message(decode_large(line), channel)
        if isinstance(event, Request):
            number: Any = event.id
            event.id = _decode_id(number) if isinstance(number, Raw) else number
            # Decoded, non-ASCII text takes up to four times as much memory.
            if not self._budget.take(event, len(line) * (1 if is_ascii else 4)):
                msg = f"requests of more than {self._limits.held:,} bytes are open: wait for their answers"
                refused = encode_error(event.id, TooManyRequests(msg))
                if self.observe is not None:
                    self.observe(event, refused)
                return (refused,)
        return () if event is None else (event,)

    def _receive_message(self, incoming: Incoming, channel: Channel | None) -> Event | None:
        if incoming.id is UNSET:
            return self._receive_notification(incoming)
        event: Event
        try:
            event = self._receive_request(incoming, incoming.id, channel)
        except JsonRpcError as error:
            event = encode_error(incoming.id, error)
        if self.observe is not None and isinstance(event, bytes):
            self._note(self.observe, incoming, event, channel)
        return event

    def _note(self, observe: Observe, incoming: Incoming, reply: bytes, channel: Channel | None) -> None:
        from promptkit.protocol.partial_decoding import decode_beginning

        method = self.methods.get(incoming.method) or self.capabilities.method(incoming.method)
        sender = decode_sender(incoming.params) if method is None or method.enveloped else None
        revision, client = sender or (self.revision or LATEST_HANDSHAKE, self.client)
        number: Any = decode_beginning(incoming.id) if isinstance(incoming.id, Raw) else incoming.id
        observe(Request(number, incoming.method, wire.Params(), revision, client, {}, channel), reply)

    def _receive_notification(self, incoming: Incoming) -> Cancelled | bytes | None:
        """Drop a notification that is unknown or malformed."""
        if incoming.method == "notifications/cancelled":
            try:
                return Cancelled(_decode_cancelled(incoming.params).request_id)
            except UNREADABLE:
                return None
        if incoming.method == "notifications/initialized" and self.revision is not None:
            return self.subscriptions.ready() or None
        return None

    def _receive_request(self, incoming: Incoming, request_id: RequestId, channel: Channel | None) -> Event:
        """Return the request for the server, or the reply. Raises JsonRpcError if it cannot be served."""
        name = incoming.method
        if (method := self.methods.get(name) or self.capabilities.method(name)) is None:
            raise refuse_unknown(name, incoming.params)
        if large := len(incoming.params) > self._harmless:
            from promptkit.protocol.limit_checks import check_params

            check_params(method.params, incoming.params, self._limits)
        params: wire.Params | None = None
        try:  # noqa: SIM105 (each request would pay for `suppress`)
            params = method.decode(incoming.params)
        except UNREADABLE:
            pass
        if params is None:  # not in `except`: the error, which may quote a very long text, is freed by now
            params = convert_params(name, method, incoming.params)
        meta = params.meta
        if meta and meta.protocol_version is not UNSET and method.enveloped:
            revision = self._named_revision(name, method, meta, channel)
            client, capabilities = meta.client_info or None, meta.client_capabilities or {}
        else:
            revision = self._session_revision(name, method)
            client, capabilities = self.client, self.client_capabilities
        if method.served:
            return Request(request_id, name, params, revision, client, capabilities, channel, None, large)
        if method.static is not None:
            return encode_result(request_id, method.static)
        if isinstance(params, wire.InitializeParams):
            if channel is not None and isinstance(channel, Batch):
                raise not_in_a_batch(name)
            return encode_result(request_id, self._initialize(params))
        return encode_result(request_id, self._discover(revision))

    def _named_revision(
        self, name: str, method: Method, meta: wire.Meta, channel: Channel | None
    ) -> Revision:
        """Return the revision that a request names. Raises JsonRpcError if it cannot be used."""
        revision = MODERN.get(meta.protocol_version)  # type: ignore[arg-type]  # it is set
        in_batch = channel is not None and isinstance(channel, Batch)
        if not in_batch and revision is not None and method.modern and meta.client_capabilities is not UNSET:
            return revision
        raise refuse_envelope(name, meta, in_batch=in_batch)

    def _session_revision(self, name: str, method: Method) -> Revision:
        """Return the session's revision. Raises JsonRpcError if there is none, or it lacks the method."""
        if self.revision is None and method.opens:
            return LATEST_HANDSHAKE
        if self.revision is not None and method.handshake:
            return self.revision
        raise no_session(name) if self.revision is None else method_not_found(name)

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        """Agree on a revision. A second handshake may change it."""
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
        return encoder.encode_kept(result, changes=self.capabilities.changes)

    def _receive_other(
        self, line: bytes, channel: Channel | None, refusal: JsonRpcError | None = None
    ) -> Iterable[Event]:
        """Receive a response or a batch, or refuse the line."""
        from promptkit.protocol.partial_decoding import RawMessage, decode_raw, leading_id

        try:  # no element of a refused array is decoded
            is_decoded = refusal is None or line.lstrip().startswith(b"{")
            found, fault = decode_raw(line) if is_decoded else (None, None)
        except UNREADABLE:
            refused = refusal or ParseError("the message is not JSON")
            return (encode_error(leading_id(line) if refusal else UNSET, refused),) if line.strip() else ()
        fault = refusal or fault
        if isinstance(found, list) and not isinstance(channel, Batch) and refusal is None:
            return self._receive_array(found, channel)
        if not isinstance(found, RawMessage):
            return (encode_error(UNSET, refusal or InvalidRequest("a message must be a JSON object")),)
        request_id = found.id_on(line)
        if found.is_response:
            return self._receive_response(request_id, UNSET if fault else found.result)
        if fault and found.id is UNSET and (incoming := found.incoming()):
            return filter(None, (self._receive_notification(incoming),))
        return (encode_error(request_id, fault or InvalidRequest(found.fault)),)

    def _receive_response(
        self, _request_id: RequestId | Raw | UnsetType, _result: Raw | UnsetType
    ) -> Iterable[Event]:
        """Ignore a response, as nothing was asked."""
        return ()

    def _receive_array(self, elements: list[memoryview], channel: Channel | None) -> Iterable[Event]:
        is_taken = self.revision is not None and self.revision.batches
        if not (is_taken and 0 < len(elements) <= self._limits.messages):
            return (encode_error(UNSET, refuse_batch(self.revision, len(elements), self._limits)),)
        batch = Batch(self._limits.reply, channel)
        events: list[Event] = []
        for element in elements:
            events += self._receive(bytes(element), batch)
        return batch.gather(events)
