"""A server over HTTP whose processor time and memory can be measured."""

import http.client
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import attrs
import msgspec

from benchmarks.cases import Case
from benchmarks.session import ServerFailedError
from benchmarks.wire import MODERN, PREFIX, read_reply

TIMEOUT_S = 60.0
POLL_S = 0.001


@attrs.frozen
class Post:
    """
    The HTTP request for a case, in the modern era.

    Args:
        case:
            The case.
    """

    case: Case

    @property
    def body(self) -> bytes:
        """
        The body of the request.
        """
        return MODERN.request(1, self.case.method, self.case.params).rstrip(b"\n")

    @property
    def fields(self) -> dict[str, str]:
        """
        The header fields of the request.
        """
        return {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN.meta["_meta"][f"{PREFIX}protocolVersion"],
            "Mcp-Method": self.case.method,
            "Mcp-Name": self.case.params["name"],
        }


def free_port() -> int:
    """
    Return an unused port.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def confine_to(processors: set[int] | None) -> Iterator[None]:
    """
    Run processes that are started in the block only on *processors*; None means any processor.
    """
    if processors is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class HttpServer:
    """
    A running server that has answered a first request.

    Args:
        command:
            The command that starts the server.

        environment:
            The environment of the process.

        port:
            The port that the command names.

        first:
            The first request.

        processors:
            The processors on which the server can run; None for all.

    Attributes:
        port:
            The port of the server.

        reply:
            The body of the first reply.

        opened:
            The time from the start to the first reply, in seconds.

    Raises:
        ServerFailedError: If the status is not 200, or there is no reply.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        port: int,
        first: Post,
        processors: set[int] | None = None,
    ) -> None:
        self.port = port
        started = time.perf_counter()
        with confine_to(processors):
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        try:
            self._await(started + TIMEOUT_S)
            self.reply = self.ask(first)
        except BaseException:
            self.close()
            raise
        self.opened = time.perf_counter() - started

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await(self, until: float) -> None:
        """Wait until the server accepts connections. Raises ServerFailedError if this takes too long."""
        while time.perf_counter() < until and self._process.poll() is None:
            with suppress(ConnectionError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(POLL_S)
        reason = f"it exited with code {self._process.poll()}, or it does not accept connections"
        raise ServerFailedError(reason)

    def ask(self, post: Post) -> bytes:
        """
        Send one request on a new connection, and return the body of the reply.

        Raises:
            ServerFailedError: If the status is not 200, or there is no reply.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", "/mcp", post.body, post.fields)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            reason = f"it did not reply: {error!r}"
            raise ServerFailedError(reason) from None
        finally:
            connection.close()
        if response.status != http.client.OK:
            reason = f"it answered with {response.status}: {body[:200].decode(errors='replace')}"
            raise ServerFailedError(reason)
        return body

    def check(self, post: Post) -> None:
        """
        Send one request, and check the content of the reply.

        Raises:
            ServerFailedError: If there is no reply, or its status or content is not as expected.
        """
        body = self.ask(post)
        try:
            is_correct = post.case.has_expected_content(read_reply(body).result)
        except msgspec.MsgspecError:
            is_correct = False
        if not is_correct:
            reason = "its reply has unexpected content"
            raise ServerFailedError(reason)

    def processor_time(self) -> float:
        """
        Return the processor time of all processes of the server, in seconds.
        """
        return sum(map(_processor_time, self._pids()))

    def memory(self) -> float:
        """
        Return the sum of the proportional set sizes of all processes of the server, in MiB.
        """
        return sum(map(_proportional_set, self._pids())) / 1024

    def _pids(self) -> list[int]:
        """Return the process ids of the server and its descendants."""
        pids = [self._process.pid]
        for pid in pids:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                pids += map(int, children.read_text().split())
        return pids

    def close(self) -> None:
        """
        Stop the server.
        """
        pids = self._pids() if self._process.poll() is None else []
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
            self._process.wait()


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _proportional_set(pid: int) -> int:
    """Return the proportional set size of a process, in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
