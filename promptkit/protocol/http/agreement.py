"""Whether the head of a modern request says the same as its body."""

from base64 import b64decode, b64encode
from binascii import Error
from typing import Final

from promptkit.errors.exceptions import shortened
from promptkit.protocol.http.messages import Head
from promptkit.protocol.jsonrpc import HeaderMismatch

__all__ = ["disagreement"]

_VERSION: Final = "MCP-Protocol-Version"
_METHOD: Final = "Mcp-Method"
_NAME: Final = "Mcp-Name"

#: Each as it stands in a head.
_KEYS: Final = {field: field.lower().encode() for field in (_VERSION, _METHOD, _NAME)}

#: The methods whose requests repeat in the head what they are about.
_NAMED: Final = frozenset(("prompts/get", "resources/read", "tools/call"))

_ENCODED: Final = (b"=?base64?", b"?=")

#: How a name begins that may be encoded.
_MARK: Final = "=?"


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
        and fields.get(b"mcp-protocol-version") == version.encode()
        and fields.get(b"mcp-method") == method.encode()
        and (name is None or (fields.get(b"mcp-name") == name.encode() and name[:2] != _MARK))
        and sent.isascii()
        and sent.isprintable()
    )


def _fault(head: Head, field: str, value: str) -> HeaderMismatch | None:
    """Say what is wrong with a field; None if nothing is."""
    key = _KEYS[field]
    if key in head.repeated:
        return HeaderMismatch(f"{field} was sent more than once")
    found = head.get(key)
    if found is None:
        return HeaderMismatch(f"{field} is missing: every request of this revision carries it")
    text = _decoded(found) if field == _NAME else _printable(found)
    if text is None:
        return HeaderMismatch(f"{field} is malformed: send printable ASCII, or Base64 as =?base64?...?=")
    if text != value:
        return HeaderMismatch(f"{field} is {shortened(text)!r}, but the body has {shortened(value)!r}")
    return None


def _printable(value: bytes) -> str | None:
    return value.decode() if value.isascii() and value.decode().isprintable() else None


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
