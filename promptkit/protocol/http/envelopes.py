"""The envelope of a message, and its comparison with the headers of the HTTP request."""

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

#: The header fields, each with its name in lower case.
_VERSION: Final = ("MCP-Protocol-Version", b"mcp-protocol-version")
_METHOD: Final = ("Mcp-Method", b"mcp-method")
_NAME: Final = ("Mcp-Name", b"mcp-name")

#: The methods whose requests repeat a name or URI in a header.
_METHODS_WITH_NAME: Final = frozenset(("prompts/get", "resources/read", "tools/call"))

_ENCODED: Final = (b"=?base64?", b"?=")

#: The value of a missing member.
_MISSING: Final = Raw()


class _NameOrUri(Struct):
    """The member of the params that a header repeats."""

    name: Any = None
    uri: Any = None


_decode_name: Final = msgspec.json.Decoder(_NameOrUri).decode
_decode_text: Final = msgspec.json.Decoder(str).decode


class Envelope(Struct):
    """
    The contents of a body.

    Args:
        id:
            The id of a request.

        method:
            The method of a request or a notification.

        is_request:
            Whether the body is a valid JSON-RPC request.

        is_notification:
            Whether the body is a notification.

        is_response:
            Whether the body is a response.

        elements:
            The elements of an array; None for other JSON.

        params:
            The params.

        meta:
            The ``_meta`` of the params with raw values; empty if it is missing or not an object.

        name:
            The name or URI in the params.
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
        """Whether the ``_meta`` names a revision."""
        return wire.PROTOCOL_VERSION in self.meta

    @property
    def version(self) -> str:
        """The revision that the ``_meta`` names; the raw JSON if it is not a string."""
        value = self.meta.get(wire.PROTOCOL_VERSION, _MISSING)
        with suppress(*UNREADABLE):
            return _decode_text(value)
        return str(value, "utf-8")

    def find_envelope_error(self) -> JsonRpcError | None:
        """
        Return the error if the metadata that every modern request needs is invalid, or None.

        An unsupported revision is not an error here, because it is checked later.
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

    def has_modern_element(self, limit: int) -> bool:
        """Return whether one of the first *most* elements of an array names its revision."""
        return any(peek(bytes(element)).names_revision for element in islice(self.elements or (), limit))


def peek(body: bytes) -> Envelope:
    """
    Decode the envelope of a body. For an invalid message, the envelope is neither request nor notification.
    """
    message = decode_message(body)
    if message.error is not None or message.elements is not None or message.is_response:
        return Envelope(message.id, is_response=message.is_response, elements=message.elements)
    is_notification = message.is_notification
    params = message.params
    value: Any = None
    with suppress(*UNREADABLE):
        members = _decode_name(params)
        value = members.uri if message.method == "resources/read" else members.name
    return Envelope(
        message.id,
        message.method,
        is_request=not is_notification,
        is_notification=is_notification,
        params=params,
        meta=raw_meta(params),
        name=value if isinstance(value, str) else None,
    )


def find_header_mismatch(head: Head, version: str, method: str, name: str | None) -> HeaderMismatch | None:
    """
    Return the error if the headers do not match the body, or None.

    Args:
        head:
            The head.

        version:
            The revision that the body names.

        method:
            The method in the body.

        name:
            The name of the prompt, or the URI of the resource, in the body, if any.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    value = name if method in _METHODS_WITH_NAME else None
    if _is_equal(head, version, method, value):  # the common case
        return None
    error = _find_mismatch(head, _VERSION, version) or _find_mismatch(head, _METHOD, method)
    return error if error or value is None else _find_mismatch(head, _NAME, value)


def _is_equal(head: Head, version: str, method: str, name: str | None) -> bool:
    """Return whether the headers repeat the body byte for byte."""
    fields, text = head.fields, method if name is None else method + name
    return (
        not head.repeated
        and fields.get(_VERSION[1]) == version.encode()
        and fields.get(_METHOD[1]) == method.encode()
        and (name is None or (fields.get(_NAME[1]) == name.encode() and name[:2] != "=?"))
        and text.isascii()
        and text.isprintable()
    )


def _find_mismatch(head: Head, field: tuple[str, bytes], value: str) -> HeaderMismatch | None:
    """Return the error if a header field does not have this value, or None."""
    name, key = field
    if key in head.repeated:
        return HeaderMismatch(f"{name} was sent more than once")
    sent = head.get(key)
    if sent is None:
        return HeaderMismatch(f"{name} is missing: every request of this revision carries it")
    text = _decode_value(sent) if field is _NAME else _decode_printable(sent)
    if text is None:
        return HeaderMismatch(f"{name} is malformed: send printable ASCII, or Base64 as =?base64?...?=")
    if text != value:
        return HeaderMismatch(f"{name} is {shortened(text)!r}, but the body has {shortened(value)!r}")
    return None


def _decode_printable(value: bytes) -> str | None:
    text = value.decode("latin-1")
    return text if text.isascii() and text.isprintable() else None


def _decode_value(value: bytes) -> str | None:
    prefix, suffix = _ENCODED
    if not (value.startswith(prefix) and value.endswith(suffix) and len(value) >= len(prefix) + len(suffix)):
        return _decode_printable(value)
    encoded = value[len(prefix) : -len(suffix)]
    try:
        decoded = b64decode(encoded, validate=True)
        # Excess bits must be zero: other decoders would reject other bits, or decode them differently.
        return decoded.decode() if b64encode(decoded) == encoded else None
    except (Error, UnicodeDecodeError):
        return None
