"""
Cancellation: how code that runs for a request learns that the request has been answered.

Python cannot safely end a thread. So code that runs on after its time limit, or after a cancellation, is
stopped only where it calls promptkit: when it reports progress, or runs a command.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_cancelled: ContextVar[Callable[[], bool]] = ContextVar("is_cancelled", default=bool)


class RequestCancelledError(BaseException):
    """Raised in an author's code whose request has been answered or cancelled."""


@contextmanager
def cancelled_by(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Use *is_cancelled* for the code in the ``with`` block, and for what asyncio starts there."""
    token = _is_cancelled.set(is_cancelled)
    try:
        yield
    finally:
        _is_cancelled.reset(token)


def is_cancelled() -> bool:
    """Return whether the request that the current code runs for has been answered or cancelled."""
    return _is_cancelled.get()()


def check_cancelled() -> None:
    """Raise RequestCancelledError if the request that the current code runs for has been answered."""
    if is_cancelled():
        raise RequestCancelledError
