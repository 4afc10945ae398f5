"""
JSON-RPC 2.0: messages, error codes, and the table of which exception has which code.

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
    A message that cannot be served.

    Args:
        message:
            One sentence for the person at the client.

        data:
            Details for programs, if there are any.

    Attributes:
        code:
            The code of the reply.
    """

    code: ClassVar[int]

    def __init__(self, message: str, data: Any = UNSET) -> None:
        super().__init__(message)
        self.data = data


class ParseError(JsonRpcError):
    """
    The message is not JSON.
    """

    code = -32700


class InvalidRequest(JsonRpcError):
    """
    The message is JSON, but not a request.
    """

    code = -32600


class MethodNotFound(JsonRpcError):
    """
    The method does not exist, or not for this client.
    """

    code = -32601


class InvalidParams(JsonRpcError):
    """
    The params are not what the method takes.
    """

    code = -32602


class ResourceNotFound(JsonRpcError):
    """
    No resource has this URI. Revisions with a handshake have a code for it.
    """

    code = -32002


class HeaderMismatch(JsonRpcError):
    """
    What the head of a request says is not what its body says.
    """

    code = -32020


class MissingCapability(JsonRpcError):
    """
    The client did not declare a capability that the request needs.
    """

    code = -32021


class UnsupportedVersion(JsonRpcError):
    """
    A request cannot name this revision.
    """

    code = -32022


class TooManyRequests(JsonRpcError):
    """
    The server is at a limit. The same request may be served later.

    Args:
        message:
            One sentence for the person at the client.

        retry_after:
            In how many seconds; None if that is not known.
    """

    code = 429  # our own, outside of what JSON-RPC and MCP reserve; HTTP has it for the same

    def __init__(self, message: str, retry_after: int | None = None) -> None:
        super().__init__(message, UNSET if retry_after is None else {"retryAfter": retry_after})
        self.retry_after = retry_after


class InternalError(JsonRpcError):
    """
    The server failed. The message must not say how.
    """

    code = -32603


#: The codes of exceptions that are no `JsonRpcError`. Any other exception must not leave the server.
_CODES: Final[dict[type[PromptkitError], int]] = {
    MissingClientCapabilityError: MissingCapability.code,
    UnknownPromptError: InvalidParams.code,
    ArgumentsError: InvalidParams.code,
    PromptError: InvalidParams.code,
}

#: What has a code, for an ``except`` clause.
CLIENT_ERRORS: Final[tuple[type[PromptkitError], ...]] = (JsonRpcError, *_CODES)

#: What decoding raises for bytes that are not JSON, do not fit the type, or are nested too deeply.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: The longest error message, in characters. Messages quote what clients send, which may be long.
_MAX_MESSAGE: Final = 500


class Reply(Struct, gc=False, frozen=True):
    """
    What is sent to the client, and what came of its request.

    Args:
        line:
            One line, or several if they are not the reply to a request; ``b""`` if nothing is sent.

        outcome:
            What came of the request, in one word: ``ok``, ``error``, ``failed`` for the call of a tool,
            ``asked``, ``cancelled`` or ``unanswered``.

        code:
            The code of an error.

        retry_after:
            In how many seconds the client may try again, if the error says so.
    """

    line: bytes
    outcome: str = "ok"
    code: int | None = None
    retry_after: int | None = None


#: For a request whose client wants no reply any more.
CANCELLED: Final = Reply(b"", "cancelled")


class _Error(Struct, omit_defaults=True):
    code: int
    message: str
    data: Any = UNSET


class _Failure(Struct):
    jsonrpc: str
    id: RequestId | UnsetType
    error: _Error


encode: Final = msgspec.json.Encoder().encode


def encode_result(request_id: RequestId, result: bytes, outcome: str = "ok") -> Reply:
    """
    The reply that answers a request with *result*, which is already JSON.
    """
    line = b"".join((b'{"jsonrpc":"2.0","id":', encode(request_id), b',"result":', result, b"}\n"))
    return Reply(line, outcome)


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


def encode_error(request_id: RequestId | UnsetType, error: PromptkitError) -> Reply:
    """
    The reply that answers a request with *error*, which has to be one of `CLIENT_ERRORS`.

    An id that could not be read is left out, as no revision's schema allows null.
    """
    codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
    code = error.code if isinstance(error, JsonRpcError) else next(codes)
    line = encode(_Failure("2.0", request_id, _Error(code, message_of(error), _data(error)))) + b"\n"
    return Reply(line, "error", code, error.retry_after if isinstance(error, TooManyRequests) else None)


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
    if isinstance(error, UnknownPromptError):
        return error.as_data()
    if isinstance(error, ArgumentsError):
        return {"name": error.prompt, "errors": [fault.as_data() for fault in error.errors]}
    if isinstance(error, MissingClientCapabilityError):
        return {"requiredCapabilities": {error.capability: {}}}
    return error.data if isinstance(error, JsonRpcError) else UNSET
