"""The supervisor: a thread that looks after the others, and sleeps while there is nothing to see."""

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final

from promptkit.standard_error import say

__all__ = ["Supervisor"]

#: Who looks again so soon, in seconds, needs not be woken.
_NAP: Final = 0.02


class Supervisor:
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
    """

    def __init__(self, look: Callable[[], float | None]) -> None:
        self.asleep = True
        self._look = look
        self._woken = Event()
        self._lock = Lock()
        self._thread: Thread | None = None

    def wake(self) -> None:
        """
        Let it look now, and go on from there.
        """
        self._woken.set()
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="promptkit-supervisor", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self.asleep = False
            seconds = self._looked()
            if seconds is None or seconds > _NAP:
                self.asleep = True
                # What came up between the look and now found it awake, and did not wake it.
                seconds = self._looked()
            self._woken.wait(seconds)
            self._woken.clear()

    def _looked(self) -> float | None:
        """
        Look; whatever fails there, it is looked again soon.
        """
        try:
            return self._look()
        except Exception as error:  # noqa: BLE001 (without it nothing would hold any more)
            say(f"looking after requests failed: {error!r}")
            return _NAP
