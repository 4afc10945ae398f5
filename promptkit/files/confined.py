"""A file below a folder, opened so that a link that appears meanwhile is not followed."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Final

from promptkit.files.regular import TooLargeError, check_regular

__all__ = ["read_confined_file"]

#: Opens a folder to open files in it. With O_PATH (Linux) it need not be readable.
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)


def read_confined_file(root: Path, file: Path, limit: int) -> bytes:
    """
    Return the content of a regular file.

    Args:
        root:
            A folder. Links in its own path are followed.

        file:
            The path of a file below it, in which all links are resolved.

        limit:
            How many bytes it may have.

    Raises:
        TooLargeError: If it has more. A file of a known size is not read then.

        OSError: If it cannot be read, is not a regular file, or is a link meanwhile, or a folder above it is.
    """
    with open(file, "rb", opener=partial(_open_below, root)) as stream:
        status = os.fstat(stream.fileno())
        check_regular(status, file)
        if status.st_size > limit:
            raise TooLargeError(status.st_size, limit, file)
        data = stream.read(limit + 1)  # the file may have grown
    if len(data) > limit:
        raise TooLargeError(len(data), limit, file)
    return data


def _open_below(root: Path, file: str, flags: int) -> int:
    """Open *file* without following links below *root*; return its descriptor."""
    if sys.platform == "win32" or os.open not in os.supports_dir_fd:  # links need privileges there
        return os.open(file, flags)
    *folders, name = Path(file).relative_to(root).parts
    here = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        # If a pipe has taken the file's place, opening it must not wait for a writer.
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)
