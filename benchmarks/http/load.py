"""Load from wrk, which sends the same POST request repeatedly on several connections."""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec

from benchmarks.http.server import Post, confine_to
from benchmarks.peers import UnavailableError
from benchmarks.session import ServerFailedError

_SCRIPT = Path(__file__).with_name("load.lua")


class Load(msgspec.Struct, frozen=True):
    """
    The results of sending load to a server.

    Args:
        requests:
            The number of requests that were answered.

        seconds:
            The duration of the load, in seconds.

        median:
            The median time of a request, in seconds.

        slowest:
            The 99th percentile of the time of a request, in seconds.

        failed:
            The number of requests that failed.
    """

    requests: int
    seconds: float
    median: float
    slowest: float
    failed: int


def find_wrk() -> str:
    """
    Return the path of wrk.

    Raises:
        UnavailableError: If wrk is not installed.
    """
    if program := shutil.which("wrk"):
        return program
    reason = "it is not installed; Debian's package wrk has it"
    raise UnavailableError(reason)


def send_load(
    port: int, post: Post, *, seconds: int, connections: int = 32, processors: set[int] | None = None
) -> Load:
    """
    Send *post* repeatedly, and return the results.

    Args:
        port:
            The port of the server.

        post:
            The request.

        seconds:
            The duration of the load, in seconds.

        connections:
            The number of concurrent connections.

        processors:
            The processors on which wrk can run; None for all.

    Raises:
        UnavailableError: If wrk is not installed.
        ServerFailedError: If a request fails.
    """
    size = ("-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s")
    fields = "\n".join(f"{name}: {value}" for name, value in post.fields.items())
    settings = {"BENCHMARK_BODY": post.body.decode(), "BENCHMARK_FIELDS": fields}
    command = (find_wrk(), *size, "-s", str(_SCRIPT), f"http://127.0.0.1:{port}/mcp")
    with confine_to(processors):
        printed = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, check=True)
    results = msgspec.json.decode(printed.stdout.splitlines()[-1], type=Load)
    if results.failed or not results.requests:
        reason = f"{results.failed:,} requests failed, and {results.requests:,} were answered"
        raise ServerFailedError(reason)
    return results
