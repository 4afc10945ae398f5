"""Workers: threads for authors' code, which can be abandoned and told to stop."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from typing import Final

from promptkit.errors.interruptions import Abandoned, interrupt

__all__ = ["WorkerThread"]

#: How long a thread that is to be stopped may go on importing, and how often that is looked at, in seconds.
_MAX_IMPORT_S: Final = 60.0
_LOOK_AGAIN_S: Final = 0.05

#: The file of the machinery of imports, as frames have it.
_IMPORT: Final = "<frozen importlib._bootstrap>"


class WorkerThread(Thread):
    """
    A thread that never keeps the process alive, and that can be told to stop.

    Args:
        work:
            What it does.

    Attributes:
        over:
            Called when the work is done, or was stopped.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(name="promptkit-worker", daemon=True)
        self._work = work
        self.over: Callable[[], object] = bool
        self._lock = Lock()
        self._is_abandoned = self._is_over = False

    def run(self) -> None:
        """Do the work."""
        try:
            if not self._is_abandoned:
                with suppress(Abandoned):
                    self._work()
        finally:
            with self._lock:  # from now on, another thread may have its number
                self._is_over = True
            del self._work  # it leads to the former leader, and from there to all leaders before
            self.over()
            self.over = bool

    def abandon(self) -> None:
        """
        Raise `Abandoned` in the thread as soon as it runs an author's Python code again.

        While it waits for the outside world, or runs C code, it goes on. So it does while it imports: others
        may wait for that module, and many cannot be imported again if they were stopped halfway. If it has
        not begun, it never does.
        """
        self._is_abandoned = True
        until = time.monotonic() + _MAX_IMPORT_S
        if not self._interrupt(until):
            with suppress(RuntimeError):  # there can be no more threads, so it goes on
                Thread(
                    target=self._interrupt_later, args=(until,), name="promptkit-stopping", daemon=True
                ).start()

    def _interrupt_later(self, until: float) -> None:
        while not self._interrupt(until):
            time.sleep(_LOOK_AGAIN_S)

    def _interrupt(self, until: float) -> bool:
        """Stop the thread, unless it imports and may go on; return whether it is stopped or over."""
        with self._lock:
            if self._is_over or self.ident is None:
                return True
            if time.monotonic() < until and _is_importing(self.ident):
                return False
            return interrupt(self.ident, Abandoned)


def _is_importing(ident: int) -> bool:
    """Whether a thread is in the middle of an import."""
    frame = sys._current_frames().get(ident)  # noqa: SLF001 (documented)
    while frame is not None and frame.f_code.co_filename != _IMPORT:
        frame = frame.f_back
    return frame is not None
