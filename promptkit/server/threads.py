"""
The threads of a server: daemon threads, the clock, and the watchdog for code that never releases the GIL.

The clock enforces the deadlines of pending requests, replaces a leader that is stuck in a request, and
re-arms the watchdog.
"""

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable
from math import inf
from threading import Event, Lock, Thread, current_thread
from typing import Any, Final

from promptkit.server.pending import PendingRequest
from promptkit.standard_error import say

#: How long a thread may take to start, in seconds.
_START_WITHIN_S: Final = 1.0


class _Started(Event):
    """
    An event that a thread sets once it has started. Waiting for the event times out.

    Without a timeout, `Thread.start` would wait indefinitely for a thread that runs out of memory before it
    sets the event.
    """

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(_START_WITHIN_S if timeout is None else timeout):
            msg = "the thread did not start in time"
            raise RuntimeError(msg)
        return True


class DaemonThread(Thread):
    """
    A daemon thread. Its `start` raises RuntimeError if the thread is not running within a second.

    The thread may still start later, so its target must check whether it is still needed.

    Args:
        target:
            The function to run.

        name:
            The thread's name, without the prefix ``promptkit-``.

        *args:
            The arguments for the target.
    """

    def __init__(self, target: Callable[..., object], name: str, *args: Any) -> None:
        super().__init__(target=target, name=f"promptkit-{name}", args=args, daemon=True)
        self._started = _Started()


#: The time limits of the watchdog, in seconds of CPU time and in seconds of wall-clock time. CPU time is
#: preferable where the system can limit it, because machines sleep, and debuggers pause processes.
_LIMIT_CPU_S: Final = 30.0
_LIMIT_S: Final = 60.0

_REARM_EVERY_S: Final = 1.0


class Watchdog:
    """
    A timer that terminates the process unless it is re-armed in time.

    On POSIX, a kernel timer counts CPU time. Its signal makes `faulthandler` print the stack traces, and then
    terminates the process. On Windows, a thread of `faulthandler` counts wall-clock time.

    Args:
        limit:
            The time limit, in seconds.

    Attributes:
        is_armed:
            Whether the timer is running.

        rearm_every:
            The interval at which to re-arm the timer, in seconds. It is short enough even if code that has
            released the GIL uses all CPUs.

    See Also:
        https://man7.org/linux/man-pages/man2/setitimer.2.html
    """

    def __init__(self, limit: float | None = None) -> None:
        self.is_armed = False
        limit = limit or (_LIMIT_S if sys.platform == "win32" else _LIMIT_CPU_S)
        self.rearm_every = min(_REARM_EVERY_S, limit / (4 * (os.cpu_count() or 1)))
        self._limit = limit
        self._is_enabled = False
        if sys.platform != "win32" and not _is_signal_handled():
            self._is_enabled = True
            if os.getpid() == 1:
                _install_exit_handler()
            faulthandler.register(signal.SIGPROF, file=2, all_threads=True, chain=True)

    def arm(self) -> None:
        """Start or restart the timer."""
        self.is_armed = True
        if sys.platform == "win32":
            faulthandler.dump_traceback_later(self._limit, exit=True, file=2)
        elif self._is_enabled and not _is_signal_handled():
            signal.setitimer(signal.ITIMER_PROF, self._limit)

    def disarm(self) -> None:
        """Stop the timer."""
        self.is_armed = False
        if sys.platform == "win32":
            faulthandler.cancel_dump_traceback_later()
        elif self._is_enabled and not _is_signal_handled():
            signal.setitimer(signal.ITIMER_PROF, 0.0)


if sys.platform != "win32":

    def _is_signal_handled() -> bool:
        """Return whether other code in the process, such as a profiler, handles SIGPROF."""
        return signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL

    def _install_exit_handler() -> None:
        """Make SIGPROF call C's `_exit`, because by default, no signal terminates a container's PID 1."""
        import ctypes  # libffi opens a file, which could get the descriptor of a closed stream

        library = ctypes.CDLL(None)
        library.signal(signal.SIGPROF, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001 (POSIX)


#: The interval between checks while a request may be stuck, in seconds.
_TICK_S: Final = 0.005

#: How long the clock continues to check at this interval after the last request, in seconds.
_IDLE_S: Final = 1.0

#: The delay after a failed check, in seconds.
_RETRY_DELAY_S: Final = 0.5


class Clock:
    """
    A thread that checks the requests of a dispatcher while work is due. It starts on the first `wake`.

    Args:
        expire_requests:
            A function that answers the requests whose deadline has passed, and updates `next_deadline`.

        current:
            A function that returns the request that the leader is running, or None.

        replace_stuck_leader:
            A function that replaces the leader if it is still running the given request.

        is_shared:
            A function that returns whether authors' code runs alongside the leader.

    Attributes:
        watchdog:
            The watchdog, which terminates the process when no thread can run any more; None if there is none.

        is_resting:
            Whether the thread is sleeping. Call `wake` after adding work.

        next_deadline:
            The earliest deadline, as a timestamp of `time.monotonic`.
    """

    def __init__(
        self,
        expire_requests: Callable[[float], object],
        current: Callable[[], PendingRequest | None],
        replace_stuck_leader: Callable[[PendingRequest], object],
        is_shared: Callable[[], bool],
    ) -> None:
        self.watchdog: Watchdog | None = None
        self.is_resting = True
        self.next_deadline = inf
        self._expire_requests = expire_requests
        self._current = current
        self._replace_stuck_leader = replace_stuck_leader
        self._is_shared = is_shared
        self._last_current: PendingRequest | None = None
        self._active_until = self._rearm_at = 0.0
        self._woken = Event()
        self._lock = Lock()
        self._thread: DaemonThread | None = None
        self._is_ending = False

    def wake(self) -> None:
        """
        Wake the thread if it is sleeping, or start it.

        Never raise an exception. If the thread cannot be started, time limits are not enforced.
        """
        if not self.is_resting:
            return
        # The request may be done before the thread checks it, and later requests must not wake the thread
        # again.
        self._active_until = time.monotonic() + _IDLE_S
        if self.watchdog is not None:  # armed here, because the code that runs next may never release the GIL
            self.watchdog.arm()
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
        """Stop the thread. A later `wake` starts a new one."""
        self.next_deadline, self._active_until = inf, 0.0
        self._is_ending = True
        self._woken.set()

    def _run(self) -> None:
        with self._lock:
            if self._thread is not current_thread():  # another thread has been started since
                return
        try:
            while self._check_and_wait():
                pass
        except BaseException:  # even the report failed (out of memory): the next request starts a new thread
            self.is_resting, self._thread = True, None
            raise

    def _check_and_wait(self) -> bool:
        """Do the work that is due, and wait until more is due. Return False if the thread must stop."""
        self.is_resting = False
        seconds = self._check_safely()
        if seconds <= _TICK_S:
            time.sleep(seconds)
            return True
        self.is_resting = True
        # Check once more, because work that was added before `is_resting` was set did not wake the thread.
        seconds = self._check_safely()
        with self._lock:
            if seconds == inf and self._is_ending and not self._woken.is_set():
                self._thread = None
                return False
        self._woken.wait(None if seconds == inf else seconds)
        self._woken.clear()
        return True

    def _check_safely(self) -> float:
        try:
            return self._check()
        except Exception as error:  # noqa: BLE001 (time limits are only enforced while this thread runs)
            say(f"the check of pending requests failed: {error!r}")
            return _RETRY_DELAY_S

    def _check(self) -> float:
        """Do the work that is due. Return the number of seconds until the next check."""
        now = time.monotonic()
        if now >= self.next_deadline:
            self._expire_requests(now)
        current = self._current()
        if current is not None:
            self._active_until = now + _IDLE_S
            if current is self._last_current:
                self._replace_stuck_leader(current)
        self._last_current = current
        due = _TICK_S if now < self._active_until else max(0.0, self.next_deadline - now)
        return due if self.watchdog is None else min(due, self._rearm(self.watchdog, now))

    def _rearm(self, watchdog: Watchdog, now: float) -> float:
        """
        Re-arm the watchdog while authors' code may be running. Return the seconds until this is due again.
        """
        if now < self._active_until or self._is_shared():
            if now >= self._rearm_at or not watchdog.is_armed:
                watchdog.arm()
                self._rearm_at = now + watchdog.rearm_every
            return max(0.0, self._rearm_at - now)
        watchdog.disarm()
        return inf
