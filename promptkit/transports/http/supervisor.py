"""The supervisor: forks the workers, replaces workers that die, and ends all of them at shutdown."""

import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

from msgspec import Struct

from promptkit.standard_error import finish, say
from promptkit.transports.http.worker import die_of

#: A worker that exits within this many seconds counts as a failed start.
_SHORT_LIFE_S: Final = 1.0

#: Delays before such a worker is replaced, in seconds: the first delay, which doubles each time, and the
#: maximum.
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 10.0

#: Time after the grace period before workers are killed, in seconds.
_KILL_AFTER_S: Final = 3.0

#: Interval of checks that killed workers have ended, in seconds.
_REAP_EVERY_S: Final = 0.01


class _Slot(Struct):
    """The slot of a worker: its process, its start, its failed starts in a row, and the next start."""

    pid: int = 0
    since: float = 0.0
    failures: int = 0
    due: float = 0.0


class Supervisor:
    """
    Runs workers until a signal asks the process to end.

    Args:
        count:
            The number of workers.

        work:
            Called in each new process with the number of the worker, from 0, and with a descriptor that
            becomes readable when the parent process has ended. It must not return before its work is done.

        stop_connecting:
            Called at shutdown before the workers are ended.

        grace:
            Time for a worker to end, in seconds.
    """

    def __init__(
        self,
        count: int,
        work: Callable[[int, int], object],
        *,
        stop_connecting: Callable[[], object],
        grace: float,
    ) -> None:
        self._slots = [_Slot() for _ in range(count)]
        self._work = work
        self._stop_connecting = stop_connecting
        self._grace = grace
        self._signals: list[int] = []

    if sys.platform != "win32":  # no fork on Windows

        def run(self, ready: Callable[[], object] = bool) -> None:
            """
            Fork the workers, and return once they have ended after a signal.

            Args:
                ready:
                    Called when signals are handled, before the first worker is forked.
            """
            if threading.active_count() > 1:
                say("recipes have started threads at import: these do not run in the workers")
            self._lifeline = os.pipe()
            # A signal wakes `select` through this socket; its handler alone would not.
            self._waking, wake = socket.socketpair()
            for end in (self._waking, wake):
                end.settimeout(0)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._on_signal)
            signal.signal(signal.SIGCHLD, lambda *_: None)
            signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
            ready()
            while not self._signals:
                self._replace()
                self._wait_until(min((slot.due for slot in self._slots if not slot.pid), default=None))
                self._reap()
            self._end()

        def _on_signal(self, number: int, _frame: FrameType | None) -> None:
            self._signals.append(number)

        def _replace(self) -> None:
            """Fork a worker for each free slot that is due."""
            now = time.monotonic()
            for number, slot in enumerate(self._slots):
                if slot.pid or slot.due > now:
                    continue
                try:
                    slot.pid, slot.since = self._fork(number), now
                except OSError as error:  # too many processes, or too little memory
                    slot.due = now + _LONGEST_PAUSE_S
                    again = f"is tried again in {_LONGEST_PAUSE_S:g} s"
                    say(f"worker {number + 1} cannot be started, and {again}: {error.strerror}")

        def _fork(self, number: int) -> int:
            # A signal before the worker has installed its handlers would be lost. The worker unblocks them.
            blocked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
            try:
                pid = os.fork()
                if pid == 0:
                    self._begin_work(number)
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            return pid

        def _begin_work(self, number: int) -> NoReturn:
            code = 1
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(self._lifeline[1])
                self._work(number, self._lifeline[0])
                code = 0
            except BaseException:  # noqa: BLE001 (this copy of the parent process must not continue)
                say(f"worker {number + 1} has failed:\n{traceback.format_exc().rstrip()}")
            finally:
                finish()
                os._exit(code)

        def _wait_until(self, due: float | None) -> None:
            """Wait for a signal, at most until *due*."""
            seconds = None if due is None else max(0.0, due - time.monotonic())
            if select.select([self._waking], [], [], seconds)[0]:
                self._waking.recv(4096)

        def _reap(self) -> None:
            """Free the slots of workers that have ended."""
            for number, slot in enumerate(self._slots):
                if slot.pid and (code := self._exit_code(slot.pid)) is not None:
                    if not self._signals:
                        self._plan(number, slot, code)
                    slot.pid = 0

        def _exit_code(self, pid: int) -> int | None:
            """Return the exit code of a process that has ended; None if it is running."""
            ended, status = os.waitpid(pid, os.WNOHANG)
            return os.waitstatus_to_exitcode(status) if ended else None

        def _plan(self, number: int, slot: _Slot, code: int) -> None:
            """Report how a worker ended, and schedule its replacement."""
            now = time.monotonic()
            slot.failures = slot.failures + 1 if now - slot.since < _SHORT_LIFE_S else 0
            pause, next_step = 0.0, ": another takes its place"
            if slot.failures > 1:
                doublings = min(slot.failures - 2, 16)  # larger powers overflow a float
                pause = min(_FIRST_PAUSE_S * 2**doublings, _LONGEST_PAUSE_S)
                next_step = f" at once, {slot.failures} times in a row: the next one starts in {pause:g} s"
            slot.due = now + pause
            say(f"worker {number + 1} (process {slot.pid}) {_describe_exit(code)}{next_step}")

        def _end(self) -> None:
            """End all workers with SIGTERM, and kill them after a timeout or a second signal."""
            self._stop_connecting()
            self._kill(signal.SIGTERM)
            until = time.monotonic() + self._grace + _KILL_AFTER_S
            while self._are_running() and len(self._signals) == 1 and time.monotonic() < until:
                self._wait_until(until)
                self._reap()
            self._kill(signal.SIGKILL)
            while self._are_running():
                time.sleep(_REAP_EVERY_S)
                self._reap()
            if len(self._signals) > 1:
                die_of(self._signals[-1])

        def _are_running(self) -> bool:
            return any(slot.pid for slot in self._slots)

        def _kill(self, number: int) -> None:
            for slot in self._slots:
                if slot.pid:
                    os.kill(slot.pid, number)


def _describe_exit(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}" if code else "ended"
