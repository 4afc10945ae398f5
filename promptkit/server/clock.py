"""The clock: a thread that checks pending requests every few milliseconds, and sleeps if there are none."""

import time
from collections.abc import Callable
from math import inf
from threading import Event, Lock, current_thread
from typing import Final

from promptkit.server.threads import DaemonThread
from promptkit.standard_error import say

#: The interval between checks while a request may be stuck, in seconds.
TICK_S: Final = 0.005

#: The delay before the next check after a failed one, in seconds, because it may fail each time.
_RETRY_DELAY_S: Final = 0.5


class Clock:
    """
    A thread that calls a function whenever work is due. It starts on the first call of `wake`.

    Args:
        look:
            A function that does the work that is due, and returns the seconds until it must be called again;
            infinity if no work is scheduled.

    Attributes:
        is_resting:
            Whether the thread sleeps. After adding work, check this, and call `wake`.
    """

    def __init__(self, look: Callable[[], float]) -> None:
        self.is_resting = True
        self._look = look
        self._woken = Event()
        self._lock = Lock()
        self._thread: DaemonThread | None = None
        self._is_ending = False

    def wake(self) -> None:
        """Call the function now. This never raises: without a clock, only time limits are not enforced."""
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
        """End the thread once no work is scheduled. A later `wake` starts a new thread."""
        self._is_ending = True
        self._woken.set()

    def _run(self) -> None:
        with self._lock:
            if self._thread is not current_thread():  # started too late
                return
        try:
            while self._look_and_wait():
                pass
        except BaseException:  # out of memory even for the report: the next request starts a new thread
            self.is_resting, self._thread = True, None
            raise

    def _look_and_wait(self) -> bool:
        """
        Call the function, and wait until the next call is due. Return False if no more calls will follow.
        """
        self.is_resting = False
        seconds = self._look_safely()
        if seconds <= TICK_S:
            time.sleep(seconds)
            return True
        self.is_resting = True
        # Call it once more: work added meanwhile saw `is_resting` False, and did not call `wake`.
        seconds = self._look_safely()
        with self._lock:
            if seconds == inf and self._is_ending and not self._woken.is_set():
                self._thread = None
                return False
        self._woken.wait(None if seconds == inf else seconds)
        self._woken.clear()
        return True

    def _look_safely(self) -> float:
        try:
            return self._look()
        except Exception as error:  # noqa: BLE001 (without this thread, time limits would not be enforced)
            say(f"looking after requests failed: {error!r}")
            return _RETRY_DELAY_S
