"""
The envelope: what a request of the modern era says of itself, in its ``_meta``.

A request that names a revision there is of the modern era, whatever else is wrong with it. See
https://modelcontextprotocol.io/specification/2026-07-28/basic#request-metadata.
"""

from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import UNSET

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    InvalidRequest,
    ParseError,
    UnsupportedVersion,
    cut,
)
from promptkit.protocol.methods import Method
from promptkit.protocol.revisions import MODERN, Revision

__all__ = ["UNREADABLE", "asker_of", "check_envelope", "check_unknown", "members_of", "reread"]

#: What decoding raises for bytes that are no JSON, that do not fit, or that are nested too deeply.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_any: Final = msgspec.json.Decoder().decode
_decode_params: Final = msgspec.json.Decoder(wire.Params).decode
_decode_client: Final = msgspec.json.Decoder(wire.ClientInfo).decode


class _Said(msgspec.Struct):
    """
    What params say beside themselves, none of it read.
    """

    meta: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="_meta")


_decode_said: Final = msgspec.json.Decoder(_Said).decode


def members_of(params: msgspec.Raw, *, enveloped: bool = True) -> dict[str, Any]:
    """
    Return the members of *params*, their envelope looked at.

    Args:
        params:
            The params of a request, as they came.

        enveloped:
            Whether they may have an envelope.

    Raises:
        ParseError: If they are nested too deeply.

        InvalidRequest: If they are no object.

        UnsupportedVersion: If they name a revision that is not served to requests.

        InvalidParams: If a number is too large, or the envelope lacks a member, or has one of another type.
    """
    try:
        members = _decode_any(params)
    except RecursionError:
        msg = "the params are nested too deeply"
        raise ParseError(msg) from None
    except msgspec.DecodeError as error:
        msg = f"the params do not fit: {cut(str(error))}"
        raise InvalidParams(msg) from None
    if not isinstance(members, dict):
        msg = "params is an object"
        raise InvalidRequest(msg)
    meta = members.get("_meta")
    if isinstance(meta, dict):
        if enveloped and wire.PROTOCOL_VERSION in meta:
            check_envelope(meta)
        else:  # what else a session's client puts there is its own affair
            members["_meta"] = {key: meta[key] for key in meta.keys() & {"progressToken"}}
    return members


def reread(name: str, method: Method, params: msgspec.Raw) -> wire.Params:
    """
    Return *params* that did not fit at first sight, or raise what is wrong with them.

    Args:
        name:
            The method that was called.

        method:
            What is known of it.

        params:
            The params as they came.

    Raises:
        ProtocolError: As `members_of` does, and InvalidParams if a member is missing, or of
            another type.
    """
    members = members_of(params, enveloped=method.enveloped)
    try:
        return msgspec.convert(members, method.params)
    except (msgspec.ValidationError, RecursionError) as error:
        msg = f"the params of {name} do not fit: {cut(str(error))}"
        raise InvalidParams(msg) from None


def check_envelope(meta: dict[str, Any]) -> None:
    """
    Raise what keeps *meta*, which names a revision, from being an envelope.

    Raises:
        UnsupportedVersion: If it names a revision that is not served to requests.

        InvalidParams: If a member is missing, or of another type.
    """
    if wire.CLIENT_CAPABILITIES not in meta:
        msg = f"params._meta lacks {wire.CLIENT_CAPABILITIES!r}, which every request has to carry"
        raise InvalidParams(msg, {"missing": [wire.CLIENT_CAPABILITIES]})
    version = meta[wire.PROTOCOL_VERSION]
    if isinstance(version, str) and version not in MODERN:
        served = ", ".join(MODERN)
        asked = shortened(version)
        msg = f"protocol version {asked!r} is not served to requests: name {served}, or call initialize"
        raise UnsupportedVersion(msg, {"supported": list(MODERN), "requested": asked})
    try:
        msgspec.convert(meta, wire.Meta)
    except msgspec.ValidationError as error:
        msg = f"params._meta does not fit: {cut(str(error))}"
        raise InvalidParams(msg) from None


def check_unknown(params: msgspec.Raw) -> None:
    """
    Raise what is wrong with the params of a request for a method that there is not, if anything is.

    Raises:
        ProtocolError: As `members_of` does.
    """
    try:
        meta = _decode_params(params).meta
    except UNREADABLE:
        members_of(params)
        return
    if meta and meta.protocol_version is not UNSET:
        check_envelope(msgspec.to_builtins(meta))


def asker_of(params: msgspec.Raw) -> tuple[Revision, wire.ClientInfo | None] | None:
    """
    Return the revision and the client that a request names, as far as they can be read, or None.

    A request that names a revision that is not served is answered as the newest has it.
    """
    try:
        meta = _decode_said(params).meta
    except UNREADABLE:
        return None
    if wire.PROTOCOL_VERSION not in meta:
        return None
    newest = list(MODERN)[-1]
    date = bytes(meta[wire.PROTOCOL_VERSION]).strip(b'"').decode(errors="replace")
    client = None
    with suppress(*UNREADABLE):
        client = _decode_client(meta.get(wire.CLIENT_INFO, msgspec.Raw()))
    return MODERN.get(date, MODERN[newest]), client
