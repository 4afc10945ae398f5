"""
Pending requests, and the replies to them: results, and errors such as those that authors' code raises.

Neither errors nor logs contain the values of secret arguments.
"""

import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from math import inf
from typing import Any

from msgspec import Struct

from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import (
    INPUT_ERRORS,
    PromptError,
    PromptkitError,
    UnsendableMediaError,
)
from promptkit.errors.tracebacks import format_exception
from promptkit.language.context import RequestCancelledError
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import CLIENT_ERRORS, InternalError, Reply, encode_error, encode_result
from promptkit.server.lookup import RequestTarget, find_target, name_of
from promptkit.server.snapshot import Snapshot
from promptkit.standard_error import say


class PendingRequest(Struct, eq=False):
    """
    A request that has not been answered yet.

    Args:
        request:
            The request.

        snapshot:
            The snapshot that answers the request, even if the server has replaced it since.

        limit:
            The time limit, in seconds.

        deadline:
            The deadline, as a timestamp of `time.monotonic`.

        item:
            The compiled prompt or resource, once it has been looked up.

        is_answered:
            Whether the reply has been sent, or is being sent. Only the dispatcher sets this attribute, under
            its lock.

        is_waiting:
            Whether the request is waiting for the recipes to be imported, or for a free slot.

        is_held:
            Whether the request is held open for a question to the user or for a stream.

        stop:
            A function that is called once if the request is answered while its task is running, or while its
            question or stream is open. It cancels the task, withdraws the question, or closes the stream.

        on_deadline:
            A function that returns the error to send once the deadline has passed. By default, this is a
            timeout error.

        slow_call_started:
            When the author's function was called, as a timestamp of `time.monotonic`, if it was slow the last
            time; None if it was not.

        thread:
            The identifier of the thread that runs the author's code; 0 before that.

        coroutine:
            The coroutine that runs on the event loop of *thread*; None if other code runs.

        asks_for_input:
            Whether the result asks the client for input.
    """

    request: Request
    snapshot: Snapshot
    limit: float
    deadline: float
    item: Any = None
    is_answered: bool = False
    is_waiting: bool = False
    is_held: bool = False
    stop: Callable[[], object] | None = None
    on_deadline: Callable[[], PromptkitError] | None = None
    slow_call_started: float | None = None
    thread: int = 0
    coroutine: Coroutine[Any, Any, Any] | None = None
    asks_for_input: bool = False

    @property
    def key(self) -> tuple[str, str | None]:
        """The key under which slow code is recorded: the method, and the name of the prompt or resource."""
        return self.request.method, None if self.item is None else name_of(self.item)

    def error_reply(self, error: PromptkitError) -> Reply:
        """
        Return the reply with *error*, which must be one of `CLIENT_ERRORS`.

        An invalid tool call is answered with a result, so that the model can correct the call.
        """
        request = self.request
        if request.method == "tools/call":
            result = self.snapshot.lowerings[request.revision].tool_error(error)
            if result is not None:
                return encode_result(request.id, result, "failed")
        return encode_error(request.id, error)


def reply_to(
    pending: PendingRequest, work: Callable[[PendingRequest], bytes | None], limit: float = inf
) -> Reply | None:
    """
    Call *work*, and return the reply with its result, which is JSON, or with the error that it raised.

    Return None if *work* returns None, because the request is then answered later. If the result is longer
    than *limit*, in bytes, return an error instead.
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
    if len(result) > limit:
        msg = f"the reply is {len(result):,} bytes long: the limit is {limit:,}"
        return pending.error_reply(InternalError(msg))
    return encode_result(request.id, result, "asked" if pending.asks_for_input else "ok")


def _drop_frames(error: BaseException) -> None:
    # Some of these frames reference the error. Only a full garbage collection would free such a cycle.
    current: BaseException | None = error
    while current is not None and current.__traceback__ is not None:
        current.with_traceback(None)
        current = current.__context__


def _client_error(pending: PendingRequest, error: BaseException) -> PromptkitError:
    if isinstance(error, INPUT_ERRORS):
        return _input_error(pending, error)
    if isinstance(error, PromptError):
        with suppress(Exception):  # the author's class may fail in `__str__`
            return PromptError(_redact(str(error), pending))
    elif isinstance(error, CLIENT_ERRORS):
        return error
    return _internal_error(pending, error)


def _input_error(pending: PendingRequest, error: PromptError) -> PromptkitError:
    """
    Return the error for media that cannot be sent, or for text that exceeds its budget.

    If the request has no arguments, the author is at fault, and the client gets an internal error. Otherwise,
    the client gets the error's message. If no argument takes bytes, the media can come from either the author
    or the caller, so the traceback is also printed for the author.
    """
    target = find_target(pending.request, pending.snapshot.catalog)
    if target is None or target.item is None or not target.arguments:
        return _internal_error(pending, error)
    description, by_name = _describe(pending.request, target), target.item.arguments.by_name
    has_bytes = any(by_name[name].takes_bytes for name in by_name.keys() & target.arguments.keys())
    if isinstance(error, UnsendableMediaError) and not has_bytes:
        say(f"error in {description}:\n{_format_trace(pending, error)}")
    return PromptError(_redact(f"{description}: {error}", pending))


def _internal_error(pending: PendingRequest, error: BaseException) -> InternalError:
    """
    Print *error* to standard error with a new id. Return an error for the client, which contains only the id.
    """
    error_id = create_error_id(pending.request)
    description = _describe(pending.request, find_target(pending.request, pending.snapshot.catalog))
    say(f"error {error_id} in {description}:\n{_format_trace(pending, error)}")
    return InternalError(f"{description} failed (error {error_id})")


def _format_trace(pending: PendingRequest, error: BaseException) -> str:
    """Return the traceback of *error*, without secrets."""
    trace = type(error).__name__
    with suppress(Exception):  # the author's class may fail in `__str__`
        trace = _redact(format_exception(error), pending)
    return trace.rstrip()


def create_error_id(request: Request) -> str:
    """Create an error id for *request*. It appears on standard error, in the audit log and in the reply."""
    request.error_id = os.urandom(4).hex()
    return request.error_id


def _describe(request: Request, target: RequestTarget | None) -> str:
    # A URI with a secret argument contains the secret, so use its template.
    if target is None or request.method == "completion/complete":
        return request.method
    return f"{target.kind} {(target.name if target.secrets else target.identifier)!r}"


def _redact(text: str, pending: PendingRequest) -> str:
    if pending.item is not None and not pending.item.arguments.secret:
        return text
    target = find_target(pending.request, pending.snapshot.catalog)
    if target is None or target.item is None or not target.secrets:
        return text

    return Redactor.of(target.item.arguments, target.arguments).redacted(text)
