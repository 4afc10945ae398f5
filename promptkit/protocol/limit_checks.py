"""
Checks against the limits: lines too long or too deeply nested, params with too many or too long arguments.

Few messages come near a limit: this module is imported for the first one that does.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from msgspec import UNSET, Raw
from msgspec.json import Decoder

from promptkit.conversion.parsing import extent
from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InternalError,
    InvalidParams,
    InvalidRequest,
    JsonRpcError,
    ParseError,
)
from promptkit.protocol.limits import Limits, OutOfMemoryLine, OverlongLine
from promptkit.protocol.partial_decoding import count_characters, decode_beginning

__all__ = ["check_arguments", "check_params", "find_excess"]

#: Stands for a member that is missing.
_NOTHING: Final = Raw()

#: The longest URI, beginning of a value, or name of a client, in characters.
_MAX_TYPED: Final = 65_536

#: The longest of the words that params choose from, in bytes.
_MAX_CHOICE: Final = 1024


def find_excess(line: bytes, limits: Limits) -> JsonRpcError | None:
    """
    Return what a line has too much of; None if it is within the limits.
    """
    if isinstance(line, OutOfMemoryLine):
        return InternalError("the message is not read: there is not enough memory for it")
    if isinstance(line, OverlongLine):
        return InvalidRequest(f"the message is not read: it is longer than {limits.line:,} bytes")
    for depth, values in extent(line):
        if depth > limits.depth:
            return ParseError(f"the message is not read: it is nested more than {limits.depth:,} deep")
        if values > limits.values:
            return InvalidRequest(f"the message is not read: it holds more than {limits.values:,} values")
    return None


#: Where the params of a method hold arguments that a program gives, by name.
_GIVEN: Final[Mapping[type[wire.Params], tuple[str, ...]]] = {
    wire.GetPromptParams: ("arguments",),
    wire.CompleteParams: ("context", "arguments"),
}

#: Where they hold what a person types, or what is kept for the whole session.
_TYPED: Final[Mapping[type[wire.Params], tuple[tuple[str, ...], ...]]] = {
    wire.ResourceParams: (("uri",),),
    wire.CompleteParams: (("argument", "name"), ("argument", "value")),
    wire.InitializeParams: (
        ("protocolVersion",),
        ("capabilities",),
        ("clientInfo", "name"),
        ("clientInfo", "version"),
    ),
}

#: Where they hold one of a few words.
_CHOICES: Final = (("_meta", wire.LOG_LEVEL), ("ref", "type"))

_decode_members: Final = Decoder(dict[str, Raw]).decode


def _members(params: Raw, place: Iterable[str]) -> Mapping[str, Raw]:
    """The members of an object within params, none of them decoded; none if there is no such object."""
    try:
        for name in place:
            params = _decode_members(params).get(name, _NOTHING)
        return _decode_members(params)
    except UNREADABLE:
        return {}  # decoding the params in full reports that


def check_params(kind: type[wire.Params], params: Raw, limits: Limits) -> None:
    """
    Check how many arguments the params of a request hold, and how long each is, and each name and choice.

    Raises:
        InvalidParams: If there are too many, or one is too long.
    """
    if kind in _GIVEN:
        check_arguments(_members(params, _GIVEN[kind]), limits)
    for *place, name in _TYPED.get(kind, ()):
        members = _members(params, place)
        shown = ".".join((*place, name))
        if name == "value":
            with suppress(*UNREADABLE):
                shown = decode_beginning(members.get("name", UNSET))
        _check_length(shown, members.get(name, _NOTHING), min(_MAX_TYPED, limits.argument))
    for *place, name in _CHOICES:  # the decoder would quote a long text twice
        word = _members(params, place).get(name, _NOTHING)
        if len(word) > _MAX_CHOICE:
            shown = name if place == ["_meta"] else f"{place[0]}.{name}"
            msg = f"{shown} has {len(word):,} bytes: it is one of a few words, and all of them are short"
            raise InvalidParams(msg)


def check_arguments(arguments: Mapping[str, Raw], limits: Limits) -> None:
    """
    Check how many arguments there are, and how long each is.

    Raises:
        InvalidParams: If there are too many, or one is too long.
    """
    if len(arguments) > limits.arguments:
        msg = f"there are {len(arguments):,} arguments: at most {limits.arguments:,} are taken"
        raise InvalidParams(msg)
    for name, value in arguments.items():
        _check_length(name, value, limits.argument)


def _check_length(name: str, value: Raw, most: int) -> None:
    # The bytes are an upper bound, and known at once.
    if max(len(value), len(name)) > most and (size := max(count_characters(value), len(name))) > most:
        msg = f"{shortened(name)!r} has {size:,} characters: at most {most:,} are taken"
        raise InvalidParams(msg)
