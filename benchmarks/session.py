"""One server process, spoken to as a client would, and timed."""

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread, Timer
from typing import IO, Self

import msgspec

from benchmarks.cases import Case
from benchmarks.wire import Era, Reply, read_reply

PATIENCE = 300  # seconds that a server may take for what is asked of it, until it is given up
SETTLE_S = 0.5  # how long a server that has settled uses no processor time
UNREAD = 1_000_000  # first id of the requests whose replies are not read
SHORT = 1 << 16  # bytes: what is longer is no error


class RefusedError(Exception):
    """
    A server does not do what it was asked for.
    """


class Session:
    """
    A server that has been started and has answered the first request of an era.

    Args:
        command:
            What starts it.

        environment:
            The process's environment.

        era:
            How it is spoken to.

    Raises:
        RefusedError: If it answers with an error, or not at all.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], era: Era) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            bufsize=1 << 20,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._era = era
        try:
            with self._patiently():
                self._open()
        except BaseException:
            self._process.kill()
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Give the server up if it takes too long: while others are measured, nothing is asked of it."""
        patience = Timer(PATIENCE, self._process.kill)
        patience.daemon = True
        patience.start()
        try:
            yield
        finally:
            patience.cancel()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _open(self) -> None:
        """Send the first request and, in the handshake era, that its reply has come."""
        self._write(self._era.request(0, self._era.opening, self._era.hello))
        self._check(self._stdout.readline())
        self.opened = time.perf_counter() - self.started
        if self._era.opening == "initialize":
            self._write(self._era.request(None, "notifications/initialized", {}))

    def _write(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # whoever reads the answer finds out
            self._stdin.write(data)
            self._stdin.flush()

    def _check(self, line: bytes) -> Reply:
        """The reply in *line*. Raises RefusedError if it is an error, no reply, or nothing."""
        if not line:
            reason = f"it ended with {self._process.wait()} instead of an answer"
            raise RefusedError(reason)
        reply = read_reply(line)
        if reply.error:
            raise RefusedError(msgspec.json.decode(reply.error).get("message", "it answered with an error"))
        if reply.id is None:
            reason = "it said something that it was not asked for"
            raise RefusedError(reason)
        return reply

    def ask(self, case: Case) -> msgspec.Raw:
        """
        Return the result of one request.

        Raises:
            RefusedError: If it is an error.
        """
        with self._patiently():
            self._write(self._era.request(1, case.method, case.params))
            return self._check(self._stdout.readline()).result

    def send(self, case: Case, count: int) -> None:
        """
        Send *count* requests whose replies are not read.
        """
        requests = (self._era.request(UNREAD + number, case.method, case.params) for number in range(count))
        self._write(b"".join(requests))

    def one_at_a_time(self, case: Case, seconds: float, least: int, most: int) -> list[float]:
        """
        Return how long each of several requests took, in seconds.

        Args:
            case:
                The request.

            seconds:
                How long to go on.

            least:
                How many requests to send at least.

            most:
                How many to send at most.

        Raises:
            RefusedError: If an answer is an error.
        """
        times: list[float] = []
        with self._patiently(), self._together():
            deadline = time.perf_counter() + seconds
            while len(times) < most and (len(times) < least or time.perf_counter() < deadline):
                times.append(self._time(case, len(times)))
        return times

    def with_pauses(self, case: Case, count: int, pause: float) -> list[float]:
        """
        Return how long each of *count* requests took, in seconds, with a pause before each.

        Raises:
            RefusedError: If an answer is an error.
        """
        times: list[float] = []
        with self._patiently():
            for number in range(count):
                time.sleep(pause)
                times.append(self._time(case, number))
        return times

    def _time(self, case: Case, number: int) -> float:
        """Return how long one request took. Raises RefusedError if the answer is an error."""
        request = self._era.request(number, case.method, case.params)
        started = time.perf_counter()
        self._write(request)
        line = self._stdout.readline()
        elapsed = time.perf_counter() - started
        self._check(line)
        return elapsed

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Keep client and server on one processor, on systems that allow it."""
        # One of them waits while the other works. On two processors, each request would take as
        # much longer as it takes to wake a processor, twice, whatever the server.
        tasks = Path(f"/proc/{self._process.pid}/task")
        if not hasattr(os, "sched_setaffinity") or not tasks.exists():
            yield
            return
        everywhere = os.sched_getaffinity(0)
        here = {min(everywhere)}
        try:
            _confine(tasks, here)
            yield
        finally:
            _confine(tasks, everywhere)

    def pipelined(self, case: Case, count: int) -> float:
        """
        Return how long *count* requests took, sent without waiting, in seconds each.

        Long answers are only counted: keeping them would take longer than reading them, and errors are short.

        Raises:
            RefusedError: If an answer is an error, or missing.
        """
        requests = b"".join(self._era.request(number, case.method, case.params) for number in range(count))
        writer = Thread(target=self._write, args=(requests,))
        with self._patiently():
            started = time.perf_counter()
            writer.start()
            lines = [line for _ in range(count) if len(line := self._stdout.readline()) < SHORT]
            elapsed = time.perf_counter() - started
            writer.join()
        for line in lines:
            self._check(line)
        return elapsed / count

    def memory(self) -> float | None:
        """
        Return the process's resident memory in MiB, or nothing where the system does not tell.
        """
        status = Path(f"/proc/{self._process.pid}/status")
        if not status.exists():
            return None
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def settle(self) -> None:
        """
        Wait until the process uses no more processor time.
        """
        used = None
        while used != (now := self._processor_time()):
            used = now
            time.sleep(SETTLE_S)

    def _processor_time(self) -> str:
        """How long the process has run, on systems that tell."""
        status = Path(f"/proc/{self._process.pid}/stat")
        return " ".join(status.read_text().rpartition(")")[2].split()[11:13]) if status.exists() else ""

    def close(self) -> float:
        """
        End the input, and return how long the process took to end, in seconds.
        """
        with self._patiently():
            started = time.perf_counter()
            with suppress(BrokenPipeError):
                self._stdin.close()
            self._process.wait()  # without a time limit, which would poll; the timer sets one
            elapsed = time.perf_counter() - started
        self._stdout.close()
        return elapsed


def _confine(tasks: Path, processors: set[int]) -> None:
    """Let this thread, and all threads of a process, run on some processors only."""
    os.sched_setaffinity(0, processors)
    for task in tasks.glob("*"):  # of which there are none once it has ended
        with suppress(OSError):  # a thread may have ended
            os.sched_setaffinity(int(task.name), processors)
