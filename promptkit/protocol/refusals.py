"""
The errors that a connection answers with when a message cannot be served.

It is imported for the first one.
"""

import msgspec

from promptkit.protocol import wire
from promptkit.protocol.envelope import check_envelope, check_unknown
from promptkit.protocol.jsonrpc import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
    TooManyRequests,
    encode_error,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.methods import method_not_found
from promptkit.protocol.partial_decoding import leading_id
from promptkit.protocol.revisions import Revision
from promptkit.standard_error import say

__all__ = [
    "no_session",
    "not_in_a_batch",
    "refuse_batch",
    "refuse_over_budget",
    "refuse_unknown",
    "refuse_unread",
]


def refuse_unread(line: bytes, error: Exception) -> bytes:
    """
    Return the reply to a line if reading it raised an exception.
    """
    if isinstance(error, MemoryError):
        reason = "the message is not read: there is not enough memory for it"
    else:
        say(f"a line of {len(line):,} bytes could not be read: {error!r}")
        reason = "the message could not be read"
    return encode_error(leading_id(line), InternalError(reason))


def not_in_a_batch(method: str) -> InvalidRequest:
    """
    The error for a method that sessions do not have, or that opens one: only sessions have batches.
    """
    return InvalidRequest(f"{method} cannot be part of a batch here: send it by itself")


def refuse_envelope(method: str, meta: wire.Meta, *, in_batch: bool) -> ProtocolError:
    """
    The error for a request that names a revision, but cannot be served.

    Raises:
        ProtocolError: If the envelope itself is wrong.
    """
    if in_batch:
        return not_in_a_batch(method)
    check_envelope(msgspec.to_builtins(meta))
    return method_not_found(method)


def refuse_unknown(method: str, params: msgspec.Raw) -> MethodNotFound:
    """
    The error for a method that does not exist.

    Raises:
        ProtocolError: If the params are wrong, too.
    """
    check_unknown(params)
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


def refuse_over_budget(limits: Limits) -> TooManyRequests:
    """
    The error for a large request while too many others are open.
    """
    return TooManyRequests(f"requests of more than {limits.held:,} bytes are open: wait for their answers")


def refuse_batch(revision: Revision | None, size: int, limits: Limits) -> InvalidRequest:
    """
    The error for an array of *size* messages where there are no batches, or none of that size.
    """
    if revision is None or not revision.batches:
        return InvalidRequest("there are no batches here: send each message by itself")
    if not size:
        return InvalidRequest("the batch is empty")
    return InvalidRequest(f"the batch has {size:,} messages: at most {limits.messages:,} are taken")
