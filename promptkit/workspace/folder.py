"""Which folder is the workspace."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from promptkit.errors.exceptions import PromptError

__all__ = ["VARIABLE", "workspace"]

#: What ``promptkit serve`` sets, and anybody may. Empty, it means that there is none.
VARIABLE: Final = "PROMPTKIT_WORKSPACE"

#: What Claude Code sets for the servers that it starts.
_OF_CLAUDE_CODE: Final = "CLAUDE_PROJECT_DIR"

_NOWHERE: Final = (
    "this server has no workspace: start it with --workspace DIR, or over stdio in the folder that is meant"
)


def workspace() -> Path:
    """
    Return the folder that the person at the client works in.

    It is the one that ``promptkit serve --workspace`` names, else the one that the variable
    ``PROMPTKIT_WORKSPACE`` names, else ``CLAUDE_PROJECT_DIR``, else the current folder unless that is
    the root of the file system. Over HTTP there is one only with ``--workspace``.

    Returns:
        An absolute path.

    Raises:
        PromptError: If there is none, or what is named is not a folder.
    """
    variable = VARIABLE if VARIABLE in os.environ else _OF_CLAUDE_CODE
    named = os.environ.get(variable)
    if named:
        if not os.path.isdir(named):  # noqa: PTH112 (that of pathlib raises where a folder above is closed)
            # The path itself is not for clients of other machines.
            msg = f"{variable} names no folder where the server runs: correct it, or use --workspace DIR"
            raise PromptError(msg)
        return Path(named).absolute()
    current = None if variable == VARIABLE else _current_folder()
    if current is None:
        raise PromptError(_NOWHERE)
    return current


def _current_folder() -> Path | None:
    """The current folder; None where a client starts its servers at the root, or if it is gone."""
    with suppress(FileNotFoundError):
        folder = Path.cwd()
        return None if folder == folder.parent else folder
    return None
