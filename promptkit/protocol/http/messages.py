"""What HTTP carries: the head of a request, and a response."""

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.jsonrpc import RequestId, encode_error

__all__ = ["CLOSE", "JSON", "Head", "Response", "read_head", "refuse"]

JSON: Final = b"application/json"

#: Says that the connection ends with the response.
CLOSE: Final = (b"connection", b"close")

#: Fields that may come several times, as a list.
_LISTS: Final = frozenset((b"accept",))


class Head(Struct, gc=False):
    """
    The head of one request.

    Args:
        method:
            The method, in capitals.

        path:
            The path, decoded.

        fields:
            The value of each field, without blanks around it, by its name in small letters.

        repeated:
            The names of fields that came more than once, though they are no lists.

        size:
            How many bytes the fields have.

        count:
            How many fields there are.
    """

    method: str
    path: str
    fields: dict[bytes, bytes]
    repeated: frozenset[bytes] = frozenset()
    size: int = 0
    count: int = 0


class Response(Struct, gc=False):
    """
    One response, as it is sent.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


def read_head(method: str, path: str, fields: Iterable[tuple[bytes, bytes]]) -> Head:
    """
    Return a head.

    Args:
        method:
            The method, in capitals.

        path:
            The path, decoded.

        fields:
            Names in small letters, and values. Blanks around a value are no part of it, but some servers
            leave them there.

    See Also:
        https://www.rfc-editor.org/rfc/rfc9110#section-5.5
    """
    found: dict[bytes, bytes] = {}
    head = Head(method, path, found)
    for name, value in fields:
        head.count += 1
        head.size += len(name) + len(value)
        if name not in found:
            found[name] = value.strip(b" \t")
        elif name in _LISTS:
            found[name] += b", " + value.strip(b" \t")
        else:
            head.repeated |= {name}
    return head


def refuse(
    status: int,
    error: PromptkitError,
    request_id: RequestId | Raw | UnsetType = UNSET,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Response:
    """
    Return the response that refuses a request, with the error as JSON-RPC has it.
    """
    body = encode_error(request_id, error)[: -len(b"\n")]
    return Response(status, body, ((b"content-type", JSON), *headers))
