"""Recipes that are served over HTTP, by a process of their own."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from promptkit.protocol.limits import PAGE_SIZE

#: How long the process may take to end, in seconds.
ENDING = 10


@contextmanager
def http_server(folder: Path, *options: str, page_size: int = PAGE_SIZE, **environment: str) -> Iterator[str]:
    """
    Serve a folder of recipes, and give the URL at which clients reach it.

    Args:
        folder:
            The recipes.

        options:
            More options of the command line.

        page_size:
            How many items a page of a list holds.

        environment:
            Variables for the process, beside those of this one.
    """
    if sys.platform == "win32":
        pytest.skip("a process is given its socket, which Windows cannot do")
    with socket.create_server(("127.0.0.1", 0)) as listening:  # who connects too early waits there
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
