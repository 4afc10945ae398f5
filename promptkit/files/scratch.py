"""Temporary files and folders that only the user of this process can read."""

import shutil
from tempfile import TemporaryDirectory, TemporaryFile, mkdtemp
from typing import IO


def create_scratch_folder(prefix: str) -> str:
    """Create a temporary folder, and return its path. Raises OSError on failure."""
    return mkdtemp(prefix=prefix)


def remove_scratch_folder(folder: str) -> None:
    """Remove a temporary folder and its content. Ignore errors."""
    shutil.rmtree(folder, ignore_errors=True)


def scratch_folder(prefix: str) -> TemporaryDirectory[str]:
    """Create a temporary folder that is removed at the end of a ``with`` block. Raises OSError on failure."""
    return TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def open_unnamed_file(prefix: str) -> IO[bytes]:
    """Open an unnamed file, which no other process can open and which is removed when this process exits."""
    return TemporaryFile(prefix=prefix)
