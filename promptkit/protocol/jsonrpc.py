"""
JSON-RPC 2.0: envelopes, error codes, and the one table from exceptions to codes.

See https://www.jsonrpc.org/specification and
https://modelcontextprotocol.io/specification/2025-11-25/basic#messages.
"""

from enum import IntEnum
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.errors.exceptions import ArgumentErrors, PromptError, PromptkitError, UnknownPrompt

__all__ = [
    "CLIENT_ERRORS",
    "Code",
    "Incoming",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "MethodNotFound",
    "MissingCapability",
    "ParseError",
    "ProtocolError",
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
]

RequestId: TypeAlias = int | str


class Code(IntEnum):
    """
    The codes that an error reply may carry.
    """

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    RESOURCE_NOT_FOUND = -32002
    MISSING_CAPABILITY = -32021
    UNSUPPORTED_VERSION = -32022
    #: Our own, outside of what JSON-RPC and MCP reserve; HTTP has it for the same.
    TOO_MANY_REQUESTS = 429


class ProtocolError(PromptkitError):
    """
    A message that cannot be served, because of what it is and not of what it asks for.

    Args:
        message:
            One sentence for the person at the client.

        data:
            The same for machines, if there is more to say.
    """

    def __init__(self, message: str, data: Any = UNSET) -> None:
        super().__init__(message)
        self.data = data


class ParseError(ProtocolError):
    """
    It is no JSON.
    """


class InvalidRequest(ProtocolError):
    """
    It is JSON, but no request.
    """


class MethodNotFound(ProtocolError):
    """
    Its method does not exist, or not for this client.
    """


class InvalidParams(ProtocolError):
    """
    Its params are not what the method takes.
    """


class ResourceNotFound(ProtocolError):
    """
    There is no resource of that URI; revisions with a handshake have a code for it.
    """


class MissingCapability(ProtocolError):
    """
    The request cannot be served to a client that declared so little.
    """


class UnsupportedVersion(ProtocolError):
    """
    The request names a revision that is not served to requests.
    """


class TooManyRequests(ProtocolError):
    """
    The server does as much as it may already. The same request may be served later.
    """


class InternalError(ProtocolError):
    """
    The server failed. The message must not say how.
    """


#: Which code an exception is answered with. What is not listed must not leave the server.
CODES: Final[dict[type[PromptkitError], Code]] = {
    ParseError: Code.PARSE_ERROR,
    InvalidRequest: Code.INVALID_REQUEST,
    MethodNotFound: Code.METHOD_NOT_FOUND,
    InvalidParams: Code.INVALID_PARAMS,
    UnknownPrompt: Code.INVALID_PARAMS,
    ArgumentErrors: Code.INVALID_PARAMS,
    PromptError: Code.INVALID_PARAMS,
    InternalError: Code.INTERNAL_ERROR,
    ResourceNotFound: Code.RESOURCE_NOT_FOUND,
    MissingCapability: Code.MISSING_CAPABILITY,
    UnsupportedVersion: Code.UNSUPPORTED_VERSION,
    TooManyRequests: Code.TOO_MANY_REQUESTS,
}

#: The same, to be caught.
CLIENT_ERRORS: Final = tuple(CODES)


#: How long a message may be. It quotes what clients send, which may be of any length.
_LONGEST: Final = 500


class Incoming(Struct, gc=False):
    """
    A request or a notification, its params not yet looked at.

    A notification has no *id*; a *params* that is missing is an empty object. A long id may be
    left as it is.
    """

    method: str
    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class _Error(Struct, omit_defaults=True):
    """
    What went wrong, as it is sent.
    """

    code: int
    message: str
    data: Any = UNSET


class _Failure(Struct):
    """
    The answer to a request that failed.
    """

    jsonrpc: str
    id: RequestId | Raw | UnsetType
    error: _Error


_encoder: Final = msgspec.json.Encoder()

encode: Final = _encoder.encode


def encode_result(request_id: RequestId, result: bytes) -> bytes:
    """
    Return the line that answers a request with *result*, which is JSON already.
    """
    return b"".join((b'{"jsonrpc":"2.0","id":', encode(request_id), b',"result":', result, b"}\n"))


def encode_request(request_id: RequestId, method: str, params: Any) -> bytes:
    """
    Return the line that asks the client for something.
    """
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % (
        encode(request_id),
        encode(method),
        encode(params),
    )


def encode_notification(method: str, params: Any) -> bytes:
    """
    Return the line that tells the client something.
    """
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (encode(method), encode(params))


def encode_error(request_id: RequestId | Raw | UnsetType, error: PromptkitError) -> bytes:
    """
    Return the line that answers a request with *error*.

    Args:
        request_id:
            The request's id. If it could not be read it is left out: no revision's schema
            takes null.

        error:
            One of `CODES`, or of a class derived from one.
    """
    code = next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    failure = _Error(code, _message(error), _data(error))
    # An id may be long, and no more copies of it are made. Of a tuple, msgspec 0.22 would leak the line.
    return _encoder.encode_lines([_Failure("2.0", request_id, failure)])


def _message(error: PromptkitError) -> str:
    """
    Return what *error* says: in the author's words, or on one line, its middle left out if too long.
    """
    message = str(error)
    if not isinstance(error, PromptError):
        if len(message) > 2 * _LONGEST:  # before it is copied
            message = cut(message, 2 * _LONGEST)
        message = " ".join(message.splitlines())
        if len(message) > _LONGEST:
            message = cut(message)
    return message.encode(errors="backslashreplace").decode()  # an author's may hold anything


def cut(text: str, longest: int = _LONGEST) -> str:
    """
    Return *text* with its middle left out if it is too long.
    """
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[: half - 3]}...{text[-half:]}"


def _data(error: PromptkitError) -> Any:
    """
    Return what machines are told of *error*.
    """
    if isinstance(error, UnknownPrompt):
        return error.as_data()
    if isinstance(error, ArgumentErrors):
        return {"name": error.prompt, "faults": [fault.as_data() for fault in error.faults]}
    return error.data if isinstance(error, ProtocolError) else UNSET
