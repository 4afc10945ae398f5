"""
Replies: the line that answers a request, with its result, or with the error that an author's code raised.

Neither an error nor a log repeats the value of an argument that is marked as a secret.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from math import inf

from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import PromptError, PromptkitError, shortened
from promptkit.errors.tracebacks import authors_line, format_exception
from promptkit.language.cancellation import RequestCancelledError
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import CLIENT_ERRORS, InternalError, Reply, encode_result
from promptkit.server.lookup import RequestTarget, name_of, target_of
from promptkit.server.pending import PendingRequest
from promptkit.standard_error import say


def timeout_error(pending: PendingRequest, importing: Callable[[], str]) -> InternalError:
    """
    Return the error of a request whose time is over, and print it on stderr with the line of its code.

    Args:
        pending:
            The request.

        importing:
            Returns which recipe is being imported, in words that follow others; ``""`` if none is.
    """
    request, about = pending.request, pending.about
    shown = request.method if about is None else f"{about.arguments.kind} {name_of(about)!r}"
    message, at = f"{shown} took longer than its limit of {pending.limit:g} s", ""
    if pending.is_waiting and (progress := importing()):
        message = f"the recipes are still being imported after {pending.limit:g} s{progress}"
    elif pending.is_waiting:
        message = f"{shown} waited longer than {pending.limit:g} s for other prompts (--max-renders)"
    else:
        file = "" if about is None else about.location.file
        line = authors_line(pending.thread, pending.coroutine, file)
        at = "" if line is None else f", and was at {line}"
    identifier = shortened(request.id) if isinstance(request.id, str) else request.id
    say(f"error {_error_id(request)} in {request.method}, request {identifier!r}: {message}{at}")
    return InternalError(f"{message} (error {request.error_id})")


def reply_to(
    pending: PendingRequest, work: Callable[[PendingRequest], bytes | None], longest: float = inf
) -> Reply | None:
    """
    Return the reply that answers a request.

    Args:
        pending:
            The request.

        work:
            Takes it, and returns the result as JSON, or None if it is answered later.

        longest:
            The limit of a reply, in bytes.

    Returns:
        The result, or the error that *work* raised; None if the request is answered later.
    """
    request = pending.request
    try:
        result = work(pending)
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        if pending.is_answered and isinstance(error, RequestCancelledError):
            return None
        reply = pending.error_reply(_client_error(pending, error))
        _drop_frames(error)
        return reply
    if result is None:
        return None
    if len(result) > longest:
        msg = f"the reply would have {len(result):,} bytes: at most {longest:,} are sent"
        return pending.error_reply(InternalError(msg))
    return encode_result(request.id, result, "asked" if pending.asks else "ok")


def _drop_frames(error: BaseException) -> None:
    # Some of these frames hold the error: only a full collection would free them.
    found: BaseException | None = error
    while found is not None and found.__traceback__ is not None:
        found.with_traceback(None)
        found = found.__context__


def _client_error(pending: PendingRequest, error: BaseException) -> PromptkitError:
    if isinstance(error, PromptError):
        with suppress(Exception):  # an author's class may be unable to show itself
            return PromptError(_redacted(str(error), pending))
    elif isinstance(error, CLIENT_ERRORS):
        return error
    return _internal_error(pending, error)


def _internal_error(pending: PendingRequest, error: BaseException) -> InternalError:
    """Print *error* on stderr; the client gets only a number that finds it there."""
    correlation = _error_id(pending.request)
    shown = _shown(pending.request, target_of(pending.request, pending.snapshot.catalog))
    trace = f"{type(error).__name__}\n"
    with suppress(Exception):  # an author's class may be unable to show itself
        trace = _redacted(format_exception(error), pending)
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


def _redacted(text: str, pending: PendingRequest) -> str:
    if pending.about is not None and not pending.about.arguments.secret:
        return text
    target = target_of(pending.request, pending.snapshot.catalog)
    if target is None or target.found is None or not target.secrets:
        return text

    return Redactor.of(target.found.arguments, target.given).redacted(text)
