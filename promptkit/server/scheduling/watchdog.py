"""The watchdog: a thread that relieves a stuck leader and keeps time limits. It sleeps when all is calm."""

import time
from collections.abc import Callable
from math import inf
from threading import Event, Lock, Thread
from typing import Final

from promptkit.errors.standard_error import say
from promptkit.server.exchange import Exchange
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.scheduling.kernel_timer import KernelTimer
from promptkit.server.scheduling.leader import LeaderFollowers
from promptkit.server.scheduling.switch_interval import SwitchInterval
from promptkit.server.scheduling.workers import Worker

__all__ = ["Patrol", "Watchdog"]

#: How often to look while anything happens.
_LOOK_EVERY_S: Final = 0.01

#: How long the leader may be in one request. A little less than the time between two looks, which is never
#: exactly the same.
_RELIEVE_AFTER_S: Final = 0.009

#: How many looks at a leader that is in no request until the watchdog rests: a second.
_IDLE_LOOKS: Final = 100

#: How often to look while nothing happens but that authors' code runs, where no timer of the kernel's has
#: to be put back.
_LOOK_AT_WORKERS_EVERY_S: Final = 1.0

#: If it looks again within this time, the watchdog is not woken when work is added.
_AWAKE_S: Final = 0.02


class Watchdog:
    """
    Looks, again and again, as often as it has to.

    Args:
        look:
            Does what is due. It returns in how many seconds to look again; None if there is
            nothing to look at until `wake` is called.

    Attributes:
        asleep:
            Whether it rests. After adding work, check this and call `wake`.

        kernel_timer:
            What ends the process if this thread cannot run any more; None if nothing does.
    """

    def __init__(self, look: Callable[[], float | None]) -> None:
        self.asleep = True
        self.kernel_timer: KernelTimer | None = None
        self._look = look
        self._woken = Event()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._ends = False
        self._last_said: str | None = None

    def wake(self) -> None:
        """Look now, and go on from there. It never raises: requests are answered without it."""
        with self._lock:
            # Not by the thread that wakes up: the caller may keep Python's lock, and it from running.
            if self.kernel_timer is not None:
                self.kernel_timer.put_back()
            self._woken.set()
            if self._thread is None or not self._thread.is_alive():
                self._start()

    def end(self) -> None:
        """End the thread as soon as there is nothing to look at. `wake` then starts another one."""
        self._ends = True
        self._woken.set()

    def _start(self) -> None:
        thread = Thread(target=self._run, name="promptkit-watchdog", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # there can be no more threads; the next `wake` tries again
            self._say(f"no time limits hold for now: {error}")
            if self.kernel_timer is not None:
                self.kernel_timer.stop()
        else:
            self._thread = thread

    def _run(self) -> None:
        try:
            while True:
                self.asleep = False
                seconds = self._look_safely()
                if seconds is None or seconds > _AWAKE_S:
                    self.asleep = True
                    # Work that was added since the last look found `asleep` False, so nobody called `wake`.
                    seconds = self._look_safely()
                    self._rest(seconds)
                    if seconds is None and self._is_over():
                        return
                self._woken.wait(seconds)
                self._woken.clear()
        finally:
            # An author's tracing function can end any thread. The next request starts another one.
            self.asleep = True

    def _is_over(self) -> bool:
        with self._lock:
            if not self._ends or self._woken.is_set():
                return False
            self._thread = None
            return True

    def _rest(self, seconds: float | None) -> None:
        """Stop the kernel's timer if this thread sleeps for longer than that allows."""
        with self._lock:
            timer = self.kernel_timer
            if timer and not self._woken.is_set() and (seconds is None or seconds > timer.put_back_every):
                timer.stop()

    def _look_safely(self) -> float | None:
        try:
            if self.kernel_timer is not None:
                self.kernel_timer.put_back()
            seconds = self._look()
        except Exception as error:  # noqa: BLE001 (no time limit would hold without this thread)
            self._say(f"looking after requests failed: {error!r}")
            return _AWAKE_S
        self._last_said = None
        return seconds

    def _say(self, text: str) -> None:
        # What fails may fail fifty times a second.
        if text != self._last_said:
            self._last_said = text
            say(text)


class Patrol:
    """
    What the watchdog of one server looks at.

    Args:
        leader_followers:
            Whose leader may be stuck.

        in_flight:
            Whose requests have deadlines.

        executor:
            Whose event loops may be stuck.

        detach:
            Puts a request in flight in which the leader is stuck.

    Attributes:
        also:
            Called with the time, by `time.monotonic`, at each look.

        switch_interval:
            Adapted to whether authors' code runs; None to leave it alone.
    """

    def __init__(
        self,
        leader_followers: LeaderFollowers,
        in_flight: InFlight,
        executor: Executor,
        detach: Callable[[Exchange, Worker], Job],
    ) -> None:
        self.also: Callable[[float], object] = bool
        self.switch_interval: SwitchInterval | None = None
        self.watchdog = Watchdog(self.look)
        self._leader_followers = leader_followers
        self._in_flight = in_flight
        self._executor = executor
        self._detach = detach
        self._seen: Exchange | None = None
        self._seen_at = 0.0
        self._idle_looks = 0

    def wake(self) -> None:
        """Look often for a while."""
        self._idle_looks = 0
        self.watchdog.wake()

    def look(self) -> float | None:
        """Do what is due; return in how many seconds to look again, None if nothing will be."""
        now = time.monotonic()
        self._in_flight.expire(now)
        self._executor.look(now)
        self.also(now)
        busy = self._executor.busy
        if self.switch_interval is not None:
            self.switch_interval.adapt(busy=busy)
        self._look_at_leader(now)
        if self._idle_looks < _IDLE_LOOKS and self._leader_followers.started:
            return _LOOK_EVERY_S
        return self._next_look(now, busy=busy)

    def _look_at_leader(self, now: float) -> None:
        current = self._leader_followers.leadership.current if self._leader_followers.started else None
        self._idle_looks = 0 if current is not None else self._idle_looks + 1
        if current is not self._seen:
            self._seen, self._seen_at = current, now
        elif current is not None and now - self._seen_at >= _RELIEVE_AFTER_S:
            self._leader_followers.relieve(current, self._detach)

    def _next_look(self, now: float, *, busy: bool) -> float | None:
        deadline = self._in_flight.next_deadline
        due = inf if deadline is None else max(0.0, deadline - now)
        if busy:  # authors' code may block an event loop, or come to hold Python's lock, at any time
            timer = self.watchdog.kernel_timer
            due = min(due, _LOOK_AT_WORKERS_EVERY_S if timer is None else timer.put_back_every)
        return None if due == inf else due
