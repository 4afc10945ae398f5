"""
Claude Code's own command, which changes its configuration.

That file is its memory too: it is written again and again while Claude Code runs, which has a lock for that.
Other clients leave theirs to people, so those files are edited.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

from promptkit.cli.clients.errors import FileRefused
from promptkit.cli.clients.table import Scope

__all__ = ["adding", "carry_out", "own_program", "removing"]

_TIMEOUT_S: Final = 60


def own_program(client: str, scope: Scope) -> str | None:
    """Return the program that changes the configuration of a client; None if promptkit is to edit it."""
    return shutil.which("claude") if (client, scope) == ("claude-code", "user") else None


def adding(program: str, name: str, entry: Mapping[str, Any]) -> list[str]:
    """Return the command that adds an entry of a name that is free."""
    return [program, "mcp", "add-json", "--scope", "user", name, json.dumps(entry, ensure_ascii=False)]


def removing(program: str, name: str) -> list[str]:
    """Return the command that takes an entry out."""
    return [program, "mcp", "remove", "--scope", "user", name]


def carry_out(commands: Sequence[Sequence[str]], file: "os.PathLike[str]") -> None:
    """
    Run commands, one after the other.

    Args:
        commands:
            What `adding` and `removing` return.

        file:
            The configuration that they change.

    Raises:
        FileRefused: With what the command says, if one fails.
    """
    for command in commands:
        shown = " ".join(command[:3])
        try:
            ran = subprocess.run(  # noqa: S603 (the client's own command)
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FileRefused(file, f"{shown} failed: {error}") from None
        if ran.returncode != 0:
            said = (ran.stderr or ran.stdout).strip() or f"it ended with {ran.returncode}"
            raise FileRefused(file, f"{shown} failed: {said}")
