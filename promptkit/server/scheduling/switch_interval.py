"""How long a thread keeps Python's lock while others wait for it."""

import sys
from typing import Final

__all__ = ["SwitchInterval"]

#: The interval while authors' code runs beside the server's threads. A thread of ours waits for one
#: interval of every thread that works, many times a request: with Python's 5 ms and 64 threads that is a
#: third of a second each time. Below half a millisecond, switching itself takes most of the time.
_SHORT_S: Final = 0.0005


class SwitchInterval:
    """Keeps the interval short while authors' code runs beside the server's."""

    def __init__(self) -> None:
        self._before: float | None = None

    def adapt(self, *, busy: bool) -> None:
        """
        Make the interval short while authors' code is *busy*, and restore it afterwards.

        An author's own choice is kept: one that is short already, or that is made while ours holds.
        """
        interval = sys.getswitchinterval()
        if not busy and self._before is not None:
            if abs(interval - _SHORT_S) < _SHORT_S / 100:
                sys.setswitchinterval(self._before)
            self._before = None
        elif busy and self._before is None and interval > _SHORT_S:
            self._before = interval
            sys.setswitchinterval(_SHORT_S)
