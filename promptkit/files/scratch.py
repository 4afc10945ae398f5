"""Temporary files and folders that only the user of this process can read."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile, mkdtemp
from typing import IO


def create_scratch_folder(prefix: str) -> str:
    """Create a temporary folder, and return its path. Raises OSError on failure."""
    return mkdtemp(prefix=prefix)


def remove_scratch_folder(folder: str) -> None:
    """Remove a temporary folder with its content, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def scratch_folder(prefix: str) -> Iterator[str]:
    """Create a temporary folder, yield its path, and remove it afterwards. Raises OSError on failure."""
    folder = create_scratch_folder(prefix)
    try:
        yield folder
    finally:
        remove_scratch_folder(folder)


def open_unnamed_file(prefix: str) -> IO[bytes]:
    """Open an unnamed file. No other process can open it, and it is removed when this process exits."""
    return TemporaryFile(prefix=prefix)
