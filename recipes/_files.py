"""Where recipes may read the files that an argument names."""

import os
from pathlib import Path

from promptkit import PromptError


def folder(variable: str, default: Path) -> Path:
    """Return the folder that the environment variable names, from which files may be read."""
    found = Path(os.environ.get(variable) or default).resolve()
    if found == found.parent:  # some clients start their servers there
        msg = f"All of {str(found)!r} is too much to read from: set {variable} to a folder."
        raise PromptError(msg)
    return found
