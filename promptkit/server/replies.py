"""
Replies: what a request is answered with, whatever the work on it comes to.

Neither an error nor a log repeats the value of an argument that is marked as a secret.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Final, TypeVar, TypeVarTuple

from promptkit.catalog.catalog import Catalog
from promptkit.errors.exceptions import (
    ArgumentErrors,
    PromptError,
    PromptkitError,
    UnknownPrompt,
    UnknownResource,
)
from promptkit.errors.standard_error import say
from promptkit.errors.tracebacks import format_exception
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import CLIENT_ERRORS, InternalError, encode_error, encode_result
from promptkit.server.lookup import RequestTarget, target_of
from promptkit.server.scheduling.workers import Abandoned

__all__ = ["MISUSE", "called", "misused", "reply_to"]

#: What an author's code raises if another prompt, or resource, refuses it.
MISUSE: Final = (ArgumentErrors, UnknownPrompt, UnknownResource)

Args = TypeVarTuple("Args")
T = TypeVar("T")


def reply_to(
    request: Request, work: Callable[[Request], bytes | None], catalog: Catalog, longest: float = inf
) -> bytes | None:
    """
    Return the line that answers *request*.

    Args:
        request:
            What was asked.

        work:
            Takes the request, and returns the result, as JSON, or None if it is answered later.

        catalog:
            What it is answered from: it knows what is secret.

        longest:
            How long a reply may be, in bytes.

    Returns:
        The result or the error that *work* came to; None if it comes to one later.

    Raises:
        Abandoned: If nobody waits for it any more.
    """
    try:
        result = work(request)
    except BaseException as error:  # authors raise anything
        if request.settled and isinstance(error, Abandoned):
            raise
        # One that was kept from another request, and raised again, is an error like any other.
        reply = encode_error(request.id, _told(request, error, catalog))
        _let_go(error)
        return reply
    if result is None:
        return None
    if len(result) > longest:
        msg = f"the reply would have {len(result):,} bytes: at most {longest:,} are sent"
        return encode_error(request.id, InternalError(msg))
    return encode_result(request.id, result)


def _let_go(error: BaseException) -> None:
    """
    Let go of the frames that *error* went through; some of them hold it, and would never be freed at once.
    """
    found: BaseException | None = error
    while found is not None and found.__traceback__ is not None:
        found.with_traceback(None)
        found = found.__context__


def called(function: Callable[[*Args], T], *args: *Args) -> T:
    """
    Return what an author's *function* returns, and keep what it raises for its author from the client.

    A prompt that calls another one, and is refused by it, has a bug; its client did nothing wrong.

    Raises:
        RuntimeError: Instead of what promptkit raises for arguments and names.

        Exception: Whatever else the function raises.
    """
    try:
        return function(*args)
    except MISUSE as error:
        raise misused() from error


def misused() -> RuntimeError:
    """
    Return what is raised in place of `MISUSE`.
    """
    return RuntimeError("what it calls was refused")


def _told(request: Request, error: BaseException, catalog: Catalog) -> PromptkitError:
    """
    Return what a client is told of *error*.
    """
    if isinstance(error, PromptError):
        with suppress(Exception):  # an author's class may be unable to show itself
            return PromptError(_redacted(str(error), target_of(request, catalog)))
    elif isinstance(error, CLIENT_ERRORS):
        return error
    return _internal_error(request, error, catalog)


def _internal_error(request: Request, error: BaseException, catalog: Catalog) -> InternalError:
    """
    Return what a client is told of any other exception, and print the rest on stderr.
    """
    correlation = os.urandom(4).hex()
    target = target_of(request, catalog)
    shown = _shown(request, target)
    trace = f"{type(error).__name__}\n"
    with suppress(Exception):  # an author's class may be unable to show itself
        trace = _redacted(format_exception(error), target)
    say(f"error {correlation} in {shown}:\n{trace.rstrip()}")
    return InternalError(f"{shown} failed (error {correlation})")


def _shown(request: Request, target: RequestTarget | None) -> str:
    """
    Return what failed, as people call it. A URI that may hold a secret is not repeated.
    """
    if target is None or request.method == "completion/complete":
        return request.method
    return f"{target.kind} {(target.name if target.secrets else target.asked)!r}"


def _redacted(text: str, target: RequestTarget | None) -> str:
    """
    Return *text* without the secrets that a request gives to its target.
    """
    if target is None or target.arguments is None or not target.secrets:
        return text
    from promptkit.catalog.redaction import Redactor  # few prompts take secrets, and fewer fail

    return Redactor.of(target.arguments, target.given).redacted(text)
