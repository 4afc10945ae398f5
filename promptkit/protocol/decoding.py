"""
Decoding of lines into messages, and the limits on them.

A line that is too long, is nested too deeply, or has too many values is rejected. The params of all other
lines stay raw JSON until they are decoded as the type that the method expects. Long text that the server does
not need is therefore never decoded.
"""

import re
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.json import Decoder

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InternalError,
    InvalidParams,
    InvalidRequest,
    JsonRpcError,
    MethodNotFound,
    ParseError,
    RequestId,
    encode,
)
from promptkit.protocol.limits import (
    LARGE_MESSAGE,
    MAX_PARAMS,
    PREFIX_BYTES,
    Limits,
    OutOfMemoryLine,
    OverlongLine,
)
from promptkit.types.scalar_parsers import measure_json

T = TypeVar("T")

#: The maximum length of an id and of a method name, in bytes.
_MAX_NAME: Final = 1024

#: Matches the id of a request if only the version and the method come before it.
_LEADING_ID: Final = (
    rb'(?:%b)?\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*[,}]'
    % BOM_UTF8
)


#: A name of this type is never longer than `_MAX_NAME`, because an escaped character takes at most 12 bytes.
_Name = Annotated[str, Meta(max_length=_MAX_NAME // 12 - 1)]


class _CommonMembers(Struct, gc=False):
    """The members of a valid request or notification whose id and method are not very long."""

    jsonrpc: Literal["2.0"]
    method: _Name
    id: int | _Name | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class _Members(Struct, gc=False):
    """The members of any message, as raw JSON."""

    jsonrpc: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Message(Struct, gc=False):
    """
    A message whose params are not decoded yet.

    Args:
        id:
            The id of a request or a response; `UNSET` if it is missing or invalid.

        method:
            The method of a request or a notification.

        params:
            The params, as raw JSON.

        result:
            The result of a response, as raw JSON.

        is_response:
            Whether the message is a response. Responses are never answered, even if they are malformed.

        is_notification:
            Whether the message is a notification. Notifications are never answered.

        elements:
            The elements if the message is an array; None if it is not.

        error:
            The error to reply with; None for a valid message.

        size:
            An upper bound for the size of the decoded message in memory, in bytes.
    """

    id: RequestId | UnsetType = UNSET
    method: str = ""
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    is_response: bool = False
    is_notification: bool = False
    elements: list[Raw] | None = None
    error: JsonRpcError | None = None
    size: int = 0


class _LongMembers(Struct, rename="camel"):
    """The params of ``prompts/get`` that can be long."""

    arguments: dict[str, Raw] | None = None
    input_responses: Raw = Raw()
    request_state: Raw = Raw()


#: Params that are null count as omitted, because some clients send null.
_NULL: Final = Raw(b"null")
_NO_PARAMS: Final = Raw(b"{}")

_decode_common_members: Final = Decoder(_CommonMembers).decode
_decode_members: Final = Decoder(_Members).decode
_decode_any: Final = Decoder(Raw).decode
_decode_id: Final = Decoder(int | str).decode
_decode_text: Final = Decoder(str).decode
_decode_long_members: Final = Decoder(_LongMembers).decode


def decode_message(line: bytes, limits: Limits) -> Message:
    """Decode one message. If a line exceeds a limit, only the id is decoded, for the reply."""
    if isinstance(line, OverlongLine):
        return Message(find_leading_id(line), error=_overlong_error(line, limits))
    error = _find_excess(line, limits)
    is_ascii = line.isascii()
    if not is_ascii and not _is_utf8(line):
        error = error or ParseError("the message is not UTF-8")
    message = None if error else _decode_common(line)
    if message is None:
        message = _decode_line(line.removeprefix(BOM_UTF8), error)  # some streams start with this mark
    message.size = len(line) if is_ascii else 4 * len(line)
    return message


def _overlong_error(line: OverlongLine, limits: Limits) -> JsonRpcError:
    if isinstance(line, OutOfMemoryLine):
        return InternalError("the message was rejected: there is not enough memory for it")
    return InvalidRequest(f"the message was rejected: it is longer than {limits.line:,} bytes")


def _find_excess(line: bytes, limits: Limits) -> JsonRpcError | None:
    """Return the error for a message that is nested too deeply or has too many values, or None."""
    # Cheap upper bounds first: each level takes two brackets, and each value takes at least one byte.
    size = len(line)
    if size <= 2 * limits.depth and size <= limits.values:
        return None
    # These counts include brackets and commas within strings.
    brackets = line.count(b"{") + line.count(b"[")
    if brackets <= limits.depth and (size <= limits.values or line.count(b",") + brackets <= limits.values):
        return None
    for depth, values in measure_json(line):
        if depth > limits.depth:
            msg = f"the message was rejected: it is nested more than {limits.depth:,} levels deep"
            return ParseError(msg)
        if values > limits.values:
            return InvalidRequest(f"the message was rejected: it has more than {limits.values:,} values")
    return None


def _decode_common(line: bytes) -> Message | None:
    """Decode a valid request or notification; return None for any other line."""
    try:
        common = _decode_common_members(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    params = common.params if common.params != _NULL else _NO_PARAMS
    return Message(common.id, common.method, params, is_notification=common.id is UNSET)


def _decode_line(line: bytes, error: JsonRpcError | None) -> Message:
    """Decode a line that `_decode_common` cannot decode. If there is an *error*, only the id is needed."""
    try:
        return _decode_json(line, error)
    except RecursionError:
        return Message(find_leading_id(line), error=error or ParseError("the message is nested too deeply"))
    except msgspec.DecodeError:
        pass
    surrogate_error = InvalidRequest("the message contains an unpaired surrogate, which is not a character")
    try:
        message = _decode_json(_without_surrogates(line), error or surrogate_error)
    except UNREADABLE:
        return Message(
            find_leading_id(line) if error else UNSET, error=error or ParseError("the message is not JSON")
        )
    if message.id is not UNSET and encode(message.id) not in line:  # an escape in the id was replaced
        message.id = UNSET
    return message


def _decode_json(line: bytes, error: JsonRpcError | None) -> Message:
    """Decode JSON; raise `msgspec.DecodeError` or `RecursionError` for other text."""
    if line.lstrip().startswith(b"["):
        if error is None:
            return Message(elements=msgspec.json.decode(line, type=list[Raw]))
        _decode_any(line)
        return Message(elements=[], error=error)
    try:
        members = _decode_members(line)
    except msgspec.ValidationError:
        _decode_any(line)  # the validation stopped early, so the rest of the line may not be JSON
        return Message(error=error or InvalidRequest("a message must be a JSON object"))
    return _read_members(members, error)


def _read_members(members: _Members, error: JsonRpcError | None) -> Message:
    """Return the message with these members: an invalid one, a response, or one with a long id or method."""
    request_id = _parse_short(members.id, _decode_id)
    if members.method is UNSET and not (members.result is UNSET and members.error is UNSET):
        return Message(request_id, result=UNSET if error else members.result, is_response=True)
    method = _parse_short(members.method, _decode_text)
    params = members.params if members.params != _NULL else _NO_PARAMS
    if _parse_short(members.jsonrpc, _decode_text) != "2.0":
        error = error or InvalidRequest('a message must have the member "jsonrpc": "2.0"')
    elif method is UNSET:
        error = error or _method_error(members.method)
    elif members.id is UNSET:
        return Message(method=method, params=params, is_notification=True)
    elif request_id is UNSET:
        error = error or InvalidRequest(
            f"an id must be a whole number or a string of at most {_MAX_NAME:,} bytes"
        )
    return Message(request_id, method or "", params, error=error)


def _parse_short(raw: Raw | UnsetType, decode: Callable[[Raw], T]) -> T | UnsetType:
    """Decode an id or a short string, or return `UNSET` for any other value."""
    try:
        return UNSET if raw is UNSET or len(raw) > _MAX_NAME else decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNSET


def _method_error(raw: Raw | UnsetType) -> JsonRpcError:
    """Return the error for a method that is missing, not a string, or too long."""
    if raw is not UNSET and bytes(memoryview(raw)[:1]) == b'"':
        return MethodNotFound(f"method not found: a method's name can have at most {_MAX_NAME:,} bytes")
    return InvalidRequest('a request must have a "method" that is a string')


def _is_utf8(line: bytes) -> bool:
    """Return whether a line is UTF-8. The JSON decoder does not check text that it skips."""
    decode = getincrementaldecoder("utf-8")().decode
    try:
        for start in range(0, len(line), LARGE_MESSAGE):  # the whole text could take four times its size
            decode(line[start : start + LARGE_MESSAGE])
        decode(b"", True)  # noqa: FBT003 (it cannot be passed by keyword)
    except UnicodeDecodeError:
        return False
    return True


def _without_surrogates(line: bytes) -> bytes:
    """Replace escaped surrogates, because the decoder rejects unpaired surrogates."""
    line = line.replace(b"\\\\", b'\\"')  # otherwise text after an escaped backslash would look escaped
    return line.replace(b"\\ud", b"\\ue").replace(b"\\uD", b"\\uE")


def find_leading_id(line: bytes) -> RequestId | UnsetType:
    """Return the id of a request from the beginning of its line, without decoding the line."""
    match = re.match(_LEADING_ID, line[:PREFIX_BYTES])
    return _parse_short(Raw(match[1]), _decode_id) if match else UNSET


def check_params(name: str, params_type: type[wire.Params], params: Raw, limits: Limits) -> None:
    """
    Raise InvalidParams if the params of a request are too long, or if the arguments in them exceed a limit.

    Call this before decoding the params.
    """
    size = len(params)
    if params_type is wire.GetPromptParams:
        with suppress(*UNREADABLE):  # the decoder of the params reports the error
            members = _decode_long_members(params)
            arguments = members.arguments or {}
            check_arguments(arguments, limits)
            size -= len(members.input_responses) + len(members.request_state)
            size -= sum(map(len, arguments.values()))
    if size > MAX_PARAMS:
        msg = f"the params of {name} without arguments are {size:,} bytes long: the limit is {MAX_PARAMS:,}"
        raise InvalidParams(msg)


def check_arguments(arguments: Mapping[str, Raw], limits: Limits) -> None:
    """Raise InvalidParams if there are too many arguments, or if one is too long."""
    if len(arguments) > limits.arguments:
        msg = f"the request has {len(arguments):,} arguments: the limit is {limits.arguments:,}"
        raise InvalidParams(msg)
    for name, value in arguments.items():
        if len(value) > limits.argument:
            size = f"{len(value):,} bytes long as JSON"
            msg = f"{shortened(name)!r} is {size}: the limit is {limits.argument:,}"
            raise InvalidParams(msg)
