"""
JSON-RPC 2.0: messages, error codes, and the mapping of exceptions to codes.

See https://www.jsonrpc.org/specification and
https://modelcontextprotocol.io/specification/2025-11-25/basic#messages.
"""

from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from promptkit.errors.exceptions import (
    ArgumentsError,
    MissingClientCapabilityError,
    PromptError,
    PromptkitError,
    UnknownPromptError,
)

RequestId: TypeAlias = int | str


class JsonRpcError(PromptkitError):
    """
    The base class of JSON-RPC errors.

    Args:
        message:
            One sentence for the client's user.

        data:
            Details for programs, if any.

    Attributes:
        code:
            The error code.
    """

    code: ClassVar[int]

    def __init__(self, message: str, data: Any = UNSET) -> None:
        super().__init__(message)
        self.data = data


class ParseError(JsonRpcError):
    """The message is not JSON."""

    code = -32700


class InvalidRequest(JsonRpcError):
    """The message is JSON, but not a request."""

    code = -32600


class MethodNotFound(JsonRpcError):
    """The method does not exist, or is not available to this client."""

    code = -32601


class InvalidParams(JsonRpcError):
    """The params are invalid for the method."""

    code = -32602


class ResourceNotFound(JsonRpcError):
    """There is no resource with this URI. Only revisions with a handshake have this code."""

    code = -32002


class HeaderMismatch(JsonRpcError):
    """The headers of a request contradict its body."""

    code = -32020


class MissingCapability(JsonRpcError):
    """The client did not declare a capability that the request needs."""

    code = -32021


class UnsupportedVersion(JsonRpcError):
    """The revision that a request names is not supported."""

    code = -32022


class TooManyRequests(JsonRpcError):
    """The server has reached a limit. The same request may succeed later."""

    code = 429  # outside the ranges that JSON-RPC and MCP reserve; the status code of HTTP for the same error


class InternalError(JsonRpcError):
    """The server failed. The message must not reveal internals."""

    code = -32603


#: The codes of exceptions that are not a `JsonRpcError`. No other exception may reach a client.
_CODES: Final[dict[type[PromptkitError], int]] = {
    MissingClientCapabilityError: MissingCapability.code,
    UnknownPromptError: InvalidParams.code,
    ArgumentsError: InvalidParams.code,
    PromptError: InvalidParams.code,
}

#: The exceptions that have a code, for an ``except`` clause.
CLIENT_ERRORS: Final[tuple[type[PromptkitError], ...]] = (JsonRpcError, *_CODES)

#: The exceptions that the decoder raises if bytes are not JSON, have the wrong type or are nested too deeply.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: The maximum length of an error message, in characters. Messages quote clients' input, which can be long.
_MAX_MESSAGE: Final = 500


class Reply(Struct, gc=False, frozen=True):
    """
    A reply to the client, and the outcome of the request.

    Args:
        line:
            The encoded line, or several lines of notifications; ``b""`` if nothing must be sent.

        outcome:
            ``ok``, ``error``, ``failed`` for a failed tool call, ``asked`` if the client is asked for input,
            ``cancelled`` or ``unanswered``.

        code:
            The code, if the reply is an error.
    """

    line: bytes
    outcome: str = "ok"
    code: int | None = None


#: The reply to a cancelled request.
CANCELLED: Final = Reply(b"", "cancelled")


class _Error(Struct, omit_defaults=True):
    code: int
    message: str
    data: Any = UNSET


class _ErrorResponse(Struct):
    jsonrpc: str
    id: RequestId | UnsetType
    error: _Error


encode: Final = msgspec.json.Encoder().encode


def encode_result(request_id: RequestId, result: bytes, outcome: str = "ok") -> Reply:
    """Return the reply with *result*, which is already JSON."""
    line = b"".join((b'{"jsonrpc":"2.0","id":', encode(request_id), b',"result":', result, b"}\n"))
    return Reply(line, outcome)


def encode_request(request_id: RequestId, method: str, params: Any) -> bytes:
    """Encode a request to the client as a line."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % (
        encode(request_id),
        encode(method),
        encode(params),
    )


def encode_notification(method: str, params: Any) -> bytes:
    """Encode a notification to the client as a line."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (encode(method), encode(params))


def encode_error(request_id: RequestId | UnsetType, error: PromptkitError) -> Reply:
    """
    Return the reply with *error*, which must be one of `CLIENT_ERRORS`.

    An id that could not be decoded is omitted, because no revision's schema allows null.
    """
    codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
    code = error.code if isinstance(error, JsonRpcError) else next(codes)
    line = (
        encode(_ErrorResponse("2.0", request_id, _Error(code, format_message(error), _error_data(error))))
        + b"\n"
    )
    return Reply(line, "error", code)


def format_message(error: PromptkitError) -> str:
    """Return an error's message: unchanged for an author's `PromptError`, otherwise shortened to one line."""
    message = str(error)
    if not isinstance(error, PromptError):
        message = shorten_middle(message, 2 * _MAX_MESSAGE)  # before the next line copies the message
        message = shorten_middle(" ".join(message.splitlines()))
    return message.encode(errors="backslashreplace").decode()  # an author's text may contain lone surrogates


def shorten_middle(text: str, limit: int = _MAX_MESSAGE) -> str:
    """Return *text*, with ``...`` instead of its middle if it is longer than *limit*."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[: half - 3]}...{text[-half:]}"


def _error_data(error: PromptkitError) -> Any:
    if isinstance(error, UnknownPromptError):
        return error.as_data()
    if isinstance(error, ArgumentsError):
        return {"name": error.prompt, "errors": [diagnostic.as_data() for diagnostic in error.errors]}
    if isinstance(error, MissingClientCapabilityError):
        return {"requiredCapabilities": {error.capability: {}}}
    return error.data if isinstance(error, JsonRpcError) else UNSET
