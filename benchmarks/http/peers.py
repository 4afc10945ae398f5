"""The servers over HTTP by name, and which of them can be started here."""

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import attrs

from benchmarks import peers
from benchmarks.peers import OURS, RECIPES, SERVERS, AbsentError, Peer

#: In a command: where the port, and the number of workers, are put.
PORT, WORKERS = "PORT", "WORKERS"

#: How uvicorn is told to do as little as it can. Frameworks need its lifespan.
_UVICORN = (
    *("--http", "httptools", "--loop", "uvloop", "--interface", "asgi3", "--ws", "none"),
    *("--no-access-log", "--log-level", "error", "--no-proxy-headers", "--no-server-header"),
)


@attrs.frozen
class HttpPeer:
    """
    A server to measure over HTTP.

    Args:
        name:
            What it is called on the command line.

        label:
            What tables call it.

        command:
            What starts it. `RECIPES`, `PORT` and `WORKERS` stand for what they are in a run.

        workers:
            How many workers it can have.

        content:
            Whether it answers with content, and not with constant bytes.
    """

    name: str
    label: str
    command: tuple[str, ...]
    workers: int = 1
    content: bool = True

    def command_for(self, recipes: Path, port: int, workers: int) -> tuple[str, ...]:
        """
        Return what starts it.
        """
        put = {RECIPES: str(recipes), PORT: str(port), WORKERS: str(workers)}
        return tuple(put.get(part, part) for part in self.command)


def _promptkit() -> HttpPeer:
    served = peers.PEERS[OURS]().command
    return HttpPeer(OURS, OURS, (*served, "--http", PORT, "--workers", WORKERS), workers=2)


def under_uvicorn(server: str, *options: str) -> tuple[str, ...]:
    """
    Return the command that serves an ASGI application, of a program in `SERVERS`.
    """
    where = ("--host", "127.0.0.1", "--port", PORT, "--workers", WORKERS)
    return (sys.executable, "-m", "uvicorn", "--app-dir", str(SERVERS), server, *where, *_UVICORN, *options)


def _application(name: str, server: str) -> Callable[[], HttpPeer]:
    """Makes a server that is an ASGI application of a Python framework."""

    def make() -> HttpPeer:
        peer: Peer = peers.PEERS[name]()  # which says if it is not installed
        return HttpPeer(name, peer.label, under_uvicorn(server, "--factory"), workers=2)

    return make


def _constant() -> HttpPeer:
    if find_spec("uvicorn") is None:
        reason = "uvicorn is not installed; pip install -e '.[bench]' does it"
        raise AbsentError(reason)
    command = under_uvicorn("constant:application", "--lifespan", "off")
    return HttpPeer("asgi", "raw ASGI", command, workers=2, content=False)


def _typescript() -> HttpPeer:
    peer = peers.PEERS["typescript"]()
    return HttpPeer("typescript", peer.label, (*peer.command, PORT))


#: By name, in the order of the tables: what makes each server.
HTTP_PEERS: Mapping[str, Callable[[], HttpPeer]] = MappingProxyType(
    {
        OURS: _promptkit,
        "mcp": _application("mcp", "official:over_http"),
        "fastmcp": _application("fastmcp", "fast:over_http"),
        "typescript": _typescript,
        "asgi": _constant,
    }
)
