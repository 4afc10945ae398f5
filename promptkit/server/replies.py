"""
Replies: the line that answers a request, with its result, or with the error that an author's code raised.

Neither an error nor a log repeats the value of an argument that is marked as a secret.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from math import inf

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import PromptError, PromptkitError, shortened
from promptkit.errors.interruptions import Abandoned
from promptkit.errors.standard_error import say
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import CLIENT_ERRORS, InternalError, encode_result
from promptkit.server.exchange import Exchange, State
from promptkit.server.lookup import RequestTarget, name_of, target_of

__all__ = ["reply_to", "took_too_long"]


def took_too_long(
    exchange: Exchange, seconds: float, line_in: Callable[[str], Location | None]
) -> InternalError:
    """
    Return the error of a request that has had its time, and print it on stderr, with where its code was.

    Args:
        exchange:
            The request.

        seconds:
            How long it might take.

        line_in:
            Returns the line that the author's code is in, given the file of the function; None if it is in
            none.
    """
    request, about, importing = exchange.request, exchange.about, exchange.snapshot.importing
    shown = request.method if about is None else f"{about.arguments.kind} {name_of(about)!r}"
    said, at = f"{shown} took longer than its limit of {seconds:g} s", ""
    if about is None and importing is not None:
        said = f"the recipes are still being imported after {seconds:g} s{importing()}"
    elif (line := line_in("" if about is None else about.location.file)) is not None:
        at = f", and was at {line}"
    asked = shortened(request.id) if isinstance(request.id, str) else request.id
    say(f"error {_error_id(request)} in {request.method}, request {asked!r}: {said}{at}")
    return InternalError(f"{said} (error {request.error_id})")


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
        if exchange.state is State.ANSWERED and isinstance(error, Abandoned):
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


def _drop_frames(error: BaseException) -> None:
    # Some of these frames hold the error: only a full collection would free them.
    found: BaseException | None = error
    while found is not None and found.__traceback__ is not None:
        found.with_traceback(None)
        found = found.__context__


def _client_error(exchange: Exchange, error: BaseException) -> PromptkitError:
    if isinstance(error, PromptError):
        with suppress(Exception):  # an author's class may be unable to show itself
            return PromptError(_redacted(str(error), exchange))
    elif isinstance(error, CLIENT_ERRORS):
        return error
    return _internal_error(exchange, error)


def _internal_error(exchange: Exchange, error: BaseException) -> InternalError:
    """Print *error* on stderr; the client gets only a number that finds it there."""
    from promptkit.errors.tracebacks import format_exception  # most prompts do not fail

    correlation = _error_id(exchange.request)
    shown = _shown(exchange.request, target_of(exchange.request, exchange.snapshot.catalog))
    trace = f"{type(error).__name__}\n"
    with suppress(Exception):  # an author's class may be unable to show itself
        trace = _redacted(format_exception(error), exchange)
    say(f"error {correlation} in {shown}:\n{trace.rstrip()}")
    return InternalError(f"{shown} failed (error {correlation})")


def _error_id(request: Request) -> str:
    """By which standard error, the audit and the reply to a request name what went wrong."""
    request.error_id = os.urandom(4).hex()
    return request.error_id


def _shown(request: Request, target: RequestTarget | None) -> str:
    # A URI may hold a secret, so then its template stands here.
    if target is None or request.method == "completion/complete":
        return request.method
    return f"{target.kind} {(target.name if target.secrets else target.asked)!r}"


def _redacted(text: str, exchange: Exchange) -> str:
    if exchange.about is not None and not exchange.about.arguments.secret:
        return text
    target = target_of(exchange.request, exchange.snapshot.catalog)
    if target is None or target.found is None or not target.secrets:
        return text
    from promptkit.catalog.redaction import Redactor  # few prompts take secrets, and fewer fail

    return Redactor.of(target.found.arguments, target.given).redacted(text)
