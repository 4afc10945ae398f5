"""The load: wrk, which posts one request again and again on several connections."""

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
    What became of a load.

    Args:
        requests:
            How many requests were answered.

        seconds:
            How long that took.

        median:
            How long a request took, in seconds.

        slowest:
            How long 99 of 100 requests took at most, in seconds.

        failed:
            How many requests failed.
    """

    requests: int
    seconds: float
    median: float
    slowest: float
    failed: int


def find_wrk() -> str:
    """
    Return the program.

    Raises:
        AbsentError: If it is not installed.
    """
    if found := shutil.which("wrk"):
        return found
    reason = "it is not installed; Debian's package wrk has it"
    raise AbsentError(reason)


def load(
    port: int, post: Post, *, seconds: int, connections: int = 32, processors: set[int] | None = None
) -> Load:
    """
    Return what became of *post*, sent for some seconds.

    Args:
        port:
            Where the server listens.

        post:
            The request.

        seconds:
            For how long.

        connections:
            On how many connections at the same time.

        processors:
            Those on which wrk runs; None for all.

    Raises:
        AbsentError: If wrk is not installed.
        RefusedError: If a request fails.
    """
    size = ("-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s")
    fields = "\n".join(f"{name}: {value}" for name, value in post.fields.items())
    own = {"BENCHMARK_BODY": post.body.decode(), "BENCHMARK_FIELDS": fields}
    command = (find_wrk(), *size, "-s", str(_SCRIPT), f"http://127.0.0.1:{port}/mcp")
    with confined(processors):
        printed = subprocess.run(command, env={**os.environ, **own}, capture_output=True, check=True)
    found = msgspec.json.decode(printed.stdout.splitlines()[-1], type=Load)
    if found.failed or not found.requests:
        reason = f"{found.failed:,} requests failed beside {found.requests:,}"
        raise RefusedError(reason)
    return found
