"""One server over HTTP: started, asked, and its processes looked at."""

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
from benchmarks.session import RefusedError
from benchmarks.wire import MODERN, PREFIX, read_reply

PATIENCE_S = 60.0
POLL_S = 0.001


@attrs.frozen
class Post:
    """
    A request of the modern era, as it is posted.

    Args:
        case:
            What it asks for.
    """

    case: Case

    @property
    def body(self) -> bytes:
        """
        Its body.
        """
        return MODERN.request(1, self.case.method, self.case.params).rstrip(b"\n")

    @property
    def fields(self) -> dict[str, str]:
        """
        The fields of its head.
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
    Return a port at which nobody listens.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def confined(processors: set[int] | None) -> Iterator[None]:
    """
    Have what is started meanwhile run on some processors only; on any if there are None.
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
    A server that has been started, and has answered a first request.

    Args:
        command:
            What starts it.

        environment:
            The environment of the process.

        port:
            Where it listens.

        first:
            What it is asked first.

        processors:
            Those on which it runs; None for all.

    Attributes:
        port:
            Where it listens.

        reply:
            The first reply.

        port:
            Where it listens.

        opened:
            How long it took from the start to that, in seconds.

    Raises:
        RefusedError: If it answers with something else than 200, or not at all.
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
        with confined(processors):
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        try:
            self._await(started + PATIENCE_S)
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
        """Wait until it listens. Raises RefusedError if it never does."""
        while time.perf_counter() < until and self._process.poll() is None:
            with suppress(ConnectionError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(POLL_S)
        reason = f"it ended with {self._process.poll()}, or does not listen"
        raise RefusedError(reason)

    def ask(self, post: Post) -> bytes:
        """
        Return the body of the reply to one request, on a connection of its own.

        Raises:
            RefusedError: If its status is not 200, or there is none.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/mcp", post.body, post.fields)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            reason = f"no reply came: {error!r}"
            raise RefusedError(reason) from None
        finally:
            connection.close()
        if response.status != http.client.OK:
            reason = f"it answered with {response.status}: {body[:200].decode(errors='replace')}"
            raise RefusedError(reason)
        return body

    def check(self, post: Post) -> None:
        """
        Ask, and compare what is said.

        Raises:
            RefusedError: If the reply says something else than it has to.
        """
        body = self.ask(post)
        try:
            says_all = post.case.says_all(read_reply(body).result)
        except msgspec.MsgspecError:
            says_all = False
        if not says_all:
            reason = "its answer says something else"
            raise RefusedError(reason)

    def processor_time(self) -> float:
        """
        Return the processor time that its processes have used, in seconds.
        """
        return sum(map(_processor_time, self._pids()))

    def memory(self) -> float:
        """
        Return the proportional set size of its processes together, in MiB.
        """
        return sum(map(_proportional_set, self._pids())) / 1024

    def _pids(self) -> list[int]:
        """The process and its descendants."""
        found = [self._process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        return found

    def close(self) -> None:
        """
        End it.
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
    """In KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
