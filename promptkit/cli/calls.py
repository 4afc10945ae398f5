"""Calling authors' functions within a time limit, on a thread that is left alone if it hangs."""

import time
from _thread import start_new_thread
from collections.abc import Callable, Coroutine, Mapping
from threading import Lock, current_thread
from typing import Any, Final, TypeVar

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.cli.diagnostics import print_error, print_text
from promptkit.errors.tracebacks import format_exception
from promptkit.language.messages import Workflow
from promptkit.server.author_calls import (
    CANCEL_GRACE_S,
    AuthorCall,
    HangsError,
    explanation,
    rendering_of,
    time_limit,
)

__all__ = ["call_within_limit", "render_within_limit", "report_failure"]

T = TypeVar("T")

#: How long one wait for a lock is, in seconds.
_LONGEST_WAIT_S: Final = 0.5


def render_within_limit(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Workflow | BaseException:
    """
    Render *prompt* for the arguments of a client.

    `call_within_limit` explains what is returned, and raised.
    """
    return call_within_limit(rendering_of(prompt, arguments), time_limit(prompt))


def call_within_limit(
    function: Callable[[], T | Coroutine[Any, Any, T]], seconds: float | None = None
) -> T | BaseException:
    """
    Call an author's function.

    Args:
        function:
            What is called, plain or asynchronous.

        seconds:
            How long it may take; by default, as long as a server lets it.

    Returns:
        What it returned, what it raised, or a `HangsError` if it took longer.

    Raises:
        KeyboardInterrupt: On Ctrl-C; what is asynchronous is cancelled first.
    """
    seconds = time_limit() if seconds is None else seconds
    call = AuthorCall(function)
    # A plain lock, since Ctrl-C may interrupt the wait for it at any step. That would break the lock
    # within an `Event`, and within a `Thread`, which waits for such an event when it starts.
    over = Lock()
    over.acquire()
    try:
        start_new_thread(_run, (call, over))
        if _wait(over, seconds):
            return call.returned if call.raised is None else call.raised
        _cancel(call, over)
    except KeyboardInterrupt:
        _cancel(call, over)
        raise
    return HangsError.after(seconds)


def _run(call: AuthorCall, over: Lock) -> None:
    try:
        current_thread()  # registers this thread with `threading`, which counts it from now on
        call.run()
    finally:
        over.release()


def _wait(over: Lock, seconds: float) -> bool:
    """Wait until a call is over, or so many seconds; tell whether it is over."""
    ends = time.monotonic() + seconds
    # Ctrl-C right before a wait begins does not interrupt it: it takes effect when that wait ends.
    while (left := ends - time.monotonic()) > 0:
        if over.acquire(timeout=min(left, _LONGEST_WAIT_S)):
            return True
    return False


def _cancel(call: AuthorCall, over: Lock) -> None:
    call.cancel()
    if call.is_async:
        _wait(over, CANCEL_GRACE_S)


def report_failure(whose: str, error: BaseException, redactor: Redactor) -> None:
    """Print why the call of *whose* function failed: a sentence, or a traceback if nothing else says it."""
    if (sentence := explanation(whose, error)) is not None:
        print_error(redactor.redacted(sentence))
    else:
        print_text(redactor.redacted(format_exception(error)))
