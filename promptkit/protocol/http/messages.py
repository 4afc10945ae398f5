"""What HTTP carries: the head of a request, and a response."""

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.jsonrpc import RequestId, encode_error

JSON: Final = b"application/json"

#: Says that a body is JSON.
JSON_BODY: Final = (b"content-type", JSON)

#: Says that the connection ends with the response.
CLOSE: Final = (b"connection", b"close")

#: When a client may try again that has met a limit, in seconds, if the error does not say it.
RETRY: Final = (b"retry-after", b"1")

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
            The value of each field by its name in small letters.

        sent:
            The fields as they were sent.

        repeated:
            The names of fields that came more than once, though they are no lists.
    """

    method: str
    path: str
    fields: dict[bytes, bytes]
    sent: Collection[tuple[bytes, bytes]]
    repeated: Collection[bytes] = ()

    def get(self, name: bytes) -> bytes | None:
        """
        Return the value of a field; None if it was not sent.

        Blanks around a value are no part of it, but some servers leave them there.

        See Also:
            https://www.rfc-editor.org/rfc/rfc9110#section-5.5
        """
        value = self.fields.get(name)
        return None if value is None else value.strip(b" \t")

    @property
    def size(self) -> int:
        """
        How many bytes the fields have.
        """
        return sum([len(name) + len(value) for name, value in self.sent])


class HttpResponse(Struct, gc=False):
    """
    One response, as it is sent.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


def read_head(method: str, path: str, fields: Collection[tuple[bytes, bytes]]) -> Head:
    """
    Return a head.

    Args:
        method:
            The method, in capitals.

        path:
            The path, decoded.

        fields:
            Names in small letters, and values.
    """
    head = Head(method, path, dict(fields), fields)
    if len(head.fields) < len(fields):
        head.fields, head.repeated = _merged(fields)
    return head


def _merged(fields: Iterable[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], set[bytes]]:
    """Merge fields that are lists. Of others, the first one stays, and their names are returned, too."""
    merged: dict[bytes, bytes] = {}
    repeated: set[bytes] = set()
    for name, value in fields:
        if name not in merged:
            merged[name] = value
        elif name in _LISTS:
            merged[name] += b"," + value
        else:
            repeated.add(name)
    return merged, repeated


def refuse(
    status: int,
    error: PromptkitError,
    request_id: RequestId | UnsetType = UNSET,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> HttpResponse:
    """
    Return the response that refuses a request, with the error as JSON-RPC has it.
    """
    body = encode_error(request_id, error).line[: -len(b"\n")]
    return HttpResponse(status, body, (JSON_BODY, *headers))
