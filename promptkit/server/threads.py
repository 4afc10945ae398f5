"""Threads whose start fails if memory runs out, where those of `threading` would be waited for forever."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Final

__all__ = ["DaemonThread"]

#: How long a thread may take to start.
_START_WITHIN_S: Final = 1.0


class _Started(Event):
    """
    Set by a thread that has started; one without memory ends before.

    `Thread.start` waits for it without a limit.
    """

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(_START_WITHIN_S if timeout is None else timeout):
            msg = "the thread has not started"
            raise RuntimeError(msg)
        return True


class DaemonThread(Thread):
    """
    A daemon thread whose `start` raises RuntimeError if the thread does not begin to run within a second.

    It may begin later all the same, so its target has to see whether it is still needed.

    Args:
        target:
            What it calls.

        name:
            Its name, after ``promptkit-``.

        *args:
            The arguments of the target.
    """

    def __init__(self, target: Callable[..., object], name: str, *args: Any) -> None:
        super().__init__(target=target, name=f"promptkit-{name}", args=args, daemon=True)
        self._started = _Started()
