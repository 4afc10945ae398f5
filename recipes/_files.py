"""The folders from which recipes can read files."""

import os
from pathlib import Path

from promptkit import PromptError


def resolve_root(variable: str, default: Path) -> Path:
    """Return the folder that the environment variable names, or *default* if the variable is not set."""
    root = Path(os.environ.get(variable) or default).resolve()
    if root == root.parent:  # some clients start their servers in the root of the file system
        msg = f"Recipes do not read from {str(root)!r}, the root of the disk: set {variable} to a folder."
        raise PromptError(msg)
    return root
