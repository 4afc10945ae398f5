"""A server process, and a client that measures its replies."""

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

TIMEOUT_S = 300  # seconds until an operation times out
SETTLE_S = 0.5  # seconds after which a server that uses no processor time counts as idle
UNREAD = 1_000_000  # the first id of requests whose replies are not read
SHORT = 1 << 16  # bytes; longer replies cannot be errors


class ServerFailedError(Exception):
    """
    A server failed a request, or returned an unexpected reply.
    """


class Session:
    """
    A running server that has answered the first request of an era.

    Args:
        command:
            The command that starts the server.

        environment:
            The environment of the process.

        era:
            The era of the protocol.

    Raises:
        ServerFailedError: If the reply is an error, or there is no reply.
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
            with self._time_limit():
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
    def _time_limit(self) -> Iterator[None]:
        """Kill the server if the block takes too long."""
        timer = Timer(TIMEOUT_S, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _open(self) -> None:
        """Send the first request and, in the handshake era, the notification that follows its reply."""
        self._write(self._era.request(0, self._era.opening, self._era.hello))
        self._check(self._stdout.readline())
        self.opened = time.perf_counter() - self.started
        if self._era.opening == "initialize":
            self._write(self._era.request(None, "notifications/initialized", {}))

    def _write(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # the next read reports the error
            self._stdin.write(data)
            self._stdin.flush()

    def _check(self, line: bytes) -> Reply:
        """Parse a reply. Raises ServerFailedError for an error, a notification or an empty line."""
        if not line:
            reason = f"it exited with code {self._process.wait()} instead of replying"
            raise ServerFailedError(reason)
        reply = read_reply(line)
        if reply.error:
            raise ServerFailedError(
                msgspec.json.decode(reply.error).get("message", "it replied with an error")
            )
        if reply.id is None:
            reason = "it sent a message that is not a reply"
            raise ServerFailedError(reason)
        return reply

    def ask(self, case: Case) -> msgspec.Raw:
        """
        Return the result of one request.

        Raises:
            ServerFailedError: If the reply is an error.
        """
        with self._time_limit():
            self._write(self._era.request(1, case.method, case.params))
            return self._check(self._stdout.readline()).result

    def send(self, case: Case, count: int) -> None:
        """
        Send *count* requests without reading their replies.
        """
        requests = (self._era.request(UNREAD + number, case.method, case.params) for number in range(count))
        self._write(b"".join(requests))

    def measure_one_at_a_time(
        self, case: Case, seconds: float, min_requests: int, max_requests: int
    ) -> list[float]:
        """
        Send requests one at a time, and return the time of each, in seconds.

        Args:
            case:
                The request.

            seconds:
                The duration of the measurement, in seconds.

            min_requests:
                The minimum number of requests.

            max_requests:
                The maximum number of requests.

        Raises:
            ServerFailedError: If a reply is an error.
        """
        times: list[float] = []
        with self._time_limit(), self._on_one_processor():
            deadline = time.perf_counter() + seconds
            while len(times) < max_requests and (len(times) < min_requests or time.perf_counter() < deadline):
                times.append(self._time(case, len(times)))
        return times

    def measure_with_pauses(self, case: Case, count: int, pause: float) -> list[float]:
        """
        Send *count* requests with a pause before each, and return the time of each, in seconds.

        Raises:
            ServerFailedError: If a reply is an error.
        """
        times: list[float] = []
        with self._time_limit():
            for number in range(count):
                time.sleep(pause)
                times.append(self._time(case, number))
        return times

    def _time(self, case: Case, number: int) -> float:
        """Send a request, and return its time in seconds. Raises ServerFailedError for an error."""
        request = self._era.request(number, case.method, case.params)
        started = time.perf_counter()
        self._write(request)
        line = self._stdout.readline()
        elapsed = time.perf_counter() - started
        self._check(line)
        return elapsed

    @contextmanager
    def _on_one_processor(self) -> Iterator[None]:
        """Run the client and the server on one processor in the block, if the system supports it."""
        # Only one of the two processes works at a time. On two processors, each request would wake a
        # processor twice, adding the same time for every server.
        tasks = Path(f"/proc/{self._process.pid}/task")
        if not hasattr(os, "sched_setaffinity") or not tasks.exists():
            yield
            return
        all_processors = os.sched_getaffinity(0)
        try:
            _confine(tasks, {min(all_processors)})
            yield
        finally:
            _confine(tasks, all_processors)

    def measure_pipelined(self, case: Case, count: int) -> float:
        """
        Send *count* requests without waiting for replies, and return the time per request, in seconds.

        Only short replies are checked for errors, because errors are never long. Long replies are counted but
        not stored, because storing them takes longer than reading them.

        Raises:
            ServerFailedError: If a reply is an error, or is missing.
        """
        requests = b"".join(self._era.request(number, case.method, case.params) for number in range(count))
        writer = Thread(target=self._write, args=(requests,))
        with self._time_limit():
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
        Return the resident memory of the process in MiB; None if the system does not report it.
        """
        status = Path(f"/proc/{self._process.pid}/status")
        if not status.exists():
            return None
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def wait_until_idle(self) -> None:
        """
        Wait until the process no longer uses processor time.
        """
        used = None
        while used != (now := self._processor_time()):
            used = now
            time.sleep(SETTLE_S)

    def _processor_time(self) -> str:
        """Return the processor time of the process; ``""`` if the system does not provide it."""
        status = Path(f"/proc/{self._process.pid}/stat")
        return " ".join(status.read_text().rpartition(")")[2].split()[11:13]) if status.exists() else ""

    def close(self) -> float:
        """
        Close the input, and return the time until the process exits, in seconds.
        """
        with self._time_limit():
            started = time.perf_counter()
            with suppress(BrokenPipeError):
                self._stdin.close()
            self._process.wait()  # without a timeout, which would poll; the timer limits the wait
            elapsed = time.perf_counter() - started
        self._stdout.close()
        return elapsed


def _confine(tasks: Path, processors: set[int]) -> None:
    """Restrict this thread, and all threads of a process, to some processors."""
    os.sched_setaffinity(0, processors)
    for task in tasks.glob("*"):  # empty once the process has exited
        with suppress(OSError):  # the thread may have exited
            os.sched_setaffinity(int(task.name), processors)
