"""The servers to measure, by name."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType

import attrs

from benchmarks import typescript
from benchmarks.cases import PLAIN, Case

SERVERS = Path(__file__).parent / "servers"
OURS = "promptkit"
RECIPES = "RECIPES"  # placeholder for the folder of recipes in a command


class UnavailableError(Exception):
    """
    A server, or a program that the measurements need, is not available on this machine.
    """


@attrs.frozen
class Peer:
    """
    A server to measure.

    Args:
        name:
            The name of the server on the command line.

        label:
            The name of the server in tables and plots.

        command:
            The command that starts the server, with the placeholder `RECIPES`.

        has_prompts:
            Whether the server returns prompts; False if it only echoes requests.
    """

    name: str
    label: str
    command: tuple[str, ...]
    has_prompts: bool = True

    def command_for(self, recipes: Path) -> tuple[str, ...]:
        """
        Return the command, in which the folder of recipes replaces the placeholder.
        """
        return tuple(str(recipes) if part == RECIPES else part for part in self.command)

    def supports(self, case: Case) -> bool:
        """Return whether *case* can be measured with the server."""
        return self.has_prompts or case is PLAIN


def promptkit_command() -> tuple[str, ...]:
    """
    Return the command that runs promptkit: the installed program or, if there is none, the module.
    """
    program = shutil.which("promptkit", path=str(Path(sys.executable).parent))
    return (program,) if program else (sys.executable, "-m", "promptkit")


def _promptkit() -> Peer:
    """Return the peer for promptkit, with the whole list on one page and no rate limit for completion."""
    options = ("--page-size", "10000", "--completion-rate", "1000000000")
    return Peer(OURS, OURS, (*promptkit_command(), "serve", RECIPES, *options))


def _script(name: str, file: str, package: str) -> Callable[[], Peer]:
    """Return a function that creates the peer for a Python program that needs *package*."""

    def create_peer() -> Peer:
        try:
            label = f"{package} {version(package)}"
        except PackageNotFoundError:
            reason = f"{package} is not installed: run pip install -e '.[bench]'"
            raise UnavailableError(reason) from None
        return Peer(name, label, (sys.executable, str(SERVERS / file)))

    return create_peer


def _typescript() -> Peer:
    node = shutil.which("node")
    if node is None:
        reason = "Node.js is not installed"
        raise UnavailableError(reason)
    try:
        program = typescript.install()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"its packages could not be installed: {error}"
        raise UnavailableError(reason) from None
    packages = json.loads((typescript.SOURCE / "package.json").read_text())["dependencies"]
    label = f"TypeScript {packages['@modelcontextprotocol/server']}"
    return Peer("typescript", label, (node, str(program)))


#: The functions that create the peers, keyed by name, in the order of measurement and of the tables. The
#: baselines follow promptkit directly, because their budgets have small margins.
PEERS: Mapping[str, Callable[[], Peer]] = MappingProxyType(
    {
        OURS: _promptkit,
        "bare": lambda: Peer("bare", "bare loop", (sys.executable, str(SERVERS / "bare.py"))),
        "echo": lambda: Peer("echo", "echo", (sys.executable, str(SERVERS / "echo.py")), has_prompts=False),
        "mcp": _script("mcp", "official.py", "mcp"),
        "typescript": _typescript,
        "fastmcp": _script("fastmcp", "fast.py", "fastmcp"),
    }
)
