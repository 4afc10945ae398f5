"""Sizes: what is too long, too many or too deep, and whom to tell."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.framing import Overlong, Unheld
from promptkit.protocol.glances import characters_in
from promptkit.protocol.jsonrpc import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    ParseError,
    ProtocolError,
)
from promptkit.protocol.limits import Limits

__all__ = ["check_arguments", "check_given", "check_words", "oversize"]


def oversize(line: bytes, size: int, limits: Limits) -> ProtocolError | None:
    """
    Return why a line of that *size* is not read; None if there is no reason.
    """
    if isinstance(line, Overlong):
        if isinstance(line, Unheld):
            return InternalError("the line is not read: there is not enough memory for it")
        return InvalidRequest(f"the line is not read: it is longer than {limits.line:,} bytes")
    brackets = line.count(b"{") + line.count(b"[")
    if brackets <= limits.depth and (size <= limits.values or line.count(b",") + brackets <= limits.values):
        return None
    return _excess(line, limits)


def _excess(line: bytes, limits: Limits) -> ProtocolError | None:
    """
    Return what there is too much of on a line; None if there is not.
    """
    from promptkit.conversion.json_extent import extent  # few lines are looked at so closely

    for depth, values in extent(line):
        if depth > limits.depth:
            return ParseError(f"the line is not read: it is nested more than {limits.depth:,} deep")
        if values > limits.values:
            return InvalidRequest(f"the line is not read: it holds more than {limits.values:,} values")
    return None


class _Chosen(Struct):
    """
    What params choose among few words, in two of their members.
    """

    meta: dict[str, Raw] | None = msgspec.field(default=None, name="_meta")
    ref: dict[str, Raw] | None = None

    @property
    def words(self) -> dict[str, Raw | None]:
        return {
            wire.LOG_LEVEL: (self.meta or {}).get(wire.LOG_LEVEL),
            "ref.type": (self.ref or {}).get("type"),
        }


class _Argument(Struct):
    """
    What is being typed.
    """

    name: str = ""
    value: Raw | UnsetType = UNSET


class _Context(Struct):
    """
    What was chosen already.
    """

    arguments: dict[str, Raw] = {}


class _Prompt(Struct):
    """
    The arguments of a prompt.
    """

    arguments: dict[str, Raw] | None = None

    @property
    def given(self) -> Mapping[str, Raw]:
        return self.arguments or {}

    @property
    def typed(self) -> Mapping[str, Raw]:
        return {}


class _Resource(Struct):
    """
    The URI of a resource.
    """

    uri: Raw | UnsetType = UNSET

    @property
    def given(self) -> Mapping[str, Raw]:
        return {}

    @property
    def typed(self) -> Mapping[str, Raw]:
        return {} if self.uri is UNSET else {"uri": self.uri}


class _Completion(Struct):
    """
    What is completed.
    """

    argument: _Argument = msgspec.field(default_factory=_Argument)
    context: _Context | None = None

    @property
    def given(self) -> Mapping[str, Raw]:
        return self.context.arguments if self.context else {}

    @property
    def typed(self) -> Mapping[str, Raw]:
        return {} if self.argument.value is UNSET else {self.argument.name: self.argument.value}


class _Opening(Struct, rename="camel"):
    """
    What a client says of itself, which is kept for the whole session.
    """

    protocol_version: Raw = Raw()
    capabilities: Raw = Raw()
    client_info: dict[str, Raw] | None = None

    @property
    def given(self) -> Mapping[str, Raw]:
        return {}

    @property
    def typed(self) -> Mapping[str, Raw]:
        said = {"protocolVersion": self.protocol_version, "capabilities": self.capabilities}
        info = self.client_info or {}
        return said | {f"clientInfo.{name}": info.get(name, Raw()) for name in ("name", "version")}


#: What reads the arguments in the params of a request, and leaves each as it is.
_GIVEN: Final[Mapping[type[wire.Params], Decoder[Any]]] = {
    wire.InitializeParams: Decoder(_Opening),
    wire.GetPromptParams: Decoder(_Prompt),
    wire.ResourceParams: Decoder(_Resource),
    wire.CompleteParams: Decoder(_Completion),
}


#: What somebody types at most, in characters: a URI, the beginning of a value, what a client is called.
_LONGEST_TYPED: Final = 65_536

#: What is longer is none of the words that there are, in bytes.
_LONGEST_WORD: Final = 1024

_decode_chosen: Final = Decoder(_Chosen).decode


def check_words(params: Raw) -> None:
    """
    Check that a word of which there are few is not a long text: the decoder would quote it, more than once.

    Raises:
        InvalidParams: If it is.
    """
    try:
        words = _decode_chosen(params).words
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # whoever reads them says what is wrong
    for name, word in words.items():
        if word is not None and len(word) > _LONGEST_WORD:
            msg = f"{name} has {len(word):,} bytes: it is one of a few words, and all of them are short"
            raise InvalidParams(msg)


def check_arguments(kind: type[wire.Params], params: Raw, limits: Limits) -> None:
    """
    Check that a request has neither too many arguments nor one that is too long.

    Args:
        kind:
            What its params are.

        params:
            They themselves, not yet read.

        limits:
            How much is taken.

    Raises:
        InvalidParams: If it has.
    """
    if (decoder := _GIVEN.get(kind)) is None:
        return
    try:
        asked = decoder.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # whoever reads them says what is wrong
    check_given(asked.given, limits)
    for name, value in asked.typed.items():
        _check_length(name, value, min(_LONGEST_TYPED, limits.argument))


def check_given(given: Mapping[str, Raw], limits: Limits) -> None:
    """
    Check that neither too many arguments are given nor one that is too long.

    Args:
        given:
            The arguments by name, each as JSON.

        limits:
            How much is taken.

    Raises:
        InvalidParams: If that is so.
    """
    if len(given) > limits.arguments:
        msg = f"there are {len(given):,} arguments: at most {limits.arguments:,} are taken"
        raise InvalidParams(msg)
    for name, value in given.items():
        _check_length(name, value, limits.argument)


def _check_length(name: str, value: Raw, most: int) -> None:
    """
    Check that neither an argument nor its name is longer than that. Raises InvalidParams if one is.
    """
    if max(len(value), len(name)) > most and (size := max(characters_in(value), len(name))) > most:
        msg = f"{shortened(name)!r} has {size:,} characters: at most {most:,} are taken"
        raise InvalidParams(msg)
