"""Workers: threads for authors' code, which can be abandoned and told to stop."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread, get_ident
from typing import Final

from promptkit.errors.interruptions import interrupt

__all__ = ["Abandoned", "Worker"]

#: How long a thread that is to be stopped may go on importing, and how often that is looked at, in seconds.
_MAX_IMPORT_S: Final = 60.0
_LOOK_AGAIN_S: Final = 0.05

#: The file of the machinery of imports, as frames have it.
_IMPORT: Final = "<frozen importlib._bootstrap>"


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
        Raise `Abandoned` in the thread as soon as it runs an author's Python code again.

        While it waits for the outside world, or runs C code, it goes on. So it does while it imports: others
        may wait for that module, and many cannot be imported again if they were stopped halfway. If it has
        not begun, it never does.
        """
        if not self._raise_unless(_is_importing):
            with suppress(RuntimeError):  # there can be no more threads, so it goes on
                Thread(target=self._stop_after_import, name="promptkit-stopping", daemon=True).start()

    def _stop_after_import(self) -> None:
        until = time.monotonic() + _MAX_IMPORT_S
        while not self._raise_unless(lambda ident: time.monotonic() < until and _is_importing(ident)):
            time.sleep(_LOOK_AGAIN_S)

    def _raise_unless(self, goes_on: Callable[[int], bool]) -> bool:
        """Stop the thread unless it *goes_on* for now; return whether it is stopped or over."""
        with self._lock:
            ident = self.ident if self._stoppable and self._is_begun else None
            if ident is not None and (goes_on(ident) or not interrupt(ident, Abandoned)):
                return False
            self._stoppable = False
            return True

    def _begins(self) -> bool:
        with self._lock:
            self._is_begun = True
            return self._stoppable


def _is_importing(ident: int) -> bool:
    """Whether a thread is in the middle of an import."""
    frame = sys._current_frames().get(ident)  # noqa: SLF001 (documented)
    while frame is not None and frame.f_code.co_filename != _IMPORT:
        frame = frame.f_back
    return frame is not None
