"""Which status a reply has, by the code of its error and the era of its request."""

from collections.abc import Mapping
from typing import Final

from promptkit.protocol.http.messages import JSON_BODY, Response
from promptkit.protocol.jsonrpc import Code
from promptkit.protocol.partial_decoding import error_code, retry_after

__all__ = ["RETRY", "response_to", "status_of"]

#: When a client may try again that has met a limit, in seconds, if the error does not say it.
RETRY: Final = (b"retry-after", b"1")

#: What is wrong with the message itself. Clients of the older era take each such status for a broken
#: connection, so there only what no client sends by chance has one.
_BROKEN: Final[Mapping[int, int]] = {
    Code.PARSE_ERROR: 400,
    Code.INVALID_REQUEST: 400,
    Code.TOO_MANY_REQUESTS: 429,
}
#: What the beginning of a result holds, unless its id is long. An id cannot imitate it: quotes are escaped.
_RESULT: Final = b',"result":'
_BEGINNING: Final = 64

_BY_CODE: Final[Mapping[bool, Mapping[int, int]]] = {
    False: _BROKEN,
    True: {
        **_BROKEN,
        Code.METHOD_NOT_FOUND: 404,
        Code.HEADER_MISMATCH: 400,
        Code.MISSING_CAPABILITY: 400,
        Code.UNSUPPORTED_VERSION: 400,
    },
}


def status_of(reply: bytes, *, modern: bool) -> int:
    """
    Return the status of a reply.

    Args:
        reply:
            One line: a result, or an error.

        modern:
            Whether the request names its revision.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
    """
    if _RESULT in reply[:_BEGINNING]:  # nearly always
        return 200
    code = error_code(reply)
    return 200 if code is None else _BY_CODE[modern].get(code, 200)


def response_to(reply: bytes, *, modern: bool) -> Response:
    """
    Return the response that carries a reply.

    Args:
        reply:
            One line: a result, or an error.

        modern:
            Whether the request names its revision.
    """
    status = status_of(reply, modern=modern)
    if status != Code.TOO_MANY_REQUESTS:
        return Response(status, reply[:-1], (JSON_BODY,))
    seconds = retry_after(reply)
    retry = RETRY if seconds is None else (RETRY[0], b"%d" % seconds)
    return Response(status, reply[:-1], (JSON_BODY, retry))
