"""
Refusals: what is wrong with a message that cannot be served, and the errors that say so.

A request that names a revision in its ``_meta``, its envelope, is of the modern era, whatever else is wrong
with it. See
https://modelcontextprotocol.io/specification/2026-07-28/basic#request-metadata.
"""

from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import UNSET

from promptkit.errors.exceptions import shortened
from promptkit.errors.standard_error import say
from promptkit.protocol import wire
from promptkit.protocol.capabilities import Method, method_not_found
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InternalError,
    InvalidParams,
    InvalidRequest,
    JsonRpcError,
    MethodNotFound,
    ParseError,
    UnsupportedVersion,
    cut,
    encode_error,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import MODERN, Revision

__all__ = [
    "check_envelope",
    "convert_params",
    "decode_members",
    "decode_sender",
    "no_session",
    "not_in_a_batch",
    "refuse_batch",
    "refuse_unknown",
    "refuse_unread",
]

_decode_any: Final = msgspec.json.Decoder().decode
_decode_params: Final = msgspec.json.Decoder(wire.Params).decode
_decode_client: Final = msgspec.json.Decoder(wire.ClientInfo).decode


class _RawMeta(msgspec.Struct):
    meta: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="_meta")


_decode_raw_meta: Final = msgspec.json.Decoder(_RawMeta).decode


def decode_members(params: msgspec.Raw, *, enveloped: bool = True) -> dict[str, Any]:
    """
    Decode *params* to built-in types, and check the envelope if they may have one.

    Raises:
        ParseError: If they are nested too deeply.

        InvalidRequest: If they are not an object.

        UnsupportedVersion: If they name a revision that no request can name.

        InvalidParams: If a number is too large, or the envelope does not fit.
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
        else:  # what else the client of a session puts there does not matter
            members["_meta"] = {key: meta[key] for key in meta.keys() & {"progressToken"}}
    return members


def convert_params(name: str, method: Method, params: msgspec.Raw) -> wire.Params:
    """
    Decode *params* that the method's own decoder has refused, or say what is wrong with them.

    Raises:
        JsonRpcError: As `decode_members`, MethodNotFound if they name a revision that lacks the method, or
            InvalidParams if a member is missing or has another type.
    """
    members = decode_members(params, enveloped=method.enveloped)
    meta = members.get("_meta")
    if not method.modern and isinstance(meta, dict) and wire.PROTOCOL_VERSION in meta:
        raise method_not_found(name)
    try:
        return msgspec.convert(members, method.params)
    except (msgspec.ValidationError, RecursionError) as error:
        msg = f"the params of {name} do not fit: {cut(str(error))}"
        raise InvalidParams(msg) from None


def check_envelope(meta: dict[str, Any]) -> None:
    """
    Check a ``_meta`` that names a revision.

    Raises:
        UnsupportedVersion: If no request can name this revision.

        InvalidParams: If a member is missing or has another type.
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


def decode_sender(params: msgspec.Raw) -> tuple[Revision, wire.ClientInfo | None] | None:
    """
    Return the revision and the client that a request names, as far as they can be decoded.

    If it names a revision that is not served, that is the newest one. If it names none, return None.
    """
    try:
        meta = _decode_raw_meta(params).meta
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


def refuse_unread(line: bytes, error: Exception) -> bytes:
    """
    Return the reply to a line if reading it raised an exception.
    """
    if isinstance(error, MemoryError):
        reason = "the message is not read: there is not enough memory for it"
    else:
        say(f"a line of {len(line):,} bytes could not be read: {error!r}")
        reason = "the message could not be read"
    from promptkit.protocol.partial_decoding import leading_id  # its patterns take long to compile

    return encode_error(leading_id(line), InternalError(reason))


def not_in_a_batch(method: str) -> InvalidRequest:
    """
    The error for a method that sessions do not have, or that opens one: only sessions have batches.
    """
    return InvalidRequest(f"{method} cannot be part of a batch here: send it by itself")


def refuse_envelope(method: str, meta: wire.Meta, *, in_batch: bool) -> JsonRpcError:
    """
    The error for a request that names a revision, but cannot be served.

    Raises:
        JsonRpcError: If the envelope itself is wrong.
    """
    if in_batch:
        return not_in_a_batch(method)
    check_envelope(msgspec.to_builtins(meta))
    return method_not_found(method)


def refuse_unknown(method: str, params: msgspec.Raw) -> MethodNotFound:
    """
    The error for a method that does not exist.

    Raises:
        JsonRpcError: If the params are wrong, too.
    """
    try:
        meta = _decode_params(params).meta
    except UNREADABLE:
        decode_members(params)
    else:
        if meta and meta.protocol_version is not UNSET:
            check_envelope(msgspec.to_builtins(meta))
    return method_not_found(method)


def no_session(method: str) -> InvalidParams:
    """
    The error for a request that needs a session, and came before there was one.
    """
    missing = [wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES]
    msg = (
        f"{method} came before initialize, and its params._meta lacks {missing[0]!r}: "
        "open a session first, or name the revision in every request"
    )
    return InvalidParams(msg, {"missing": missing})


def refuse_batch(revision: Revision | None, size: int, limits: Limits) -> InvalidRequest:
    """
    The error for an array of *size* messages where there are no batches, or none of that size.
    """
    if revision is None or not revision.batches:
        return InvalidRequest("there are no batches here: send each message by itself")
    if not size:
        return InvalidRequest("the batch is empty")
    return InvalidRequest(f"the batch has {size:,} messages: at most {limits.messages:,} are taken")
