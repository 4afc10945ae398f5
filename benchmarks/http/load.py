"""Load from wrk, which posts one request repeatedly on several connections."""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec

from benchmarks.http.server import Post, confined
from benchmarks.peers import AbsentError
from benchmarks.session import RefusedError

_SCRIPT = Path(__file__).with_name("load.lua")


class Load(msgspec.Struct, frozen=True):
    """
    The results of a load.

    Args:
        requests:
            Number of requests that were answered.

        seconds:
            Duration of the load.

        median:
            Median time of a request, in seconds.

        slowest:
            99th percentile of the time of a request, in seconds.

        failed:
            Number of requests that failed.
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
        AbsentError: If wrk is not installed.
    """
    if program := shutil.which("wrk"):
        return program
    reason = "it is not installed; Debian's package wrk has it"
    raise AbsentError(reason)


def load(
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
            Duration of the load.

        connections:
            Number of concurrent connections.

        processors:
            The processors for wrk, or None for all.

    Raises:
        AbsentError: If wrk is not installed.
        RefusedError: If a request fails.
    """
    size = ("-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s")
    fields = "\n".join(f"{name}: {value}" for name, value in post.fields.items())
    settings = {"BENCHMARK_BODY": post.body.decode(), "BENCHMARK_FIELDS": fields}
    command = (find_wrk(), *size, "-s", str(_SCRIPT), f"http://127.0.0.1:{port}/mcp")
    with confined(processors):
        printed = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, check=True)
    results = msgspec.json.decode(printed.stdout.splitlines()[-1], type=Load)
    if results.failed or not results.requests:
        reason = f"{results.failed:,} requests failed, {results.requests:,} were answered"
        raise RefusedError(reason)
    return results
