"""
The envelope: what a request of the modern era says of itself, in its ``_meta``.

A request that names a revision there is of the modern era, whatever else is wrong with it. See
https://modelcontextprotocol.io/specification/2026-07-28/basic#request-metadata.
"""

from typing import Any, Final

import msgspec

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    InvalidRequest,
    ParseError,
    UnsupportedVersion,
)
from promptkit.protocol.methods import Method
from promptkit.protocol.revisions import MODERN

__all__ = ["UNREADABLE", "check_envelope", "members_of", "reread"]

#: What decoding raises for bytes that are no JSON, that do not fit, or that are nested too deeply.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_any: Final = msgspec.json.Decoder().decode


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

        InvalidParams: If the envelope lacks a member, or has one of another type.
    """
    try:
        members = _decode_any(params)
    except UNREADABLE:
        msg = "the params are nested too deeply"
        raise ParseError(msg) from None
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
        msg = f"the params of {name} do not fit: {error}"
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
        msg = f"protocol version {version!r} is not served to requests: name {served}, or call initialize"
        raise UnsupportedVersion(msg, {"supported": list(MODERN), "requested": version})
    try:
        msgspec.convert(meta, wire.Meta)
    except msgspec.ValidationError as error:
        msg = f"params._meta does not fit: {error}"
        raise InvalidParams(msg) from None
