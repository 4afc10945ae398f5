"""What a message says of itself, and whether the head of its request says the same."""

from base64 import b64decode, b64encode
from binascii import Error
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.decoding import decode_message
from promptkit.protocol.http.messages import Head
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    HeaderMismatch,
    InvalidParams,
    JsonRpcError,
    RequestId,
    UnsupportedVersion,
)
from promptkit.protocol.message_checks import check_envelope, raw_meta

#: The fields of a head, each with its name in small letters.
_VERSION: Final = ("MCP-Protocol-Version", b"mcp-protocol-version")
_METHOD: Final = ("Mcp-Method", b"mcp-method")
_NAME: Final = ("Mcp-Name", b"mcp-name")

#: The methods whose requests repeat in the head what they are about.
_NAMED: Final = frozenset(("prompts/get", "resources/read", "tools/call"))

_ENCODED: Final = (b"=?base64?", b"?=")

#: Stands for a member that is missing.
_NOTHING: Final = Raw()


class _Named(Struct):
    """What a request is about: the member that its head repeats."""

    name: Any = None
    uri: Any = None


_decode_named: Final = msgspec.json.Decoder(_Named).decode
_decode_text: Final = msgspec.json.Decoder(str).decode


class Envelope(Struct):
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

        params:
            The params.

        meta:
            The ``_meta`` of the params, its values not decoded; empty if there is none that is an object.

        name:
            The name, or the URI, in the params.
    """

    id: RequestId | UnsetType = UNSET
    method: str = ""
    is_request: bool = False
    is_notification: bool = False
    is_response: bool = False
    elements: list[Raw] | None = None
    params: Raw = Raw(b"{}")
    meta: dict[str, Raw] = msgspec.field(default_factory=dict)
    name: str | None = None

    @property
    def names_revision(self) -> bool:
        """
        Whether it says in its ``_meta`` of which revision it is.
        """
        return wire.PROTOCOL_VERSION in self.meta

    @property
    def version(self) -> str:
        """
        The revision that it names; its JSON if that is no text.
        """
        named = self.meta.get(wire.PROTOCOL_VERSION, _NOTHING)
        with suppress(*UNREADABLE):
            return _decode_text(named)
        return str(named, "utf-8")

    def envelope_fault(self) -> JsonRpcError | None:
        """
        Return what is wrong with what every modern request has to carry; None if nothing is.

        Which revision it names is checked later.
        """
        missing = [key for key in (wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES) if key not in self.meta]
        if missing:
            msg = f"params._meta lacks {' and '.join(map(repr, missing))}, which every request has to carry"
            return InvalidParams(msg, {"missing": missing})
        try:
            check_envelope(self.params)
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


def peek(body: bytes) -> Envelope:
    """
    Return what a body holds. A body that is no message at all gives one that is nothing.
    """
    message = decode_message(body)
    if message.error is not None or message.elements is not None or message.is_response:
        return Envelope(message.id, is_response=message.is_response, elements=message.elements)
    notifies = message.is_notification
    params = message.params
    named: Any = None
    with suppress(*UNREADABLE):
        members = _decode_named(params)
        named = members.uri if message.method == "resources/read" else members.name
    return Envelope(
        message.id,
        message.method,
        is_request=not notifies,
        is_notification=notifies,
        params=params,
        meta=raw_meta(params),
        name=named if isinstance(named, str) else None,
    )


def disagreement(head: Head, version: str, method: str, name: str | None) -> HeaderMismatch | None:
    """
    Return what is wrong with the fields of a head; None if they are as they should be.

    Args:
        head:
            The head.

        version:
            The revision that the body names.

        method:
            The method in the body.

        name:
            The name of the prompt, or the URI of the resource, in the body; None if there is none.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    named = name if method in _NAMED else None
    if _is_same(head, version, method, named):  # nearly always
        return None
    fault = _fault(head, _VERSION, version) or _fault(head, _METHOD, method)
    return fault if fault or named is None else _fault(head, _NAME, named)


def _is_same(head: Head, version: str, method: str, name: str | None) -> bool:
    """Whether the head repeats the body, byte for byte."""
    fields, sent = head.fields, method if name is None else method + name
    return (
        not head.repeated
        and fields.get(_VERSION[1]) == version.encode()
        and fields.get(_METHOD[1]) == method.encode()
        and (name is None or (fields.get(_NAME[1]) == name.encode() and name[:2] != "=?"))
        and sent.isascii()
        and sent.isprintable()
    )


def _fault(head: Head, field: tuple[str, bytes], value: str) -> HeaderMismatch | None:
    """Say what is wrong with a field; None if nothing is."""
    name, key = field
    if key in head.repeated:
        return HeaderMismatch(f"{name} was sent more than once")
    found = head.get(key)
    if found is None:
        return HeaderMismatch(f"{name} is missing: every request of this revision carries it")
    text = _decoded(found) if field is _NAME else _printable(found)
    if text is None:
        return HeaderMismatch(f"{name} is malformed: send printable ASCII, or Base64 as =?base64?...?=")
    if text != value:
        return HeaderMismatch(f"{name} is {shortened(text)!r}, but the body has {shortened(value)!r}")
    return None


def _printable(value: bytes) -> str | None:
    text = value.decode("latin-1")
    return text if text.isascii() and text.isprintable() else None


def _decoded(value: bytes) -> str | None:
    begin, end = _ENCODED
    if not (value.startswith(begin) and value.endswith(end) and len(value) >= len(begin) + len(end)):
        return _printable(value)
    encoded = value[len(begin) : -len(end)]
    try:
        decoded = b64decode(encoded, validate=True)
        # Bits that are left over may hold anything: other decoders would refuse them, or read them otherwise.
        return decoded.decode() if b64encode(decoded) == encoded else None
    except (Error, UnicodeDecodeError):
        return None
