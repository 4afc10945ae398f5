"""Context: what a prompt may know about its request, and how it reports progress."""

import math
import sys
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

import attrs

from promptkit.errors.exceptions import MissingClientCapabilityError
from promptkit.language.cancellation import check_cancelled

#: Clients read numbers as floats.
_LARGEST: Final = sys.float_info.max


class Progress:
    """
    The progress of one request.

    Args:
        send:
            Takes the progress, the total and the message; None if the client did not ask for progress.
    """

    def __init__(self, send: Callable[[float, float | None, str | None], None] | None = None) -> None:
        self._send = send
        self._last = -math.inf
        self._lock = Lock()  # a prompt may report from a thread of its own

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """
        Send a report. Arguments and errors are those of `Context.report_progress`.
        """
        if not all(-_LARGEST <= number <= _LARGEST for number in (progress, total or 0)):
            msg = f"progress is {progress!r} of {total!r}: report finite numbers, or no total"
            raise ValueError(msg)
        with self._lock:
            if progress <= self._last:
                msg = f"progress is {progress!r} after {self._last!r}: it has to rise with every report"
                raise ValueError(msg)
            self._last = progress
            if self._send is not None:
                self._send(progress, total, message)

    def end(self) -> None:
        """
        Send no further report: the request is answered or cancelled.
        """
        with self._lock:
            self._send = None


@attrs.frozen
class Context:
    """
    The request that is being answered; a prompt gets it for a parameter annotated `Context`.

    Such a parameter is not an argument: clients neither see nor send it. A direct call or
    ``.render()`` without one gets an empty `Context`, so that every attribute has a value. Write
    ``context: Context = Context()``, and type checkers know that, too.

    Args:
        client_name:
            The client's name, as it says; ``""`` if unknown.

        client_version:
            The client's version, as it says; ``""`` if unknown.

        revision:
            The protocol revision of the request: ``"2025-11-25"``; ``""`` outside a request.

        request_id:
            The JSON-RPC id of the request, a number or text; None outside a request.

        capabilities:
            The capabilities that the client declared, as decoded JSON; empty outside a request.

        progress:
            Takes the reports of progress; made by the server.

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
        Refuse the request unless the client has declared a capability.

        Args:
            capability:
                Its name in the protocol, as in ``"sampling"``.

        Raises:
            MissingClientCapabilityError: If the client has not. It is told which one it lacks (-32021).
        """
        if capability not in self.capabilities:
            raise MissingClientCapabilityError(capability)

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """
        Tell the client how far the prompt is, if it asked for progress.

        It may be called from any thread, and often: of very many reports, some are left out. Once
        the request has been answered or cancelled, it ends the prompt.

        Args:
            progress:
                How much is done, in any unit. It must rise with every report.

            total:
                How much there is to do, in the same unit; None if unknown.

            message:
                What is being done, for people; None if there is nothing to say.

        Raises:
            ValueError: If *progress* has not risen, or a number is not finite.

            RequestCancelledError: If the request has been answered or cancelled. It is not an `Exception`, so
                that the prompt ends unless it catches everything.

        See Also:
            https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress
        """
        check_cancelled()
        self.progress.report(progress, total, message)
