"""What a prompt may know about the request that it answers, and say while it works."""

import math
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import attrs

__all__ = ["Context", "Progress"]


class Progress:
    """
    How far the work on one request is, and who is told.

    Args:
        send:
            Takes the progress, the total and the message; None if nobody wants to know.
    """

    def __init__(self, send: Callable[[float, float | None, str | None], None] | None = None) -> None:
        self._send = send
        self._last = -math.inf
        self._lock = Lock()  # a prompt may report from a thread of its own

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """
        Tell whoever wants to know. `Context.report_progress` explains the arguments.

        Raises:
            ValueError: If *progress* has not risen, or a number is not finite.
        """
        if not math.isfinite(progress) or not math.isfinite(total or 0):
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
        Tell nobody any more: the request is answered, or no longer wanted.
        """
        with self._lock:
            self._send = None


@attrs.frozen
class Context:
    """
    The request that is being answered, for a parameter annotated `Context`.

    Such a parameter is no argument: clients neither see nor send it. A direct call or
    ``.render()`` without one gets an empty `Context`, so that every member has a value; write
    ``context: Context = Context()``, and type checkers know that too.

    Args:
        client_name:
            How the client calls itself, ``""`` if unknown.

        client_version:
            The client's own version, ``""`` if unknown.

        revision:
            The protocol revision of the request, as a date, ``""`` outside of a request.

        request_id:
            The JSON-RPC id of the request, None outside of a request.

        capabilities:
            What the client declared that it can do, as it declared it.

        progress:
            Who is told of progress; nobody outside of a request.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
    """

    client_name: str = ""
    client_version: str = ""
    revision: str = ""
    request_id: int | str | None = None
    capabilities: Mapping[str, Any] = attrs.field(factory=dict)
    progress: Progress = attrs.field(factory=Progress, eq=False, repr=False, kw_only=True)

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """
        Tell the client how far the prompt is, if it wants to know.

        It may be called from any thread, and often: of a flood of reports the client is sent
        some. Once the request is answered or cancelled, nobody is told any more.

        Args:
            progress:
                How much is done, in any unit; more with every report.

            total:
                How much there is to do, in the same unit, if that is known.

            message:
                What is being done, for people.

        Raises:
            ValueError: If *progress* has not risen, or a number is not finite.

        See Also:
            https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress
        """
        self.progress.report(progress, total, message)
