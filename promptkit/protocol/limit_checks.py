"""
Checks against the limits: lines too long or too deeply nested, params with too many or too long arguments.

Few messages come near a limit: this module is imported for the first one that does.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InternalError,
    InvalidParams,
    InvalidRequest,
    ParseError,
    ProtocolError,
)
from promptkit.protocol.limits import Limits, OutOfMemoryLine, OverlongLine
from promptkit.protocol.partial_decoding import count_characters

__all__ = ["check_arguments", "check_choices", "check_params", "find_excess"]

#: The longest URI, beginning of a value, or name of a client, in characters.
_MAX_TYPED: Final = 65_536

#: The longest of the words that params choose from, in bytes.
_MAX_CHOICE: Final = 1024


def find_excess(line: bytes, limits: Limits) -> ProtocolError | None:
    """
    Return what a line has too much of; None if it is within the limits.
    """
    if isinstance(line, OutOfMemoryLine):
        return InternalError("the message is not read: there is not enough memory for it")
    if isinstance(line, OverlongLine):
        return InvalidRequest(f"the message is not read: it is longer than {limits.line:,} bytes")
    from promptkit.conversion.json_extent import extent  # few of these lines need a closer look

    for depth, values in extent(line):
        if depth > limits.depth:
            return ParseError(f"the message is not read: it is nested more than {limits.depth:,} deep")
        if values > limits.values:
            return InvalidRequest(f"the message is not read: it holds more than {limits.values:,} values")
    return None


class _Choices(Struct):
    """The members of params that hold one of a few words."""

    meta: dict[str, Raw] | None = msgspec.field(default=None, name="_meta")
    ref: dict[str, Raw] | None = None

    @property
    def words(self) -> dict[str, Raw | None]:
        return {
            wire.LOG_LEVEL: (self.meta or {}).get(wire.LOG_LEVEL),
            "ref.type": (self.ref or {}).get("type"),
        }


class _Argument(Struct):
    name: str = ""
    value: Raw | UnsetType = UNSET


class _Context(Struct):
    arguments: dict[str, Raw] = {}


class _PromptParams(Struct):
    arguments: dict[str, Raw] | None = None

    @property
    def given(self) -> Mapping[str, Raw]:
        return self.arguments or {}

    @property
    def typed(self) -> Mapping[str, Raw]:
        return {}


class _ResourceParams(Struct):
    uri: Raw | UnsetType = UNSET

    @property
    def given(self) -> Mapping[str, Raw]:
        return {}

    @property
    def typed(self) -> Mapping[str, Raw]:
        return {} if self.uri is UNSET else {"uri": self.uri}


class _CompletionParams(Struct):
    argument: _Argument = msgspec.field(default_factory=_Argument)
    context: _Context | None = None

    @property
    def given(self) -> Mapping[str, Raw]:
        return self.context.arguments if self.context else {}

    @property
    def typed(self) -> Mapping[str, Raw]:
        return {} if self.argument.value is UNSET else {self.argument.name: self.argument.value}


class _InitializeParams(Struct, rename="camel"):
    protocol_version: Raw = Raw()
    capabilities: Raw = Raw()
    client_info: dict[str, Raw] | None = None

    @property
    def given(self) -> Mapping[str, Raw]:
        return {}

    # All of this is kept for the whole session.
    @property
    def typed(self) -> Mapping[str, Raw]:
        members = {"protocolVersion": self.protocol_version, "capabilities": self.capabilities}
        info = self.client_info or {}
        return members | {f"clientInfo.{name}": info.get(name, Raw()) for name in ("name", "version")}


#: Decode the arguments of a request and leave each one raw: `given` by a program, or `typed` by a person.
_DECODERS: Final[Mapping[type[wire.Params], Decoder[Any]]] = {
    wire.InitializeParams: Decoder(_InitializeParams),
    wire.GetPromptParams: Decoder(_PromptParams),
    wire.ResourceParams: Decoder(_ResourceParams),
    wire.CompleteParams: Decoder(_CompletionParams),
}

_decode_choices: Final = Decoder(_Choices).decode


def check_choices(params: Raw) -> None:
    """
    Check that no long text stands where only a few words are allowed: the decoder would quote it, twice.

    Raises:
        InvalidParams: If there is one.
    """
    try:
        words = _decode_choices(params).words
    except UNREADABLE:
        return  # decoding the params in full reports that
    for name, word in words.items():
        if word is not None and len(word) > _MAX_CHOICE:
            msg = f"{name} has {len(word):,} bytes: it is one of a few words, and all of them are short"
            raise InvalidParams(msg)


def check_params(kind: type[wire.Params], params: Raw, limits: Limits) -> None:
    """
    Check how many arguments the params of a request hold, and how long each is.

    Raises:
        InvalidParams: If there are too many, or one is too long.
    """
    if (decoder := _DECODERS.get(kind)) is None:
        return
    try:
        members = decoder.decode(params)
    except UNREADABLE:
        return  # decoding the params in full reports that
    check_arguments(members.given, limits)
    for name, value in members.typed.items():
        _check_length(name, value, min(_MAX_TYPED, limits.argument))


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
