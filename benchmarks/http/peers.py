"""The servers to measure over HTTP, by name."""

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import attrs

from benchmarks import peers
from benchmarks.peers import OURS, RECIPES, SERVERS, Peer, UnavailableError

#: Placeholders in a command for the port and the number of workers.
PORT, WORKERS = "PORT", "WORKERS"

#: Options that minimize the work of uvicorn. The lifespan protocol stays on, because frameworks need it.
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
            The name of the server on the command line.

        label:
            The name of the server in tables.

        command:
            The command that starts the server, with the placeholders `RECIPES`, `PORT` and `WORKERS`.

        workers:
            The maximum number of workers.

        has_prompts:
            Whether the server returns prompts; False if it returns constant bytes.
    """

    name: str
    label: str
    command: tuple[str, ...]
    workers: int = 1
    has_prompts: bool = True

    def command_for(self, recipes: Path, port: int, workers: int) -> tuple[str, ...]:
        """
        Return the command, in which values replace the placeholders.
        """
        values = {RECIPES: str(recipes), PORT: str(port), WORKERS: str(workers)}
        return tuple(values.get(part, part) for part in self.command)


def _promptkit() -> HttpPeer:
    served = peers.PEERS[OURS]().command
    return HttpPeer(OURS, OURS, (*served, "--http", PORT, "--workers", WORKERS), workers=2)


def uvicorn_command(server: str, *options: str) -> tuple[str, ...]:
    """
    Return the command that runs an ASGI application from a module in `SERVERS`.
    """
    address = ("--host", "127.0.0.1", "--port", PORT, "--workers", WORKERS)
    return (sys.executable, "-m", "uvicorn", "--app-dir", str(SERVERS), server, *address, *_UVICORN, *options)


def _application(name: str, server: str) -> Callable[[], HttpPeer]:
    """Return a function that creates the peer for an ASGI application of a Python framework."""

    def create_peer() -> HttpPeer:
        peer: Peer = peers.PEERS[name]()  # raises UnavailableError if the package is not installed
        return HttpPeer(name, peer.label, uvicorn_command(server, "--factory"), workers=2)

    return create_peer


def _constant() -> HttpPeer:
    if find_spec("uvicorn") is None:
        reason = "uvicorn is not installed: run pip install -e '.[bench]'"
        raise UnavailableError(reason)
    command = uvicorn_command("constant:application", "--lifespan", "off")
    return HttpPeer("asgi", "raw ASGI", command, workers=2, has_prompts=False)


def _typescript() -> HttpPeer:
    peer = peers.PEERS["typescript"]()
    return HttpPeer("typescript", peer.label, (*peer.command, PORT))


#: The functions that create the peers, keyed by name, in the order of the tables.
HTTP_PEERS: Mapping[str, Callable[[], HttpPeer]] = MappingProxyType(
    {
        OURS: _promptkit,
        "mcp": _application("mcp", "official:over_http"),
        "fastmcp": _application("fastmcp", "fast:over_http"),
        "typescript": _typescript,
        "asgi": _constant,
    }
)
