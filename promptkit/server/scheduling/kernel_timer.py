"""A timer of the kernel's: it ends the process when no Python code can run any more."""

import os
import sys
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # `signal` itself makes enums of all constants first: a client waits for that

__all__ = ["KernelTimer"]

#: How much processor time may pass without Python code of ours running. No call that anybody waits for
#: takes that long. Time of day would not do: a machine may sleep or be busy, and a process may be stopped.
_LIMIT_CPU_S: Final = 10.0

#: How often the timer is put back while authors' code runs.
_PUT_BACK_EVERY_S: Final = 1.0

#: The shortest time over which it is measured how many processors are busy.
_MEASURE_OVER_S: Final = 0.001


class KernelTimer:
    """
    Ends the process unless it is put back in time.

    C code may hold Python's lock for ever; then no thread of ours can do anything. It does nothing
    on Windows, or where an author uses the timer or its signal.

    Args:
        limit:
            After how many seconds of processor time it ends the process.

    Attributes:
        put_back_every:
            How often it has to be put back, in seconds, even if all processors are busy.

    See Also:
        https://man7.org/linux/man-pages/man2/setitimer.2.html
    """

    def __init__(self, limit: float = _LIMIT_CPU_S) -> None:
        self._limit = limit
        self._processors = os.cpu_count() or 1
        self.put_back_every = min(_PUT_BACK_EVERY_S, limit / (4 * self._processors))
        self._measured_at = time.monotonic()
        self._used = time.process_time()
        self._busy = 1.0
        if os.getpid() == 1 and self._is_free():
            _exit_on_signal()

    def put_back(self) -> None:
        """Start the timer, or let it begin anew."""
        if sys.platform != "win32" and self._is_free():
            self._measure()
            signal.setitimer(signal.ITIMER_PROF, self._limit * self._busy, self._limit)

    def stop(self) -> None:
        """Stop the timer."""
        if sys.platform != "win32" and self._is_ours():
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _is_free(self) -> bool:
        """Whether no author's code uses the timer, or handles its signal."""
        if sys.platform == "win32":
            return False
        if signal.getsignal(signal.SIGPROF) is signal.SIG_DFL:
            return self._is_ours() or signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
        self.stop()  # the author's handler must not see our signals
        return False

    def _is_ours(self) -> bool:
        # Its interval is the limit if it was started here.
        return sys.platform != "win32" and signal.getitimer(signal.ITIMER_PROF)[1] == self._limit

    def _measure(self) -> None:
        """Measure how many processors are busy: several threads that work without the lock do no harm."""
        now, used = time.monotonic(), time.process_time()
        if (passed := now - self._measured_at) >= _MEASURE_OVER_S:
            self._busy = min(max(1.0, (used - self._used) / passed), float(self._processors))
            self._measured_at, self._used = now, used


def _exit_on_signal() -> None:
    """Have the signal call C's `_exit`: by default it does not end the first process of a container."""
    if sys.platform == "win32":
        return
    import ctypes  # hardly ever needed

    library = ctypes.CDLL(None)
    library.signal(signal.SIGPROF, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001 (it is POSIX's)
