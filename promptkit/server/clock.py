"""The clock: a thread that looks after pending requests every few milliseconds, and rests otherwise."""

import time
from collections.abc import Callable
from math import inf
from threading import Event, Lock, current_thread
from typing import Final

from promptkit.server.threads import DaemonThread
from promptkit.standard_error import say

#: How often the clock looks while a request may be stuck, in seconds.
TICK_S: Final = 0.005

#: When to look again after a failure, in seconds: what fails may fail each time.
_RETRY_AFTER_S: Final = 0.5


class Clock:
    """
    Calls a function again and again, as often as it asks for. The thread starts when it is first woken.

    Args:
        look:
            Does what is due, and returns in how many seconds to call it again; infinity if nothing is due.

    Attributes:
        is_resting:
            Whether the next look is far away. After adding work, check this and call `wake`.
    """

    def __init__(self, look: Callable[[], float]) -> None:
        self.is_resting = True
        self._look = look
        self._woken = Event()
        self._lock = Lock()
        self._thread: DaemonThread | None = None
        self._ends = False

    def wake(self) -> None:
        """Look now. It never raises: requests are answered without a clock, but not in time."""
        self._woken.set()
        with self._lock:
            if self._thread is None:
                self._thread = DaemonThread(self._run, "clock")
                try:
                    self._thread.start()
                except (RuntimeError, MemoryError) as error:  # the next request tries again
                    self._thread = None
                    say(f"time limits are not enforced for now: {error}")

    def end(self) -> None:
        """End the thread as soon as nothing is due. `wake` then starts another one."""
        self._ends = True
        self._woken.set()

    def _run(self) -> None:
        with self._lock:
            if self._thread is not current_thread():  # it has started too late
                return
        try:
            while self._look_and_wait():
                pass
        except BaseException:  # memory is too short even to report it: the next request starts another thread
            self.is_resting, self._thread = True, None
            raise

    def _look_and_wait(self) -> bool:
        """Look, and wait until the next look is due; return whether there is one."""
        self.is_resting = False
        seconds = self._look_safely()
        if seconds <= TICK_S:
            time.sleep(seconds)
            return True
        self.is_resting = True
        # Work that was added since the last look found `is_resting` False, so nothing called `wake`.
        seconds = self._look_safely()
        with self._lock:
            if seconds == inf and self._ends and not self._woken.is_set():
                self._thread = None
                return False
        self._woken.wait(None if seconds == inf else seconds)
        self._woken.clear()
        return True

    def _look_safely(self) -> float:
        try:
            return self._look()
        except Exception as error:  # noqa: BLE001 (without this thread no time limit would hold)
            say(f"looking after requests failed: {error!r}")
            return _RETRY_AFTER_S
