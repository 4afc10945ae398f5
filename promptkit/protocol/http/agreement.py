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

#: The methods whose requests repeat in the head what they are about.
_NAMED: Final = frozenset(("prompts/get", "resources/read", "tools/call"))

_ENCODED: Final = (b"=?base64?", b"?=")

#: How a text begins that looks as if it were encoded: it has to be.
_MARK: Final = "=?base64?"


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
    expected = [(_VERSION, version), (_METHOD, method)]
    if method in _NAMED and name is not None:
        expected.append((_NAME, name))
    for field, value in expected:
        key = field.lower().encode()
        is_same = head.fields.get(key) == value.encode(errors="surrogatepass") and key not in head.repeated
        if not (is_same and _is_plain(value)) and (fault := _fault(head, field, key, value)) is not None:
            return fault
    return None


def _fault(head: Head, field: str, key: bytes, value: str) -> HeaderMismatch | None:
    """Say what is wrong with a field that is not, byte for byte, what the body has."""
    if key in head.repeated:
        return HeaderMismatch(f"{field} was sent more than once")
    found = head.fields.get(key)
    if found is None:
        return HeaderMismatch(f"{field} is missing: every request of this revision carries it")
    text = _decoded(found) if field == _NAME else _printable(found)
    if text is None:
        return HeaderMismatch(f"{field} is malformed: send printable ASCII, or Base64 as =?base64?...?=")
    if text != value:
        return HeaderMismatch(f"{field} is {shortened(text)!r}, but the body has {shortened(value)!r}")
    return None


def _is_plain(value: str) -> bool:
    """Whether a value stands in a field as it is."""
    return value.isascii() and value.isprintable() and not value.startswith(_MARK)


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
