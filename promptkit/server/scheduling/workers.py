"""Workers: threads for authors' code, which can be abandoned and told to stop."""

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread, get_ident

__all__ = ["Abandoned", "Worker"]


class Abandoned(BaseException):
    """Raised in an author's code whose request is answered already."""


class Worker(Thread):
    """
    A thread that never keeps the process alive, and that can be told to stop.

    Args:
        work:
            What it does.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(name="promptkit-worker", daemon=True)
        self._work = work
        self._over: list[Callable[[], object]] = []
        self._lock = Lock()
        self._stoppable = True
        self._is_begun = False
        self._pid = os.getpid()

    @property
    def is_current(self) -> bool:
        """Whether it is the calling thread."""
        return self.ident == get_ident()

    def when_over(self, call: Callable[[], object]) -> None:
        """Have *call* called when the work is done, or was stopped."""
        self._over.append(call)

    def run(self) -> None:
        """Do the work."""
        try:
            with suppress(Abandoned):
                try:
                    if self._begins():
                        self._work()
                finally:
                    if os.getpid() != self._pid:  # an author's code forked, and its child came back here
                        os._exit(0)
                    with self._lock:
                        self._stoppable = False
        finally:
            del self._work  # it leads to the former leader, and from there to all leaders before
            for call in self._over:
                call()
            self._over.clear()

    def abandon(self) -> None:
        """
        Raise `Abandoned` in the thread as soon as it runs Python code again.

        While it waits for the outside world, or runs C code, it goes on. If it has not begun, it never does.
        """
        import ctypes  # hardly ever needed

        with self._lock:
            is_stopped, self._stoppable = self._stoppable and self._is_begun, False
            if is_stopped and self.ident is not None:
                identifier = ctypes.c_ulong(self.ident)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(Abandoned))

    def _begins(self) -> bool:
        with self._lock:
            self._is_begun = True
            return self._stoppable
