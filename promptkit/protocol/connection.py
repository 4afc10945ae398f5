"""
One client's connection, sans I/O: bytes in, replies or work out.

A `Connection` refuses what is no message, speaks the handshake, finds out which revision a
request is of, and hands out what remains to be done. It never waits, and it knows no prompt.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final, TypeGuard

import msgspec
from msgspec import UNSET

from promptkit.protocol import wire
from promptkit.protocol.envelope import UNREADABLE, check_envelope, members_of, reread
from promptkit.protocol.events import Batch, Cancelled, Event, Request, Response
from promptkit.protocol.framing import MOST_KEPT, Lines
from promptkit.protocol.jsonrpc import (
    Incoming,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
    RequestId,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    readable_id,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.methods import METHODS, Method
from promptkit.protocol.results import Capabilities, Identity, Results
from promptkit.protocol.revisions import LATEST_HANDSHAKE, MODERN, Revision, negotiate
from promptkit.protocol.sizes import check_arguments, oversize
from promptkit.protocol.subscriptions import Subscriptions

__all__ = ["Connection"]

#: How an array begins; in bytes a number is found faster than bytes are.
_ARRAY: Final = ord("[")

_decode_incoming: Final = msgspec.json.Decoder(Incoming).decode
_decode_any: Final = msgspec.json.Decoder().decode
_decode_cancelled: Final = msgspec.json.Decoder(wire.CancelledParams).decode
_decode_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Connection:
    """
    One client, from its first byte to its last.

    Args:
        identity:
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
        identity: Identity,
        capabilities: Capabilities | None = None,
        limits: Limits = Limits(),  # noqa: B008 (it cannot be changed)
    ) -> None:
        self.identity = identity
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
        # Params that are not longer hold neither too many arguments nor one that is too long.
        self._harmless = min(limits.argument, limits.arguments * len('"":0,'))
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
            events += self._receive_line(line)
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

    def _receive_line(self, line: bytes) -> Iterable[Event]:
        """
        Return what follows from one line.
        """
        if (len(line) > self._shallow or _ARRAY in line) and (refused := oversize(line, self._limits)):
            return refused
        try:
            if not line.isascii():
                str(line, "utf-8")  # the decoder does not look at what it skips
            incoming = _decode_incoming(line)
        except msgspec.ValidationError:
            return oversize(line, self._limits) or self._receive_other(line)
        except UNREADABLE:
            return oversize(line, self._limits) or _refuse_text(line)  # half an object is nested, too
        event = self._receive_message(incoming, None)
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
            revision = self.revision or LATEST_HANDSHAKE
            known = (revision, self.client, self.client_capabilities)
            self.observe(Request(incoming.id, incoming.method, wire.Params(), *known), event)
        return event

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
            members_of(incoming.params)  # which may be at fault, too
            raise _not_found(name)
        try:
            params = method.decode(incoming.params)
        except UNREADABLE:
            params = reread(name, method, incoming.params)
        if len(incoming.params) > self._harmless:
            check_arguments(params, self._limits)
        meta = params.meta
        if meta and meta.protocol_version is not UNSET and method.enveloped:
            revision = self._named_revision(name, method, meta, batch)
            client, capabilities = meta.client_info or None, meta.client_capabilities or {}
        else:
            revision = self._session_revision(name, method)
            client, capabilities = self.client, self.client_capabilities
        if method.served:
            return Request(request_id, name, params, revision, client, capabilities, batch)
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
        if revision is None or not method.modern or (method.resources and not self.capabilities.resources):
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
            wire.Implementation(self.identity.name, self.identity.version),
            self.identity.instructions or UNSET,
        )
        return Results(self.revision, self.identity).encode(result)

    def _discover(self, revision: Revision) -> bytes:
        """
        Return what the server can do, for a client that opens no session.
        """
        result = wire.DiscoverResult(
            list(MODERN),
            self.capabilities.declared(revision),
            self.identity.instructions or UNSET,
        )
        return Results(revision, self.identity).encode_kept(result, changes=self.capabilities.changes)

    def _receive_other(self, line: bytes) -> Iterable[Event]:
        """
        Return what follows from a line that is JSON, but neither request nor notification.
        """
        try:
            message = _decode_any(line)
        except UNREADABLE:
            return _refuse_text(line)
        if not isinstance(message, list):
            return self._receive_response(message)
        if self.revision is None or not self.revision.batches:
            refused = InvalidRequest("there are no batches here: send one message a line")
            return (encode_error(UNSET, refused),)
        if not message:
            return (encode_error(UNSET, InvalidRequest("the batch is empty")),)
        return self._receive_batch(_decode_elements(line))

    def _receive_response(self, message: object) -> Iterable[Event]:
        """
        Return what follows from JSON that is no request; a response that nobody awaits is ignored.
        """
        if not _is_response(message):
            return (encode_error(readable_id(message), InvalidRequest(_why_invalid(message))),)
        request_id = readable_id(message)
        if request_id not in self._asked:
            return ()
        self._asked.discard(request_id)  # another thread may have withdrawn it
        return (Response(request_id, message.get("result")),)

    def _receive_batch(self, elements: list[msgspec.Raw]) -> Iterable[Event]:
        """
        Return what follows from the elements of an array.
        """
        batch = Batch()
        events: list[Event] = []
        for element in elements:
            try:
                event = self._receive_message(_decode_incoming(element), batch)
                events += () if event is None else (event,)
            except msgspec.ValidationError:
                events += self._receive_response(_decode_any(element))
        batch.awaited = sum(isinstance(event, bytes | Request) for event in events)
        return _answered_together(events, batch)


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


def _answered_together(events: list[Event], batch: Batch) -> list[Event]:
    """
    Return *events* with the replies among them moved into *batch*.
    """
    work = [event for event in events if not isinstance(event, bytes)]
    lines = [batch.add(event) for event in events if isinstance(event, bytes)]
    return [line for line in lines if line] + work


def _cancelled(incoming: Incoming) -> Cancelled | None:
    """
    Return which request a notification cancels; None if it does not say.
    """
    try:
        return Cancelled(_decode_cancelled(incoming.params).request_id)
    except UNREADABLE:
        return None


def _refuse_text(line: bytes) -> Iterable[bytes]:
    """
    Return the reply to a line that is no JSON; a blank one needs none.
    """
    return (encode_error(UNSET, ParseError("this line is no JSON")),) if line.strip() else ()


def _is_response(message: object) -> TypeGuard[dict[str, Any]]:
    """
    Return whether *message* is an answer, well-formed or not, which must never be answered.
    """
    return (
        isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message)
    )


def _why_invalid(message: object) -> str:
    """
    Return what keeps decoded JSON from being a request.
    """
    if not isinstance(message, dict):
        return "a message is a JSON object"
    if message.get("jsonrpc") != "2.0":
        return 'a message has the member "jsonrpc": "2.0"'
    if not isinstance(message.get("method"), str):
        return "a request has a method, a string"
    return "an id is a string or a whole number"
