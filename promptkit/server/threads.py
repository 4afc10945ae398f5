"""The threads of a server, and the watchdog for code that never lets another thread run."""

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Final

#: How long a thread may take to start.
_START_WITHIN_S: Final = 1.0


class _Started(Event):
    """
    Set by a thread that has started; one without memory ends before.

    `Thread.start` waits for it without a limit.
    """

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(_START_WITHIN_S if timeout is None else timeout):
            msg = "the thread has not started"
            raise RuntimeError(msg)
        return True


class DaemonThread(Thread):
    """
    A daemon thread whose `start` raises RuntimeError if the thread does not begin to run within a second.

    It may begin later all the same, so its target has to see whether it is still needed.

    Args:
        target:
            What it calls.

        name:
            Its name, after ``promptkit-``.

        *args:
            The arguments of the target.
    """

    def __init__(self, target: Callable[..., object], name: str, *args: Any) -> None:
        super().__init__(target=target, name=f"promptkit-{name}", args=args, daemon=True)
        self._started = _Started()


#: How much processor time may pass without a look of the clock. It is processor time where the system can
#: measure it, because a machine may sleep, and a process may be stopped by a debugger.
_LIMIT_CPU_S: Final = 30.0
_LIMIT_S: Final = 60.0

_REARM_EVERY_S: Final = 1.0


class Watchdog:
    """
    Ends the process unless it is re-armed in time.

    On POSIX, a timer of the kernel counts processor time, and its signal makes `faulthandler` print the
    stacks before the signal ends the process. On Windows, a thread of `faulthandler` counts the time of day.

    Args:
        limit:
            After how many seconds it ends the process.

    Attributes:
        is_armed:
            Whether it counts.

        rearm_every:
            How often it has to be re-armed, in seconds, even if code without the lock uses all processors.

    See Also:
        https://man7.org/linux/man-pages/man2/setitimer.2.html
    """

    def __init__(self, limit: float | None = None) -> None:
        self.is_armed = False
        limit = limit or (_LIMIT_S if sys.platform == "win32" else _LIMIT_CPU_S)
        self.rearm_every = min(_REARM_EVERY_S, limit / (4 * (os.cpu_count() or 1)))
        self._limit = limit
        self._is_ours = False
        if sys.platform != "win32" and not _is_handled():
            self._is_ours = True
            if os.getpid() == 1:
                _end_the_first_process()
            faulthandler.register(signal.SIGPROF, file=2, all_threads=True, chain=True)

    def arm(self) -> None:
        """Start the timer, or let it begin again."""
        self.is_armed = True
        if sys.platform == "win32":
            faulthandler.dump_traceback_later(self._limit, exit=True, file=2)
        elif self._is_ours and not _is_handled():
            signal.setitimer(signal.ITIMER_PROF, self._limit)

    def disarm(self) -> None:
        """Stop the timer."""
        self.is_armed = False
        if sys.platform == "win32":
            faulthandler.cancel_dump_traceback_later()
        elif self._is_ours and not _is_handled():
            signal.setitimer(signal.ITIMER_PROF, 0.0)


if sys.platform != "win32":

    def _is_handled() -> bool:
        """Whether an author handles the signal, as a profiler does."""
        return signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL

    def _end_the_first_process() -> None:
        """Let SIGPROF call C's `_exit`: by default no signal ends the first process of a container."""
        import ctypes  # libffi opens a file, which would become a standard stream that is closed

        library = ctypes.CDLL(None)
        library.signal(signal.SIGPROF, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001 (POSIX)
