"""
One client's connection, sans I/O: bytes in, replies or work out.

A `Connection` cuts the stream into messages, refuses what is none, speaks the handshake,
and hands out what remains to be done. It never waits, and it knows no prompt.
"""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final, TypeAlias

import attrs
import msgspec
from msgspec import UNSET, Struct

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    Incoming,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    ProtocolError,
    RequestId,
    encode,
    encode_error,
    encode_result,
    readable_id,
)
from promptkit.protocol.revisions import LATEST_HANDSHAKE, Revision, negotiate

__all__ = ["Cancelled", "Connection", "Event", "Identity", "Request"]


@attrs.frozen
class Identity:
    """
    What a server says of itself.

    Args:
        name:
            What it is called.

        version:
            Its version.

        instructions:
            What a model should know of it, if anything.
    """

    name: str
    version: str
    instructions: str | None = None


@attrs.frozen
class Method:
    """
    A request that is understood.

    Args:
        params:
            What its params are.

        opens:
            Whether it may come before the handshake.

        batched:
            Whether it may come inside an array.
    """

    params: type[wire.Params]
    opens: bool = False
    batched: bool = True


#: Every request that is understood, and when it may come. There is no other check.
METHODS: Final[Mapping[str, Method]] = {
    "initialize": Method(wire.InitializeParams, opens=True, batched=False),
    "ping": Method(wire.Params, opens=True),
    "prompts/list": Method(wire.PageParams),
    "prompts/get": Method(wire.GetPromptParams),
    "resources/list": Method(wire.PageParams),
    "resources/templates/list": Method(wire.PageParams),
    "tools/list": Method(wire.PageParams),
}

#: What is answered the same always. Some clients ask for every kind of list and give up on
#: an error, so lists that are not declared are answered too.
STATIC_RESULTS: Final[Mapping[str, bytes]] = {
    "ping": b"{}",
    "resources/list": b'{"resources":[]}',
    "resources/templates/list": b'{"resourceTemplates":[]}',
    "tools/list": b'{"tools":[]}',
}


class Batch:
    """
    The replies to one array of messages, which leave together.

    See Also:
        https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
    """

    def __init__(self) -> None:
        self.awaited = 0
        self._replies: list[bytes] = []
        self._lock = Lock()  # replies may come from several threads

    def add(self, reply: bytes) -> bytes:
        """
        Take one reply; return the whole line once it was the last, else nothing.
        """
        with self._lock:
            self.awaited -= 1
            if reply:
                self._replies.append(reply.rstrip(b"\n"))
            if self.awaited or not self._replies:
                return b""
            return b"[%b]\n" % b",".join(self._replies)


class Request(Struct, gc=False):
    """
    Something to be done: work out a result, and `answer` with it.
    """

    id: RequestId
    method: str
    params: wire.Params
    revision: Revision
    batch: Batch | None = None

    def answer(self, reply: bytes) -> bytes:
        """
        Return what to send, once *reply* is known.

        Args:
            reply:
                One line; ``b""`` if the request was cancelled and is not answered.
        """
        return reply if self.batch is None else self.batch.add(reply)


class Cancelled(Struct):
    """
    The client no longer wants the answer to a request.
    """

    request_id: RequestId


#: What `Connection.receive_data` returns: a reply, to be sent, or work, to be done.
Event: TypeAlias = bytes | Request | Cancelled

#: What decoding raises for bytes that are no JSON, or that are nested too deeply.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_incoming: Final = msgspec.json.Decoder(Incoming).decode
_decode_any: Final = msgspec.json.Decoder().decode
_decode_cancelled: Final = msgspec.json.Decoder(wire.CancelledParams).decode
_decode_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_DECODERS: Final = {name: msgspec.json.Decoder(method.params).decode for name, method in METHODS.items()}


class Connection:
    """
    One client, from its first byte to its last.

    Args:
        identity:
            What the server says of itself.

    Attributes:
        revision:
            What was agreed upon, None before.

        client:
            What the client said of itself in the handshake, None before.
    """

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.revision: Revision | None = None
        self.client: wire.InitializeParams | None = None
        self._pending: list[bytes] = []

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
        if not data:
            data = b"\n"
        elif b"\n" not in data:
            self._pending.append(data)
            return []
        if self._pending:
            data = b"".join((*self._pending, data))
            self._pending.clear()
        *lines, rest = data.split(b"\n")
        if rest:
            self._pending.append(rest)
        events: list[Event] = []
        for line in lines:
            events += self._receive_line(line)
        return events

    def _receive_line(self, line: bytes) -> Iterable[Event]:
        """
        Return what follows from one line.
        """
        try:
            if not line.isascii():
                str(line, "utf-8")  # the decoder does not look at what it skips
            incoming = _decode_incoming(line)
        except msgspec.ValidationError:
            return self._receive_other(line)
        except _UNREADABLE:
            return _refuse_text(line)
        event = self._receive_message(incoming, None)
        return () if event is None else (event,)

    def _receive_message(self, incoming: Incoming, batch: Batch | None) -> Event | None:
        """
        Return what follows from a request or a notification.
        """
        if incoming.id is UNSET:
            return _cancelled(incoming) if incoming.method == "notifications/cancelled" else None
        try:
            return self._receive_request(incoming, incoming.id, batch)
        except ProtocolError as error:
            return encode_error(incoming.id, error)

    def _receive_request(self, incoming: Incoming, request_id: RequestId, batch: Batch | None) -> Event:
        """
        Return what follows from a request.

        Raises:
            ProtocolError: If it cannot be served.
        """
        name = incoming.method
        if (method := METHODS.get(name)) is None:
            msg = f"method not found: {name}"
            raise MethodNotFound(msg, name)
        if batch is not None and not method.batched:
            msg = f"{name} cannot be part of a batch"
            raise InvalidRequest(msg)
        if self.revision is None and not method.opens:
            msg = f"{name} came before initialize: open the session first"
            raise InvalidParams(msg)
        try:
            params = _DECODERS[name](incoming.params)
        except RecursionError:
            msg = "the params are nested too deeply"
            raise ParseError(msg) from None
        except (msgspec.ValidationError, UnicodeDecodeError) as error:
            raise _bad_params(name, incoming.params, error) from None
        if isinstance(params, wire.InitializeParams):
            return encode_result(request_id, self._initialize(params))
        if name in STATIC_RESULTS:
            return encode_result(request_id, STATIC_RESULTS[name])
        return Request(request_id, name, params, self.revision or LATEST_HANDSHAKE, batch)

    def _initialize(self, params: wire.InitializeParams) -> bytes:
        """
        Agree on a revision; a second handshake agrees anew. Return the result.
        """
        self.revision = negotiate(params.protocol_version)
        self.client = params
        return encode(
            wire.InitializeResult(
                protocol_version=self.revision.date,
                capabilities={"prompts": {"listChanged": False}},
                server_info=wire.Implementation(self.identity.name, self.identity.version),
                instructions=self.identity.instructions or UNSET,
            ),
        )

    def _receive_other(self, line: bytes) -> Iterable[Event]:
        """
        Return what follows from a line that is JSON, but neither request nor notification.
        """
        try:
            message = _decode_any(line)
        except _UNREADABLE:
            return _refuse_text(line)
        if not isinstance(message, list):
            return _refuse(message)
        if self.revision is None or not self.revision.batches:
            return (
                encode_error(UNSET, InvalidRequest("there are no batches here: send one message a line")),
            )
        if not message:
            return (encode_error(UNSET, InvalidRequest("the batch is empty")),)
        return self._receive_batch(_decode_elements(line))

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
                events += _refuse(_decode_any(element))
        batch.awaited = sum(not isinstance(event, Cancelled) for event in events)
        return _answered_together(events, batch)


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
    except _UNREADABLE:
        return None


def _refuse_text(line: bytes) -> Iterable[bytes]:
    """
    Return the reply to a line that is no JSON; a blank one needs none.
    """
    return (encode_error(UNSET, ParseError("this line is no JSON")),) if line.strip() else ()


def _refuse(message: object) -> tuple[bytes, ...]:
    """
    Return the reply to JSON that is no request; a response is ignored, as nobody asked.
    """
    if isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message):
        return ()
    return (encode_error(readable_id(message), InvalidRequest(_why_invalid(message))),)


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


def _bad_params(method: str, params: msgspec.Raw, error: Exception) -> ProtocolError:
    """
    Return what is wrong with the *params* of a request.
    """
    if not bytes(params).lstrip().startswith(b"{"):
        return InvalidRequest("params is an object")
    return InvalidParams(f"the params of {method} do not fit: {error}")
