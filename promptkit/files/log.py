"""Files that lines are appended to."""

import os
from pathlib import Path
from typing import Final

__all__ = ["open_log"]

#: Opening a pipe that no process reads fails, and writing to a full one does: neither waits.
_APPENDING: Final = (
    os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
)


def open_log(path: Path) -> int:
    """
    Open a file, a pipe or a device that the user has named, to append to it, and return its descriptor.

    A new file can be read and written by its owner alone. Raises OSError if it cannot be opened.
    """
    return os.open(path, _APPENDING, 0o600)
