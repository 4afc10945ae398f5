"""The supervisor: forks the workers, replaces those that die, and ends them all."""

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

#: A worker that lived for less than so long, in seconds, did not come to serve.
_SHORT_LIFE_S: Final = 1.0

#: How long to wait before such a worker is replaced, in seconds: twice as long each time, up to a bound.
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 10.0

#: How much longer than their grace workers have to end, in seconds, before they are killed.
_KILL_AFTER_S: Final = 3.0

#: How often it is looked whether what was killed has ended, in seconds.
_REAP_EVERY_S: Final = 0.01


class _Slot(Struct):
    """The place of one worker: its process, since when; how often it died at once; when the next is due."""

    pid: int = 0
    since: float = 0.0
    failures: int = 0
    due: float = 0.0


class Supervisor:
    """
    Runs workers until the process is told to end.

    Args:
        count:
            How many workers there are.

        work:
            Called in each new process with the number of the worker, from 0 on, and with a descriptor
            that can be read as soon as the parent has ended. It must not return before its work is done.

        stop_connecting:
            Called when the end begins, before the workers are told.

        grace:
            How long a worker may take to end, in seconds.
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

    if sys.platform != "win32":  # it cannot fork

        def run(self, ready: Callable[[], object] = bool) -> None:
            """
            Fork the workers, and wait until they have ended after this process was told to end.

            Args:
                ready:
                    Called once a signal ends this, before the first worker is forked.
            """
            if threading.active_count() > 1:
                say("recipes have started threads at import: these do not run in the workers")
            self._lifeline = os.pipe()
            # A signal wakes `select` in this way; its handler alone would not.
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
            """Fork a worker into each free place whose pause is over."""
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
            # A signal that came before the worker has its own handlers would be lost. It unblocks them.
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
            except BaseException:  # noqa: BLE001 (this process is a copy of the parent, and must not go on)
                say(f"worker {number + 1} has failed:\n{traceback.format_exc().rstrip()}")
            finally:
                finish()
                os._exit(code)

        def _wait_until(self, due: float | None) -> None:
            """Wait for a signal, and until then at most."""
            seconds = None if due is None else max(0.0, due - time.monotonic())
            if select.select([self._waking], [], [], seconds)[0]:
                self._waking.recv(4096)

        def _reap(self) -> None:
            """Take note of the workers that have ended."""
            for number, slot in enumerate(self._slots):
                if slot.pid and (code := self._code_of(slot.pid)) is not None:
                    if not self._signals:
                        self._plan(number, slot, code)
                    slot.pid = 0

        def _code_of(self, pid: int) -> int | None:
            """The exit code of a process that has ended; None if it runs."""
            ended, status = os.waitpid(pid, os.WNOHANG)
            return os.waitstatus_to_exitcode(status) if ended else None

        def _plan(self, number: int, slot: _Slot, code: int) -> None:
            """Say what happened to a worker, and when another takes its place."""
            now = time.monotonic()
            slot.failures = slot.failures + 1 if now - slot.since < _SHORT_LIFE_S else 0
            pause, then = 0.0, ": another takes its place"
            if slot.failures > 1:
                doublings = min(slot.failures - 2, 16)  # no float holds the thousandth
                pause = min(_FIRST_PAUSE_S * 2**doublings, _LONGEST_PAUSE_S)
                then = f" at once, {slot.failures} times in a row: the next one starts in {pause:g} s"
            slot.due = now + pause
            say(f"worker {number + 1} (process {slot.pid}) {_how(code)}{then}")

        def _end(self) -> None:
            """End all workers: kindly first, and by force if that takes too long or another signal comes."""
            self._stop_connecting()
            self._kill(signal.SIGTERM)
            until = time.monotonic() + self._grace + _KILL_AFTER_S
            while self._are_left() and len(self._signals) == 1 and time.monotonic() < until:
                self._wait_until(until)
                self._reap()
            self._kill(signal.SIGKILL)
            while self._are_left():
                time.sleep(_REAP_EVERY_S)
                self._reap()
            if len(self._signals) > 1:
                die_of(self._signals[-1])

        def _are_left(self) -> bool:
            return any(slot.pid for slot in self._slots)

        def _kill(self, number: int) -> None:
            for slot in self._slots:
                if slot.pid:
                    os.kill(slot.pid, number)


def _how(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}" if code else "ended"
