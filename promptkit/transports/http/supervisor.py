"""
The supervisor: forks the workers, replaces workers that die, and stops all of them at shutdown.

The workers forward messages to each other, because a client's next request can reach another worker.
"""

import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from msgspec import Struct

from promptkit.server.threads import DaemonThread
from promptkit.standard_error import finish, say
from promptkit.transports.http.worker import die_by_signal

#: The requested size of a socket's buffer, which also limits the size of a message, in bytes.
_BUFFER_BYTES = 1 << 20


class Siblings:
    """
    The sockets through which workers send messages to each other.

    Create this object before forking the workers, which inherit the sockets.

    Args:
        count:
            The number of workers.
    """

    def __init__(self, count: int) -> None:
        self._pairs = [socket.socketpair(type=socket.SOCK_DGRAM) for _ in range(count)]
        for _, sending in self._pairs:
            sending.settimeout(0)  # a worker that is stuck must not block the others
            sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)

    def __len__(self) -> int:
        return len(self._pairs)

    def send(self, number: int, message: bytes) -> None:
        """Send a message to the worker *number*. If this fails, log it."""
        _, sending = self._pairs[number]
        try:
            sending.send(message)
        except OSError as error:
            size = f"{len(message):,} bytes"
            say(f"a message of {size} could not be sent to worker {number + 1}: {error.strerror}")

    def receive(self, own: int, handle: Callable[[bytes], object]) -> None:
        """
        Start a thread that calls *handle* with each message to the worker *own*.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        receiving, _ = self._pairs[own]

        def run() -> None:
            with suppress(OSError):  # the socket was closed while a message was handled
                while message := receiving.recv(_BUFFER_BYTES):
                    try:
                        handle(message)
                    except Exception as error:  # noqa: BLE001 (later messages must arrive)
                        say(f"a message of {len(message):,} bytes from another worker was dropped: {error!r}")

        DaemonThread(run, "siblings").start()

    def close(self) -> None:
        """Close the sockets, and stop the threads that `receive` has started in this process."""
        for receiving, sending in self._pairs:
            receiving.shutdown(socket.SHUT_RDWR)
            sending.close()
            receiving.close()


#: Minimum time between two starts of the same worker, in seconds.
_START_EVERY_S: Final = 1.0

#: Time after the grace period before workers are killed, in seconds.
_KILL_AFTER_S: Final = 3.0

#: Interval between checks for signals and exited workers, in seconds.
_POLL_EVERY_S: Final = 0.05


class _Slot(Struct):
    """A worker's slot: its process (0 if there is none), and the earliest time to start another one."""

    pid: int = 0
    due: float = 0.0


class Supervisor:
    """
    Runs workers until a signal asks the process to exit.

    Args:
        count:
            The number of workers.

        work:
            Called in each new process with the number of the worker, from 0, and with a descriptor that
            becomes readable when the parent process exits. It must not return before its work is done.

        stop_listening:
            Called at shutdown, before the workers are stopped.

        grace:
            Time for the workers to exit at shutdown, in seconds.
    """

    def __init__(
        self,
        count: int,
        work: Callable[[int, int], object],
        *,
        stop_listening: Callable[[], object],
        grace: float,
    ) -> None:
        self._slots = [_Slot() for _ in range(count)]
        self._work = work
        self._stop_listening = stop_listening
        self._grace = grace
        self._signals: list[int] = []

    if sys.platform != "win32":  # Windows has no fork

        def run(self, ready: Callable[[], object] = bool) -> None:
            """
            Fork the workers, and return once they have exited after a signal.

            Args:
                ready:
                    Called once signal handlers are installed, before the first worker is forked.
            """
            if threading.active_count() > 1:
                say("recipes started threads while they were imported: these do not run in the workers")
            self._lifeline = os.pipe()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._on_signal)
            ready()
            while not self._signals:
                self._replace()
                time.sleep(_POLL_EVERY_S)
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
                slot.due = now + _START_EVERY_S
                try:
                    slot.pid = self._fork(number)
                except OSError as error:  # too many processes, or too little memory
                    say(f"worker {number + 1} cannot be started (trying again soon): {error.strerror}")

        def _fork(self, number: int) -> int:
            # A signal that arrives before the worker has installed its handlers would be lost. The worker
            # unblocks these signals.
            blocked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
            try:
                pid = os.fork()
                if pid == 0:
                    self._run_worker(number)
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            return pid

        def _run_worker(self, number: int) -> NoReturn:
            code = 1
            try:
                os.close(self._lifeline[1])
                self._work(number, self._lifeline[0])
                code = 0
            except BaseException:  # noqa: BLE001 (this copy of the parent process must not continue)
                say(f"worker {number + 1} has failed:\n{traceback.format_exc().rstrip()}")
            finally:
                finish()
                os._exit(code)

        def _reap(self) -> None:
            """Report workers that have exited, and free their slots."""
            for number, slot in enumerate(self._slots):
                ended, status = os.waitpid(slot.pid, os.WNOHANG) if slot.pid else (0, 0)
                if ended:
                    slot.pid = 0
                    if not self._signals:
                        how = _describe_exit(os.waitstatus_to_exitcode(status))
                        say(f"worker {number + 1} (process {ended}) {how}; starting a new worker")

        def _end(self) -> None:
            """Stop all workers with SIGTERM, and kill them after a timeout or a second signal."""
            self._stop_listening()
            self._kill(signal.SIGTERM)
            until = time.monotonic() + self._grace + _KILL_AFTER_S
            while self._any_running() and len(self._signals) == 1 and time.monotonic() < until:
                time.sleep(_POLL_EVERY_S)
                self._reap()
            self._kill(signal.SIGKILL)
            while self._any_running():
                time.sleep(_POLL_EVERY_S)
                self._reap()
            if len(self._signals) > 1:
                die_by_signal(self._signals[-1])

        def _any_running(self) -> bool:
            return any(slot.pid for slot in self._slots)

        def _kill(self, number: int) -> None:
            for slot in self._slots:
                if slot.pid:
                    os.kill(slot.pid, number)


def _describe_exit(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}" if code else "exited"
