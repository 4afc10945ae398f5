"""What HTTP carries: the head of a request, and a response with the status that its reply has."""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.jsonrpc import (
    HeaderMismatch,
    InvalidRequest,
    MethodNotFound,
    MissingCapability,
    ParseError,
    RequestId,
    TooManyRequests,
    UnsupportedVersion,
    encode_error,
)
from promptkit.protocol.partial_decoding import error_code, retry_after

__all__ = [
    "CLOSE",
    "JSON",
    "JSON_BODY",
    "RETRY",
    "Head",
    "HttpResponse",
    "read_head",
    "refuse",
    "response_to",
]

JSON: Final = b"application/json"

#: Says that a body is JSON.
JSON_BODY: Final = (b"content-type", JSON)

#: Says that the connection ends with the response.
CLOSE: Final = (b"connection", b"close")

#: When a client may try again that has met a limit, in seconds, if the error does not say it.
RETRY: Final = (b"retry-after", b"1")

#: The status of each error, by its code. Others have 200.
_STATUSES: Final[Mapping[int | None, int]] = {
    ParseError.code: 400,
    InvalidRequest.code: 400,
    TooManyRequests.code: 429,
    MethodNotFound.code: 404,
    HeaderMismatch.code: 400,
    MissingCapability.code: 400,
    UnsupportedVersion.code: 400,
}

#: What is wrong with the message itself. Clients of the older era take each such status for a broken
#: connection, so there only what no client sends by chance has one.
_BROKEN: Final = (ParseError.code, InvalidRequest.code, TooManyRequests.code)

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
        return len(b"".join(chain.from_iterable(self.sent)))


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
    request_id: RequestId | Raw | UnsetType = UNSET,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> HttpResponse:
    """
    Return the response that refuses a request, with the error as JSON-RPC has it.
    """
    body = encode_error(request_id, error)[: -len(b"\n")]
    return HttpResponse(status, body, (JSON_BODY, *headers))


def response_to(reply: bytes, *, modern: bool) -> HttpResponse:
    """
    Return the response that carries a reply.

    Args:
        reply:
            One line: a result, or an error.

        modern:
            Whether the request names its revision.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    code = error_code(reply)
    status = _STATUSES.get(code, 200) if modern or code in _BROKEN else 200
    if status != TooManyRequests.code:
        return HttpResponse(status, reply[:-1], (JSON_BODY,))
    seconds = retry_after(reply)
    retry = RETRY if seconds is None else (RETRY[0], b"%d" % seconds)
    return HttpResponse(status, reply[:-1], (JSON_BODY, retry))
