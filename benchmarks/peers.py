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
RECIPES = "RECIPES"  # placeholder in a command for the folder of recipes


class AbsentError(Exception):
    """
    A server, or a program that the measurements need, is not available on this machine.
    """


@attrs.frozen
class Peer:
    """
    A server to measure.

    Args:
        name:
            The name on the command line.

        label:
            The name in tables and plots.

        command:
            The command that starts the server, with the placeholder `RECIPES`.

        content:
            Whether the server answers with prompts; False for an echo.
    """

    name: str
    label: str
    command: tuple[str, ...]
    content: bool = True

    def command_for(self, recipes: Path) -> tuple[str, ...]:
        """
        Return the command, with the folder of recipes for the placeholder.
        """
        return tuple(str(recipes) if part == RECIPES else part for part in self.command)

    def supports(self, case: Case) -> bool:
        """Return whether *case* can be measured with the server."""
        return self.content or case is PLAIN


def program() -> tuple[str, ...]:
    """
    Return the command of the installed program or, without it, the command that runs the module.
    """
    program = shutil.which("promptkit", path=str(Path(sys.executable).parent))
    return (program,) if program else (sys.executable, "-m", "promptkit")


def _promptkit() -> Peer:
    """Return the peer for promptkit, with the whole list on one page and no rate limit for completion."""
    options = ("--page-size", "10000", "--completion-rate", "1000000000")
    return Peer(OURS, OURS, (*program(), "serve", RECIPES, *options))


def _script(name: str, file: str, package: str) -> Callable[[], Peer]:
    """Return a function that creates the peer for a Python program that needs *package*."""

    def create_peer() -> Peer:
        try:
            label = f"{package} {version(package)}"
        except PackageNotFoundError:
            reason = f"{package} is not installed: run pip install -e '.[bench]'"
            raise AbsentError(reason) from None
        return Peer(name, label, (sys.executable, str(SERVERS / file)))

    return create_peer


def _typescript() -> Peer:
    node = shutil.which("node")
    if node is None:
        reason = "Node.js is not installed"
        raise AbsentError(reason)
    try:
        program = typescript.install()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"its packages could not be installed: {error}"
        raise AbsentError(reason) from None
    packages = json.loads((typescript.SOURCE / "package.json").read_text())["dependencies"]
    label = f"TypeScript {packages['@modelcontextprotocol/server']}"
    return Peer("typescript", label, (node, str(program)))


#: Functions that create the peers, by name, in the order of measurement and of the tables. The baselines
#: follow promptkit directly, because their budgets have small margins.
PEERS: Mapping[str, Callable[[], Peer]] = MappingProxyType(
    {
        OURS: _promptkit,
        "bare": lambda: Peer("bare", "bare loop", (sys.executable, str(SERVERS / "bare.py"))),
        "echo": lambda: Peer("echo", "echo", (sys.executable, str(SERVERS / "echo.py")), content=False),
        "mcp": _script("mcp", "official.py", "mcp"),
        "typescript": _typescript,
        "fastmcp": _script("fastmcp", "fast.py", "fastmcp"),
    }
)
