"""Sizes: what is too long, too many or too deep, and whom to tell."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from promptkit.errors import shortened
from promptkit.protocol import wire
from promptkit.protocol.framing import Overlong
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    InvalidRequest,
    ParseError,
    ProtocolError,
    RequestId,
    encode,
    encode_error,
)
from promptkit.protocol.limits import Limits

__all__ = ["check_arguments", "depth_of", "leading_id", "oversize"]

#: The id of a request, if nothing stands before it but what is short in every request.
_LEADING_ID: Final = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*[,}]'
)

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?')
_BRACKET: Final = re.compile(rb"[\[{]|[\]}]")


def leading_id(line: bytes) -> RequestId | UnsetType:
    """
    Return the id of a request of which only the beginning is there, if it can be told.
    """
    if not (found := _LEADING_ID.match(line)):
        return UNSET
    try:
        return msgspec.json.decode(found[1], type=int | str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNSET


def depth_of(line: bytes) -> int:
    """
    Return how deep the JSON in *line* is nested.
    """
    depth = deepest = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", line)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def oversize(line: bytes, limits: Limits) -> tuple[bytes, ...]:
    """
    Return the reply to a line that is not read because of its size; nothing for any other line.
    """
    refusal: ProtocolError
    if isinstance(line, Overlong):
        refusal = InvalidRequest(f"the line is not read: it is longer than {limits.line:,} bytes")
    elif line.count(b"{") + line.count(b"[") > limits.depth and depth_of(line) > limits.depth:
        refusal = ParseError(f"the line is not read: it is nested more than {limits.depth:,} deep")
    else:
        return ()
    return (encode_error(leading_id(line), refusal),)


def check_arguments(params: wire.Params, limits: Limits) -> None:
    """
    Check that a request has neither too many arguments nor one that is too long.

    Raises:
        InvalidParams: If it has.
    """
    given = _given(params)
    if len(given) > limits.arguments:
        msg = f"there are {len(given):,} arguments: at most {limits.arguments:,} are taken"
        raise InvalidParams(msg)
    for name, value in given.items():
        size = len(value if isinstance(value, str) else encode(value))
        if max(size, len(name)) > limits.argument:
            msg = (
                f"{shortened(name)!r} has {max(size, len(name)):,} characters: "
                f"at most {limits.argument:,} are taken"
            )
            raise InvalidParams(msg)


def _given(params: wire.Params) -> Mapping[str, Any]:
    """
    Return what a request gives for arguments, or as the URI of a resource.
    """
    if isinstance(params, wire.GetPromptParams):
        return params.arguments or {}
    if isinstance(params, wire.ResourceParams):
        return {"uri": params.uri}
    if isinstance(params, wire.CompleteParams):
        chosen = params.context.arguments if params.context else {}
        return {**chosen, params.argument.name: params.argument.value}
    return {}
