"""
JSON-RPC 2.0: messages, error codes, and the table of which exception has which code.

See https://www.jsonrpc.org/specification and
https://modelcontextprotocol.io/specification/2025-11-25/basic#messages.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.errors.exceptions import (
    ArgumentErrors,
    MissingClientCapability,
    PromptError,
    PromptkitError,
    UnknownPrompt,
)

__all__ = [
    "CLIENT_ERRORS",
    "UNREADABLE",
    "Code",
    "HeaderMismatch",
    "Incoming",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "JsonRpcError",
    "MethodNotFound",
    "MissingCapability",
    "ParseError",
    "RequestId",
    "ResourceNotFound",
    "TooManyRequests",
    "UnsupportedVersion",
    "cut",
    "encode",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_result",
    "message_of",
]

RequestId: TypeAlias = int | str


class Code:
    """
    The codes that an error reply may carry.
    """

    PARSE_ERROR: Final = -32700
    INVALID_REQUEST: Final = -32600
    METHOD_NOT_FOUND: Final = -32601
    INVALID_PARAMS: Final = -32602
    INTERNAL_ERROR: Final = -32603
    RESOURCE_NOT_FOUND: Final = -32002
    HEADER_MISMATCH: Final = -32020
    MISSING_CAPABILITY: Final = -32021
    UNSUPPORTED_VERSION: Final = -32022
    #: Our own, outside of what JSON-RPC and MCP reserve; HTTP has it for the same.
    TOO_MANY_REQUESTS: Final = 429


class JsonRpcError(PromptkitError):
    """
    A message that cannot be served.

    Args:
        message:
            One sentence for the person at the client.

        data:
            Details for programs, if there are any.
    """

    def __init__(self, message: str, data: Any = UNSET) -> None:
        super().__init__(message)
        self.data = data


class ParseError(JsonRpcError):
    """
    The message is not JSON.
    """


class InvalidRequest(JsonRpcError):
    """
    The message is JSON, but not a request.
    """


class MethodNotFound(JsonRpcError):
    """
    The method does not exist, or not for this client.
    """


class InvalidParams(JsonRpcError):
    """
    The params are not what the method takes.
    """


class ResourceNotFound(JsonRpcError):
    """
    No resource has this URI. Revisions with a handshake have a code for it.
    """


class HeaderMismatch(JsonRpcError):
    """
    What the head of a request says is not what its body says.
    """


class MissingCapability(JsonRpcError):
    """
    The client did not declare a capability that the request needs.
    """


class UnsupportedVersion(JsonRpcError):
    """
    A request cannot name this revision.
    """


class TooManyRequests(JsonRpcError):
    """
    The server is at a limit. The same request may be served later.
    """


class InternalError(JsonRpcError):
    """
    The server failed. The message must not say how.
    """


#: The code that each exception is answered with. Other exceptions must not leave the server.
CODES: Final[dict[type[PromptkitError], int]] = {
    ParseError: Code.PARSE_ERROR,
    InvalidRequest: Code.INVALID_REQUEST,
    MethodNotFound: Code.METHOD_NOT_FOUND,
    InvalidParams: Code.INVALID_PARAMS,
    UnknownPrompt: Code.INVALID_PARAMS,
    ArgumentErrors: Code.INVALID_PARAMS,
    PromptError: Code.INVALID_PARAMS,
    InternalError: Code.INTERNAL_ERROR,
    ResourceNotFound: Code.RESOURCE_NOT_FOUND,
    HeaderMismatch: Code.HEADER_MISMATCH,
    MissingCapability: Code.MISSING_CAPABILITY,
    MissingClientCapability: Code.MISSING_CAPABILITY,
    UnsupportedVersion: Code.UNSUPPORTED_VERSION,
    TooManyRequests: Code.TOO_MANY_REQUESTS,
}

#: The same exceptions, for an ``except`` clause.
CLIENT_ERRORS: Final = tuple(CODES)

#: What decoding raises for bytes that are not JSON, do not fit the type, or are nested too deeply.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: The longest error message, in characters. Messages quote what clients send, which may be long.
_MAX_MESSAGE: Final = 500


class Incoming(Struct, gc=False):
    """
    A request or a notification, its params not yet decoded.

    A notification has no *id*. A very long id may be left as `Raw`.
    """

    method: str
    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class _Error(Struct, omit_defaults=True):
    code: int
    message: str
    data: Any = UNSET


class _Failure(Struct):
    jsonrpc: str
    id: RequestId | Raw | UnsetType
    error: _Error


_encoder: Final = msgspec.json.Encoder()

encode: Final = _encoder.encode


def encode_result(request_id: RequestId, result: bytes) -> bytes:
    """
    The line that answers a request with *result*, which is already JSON.
    """
    return b"".join((b'{"jsonrpc":"2.0","id":', encode(request_id), b',"result":', result, b"}\n"))


def encode_request(request_id: RequestId, method: str, params: Any) -> bytes:
    """
    The line that sends the client a request.
    """
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % (
        encode(request_id),
        encode(method),
        encode(params),
    )


def encode_notification(method: str, params: Any) -> bytes:
    """
    The line that sends the client a notification.
    """
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (encode(method), encode(params))


def encode_error(request_id: RequestId | Raw | UnsetType, error: PromptkitError) -> bytes:
    """
    The line that answers a request with *error*, which has to be one of `CLIENT_ERRORS`.

    An id that could not be read is left out, as no revision's schema allows null.
    """
    kind = type(error)
    code = CODES.get(kind) or next(CODES[base] for base in kind.__mro__ if base in CODES)
    failure = _Error(code, message_of(error), _data(error))
    # An id may be long: `encode_lines` does not copy it again. Given a tuple, msgspec 0.22 leaks the line.
    return _encoder.encode_lines([_Failure("2.0", request_id, failure)])


def message_of(error: PromptkitError) -> str:
    """
    What an error says: an author's own words, or one line, shortened in the middle.
    """
    message = str(error)
    if not isinstance(error, PromptError):
        if len(message) > 2 * _MAX_MESSAGE:  # first of all, as the next line copies it
            message = cut(message, 2 * _MAX_MESSAGE)
        message = " ".join(message.splitlines())
        if len(message) > _MAX_MESSAGE:
            message = cut(message)
    return message.encode(errors="backslashreplace").decode()  # an author may have put anything into it


def cut(text: str, longest: int = _MAX_MESSAGE) -> str:
    """
    Shorten *text* by leaving out its middle.
    """
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[: half - 3]}...{text[-half:]}"


def _data(error: PromptkitError) -> Any:
    if isinstance(error, UnknownPrompt):
        return error.as_data()
    if isinstance(error, ArgumentErrors):
        return {"name": error.prompt, "faults": [fault.as_data() for fault in error.faults]}
    if isinstance(error, MissingClientCapability):
        return {"requiredCapabilities": {error.capability: {}}}
    return error.data if isinstance(error, JsonRpcError) else UNSET
