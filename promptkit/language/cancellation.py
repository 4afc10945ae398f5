"""
Cancellation of code that runs for a request which has been answered or cancelled.

Python cannot safely end a thread. Code that is still running after its timeout or cancellation stops only
when it calls promptkit: when it reports progress or runs a command.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_cancelled: ContextVar[Callable[[], bool]] = ContextVar("is_cancelled", default=bool)


class RequestCancelledError(BaseException):
    """Raised in an author's code after its request has been answered or cancelled."""


@contextmanager
def cancelled_by(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Use *is_cancelled* for the code in the ``with`` block, including the tasks that it starts."""
    token = _is_cancelled.set(is_cancelled)
    try:
        yield
    finally:
        _is_cancelled.reset(token)


def is_cancelled() -> bool:
    """Return whether the current code's request has been answered or cancelled."""
    return _is_cancelled.get()()


def check_cancelled() -> None:
    """Raise RequestCancelledError if the current code's request has been answered or cancelled."""
    if is_cancelled():
        raise RequestCancelledError
