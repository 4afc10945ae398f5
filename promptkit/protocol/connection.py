"""
One client's connection, sans I/O: bytes in, replies or work out.

A `Connection` refuses what is no message, speaks the handshake, finds out which revision a
request is of, and hands out what remains to be done. It never waits, and it knows no prompt.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from promptkit.errors.standard_error import say
from promptkit.protocol import wire
from promptkit.protocol.envelope import UNREADABLE, asker_of, check_envelope, check_unknown, reread
from promptkit.protocol.events import Batch, Cancelled, Event, Held, Request, Response
from promptkit.protocol.framing import MOST_KEPT, Lines
from promptkit.protocol.glances import (
    LARGE,
    Elements,
    Glance,
    beginning_of,
    check_text,
    glance_at,
    incoming_of,
    leading_id,
)
from promptkit.protocol.jsonrpc import (
    Incoming,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
    RequestId,
    TooManyRequests,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.methods import METHODS, Method
from promptkit.protocol.results import Capabilities, ResultEncoder, ServerInfo
from promptkit.protocol.revisions import LATEST_HANDSHAKE, MODERN, Revision, negotiate
from promptkit.protocol.sizes import check_arguments, check_words, oversize
from promptkit.protocol.subscriptions import Subscriptions

__all__ = ["Connection"]

#: How an array begins; in bytes a number is found faster than bytes are.
_ARRAY: Final = ord("[")

_decode_incoming: Final = msgspec.json.Decoder(Incoming).decode
_decode_any: Final = msgspec.json.Decoder().decode
_decode_id: Final = msgspec.json.Decoder(int | str).decode
_decode_cancelled: Final = msgspec.json.Decoder(wire.CancelledParams).decode


class Connection:
    """
    One client, from its first byte to its last.

    Args:
        server_info:
            What the server says of itself.

        capabilities:
            What it declares that it can do. They may be replaced at any time.

        limits:
            How much a client may send.

    Attributes:
        observe:
            Called with each request that is answered without being handed out, and the answer.

        revision:
            What was agreed upon in a handshake, None before.

        client:
            How the client calls itself there, if it says.

        client_capabilities:
            What the client declared there that it can do.

        subscriptions:
            What the client wants to hear of.
    """

    def __init__(
        self,
        server_info: ServerInfo,
        capabilities: Capabilities | None = None,
        limits: Limits = Limits(),  # noqa: B008 (it cannot be changed)
    ) -> None:
        self.server_info = server_info
        self.capabilities = capabilities or Capabilities()
        self.observe: Callable[[Request, bytes], object] | None = None
        self.revision: Revision | None = None
        self.client: wire.ClientInfo | None = None
        self.client_capabilities: dict[str, Any] = {}
        self.subscriptions = Subscriptions()
        self._limits = limits
        self._lines = Lines(limits.line)
        # A line without arrays that is not longer is neither cut off, nor JSON that is nested too deeply.
        self._shallow = min(limits.line, MOST_KEPT - 1, limits.depth * len('{"":}'))
        # Params that are not longer hold neither too many arguments or values nor one that is too long.
        self._harmless = min(limits.argument, limits.arguments * len('"":0,'), limits.values)
        self._held = Held(limits.held)
        self._asked: set[RequestId] = set()
        self._numbers = count(1)

    def receive_data(self, data: bytes) -> list[Event]:
        """
        Take bytes as they arrive, cut anywhere.

        Args:
            data:
                Any number of bytes; ``b""`` says that the stream has ended, and a last line
                without its end counts.

        Returns:
            What follows from every line that is complete, in order.
        """
        events: list[Event] = []
        for line in self._lines.receive_data(data):
            try:
                events += self._receive_line(line)
            except Exception as error:  # noqa: BLE001 (memory may be short: the next line is read all the same)
                events.append(_failed(line, error))
        return events

    def ask(self, method: str, params: Any) -> tuple[RequestId, bytes]:
        """
        Return what asks the client for something: the id of the request, and the line to be sent.

        Before it is sent, `expect` has to be called.
        """
        request_id = f"promptkit-{next(self._numbers)}"
        return request_id, encode_request(request_id, method, params)

    def expect(self, request_id: RequestId) -> None:
        """
        Take an answer from now on: a `Response` with this id will bear it.
        """
        self._asked.add(request_id)

    def withdraw(self, request_id: RequestId) -> bytes:
        """
        Return the line that tells the client that the answer is no longer wanted.
        """
        self._asked.discard(request_id)
        return encode_notification("notifications/cancelled", wire.CancelledParams(request_id))

    def _receive_line(self, line: bytes, batch: Batch | None = None) -> Iterable[Event]:
        """
        Return what follows from one line, or from one element of the array on it.
        """
        if ((size := len(line)) > self._shallow or _ARRAY in line) and (
            refusal := oversize(line, size, self._limits)
        ):
            return self._receive_other(line, batch, refusal)
        try:
            if not line.isascii():
                check_text(line)
            if size > LARGE:
                return self._receive_large(line, batch)
            incoming = _decode_incoming(line)
        except msgspec.ValidationError:
            return self._receive_other(line, batch)
        except UNREADABLE:  # half an object is nested, too
            return self._receive_other(line, batch, oversize(line, size, self._limits))
        event = self._receive_message(incoming, batch)
        return () if event is None else (event,)

    def _receive_large(self, line: bytes, batch: Batch | None) -> Iterable[Event]:
        """
        Return what follows from a large request or notification, whose id is read if it is to be served.
        """
        event = self._receive_message(incoming_of(line), batch)
        if isinstance(event, Request):
            number: Any = event.id
            event.id = _decode_id(number) if isinstance(number, Raw) else number
            # Text beyond ASCII takes up to four times as much once it is read.
            if not self._held.take(event, len(line) * (1 if line.isascii() else 4)):
                msg = f"requests of more than {self._limits.held:,} bytes are open: wait for their answers"
                refused = encode_error(event.id, TooManyRequests(msg))
                if self.observe is not None:
                    self.observe(event, refused)
                return (refused,)
        return () if event is None else (event,)

    def _receive_message(self, incoming: Incoming, batch: Batch | None) -> Event | None:
        """
        Return what follows from a request or a notification.
        """
        if incoming.id is UNSET:
            return self._receive_notification(incoming)
        event: Event
        try:
            event = self._receive_request(incoming, incoming.id, batch)
        except ProtocolError as error:
            event = encode_error(incoming.id, error)
        if self.observe is not None and isinstance(event, bytes):
            self._note(self.observe, incoming, event)
        return event

    def _note(self, observe: Callable[[Request, bytes], object], incoming: Incoming, reply: bytes) -> None:
        """
        Tell whoever observes of a request that is answered here.
        """
        asker = asker_of(incoming.params) if incoming.method != "initialize" else None
        revision, client = asker or (self.revision or LATEST_HANDSHAKE, self.client)
        known: Any = incoming.id
        number = beginning_of(known) if isinstance(known, Raw) else known
        observe(Request(number, incoming.method, wire.Params(), revision, client, {}), reply)

    def _receive_notification(self, incoming: Incoming) -> Cancelled | bytes | None:
        """
        Return what follows from a notification; one that is unknown or malformed is dropped.
        """
        if incoming.method == "notifications/cancelled":
            return _cancelled(incoming)
        if incoming.method == "notifications/initialized" and self.revision is not None:
            return self.subscriptions.ready() or None
        return None

    def _receive_request(self, incoming: Incoming, request_id: RequestId, batch: Batch | None) -> Event:
        """
        Return what follows from a request.

        Raises:
            ProtocolError: If it cannot be served.
        """
        name = incoming.method
        method = METHODS.get(name)
        if method is None:
            check_unknown(incoming.params)
            raise _not_found(name)
        large = len(incoming.params) > self._harmless
        if large:
            check_arguments(method.params, incoming.params, self._limits)
            check_words(incoming.params)
        params: wire.Params | None = None
        try:  # noqa: SIM105 (each request would pay for `suppress`)
            params = method.decode(incoming.params)
        except UNREADABLE:
            pass
        if params is None:  # by now the error is gone, which may quote a text of any length
            params = reread(name, method, incoming.params)
        meta = params.meta
        if meta and meta.protocol_version is not UNSET and method.enveloped:
            revision = self._named_revision(name, method, meta, batch)
            client, capabilities = meta.client_info or None, meta.client_capabilities or {}
        else:
            revision = self._session_revision(name, method)
            client, capabilities = self.client, self.client_capabilities
        if method.served:
            return Request(request_id, name, params, revision, client, capabilities, batch, None, large)
        if batch is not None and not method.enveloped:
            raise _unbatched(name)
        return encode_result(request_id, method.static or self._own_result(params, revision))

    def _own_result(self, params: wire.Params, revision: Revision) -> bytes:
        """
        Return the result of a request that is about the connection itself.
        """
        if isinstance(params, wire.InitializeParams):
            return self._initialize(params)
        return self._discover(revision)

    def _named_revision(self, name: str, method: Method, meta: wire.Meta, batch: Batch | None) -> Revision:
        """
        Return the revision that a request names.

        Raises:
            ProtocolError: If it is not served, or has no such method, or the request is part of a
                *batch*.
        """
        if batch is not None:
            raise _unbatched(name)
        revision = MODERN.get(meta.protocol_version)  # type: ignore[arg-type]  # it is set
        if revision is None or meta.client_capabilities is UNSET:
            check_envelope(msgspec.to_builtins(meta))
        if revision is None or not method.modern:
            raise _not_found(name)
        return revision

    def _session_revision(self, name: str, method: Method) -> Revision:
        """
        Return the revision of the session.

        Raises:
            ProtocolError: If there is none, or it has no such method.
        """
        if self.revision is None:
            if method.opens:
                return LATEST_HANDSHAKE
            missing = [wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES]
            msg = (
                f"{name} came before initialize, and its params._meta lacks {missing[0]!r}: "
                "open a session first, or name the revision in every request"
            )
            raise InvalidParams(msg, {"missing": missing})
        if not method.handshake:
            raise _not_found(name)
        return self.revision

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        """
        Agree on a revision; a second handshake agrees anew. Return the result.
        """
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
        """
        Return what the server can do, for a client that opens no session.
        """
        result = wire.DiscoverResult(
            list(MODERN),
            self.capabilities.declared(revision),
            self.server_info.instructions or UNSET,
        )
        encoder = ResultEncoder(revision, self.server_info)
        return encoder.encode_kept(result, changes=self.capabilities.changes)

    def _receive_other(
        self, line: bytes, batch: Batch | None, refusal: ProtocolError | None = None
    ) -> Iterable[Event]:
        """
        Return what follows from a line that is neither request nor notification as it stands.

        It may be one, but be refused.
        """
        try:  # of an array that is refused no element is looked at
            found, fault = glance_at(line) if refusal is None or _is_object(line) else (None, None)
        except UNREADABLE:
            refused = refusal or ParseError("this line is no JSON")
            return (encode_error(leading_id(line) if refusal else UNSET, refused),) if line.strip() else ()
        fault = refusal or fault
        if isinstance(found, Elements) and batch is None and refusal is None:
            return self._receive_array(found)
        if not isinstance(found, Glance):
            return (encode_error(UNSET, refusal or InvalidRequest("a message is a JSON object")),)
        request_id = found.id_on(line)
        if found.is_response:
            return self._receive_response(request_id, UNSET if fault else found.result)
        if fault and found.id is UNSET and (incoming := found.incoming()):
            return filter(None, (self._receive_notification(incoming),))
        return (encode_error(request_id, fault or InvalidRequest(found.fault)),)

    def _receive_response(
        self, request_id: RequestId | Raw | UnsetType, result: Raw | UnsetType
    ) -> Iterable[Event]:
        """
        Return what follows from a response; one that nobody awaits is ignored.
        """
        if isinstance(request_id, Raw | UnsetType) or request_id not in self._asked:
            return ()
        self._asked.discard(request_id)  # another thread may have withdrawn it
        try:
            found = None if result is UNSET else _decode_any(result)
        except UNREADABLE:  # a number may be too large: whoever waits is told that there is no answer
            found = None
        return (Response(request_id, found),)

    def _receive_array(self, elements: Elements) -> Iterable[Event]:
        """
        Return what follows from the elements of an array.
        """
        if self.revision is None or not self.revision.batches:
            refused = InvalidRequest("there are no batches here: send one message a line")
            return (encode_error(UNSET, refused),)
        if not elements:
            return (encode_error(UNSET, InvalidRequest("the batch is empty")),)
        if len(elements) > self._limits.messages:
            msg = f"the batch has {len(elements):,} messages: at most {self._limits.messages:,} are taken"
            return (encode_error(UNSET, InvalidRequest(msg)),)
        batch = Batch(self._limits.reply)
        events: list[Event] = []
        for element in elements:
            events += self._receive_line(element, batch)
        return batch.gather(events)


def _is_object(line: bytes) -> bool:
    return line.lstrip().startswith(b"{")


def _failed(line: bytes, error: Exception) -> bytes:
    """
    Return what a line is answered with in which reading has failed.
    """
    if isinstance(error, MemoryError):
        reason = "the line is not read: there is not enough memory for it"
    else:
        say(f"a line of {len(line):,} bytes could not be read: {error!r}")
        reason = "this line could not be read"
    return encode_error(leading_id(line), InternalError(reason))


def _unbatched(name: str) -> InvalidRequest:
    """
    Return the error for what opens no session, or needs none, in an array that only sessions have.
    """
    return InvalidRequest(f"{name} cannot be part of a batch here: send it on a line of its own")


def _not_found(name: str) -> MethodNotFound:
    """
    Return the error for a method that there is not, or not for this client.
    """
    return MethodNotFound(f"method not found: {name}", name)


def _cancelled(incoming: Incoming) -> Cancelled | None:
    """
    Return which request a notification cancels; None if it does not say.
    """
    try:
        return Cancelled(_decode_cancelled(incoming.params).request_id)
    except UNREADABLE:
        return None
