"""
Checks of invalid messages, and the errors that answer them.

A request that names a revision in its ``_meta``, its envelope, belongs to the modern era, even if it is
otherwise invalid. See https://modelcontextprotocol.io/specification/2026-07-28/basic#request-metadata.
"""

from contextlib import suppress
from typing import Final

import msgspec

from promptkit.errors.exceptions import shortened
from promptkit.protocol import wire
from promptkit.protocol.capabilities import Method, method_not_found
from promptkit.protocol.decoding import leading_id
from promptkit.protocol.jsonrpc import (
    UNREADABLE,
    InternalError,
    InvalidParams,
    InvalidRequest,
    JsonRpcError,
    MethodNotFound,
    ParseError,
    Reply,
    UnsupportedVersion,
    cut,
    encode,
    encode_error,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import MODERN, Revision
from promptkit.standard_error import say

_decode_params: Final = msgspec.json.Decoder(wire.Params).decode
_decode_client: Final = msgspec.json.Decoder(wire.ClientInfo).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text: Final = msgspec.json.Decoder(str).decode


class _RawMeta(msgspec.Struct):
    meta: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="_meta")


_decode_raw_meta: Final = msgspec.json.Decoder(_RawMeta).decode


def raw_meta(params: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the ``_meta`` of *params* with raw values; empty if it is missing or not an object."""
    try:
        return _decode_raw_meta(params).meta
    except UNREADABLE:
        return {}


def check_envelope(params: msgspec.Raw) -> None:
    """
    Check the ``_meta`` of *params* if it names a revision.

    Raises:
        UnsupportedVersion: If requests cannot name this revision.

        InvalidParams: If a member is missing or has another type.
    """
    meta = raw_meta(params)
    if wire.PROTOCOL_VERSION not in meta:
        return
    if wire.CLIENT_CAPABILITIES not in meta:
        msg = f"params._meta lacks {wire.CLIENT_CAPABILITIES!r}, which every request has to carry"
        raise InvalidParams(msg, {"missing": [wire.CLIENT_CAPABILITIES]})
    version = None
    with suppress(*UNREADABLE):
        version = _decode_text(meta[wire.PROTOCOL_VERSION])
    if version is not None and version not in MODERN:
        served = ", ".join(MODERN)
        requested = shortened(version)
        msg = f"protocol version {requested!r} is not served to requests: name {served}, or call initialize"
        raise UnsupportedVersion(msg, {"supported": list(MODERN), "requested": requested})
    try:
        _decode_params(params)
    except UNREADABLE as error:
        msg = f"params._meta does not fit: {cut(str(error))}"
        raise InvalidParams(msg) from None


def check_object(params: msgspec.Raw) -> None:
    """Raise InvalidRequest if *params* is not an object."""
    if bytes(memoryview(params)[:1]) != b"{":
        msg = "params is an object"
        raise InvalidRequest(msg)


def decode_again(name: str, method: Method, params: msgspec.Raw, error: Exception) -> wire.Params:
    """
    Decode *params* again, without their ``_meta``, after the method's own decoder has raised *error*.

    In a session, only the progress token of ``_meta`` matters.

    Raises:
        JsonRpcError: If the params are otherwise invalid, or name a revision.
    """
    check_object(params)
    if isinstance(error, RecursionError):
        msg = "the params are nested too deeply"
        raise ParseError(msg)
    meta, reason = raw_meta(params), str(error)
    if method.enveloped and wire.PROTOCOL_VERSION in meta:
        check_envelope(params)
        if not method.modern:
            raise method_not_found(name)
    elif meta:
        token = {key: meta[key] for key in meta.keys() & {"progressToken"}}
        try:
            return method.decode(encode({**_decode_members(params), "_meta": token}))
        except UNREADABLE as retry_error:
            reason = str(retry_error)
    msg = f"the params of {name} are invalid: {cut(reason)}"
    raise InvalidParams(msg)


def decode_sender(params: msgspec.Raw) -> tuple[Revision, wire.ClientInfo | None] | None:
    """
    Return the revision and the client that a request names, as far as they can be decoded.

    Return the newest revision for a revision that is not supported, and None if the request names no
    revision.
    """
    meta = raw_meta(params)
    if wire.PROTOCOL_VERSION not in meta:
        return None
    newest = list(MODERN)[-1]
    date = bytes(meta[wire.PROTOCOL_VERSION]).strip(b'"').decode(errors="replace")
    client = None
    with suppress(*UNREADABLE):
        client = _decode_client(meta.get(wire.CLIENT_INFO, msgspec.Raw()))
    return MODERN.get(date, MODERN[newest]), client


def refuse_unread(line: bytes, error: Exception) -> Reply:
    """Return the reply to a line that could not be processed because of *error*."""
    if isinstance(error, MemoryError):
        reason = "the message is not read: there is not enough memory for it"
    else:
        say(f"a line of {len(line):,} bytes could not be read: {error!r}")
        reason = "the message could not be read"
    return encode_error(leading_id(line), InternalError(reason))


def not_in_a_batch(method: str) -> InvalidRequest:
    """Return the error for a method that is not allowed in a batch: only sessions have batches."""
    return InvalidRequest(f"{method} cannot be part of a batch here: send it separately")


def refuse_envelope(method: str, params: msgspec.Raw, *, in_batch: bool) -> JsonRpcError:
    """
    Return the error for a request that names a revision, but cannot be served.

    Raises:
        JsonRpcError: If the envelope itself is invalid.
    """
    if in_batch:
        return not_in_a_batch(method)
    check_envelope(params)
    return method_not_found(method)


def refuse_unknown(method: str, params: msgspec.Raw) -> MethodNotFound:
    """
    Return the error for an unknown method.

    Raises:
        JsonRpcError: If the params are also invalid.
    """
    check_object(params)
    check_envelope(params)
    return method_not_found(method)


def no_session(method: str) -> InvalidParams:
    """Return the error for a request that needs a session, but precedes the handshake."""
    missing = [wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES]
    msg = (
        f"{method} came before initialize, and its params._meta lacks {missing[0]!r}: "
        "open a session first, or name the revision in every request"
    )
    return InvalidParams(msg, {"missing": missing})


def refuse_batch(revision: Revision | None, size: int, limits: Limits) -> InvalidRequest:
    """Return the error for a batch of *size* messages that the revision or the limits do not allow."""
    if revision is None or not revision.batches:
        return InvalidRequest("batches are not supported in this revision: send each message separately")
    if not size:
        return InvalidRequest("the batch is empty")
    return InvalidRequest(f"the batch has {size:,} messages: at most {limits.messages:,} are taken")
