"""
Replies: the line that answers a request, whatever the work on it returns or raises.

Neither an error nor a log repeats the value of an argument that is marked as a secret.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from promptkit.errors.exceptions import PromptError, PromptkitError
from promptkit.errors.standard_error import say
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import CLIENT_ERRORS, InternalError, encode_result
from promptkit.server.exchange import Exchange
from promptkit.server.scheduling.workers import Abandoned

if TYPE_CHECKING:
    from promptkit.server.lookup import RequestTarget

__all__ = ["ended_before", "reply_to"]


def reply_to(
    exchange: Exchange, work: Callable[[Exchange], bytes | None], longest: float = inf
) -> bytes | None:
    """
    Return the line that answers a request.

    Args:
        exchange:
            The request.

        work:
            Takes it, and returns the result as JSON, or None if it is answered later.

        longest:
            The limit of a reply, in bytes.

    Returns:
        The result, or the error that *work* raised; None if the request is answered later.

    Raises:
        Abandoned: If the request is already answered.
    """
    request = exchange.request
    try:
        result = work(exchange)
    except BaseException as error:  # authors raise anything
        # An author's code may keep the `Abandoned` of another request, and raise it again: that is an
        # error like any other.
        if exchange.settled and isinstance(error, Abandoned):
            raise
        reply = exchange.refuse(_client_error(exchange, error))
        _drop_frames(error)
        return reply
    if result is None:
        return None
    if len(result) > longest:
        msg = f"the reply would have {len(result):,} bytes: at most {longest:,} are sent"
        return exchange.refuse(InternalError(msg))
    return encode_result(request.id, result)


def ended_before(request: Request) -> InternalError:
    """Return the error for a request that the end of the server leaves without a reply."""
    return InternalError(f"the server ended before {request.method} was answered")


def _drop_frames(error: BaseException) -> None:
    # Some of these frames hold the error: only a full collection would free them.
    found: BaseException | None = error
    while found is not None and found.__traceback__ is not None:
        found.with_traceback(None)
        found = found.__context__


def _client_error(exchange: Exchange, error: BaseException) -> PromptkitError:
    if isinstance(error, CLIENT_ERRORS) and not isinstance(error, PromptError):
        return error
    if os.getpid() != exchange.snapshot.process:
        # A child that an author's code has forked. Nothing may be imported here: another thread of the parent
        # may have held the lock of that import, and nobody would release it.
        os._exit(0)
    if isinstance(error, PromptError):
        with suppress(Exception):  # an author's class may be unable to show itself
            return PromptError(_redacted(str(error), exchange))
    return _internal_error(exchange, error)


def _internal_error(exchange: Exchange, error: BaseException) -> InternalError:
    """Print *error* on stderr; the client gets only a number that finds it there."""
    from promptkit.errors.tracebacks import format_exception  # most prompts do not fail

    correlation = os.urandom(4).hex()
    shown = _shown(exchange.request, _target(exchange))
    trace = f"{type(error).__name__}\n"
    with suppress(Exception):  # an author's class may be unable to show itself
        trace = _redacted(format_exception(error), exchange)
    say(f"error {correlation} in {shown}:\n{trace.rstrip()}")
    return InternalError(f"{shown} failed (error {correlation})")


def _target(exchange: Exchange) -> "RequestTarget | None":
    from promptkit.server.lookup import target_of

    return target_of(exchange.request, exchange.snapshot.catalog)


def _shown(request: Request, target: "RequestTarget | None") -> str:
    # A URI may hold a secret, so then its template stands here.
    if target is None or request.method == "completion/complete":
        return request.method
    return f"{target.kind} {(target.name if target.secrets else target.asked)!r}"


def _redacted(text: str, exchange: Exchange) -> str:
    if exchange.about is not None and not exchange.about.arguments.secret:
        return text
    target = _target(exchange)
    if target is None or target.arguments is None or not target.secrets:
        return text
    from promptkit.catalog.redaction import Redactor  # few prompts take secrets, and fewer fail

    return Redactor.of(target.arguments, target.given).redacted(text)
