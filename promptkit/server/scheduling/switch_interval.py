"""SwitchInterval: how long a thread keeps Python's lock while others wait for it."""

import sys
from typing import Final

__all__ = ["SwitchInterval"]

#: The interval while authors' code runs beside that of the server, in seconds. Each turn of a thread of
#: ours waits for one of every thread that works: at Python's 5 ms and 64 of them that is a third of a
#: second, many times a request. Below half a millisecond the turns themselves take the time.
_SHORT: Final = 0.0005


class SwitchInterval:
    """
    Keeps the interval short while authors' code runs beside the server's.
    """

    def __init__(self) -> None:
        self._before: float | None = None

    def adapt(self, *, busy: bool) -> None:
        """
        Make the interval short while authors' code is *busy*, and let it be as it was afterwards.

        An interval that an author has chosen is left alone if it is short, and once it is changed.
        """
        interval = sys.getswitchinterval()
        if not busy and self._before is not None:
            if abs(interval - _SHORT) < _SHORT / 100:
                sys.setswitchinterval(self._before)
            self._before = None
        elif busy and self._before is None and interval > _SHORT:
            self._before = interval
            sys.setswitchinterval(_SHORT)
