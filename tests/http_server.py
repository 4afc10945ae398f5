"""A separate process that serves recipes over HTTP."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from promptkit.protocol.pagination import PAGE_SIZE

#: Timeout for stopping the process, in seconds.
ENDING = 10


@contextmanager
def http_server(folder: Path, *options: str, page_size: int = PAGE_SIZE, **environment: str) -> Iterator[str]:
    """
    Serve a folder of recipes, and yield the URL.

    Args:
        folder:
            The recipes.

        options:
            Additional command-line options.

        page_size:
            The page size of lists.

        environment:
            Additional environment variables for the process.
    """
    if sys.platform == "win32":
        pytest.skip("a process is given its socket, which Windows cannot do")
    with socket.create_server(("127.0.0.1", 0)) as listening:  # early connections wait in the backlog
        descriptor = listening.fileno()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "promptkit", "serve", str(folder)),
                *("--fd", str(descriptor), "--page-size", str(page_size), "--grace", "1", *options),
            ],
            env={**os.environ, **environment},
            pass_fds=[descriptor],
        )
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            process.terminate()
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
