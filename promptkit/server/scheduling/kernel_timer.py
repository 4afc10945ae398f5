"""The watchdog: the kernel ends a process in which no Python code can run any more."""

import os
import signal
import time
from typing import Final

__all__ = ["KernelTimer"]

#: How long a process may work without running Python code of ours, in seconds of one processor. No call
#: that anybody waits for is that long. It is time of processors, and no time of day: a machine that
#: sleeps or is busy, or a process that was stopped, is not taken for one that is stuck.
_LIMIT: Final = 10.0

#: How often the timer is put back at least while authors' code runs, in seconds.
_ROUND: Final = 1.0

#: Between two looks at the clocks, at least, in seconds, to say how many processors were busy.
_MEASURED: Final = 0.001


class KernelTimer:
    """
    A timer of the kernel's that ends the process unless it is put back in time.

    Python's lock may be held in another language's code for ever; then no thread of ours can
    do anything. It does nothing on Windows, or where an author uses the timer or its signal.

    Args:
        limit:
            After how many seconds of processor time it ends the process.

    Attributes:
        round:
            How often it has to be put back, in seconds, while all processors may be busy.

    See Also:
        https://man7.org/linux/man-pages/man2/setitimer.2.html
    """

    def __init__(self, limit: float = _LIMIT) -> None:
        self._limit = limit
        self._processors = os.cpu_count() or 1
        self.round = min(_ROUND, limit / (4 * self._processors))
        self._seen = time.monotonic()
        self._used = time.process_time()
        self._busy = 1.0
        if os.getpid() == 1 and self._is_free():
            _exit_on_signal()

    def put_back(self) -> None:
        """
        Start it, or let it begin anew.
        """
        if self._is_free():
            self._measure()
            signal.setitimer(signal.ITIMER_PROF, self._limit * self._busy, self._limit)

    def stop(self) -> None:
        """
        Stop it.
        """
        if self._is_ours():
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _is_free(self) -> bool:
        """
        Return whether nobody else uses the timer, or handles its signal.
        """
        if not hasattr(signal, "ITIMER_PROF"):
            return False
        if signal.getsignal(signal.SIGPROF) is signal.SIG_DFL:
            return self._is_ours() or signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
        self.stop()  # what its author handles are not our signals
        return False

    def _is_ours(self) -> bool:
        """
        Return whether the timer runs, and was started here: then its interval is the limit.
        """
        return hasattr(signal, "ITIMER_PROF") and signal.getitimer(signal.ITIMER_PROF)[1] == self._limit

    def _measure(self) -> None:
        """
        Find out how many processors are busy: many that work without the lock harm nobody.
        """
        now, used = time.monotonic(), time.process_time()
        if (passed := now - self._seen) >= _MEASURED:
            self._busy = min(max(1.0, (used - self._used) / passed), float(self._processors))
            self._seen, self._used = now, used


def _exit_on_signal() -> None:
    """
    Let the timer's signal call C's `_exit`: by default it does not end the first process of a container.
    """
    import ctypes  # hardly ever needed

    library = ctypes.CDLL(None)
    library.signal(signal.SIGPROF, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001 (it is POSIX's)
