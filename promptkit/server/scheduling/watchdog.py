"""The supervisor: a thread that looks after the others, and sleeps while there is nothing to see."""

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final

from promptkit.errors.standard_error import say
from promptkit.server.scheduling.kernel_timer import KernelTimer

__all__ = ["Watchdog"]

#: Who looks again so soon, in seconds, needs not be woken.
_NAP: Final = 0.02


class Watchdog:
    """
    Looks, again and again, as often as there is reason to.

    Args:
        look:
            Does what is due, and returns in how many seconds to look again; None if there is
            nothing to look after until somebody calls `wake`.

    Attributes:
        asleep:
            Whether it does not look by itself. Whoever gives it something to look after checks
            this afterwards, and wakes it.

        watchdog:
            What ends the process if this thread cannot look any more; None if nothing does.
    """

    def __init__(self, look: Callable[[], float | None]) -> None:
        self.asleep = True
        self.kernel_timer: KernelTimer | None = None
        self._look = look
        self._woken = Event()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._ends = False
        self._told: str | None = None

    def wake(self) -> None:
        """
        Let it look now, and go on from there. It never raises: requests are answered without it.
        """
        with self._lock:
            # Not by the thread that wakes up: whoever calls may keep it from ever running.
            if self.kernel_timer is not None:
                self.kernel_timer.put_back()
            self._woken.set()
            if self._thread is None or not self._thread.is_alive():
                self._start()

    def end(self) -> None:
        """
        End the thread as soon as there is nothing to look after. Who wakes it then has another one started.
        """
        self._ends = True
        self._woken.set()

    def _start(self) -> None:
        thread = Thread(target=self._run, name="promptkit-watchdog", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # there can be no more threads; who wakes it next tries again
            self._say(f"no time limits hold for now: {error}")
            if self.kernel_timer is not None:
                self.kernel_timer.stop()
        else:
            self._thread = thread

    def _run(self) -> None:
        try:
            while True:
                self.asleep = False
                seconds = self._looked()
                if seconds is None or seconds > _NAP:
                    self.asleep = True
                    # What came up between the look and now found it awake, and did not wake it.
                    seconds = self._looked()
                    self._rest(seconds)
                    if seconds is None and self._is_over():
                        return
                self._woken.wait(seconds)
                self._woken.clear()
        finally:
            # An author's tracing function can end any thread; the next request starts another one.
            self.asleep = True

    def _is_over(self) -> bool:
        """
        Return whether this thread ends, as nobody needs it.
        """
        with self._lock:
            if not self._ends or self._woken.is_set():
                return False
            self._thread = None
            return True

    def _rest(self, seconds: float | None) -> None:
        """
        Stop the watchdog if this thread is about to sleep for so long that it could not be put back.
        """
        with self._lock:
            watchdog = self.kernel_timer
            if watchdog and not self._woken.is_set() and (seconds is None or seconds > watchdog.round):
                watchdog.stop()

    def _looked(self) -> float | None:
        """
        Look; whatever fails there, it is looked again soon.
        """
        try:
            if self.kernel_timer is not None:
                self.kernel_timer.put_back()
            seconds = self._look()
        except Exception as error:  # noqa: BLE001 (without it nothing would hold any more)
            self._say(f"looking after requests failed: {error!r}")
            return _NAP
        self._told = None
        return seconds

    def _say(self, text: str) -> None:
        """
        Say *text*, unless it was said last: what fails may fail fifty times a second.
        """
        if text != self._told:
            self._told = text
            say(text)
