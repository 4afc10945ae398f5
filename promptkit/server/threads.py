"""The threads of a server, and the watchdog for code that never releases Python's lock."""

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
    An event with a time limit, which a thread sets once it has started.

    `Thread.start` would wait indefinitely for a thread that ends before that for lack of memory.
    """

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(_START_WITHIN_S if timeout is None else timeout):
            msg = "the thread has not started"
            raise RuntimeError(msg)
        return True


class DaemonThread(Thread):
    """
    A daemon thread whose `start` raises RuntimeError if the thread does not run within a second.

    The thread may still start later, so its target must check whether it is still needed.

    Args:
        target:
            The function to run.

        name:
            The name, without the prefix ``promptkit-``.

        *args:
            The arguments of the target.
    """

    def __init__(self, target: Callable[..., object], name: str, *args: Any) -> None:
        super().__init__(target=target, name=f"promptkit-{name}", args=args, daemon=True)
        self._started = _Started()


#: The time limits of the watchdog, in seconds of CPU time and of wall-clock time. CPU time is
#: better where the system can measure it, because machines sleep, and debuggers stop processes.
_LIMIT_CPU_S: Final = 30.0
_LIMIT_S: Final = 60.0

_REARM_EVERY_S: Final = 1.0


class Watchdog:
    """
    A timer that ends the process unless it is re-armed in time.

    On POSIX, a kernel timer counts processor time. Its signal makes `faulthandler` print the stacks, and then
    ends the process. On Windows, a thread of `faulthandler` counts wall-clock time.

    Args:
        limit:
            The time limit, in seconds.

    Attributes:
        is_armed:
            Whether the timer runs.

        rearm_every:
            The interval in which to re-arm the timer, in seconds, even if code that has released the lock
            uses all processors.

    See Also:
        https://man7.org/linux/man-pages/man2/setitimer.2.html
    """

    def __init__(self, limit: float | None = None) -> None:
        self.is_armed = False
        limit = limit or (_LIMIT_S if sys.platform == "win32" else _LIMIT_CPU_S)
        self.rearm_every = min(_REARM_EVERY_S, limit / (4 * (os.cpu_count() or 1)))
        self._limit = limit
        self._is_enabled = False
        if sys.platform != "win32" and not _is_handled():
            self._is_enabled = True
            if os.getpid() == 1:
                _install_exit_handler()
            faulthandler.register(signal.SIGPROF, file=2, all_threads=True, chain=True)

    def arm(self) -> None:
        """Start or restart the timer."""
        self.is_armed = True
        if sys.platform == "win32":
            faulthandler.dump_traceback_later(self._limit, exit=True, file=2)
        elif self._is_enabled and not _is_handled():
            signal.setitimer(signal.ITIMER_PROF, self._limit)

    def disarm(self) -> None:
        """Stop the timer."""
        self.is_armed = False
        if sys.platform == "win32":
            faulthandler.cancel_dump_traceback_later()
        elif self._is_enabled and not _is_handled():
            signal.setitimer(signal.ITIMER_PROF, 0.0)


if sys.platform != "win32":

    def _is_handled() -> bool:
        """Return whether an author's code, such as a profiler, handles the signal."""
        return signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL

    def _install_exit_handler() -> None:
        """Let SIGPROF call C's `_exit`, because by default no signal ends a container's first process."""
        import ctypes  # libffi opens a file, which could take the place of a closed stream

        library = ctypes.CDLL(None)
        library.signal(signal.SIGPROF, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001 (POSIX)
