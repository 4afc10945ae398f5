"""Time limits of calls to authors' code, and the errors for calls that exceed them."""

from collections.abc import Callable

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import shortened
from promptkit.errors.tracebacks import authors_line
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import Limits
from promptkit.server.lookup import name_of
from promptkit.server.pending import PendingRequest, create_error_id
from promptkit.standard_error import say


def time_limit(prompt: CompiledPrompt | None = None) -> float:
    """Return the time limit for a call, in seconds: the prompt's own limit, or the default of `serve`."""
    return (prompt and prompt.timeout) or Limits().timeout


def timeout_error(pending: PendingRequest, describe_import: Callable[[], str]) -> InternalError:
    """
    Return the error for a request whose deadline has passed, and print it with the line that is running.

    The function *describe_import* returns a suffix that names the recipe that is being imported, or ``""``.
    """
    request, item = pending.request, pending.item
    description = request.method if item is None else f"{item.arguments.kind} {name_of(item)!r}"
    message, at = f"{description} {_format_exceeded_limit(pending.limit)}", ""
    if pending.is_waiting and (progress := describe_import()):
        message = f"the recipes are still being imported after {pending.limit:g} s{progress}"
    elif pending.is_waiting:
        message = f"{description} waited longer than {pending.limit:g} s for other prompts (--max-renders)"
    else:
        file = "" if item is None else item.location.file
        at = _format_line(authors_line(pending.thread, pending.coroutine, file))
    identifier = shortened(request.id) if isinstance(request.id, str) else request.id
    say(f"error {create_error_id(request)} in {request.method}, request {identifier!r}: {message}{at}")
    return InternalError(f"{message} (error {request.error_id})")


class CallTimeoutError(Exception):
    """
    An author's function, called by a command or the preview, has not returned in time.

    The message is the rest of a sentence that starts with the function's name.

    Attributes:
        line:
            The line of the author's code that was running, if known.
    """

    line: Location | None = None

    @classmethod
    def after(cls, seconds: float, line: Location | None = None) -> "CallTimeoutError":
        """Return the error for a call that was at *line* when its limit of *seconds* had passed."""
        error = cls(f"{_format_exceeded_limit(seconds)}{_format_line(line)}")
        error.line = line
        return error


def _format_exceeded_limit(seconds: float) -> str:
    return f"took longer than its limit of {seconds:g} s"


def _format_line(line: Location | None) -> str:
    return "" if line is None else f", and was at {line}"
