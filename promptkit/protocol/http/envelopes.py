"""A second look at a message that is not simply served: what it is, and what it says of itself."""

from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InvalidParams,
    ProtocolError,
    RequestId,
    UnsupportedVersion,
)
from promptkit.protocol.partial_decoding import RawMessage, decode_large, decode_raw
from promptkit.protocol.refusals import check_envelope

__all__ = ["Message", "peek"]


class _RawParams(Struct):
    """The params of a request, as far as its head repeats them."""

    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")
    name: Any = None
    uri: Any = None


_decode_params: Final = msgspec.json.Decoder(_RawParams).decode
_decode_meta: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Message(Struct):
    """
    What one body holds.

    Args:
        id:
            The id of a request.

        method:
            The method of a request or a notification.

        is_request:
            Whether it is a request that fits JSON-RPC.

        is_notification:
            Whether it is a notification.

        is_response:
            Whether it is a response.

        elements:
            The elements of an array; None if it is none.

        meta:
            The ``_meta`` of the params; None if there is none that is an object.

        name:
            The name, or the URI, in the params.
    """

    id: RequestId | Raw | UnsetType = UNSET
    method: str = ""
    is_request: bool = False
    is_notification: bool = False
    is_response: bool = False
    elements: list[memoryview] | None = None
    meta: dict[str, Any] | None = None
    name: str | None = None

    @property
    def names_revision(self) -> bool:
        """
        Whether it says in its ``_meta`` of which revision it is.
        """
        return self.meta is not None and wire.PROTOCOL_VERSION in self.meta

    @property
    def version(self) -> str:
        """
        The revision that it names.
        """
        return str((self.meta or {}).get(wire.PROTOCOL_VERSION, ""))

    def envelope_fault(self) -> ProtocolError | None:
        """
        Return what is wrong with what every modern request has to carry; None if nothing is.

        Which revision it names is checked later.
        """
        meta = self.meta or {}
        missing = [key for key in (wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES) if key not in meta]
        if missing:
            msg = f"params._meta lacks {' and '.join(map(repr, missing))}, which every request has to carry"
            return InvalidParams(msg, {"missing": missing})
        try:
            check_envelope(meta)
        except UnsupportedVersion:
            return None
        except InvalidParams as error:
            return error.with_traceback(None)
        return None

    def has_modern_element(self, most: int) -> bool:
        """
        Return whether one of the first elements of an array names its revision.

        Args:
            most:
                How many are looked at.
        """
        return any(peek(bytes(element)).names_revision for element in islice(self.elements or (), most))


def peek(body: bytes) -> Message:
    """
    Return what a body holds. A body that is no message at all gives one that is nothing.
    """
    try:
        incoming = decode_large(body)
    except UNREADABLE:
        return _peek_other(body)
    message = Message(method=incoming.method)
    if incoming.id is UNSET:
        message.is_notification = True
    else:
        message.is_request, message.id = True, incoming.id
    try:
        params = _decode_params(incoming.params)
        name = params.uri if message.method == "resources/read" else params.name
        message.name = name if isinstance(name, str) else None
        message.meta = None if params.meta is UNSET else _decode_meta(params.meta)
    except UNREADABLE:
        pass
    return message


def _peek_other(body: bytes) -> Message:
    try:
        found, _ = decode_raw(body)
    except UNREADABLE:
        return Message()
    if isinstance(found, list):
        return Message(elements=found)
    if not isinstance(found, RawMessage):
        return Message()
    return Message(id=found.id_on(body), is_response=found.is_response)
