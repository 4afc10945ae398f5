"""The watchdog: a thread that relieves a stuck leader and keeps time limits. It sleeps when all is calm."""

import os
import sys
import time
from math import inf
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from promptkit.errors.standard_error import say
from promptkit.server.exchange import Exchange
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import InFlight
from promptkit.server.scheduling.leader import LeaderFollowers

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # `signal` itself makes enums of all constants first: a client waits for that

__all__ = ["KernelTimer", "Watchdog"]

#: How often to look while anything happens, and how long it is until the watchdog counts as asleep.
_LOOK_EVERY_S: Final = 0.01
_AWAKE_S: Final = 0.02

#: How long the leader may be in one request. A little less than the time between two looks, which is never
#: exactly the same.
_RELIEVE_AFTER_S: Final = 0.009

#: How many looks at a leader that is in no request until the watchdog rests: a second.
_IDLE_LOOKS: Final = 100

#: When to look again if that has failed: what fails may fail each time.
_RETRY_AFTER_S: Final = 0.5

#: How much processor time may pass without Python code of ours running. No call that anybody waits for
#: takes that long. Time of day would not do: a machine may sleep or be busy, and a process may be stopped.
_LIMIT_CPU_S: Final = 10.0

#: How often the kernel's timer is put back while authors' code runs.
_PUT_BACK_EVERY_S: Final = 1.0

#: The shortest time over which it is measured how many processors are busy.
_MEASURE_OVER_S: Final = 0.001


class Watchdog:
    """
    Looks, again and again, as often as it has to.

    Args:
        leader_followers:
            Whose leader may be stuck.

        in_flight:
            Whose requests have deadlines.

        executor:
            What runs authors' code.

    Attributes:
        asleep:
            Whether it rests. After adding work, check this and call `wake`.

        kernel_timer:
            What ends the process if this thread cannot run any more; None if nothing does.
    """

    def __init__(self, leader_followers: LeaderFollowers, in_flight: InFlight, executor: Executor) -> None:
        self.asleep = True
        self.kernel_timer: KernelTimer | None = None
        self._leader_followers = leader_followers
        self._in_flight = in_flight
        self._executor = executor
        self._seen: Exchange | None = None
        self._seen_at = 0.0
        self._idle_looks = 0
        self._woken = Event()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._ends = False

    def wake(self) -> None:
        """Look now, and often for a while. It never raises: requests are answered without it."""
        self._idle_looks = 0
        with self._lock:
            # Not by the thread that wakes up: the caller may keep Python's lock, and it from running.
            if self.kernel_timer is not None:
                self.kernel_timer.put_back()
            self._woken.set()
            if self._thread is None:
                self._start()

    def end(self) -> None:
        """End the thread as soon as there is nothing to look at. `wake` then starts another one."""
        self._ends = True
        self._woken.set()

    def look(self) -> float:
        """Do what is due; return in how many seconds to look again, infinite if nothing will be due."""
        now = time.monotonic()
        self._in_flight.expire(now)
        self._look_at_leader(now)
        if self._idle_looks < _IDLE_LOOKS and self._executor.relieves:
            return _LOOK_EVERY_S
        due = max(0.0, self._in_flight.next_deadline - now)
        # Authors' code may come to hold Python's lock at any time.
        timer = self.kernel_timer if self._executor.busy else None
        return due if timer is None else min(due, timer.put_back_every)

    def _look_at_leader(self, now: float) -> None:
        current = self._leader_followers.current
        self._idle_looks = 0 if current is not None else self._idle_looks + 1
        if current is not self._seen:
            self._seen, self._seen_at = current, now
        elif current is not None and now - self._seen_at >= _RELIEVE_AFTER_S:
            self._leader_followers.relieve(current)

    def _start(self) -> None:
        self._thread = Thread(target=self._run, name="promptkit-watchdog", daemon=True)
        try:
            self._thread.start()
        except (RuntimeError, MemoryError) as error:  # no more threads can be started; `wake` tries again
            self._thread = None
            say(f"no time limits hold for now: {error}")
            if self.kernel_timer is not None:
                self.kernel_timer.stop()

    def _run(self) -> None:
        try:
            while self._look_and_wait():
                pass
        except BaseException:  # memory is too short even to say so: the next request starts another thread
            self.asleep, self._thread = True, None
            raise

    def _look_and_wait(self) -> bool:
        """Look after requests, and wait for the next look; return whether there is one."""
        self.asleep = False
        seconds = self._look_safely()
        if seconds > _AWAKE_S:
            self.asleep = True
            # Work that was added since the last look found `asleep` False, so nobody called `wake`.
            seconds = self._look_safely()
            if self._rests_for_ever(seconds):
                return False
        self._woken.wait(None if seconds == inf else seconds)
        self._woken.clear()
        return True

    def _rests_for_ever(self, seconds: float) -> bool:
        """Stop the kernel's timer if nothing is due for longer than that allows; return whether to end."""
        with self._lock:
            if self._woken.is_set():
                return False
            timer = self.kernel_timer
            if timer is not None and seconds > timer.put_back_every:
                timer.stop()
            if seconds < inf or not self._ends:
                return False
            self._thread = None  # `wake` starts another one from now on
            return True

    def _look_safely(self) -> float:
        try:
            if self.kernel_timer is not None:
                self.kernel_timer.put_back()
            return self.look()
        except Exception as error:  # noqa: BLE001 (no time limit would hold without this thread)
            say(f"looking after requests failed: {error!r}")
            return _RETRY_AFTER_S


class KernelTimer:
    """
    A timer of the kernel's, which ends the process unless it is put back in time.

    C code may hold Python's lock for ever; then no thread of ours can do anything. There is none on
    Windows. It does nothing where an author handles its signal.

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
        if sys.platform != "win32" and os.getpid() == 1 and self._is_free():
            # The signal is to call C's `_exit`: by default it does not end the first process of a container.
            import ctypes  # hardly ever needed

            library = ctypes.CDLL(None)
            library.signal(signal.SIGPROF, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001 (POSIX)

    def put_back(self) -> None:
        """Start the timer, or let it begin anew."""
        if sys.platform != "win32" and self._is_free():
            self._measure()
            signal.setitimer(signal.ITIMER_PROF, self._limit * self._busy)

    def stop(self) -> None:
        """Stop the timer."""
        if sys.platform != "win32" and self._is_free():
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _is_free(self) -> bool:
        """Whether no author's code handles the signal, as who uses the timer does."""
        return sys.platform != "win32" and signal.getsignal(signal.SIGPROF) is signal.SIG_DFL

    def _measure(self) -> None:
        """Measure how many processors are busy: several threads that work without the lock do no harm."""
        now, used = time.monotonic(), time.process_time()
        if (passed := now - self._measured_at) >= _MEASURE_OVER_S:
            self._busy = min(max(1.0, (used - self._used) / passed), float(self._processors))
            self._measured_at, self._used = now, used
