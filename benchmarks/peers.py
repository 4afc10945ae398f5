"""The servers by name, and which of them can be started here."""

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
RECIPES = "RECIPES"  # in a command: where the folder of recipes is put


class AbsentError(Exception):
    """
    A server cannot be started on this machine.
    """


@attrs.frozen
class Peer:
    """
    A server to measure.

    Args:
        name:
            What it is called on the command line.

        label:
            What tables and plots call it.

        command:
            What starts it. `RECIPES` stands for a folder.

        content:
            Whether it answers with content. An echo does not.
    """

    name: str
    label: str
    command: tuple[str, ...]
    content: bool = True

    def command_for(self, recipes: Path) -> tuple[str, ...]:
        """
        Return what starts it with the recipes in a folder.
        """
        return tuple(str(recipes) if part == RECIPES else part for part in self.command)

    def measures(self, case: Case) -> bool:
        """
        Return whether *case* says anything about it.
        """
        return self.content or case is PLAIN


def program() -> tuple[str, ...]:
    """
    Return the installed program, as people start it; else the module.
    """
    program = shutil.which("promptkit", path=str(Path(sys.executable).parent))
    return (program,) if program else (sys.executable, "-m", "promptkit")


def _promptkit() -> Peer:
    """With one page for a whole list, and without a limit to completion."""
    options = ("--page-size", "10000", "--completion-rate", "1000000000")
    return Peer(OURS, OURS, (*program(), "serve", RECIPES, *options))


def _script(name: str, file: str, package: str) -> Callable[[], Peer]:
    """Makes a server that is a Python program and needs *package*."""

    def make() -> Peer:
        try:
            label = f"{package} {version(package)}"
        except PackageNotFoundError:
            reason = f"{package} is not installed; pip install -e '.[bench]' does it"
            raise AbsentError(reason) from None
        return Peer(name, label, (sys.executable, str(SERVERS / file)))

    return make


def _typescript() -> Peer:
    node = shutil.which("node")
    if node is None:
        reason = "there is no node on this machine"
        raise AbsentError(reason)
    try:
        program = typescript.install()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"its packages could not be installed: {error}"
        raise AbsentError(reason) from None
    packages = json.loads((typescript.SOURCE / "package.json").read_text())["dependencies"]
    label = f"TypeScript {packages['@modelcontextprotocol/server']}"
    return Peer("typescript", label, (node, str(program)))


#: By name, in the order of measuring and of the tables: what makes each server. The floors come right after
#: promptkit: budgets leave little between them.
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
