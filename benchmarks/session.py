"""One server process, spoken to as a client would, and timed."""

import json
import subprocess
import time
from collections.abc import Sequence
from threading import Thread
from typing import IO, Any, Self


def line(number: int | None, method: str, **params: Any) -> bytes:
    """Return one message as a line; without a number it is a notification."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else {**message, "id": number}).encode() + b"\n"


CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
OPENING = line(0, "initialize", **CLIENT) + line(None, "notifications/initialized")
GET = {"name": "review", "arguments": {"code": "fn main() {}", "language": "rust", "depth": "3"}}


class Session:
    """
    A server that has answered ``initialize``.

    Args:
        command:
            What starts it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._write(OPENING)
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stdin.close()
        self._process.wait(timeout=30)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _write(self, data: bytes) -> None:
        self._stdin.write(data)
        self._stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        reply = json.loads(self._process.stdout.readline())
        if "error" in reply:
            raise RuntimeError(reply)
        return reply

    def listing(self) -> Any:
        """Return the reply to ``prompts/list``."""
        self._write(line(1, "prompts/list"))
        return self._read()

    def one_at_a_time(self, count: int) -> list[float]:
        """Return how long each of *count* ``prompts/get`` took, in seconds."""
        times = []
        for number in range(count):
            request = line(number + 1, "prompts/get", **GET)
            started = time.perf_counter()
            self._write(request)
            self._read()
            times.append(time.perf_counter() - started)
        return times

    def pipelined(self, count: int) -> float:
        """Return how long *count* ``prompts/get`` took, sent without waiting, in seconds each."""
        requests = b"".join(line(number + 1, "prompts/get", **GET) for number in range(count))
        assert self._process.stdout is not None
        writer = Thread(target=self._write, args=(requests,))
        started = time.perf_counter()
        writer.start()
        for _ in range(count):
            self._process.stdout.readline()
        elapsed = time.perf_counter() - started
        writer.join()
        return elapsed / count


def start_to_listing(command: Sequence[str]) -> float:
    """Return the time from the start of the process to the reply to ``prompts/list``, in seconds."""
    started = time.perf_counter()
    with Session(command) as session:
        session.listing()
        return time.perf_counter() - started
