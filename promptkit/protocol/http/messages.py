"""HTTP messages: the head of a request, and a response."""

from collections.abc import Collection, Iterable
from itertools import chain
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.jsonrpc import RequestId, encode_error

JSON: Final = b"application/json"

#: The header that declares a JSON body.
JSON_BODY: Final = (b"content-type", JSON)

#: The header that closes the connection after the response.
CLOSE: Final = (b"connection", b"close")

#: The header that contains the delay before a client may retry, in seconds.
RETRY: Final = (b"retry-after", b"1")

#: The path of the MCP endpoint. A trailing slash is also accepted, because clients do not follow redirects of
#: requests that have a body.
ENDPOINT: Final = "/mcp"

#: The header that contains the id of a session, in the handshake era.
SESSION_ID: Final = b"mcp-session-id"

#: The fields that can be repeated, because their values are lists.
_LIST_FIELDS: Final = frozenset((b"accept",))


class Head(Struct, gc=False):
    """
    The head of one request.

    Args:
        method:
            The method, in upper case.

        path:
            The decoded path.

        fields:
            The value of each field, keyed by the field's name in lower case.

        sent:
            The fields as they were sent.

        repeated:
            The names of repeated fields that are not lists.
    """

    method: str
    path: str
    fields: dict[bytes, bytes]
    sent: Collection[tuple[bytes, bytes]]
    repeated: Collection[bytes] = ()

    def get(self, name: bytes) -> bytes | None:
        """
        Return the value of a field without surrounding whitespace, or None if the field was not sent.

        Some servers do not strip this whitespace, although it is not part of the value.

        See Also:
            https://www.rfc-editor.org/rfc/rfc9110#section-5.5
        """
        value = self.fields.get(name)
        return None if value is None else value.strip(b" \t")

    @property
    def size(self) -> int:
        """The total size of the fields' names and values, in bytes."""
        return sum(map(len, chain.from_iterable(self.sent)))


#: The pseudo-method of the request that opens the stream of a session. Its HTTP request has no body.
STREAM: Final = "GET"


class HttpResponse(Struct, gc=False):
    """An HTTP response."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


def read_head(method: str, path: str, fields: Collection[tuple[bytes, bytes]]) -> Head:
    """Return the head with these fields, whose names are in lower case."""
    head = Head(method, path, dict(fields), fields)
    if len(head.fields) < len(fields):
        head.fields, head.repeated = _merge_fields(fields)
    return head


def _merge_fields(fields: Iterable[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], set[bytes]]:
    """Merge repeated list fields. For other repeated fields, use the first value, and return their names."""
    merged: dict[bytes, bytes] = {}
    repeated: set[bytes] = set()
    for name, value in fields:
        if name not in merged:
            merged[name] = value
        elif name in _LIST_FIELDS:
            merged[name] += b"," + value
        else:
            repeated.add(name)
    return merged, repeated


def reject(
    status: int,
    error: PromptkitError,
    request_id: RequestId | UnsetType = UNSET,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> HttpResponse:
    """Return the response that rejects a request, with a JSON-RPC error as its body."""
    body = encode_error(request_id, error).line[: -len(b"\n")]
    return HttpResponse(status, body, (JSON_BODY, *headers))


def read_session_id(head: Head) -> str:
    """Return the id of the session that a request names, or ``""`` if it does not name one."""
    return (head.get(SESSION_ID) or b"").decode("latin-1")
