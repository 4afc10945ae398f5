"""
`Context`, which describes the current request to a prompt, and cancellation of code that runs for a request.

Python cannot safely end a thread. Code that is still running after it has timed out or been cancelled stops
only when it calls promptkit to report progress or run a command.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final

import attrs

from promptkit.errors.exceptions import MissingClientCapabilityError

#: The largest value for progress, because clients parse numbers as floats.
_LARGEST: Final = sys.float_info.max

_is_cancelled: ContextVar[Callable[[], bool]] = ContextVar("is_cancelled", default=bool)


class RequestCancelledError(BaseException):
    """Raised in an author's code if its request has already been answered or cancelled."""


@contextmanager
def cancelled_by(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """
    Use *is_cancelled* to check whether a request has been answered or cancelled.

    This applies within the ``with`` block and in the tasks that it starts.
    """
    token = _is_cancelled.set(is_cancelled)
    try:
        yield
    finally:
        _is_cancelled.reset(token)


def is_cancelled() -> bool:
    """Return whether the request for which the current code runs has been answered or cancelled."""
    return _is_cancelled.get()()


class Progress:
    """
    The progress of one request.

    Args:
        send:
            A function that sends the progress, the total and the message to the client; None if the client
            did not request progress.
    """

    def __init__(self, send: Callable[[float, float | None, str | None], None] | None = None) -> None:
        self._send = send
        self._last = -math.inf
        self._lock = Lock()  # a prompt can report from any thread

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a report. See `Context.report_progress` for the arguments and errors."""
        if not all(-_LARGEST <= number <= _LARGEST for number in (progress, total or 0)):
            msg = f"progress {progress!r} of {total!r} is not finite: report finite numbers"
            raise ValueError(msg)
        with self._lock:
            if progress <= self._last:
                msg = f"progress is {progress!r} after {self._last!r}: it must increase with every report"
                raise ValueError(msg)
            self._last = progress
            if self._send is not None:
                self._send(progress, total, message)

    def end(self) -> None:
        """Stop sending reports. This is called when the request has been answered or cancelled."""
        with self._lock:
            self._send = None


@attrs.frozen
class Context:
    """
    The current request, passed to a prompt's parameter that is annotated with `Context`.

    Such a parameter is not an argument: clients neither see nor send it. A direct call, or ``.render()``
    without a context, passes a `Context` with only default values. Write ``context: Context = Context()``
    so that type checkers accept such calls.

    Args:
        client_name:
            The name that the client sent; ``""`` if unknown.

        client_version:
            The version that the client sent; ``""`` if unknown.

        revision:
            The protocol revision of the request, such as ``"2025-11-25"``; ``""`` outside a request.

        request_id:
            The JSON-RPC id of the request, a number or a string; None outside a request.

        capabilities:
            The capabilities that the client declared, as decoded JSON; empty outside a request.

        progress:
            The receiver of progress reports, created by the server.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
    """

    client_name: str = ""
    client_version: str = ""
    revision: str = ""
    request_id: int | str | None = None
    capabilities: Mapping[str, Any] = attrs.field(factory=dict)
    progress: Progress = attrs.field(factory=Progress, eq=False, repr=False, kw_only=True)

    def require(self, capability: str) -> None:
        """
        Reject the request unless the client has declared a capability.

        Args:
            capability:
                The capability's name in the protocol, such as ``"sampling"``.

        Raises:
            MissingClientCapabilityError: If the client has not declared it. The client receives error -32021
                with the name of the capability.
        """
        if capability not in self.capabilities:
            raise MissingClientCapabilityError(capability)

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """
        Report the progress of the prompt to the client, if the client requested it.

        This method can be called from any thread. Frequent reports are throttled. If the request has been
        answered or cancelled, the call stops the prompt.

        Args:
            progress:
                The amount of work done so far, in any unit. It must increase with every report.

            total:
                The total amount of work in the same unit; None if unknown.

            message:
                A description of the current step for the user; None for no message.

        Raises:
            ValueError: If *progress* has not increased, or a number is not finite.

            RequestCancelledError: If the request has been answered or cancelled. It is not an `Exception`, so
                ``except Exception`` does not catch it and the prompt stops.

        See Also:
            https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress
        """
        if is_cancelled():
            raise RequestCancelledError
        self.progress.report(progress, total, message)
