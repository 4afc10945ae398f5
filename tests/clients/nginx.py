"""nginx as a reverse proxy in front of servers."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

CONFIGURATION = Path(__file__).with_name("nginx.conf")

#: Timeout for starting and stopping nginx, in seconds.
PATIENCE = 10


@contextmanager
def nginx(folder: Path, urls: list[str], *, affinity: bool = False) -> Iterator[str]:
    """
    Run nginx as a round-robin proxy in front of *urls*, and yield its URL.

    The test is skipped if nginx is not installed.

    Args:
        folder:
            An empty folder for nginx's files.

        urls:
            The URLs of the servers.

        affinity:
            Whether requests of one session go to the same server, instead of to each in turn.
    """
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    port = _free_port()
    servers = "".join(f"server {urlsplit(url).netloc};\n" for url in urls)
    balancing = "hash $affinity consistent;\n" if affinity else ""
    (folder / "servers.conf").write_text(balancing + servers, encoding="utf-8")
    (folder / "listen.conf").write_text(f"listen 127.0.0.1:{port};\n", encoding="utf-8")
    shutil.copy(CONFIGURATION, folder)
    process = subprocess.Popen([program, "-e", "error.log", "-p", str(folder), "-c", CONFIGURATION.name])
    try:
        _wait_for_port(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def list_servers(folder: Path) -> set[str]:
    """Return the servers that have answered requests, according to nginx's access log."""
    return set((folder / "access.log").read_text(encoding="utf-8").split())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def _wait_for_port(port: int) -> None:
    """Wait until the port accepts connections."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.01)
    pytest.fail(f"nginx did not listen within {PATIENCE} seconds")
