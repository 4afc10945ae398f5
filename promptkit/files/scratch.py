"""Temporary files and folders, which only the user of this process can read."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp, mkstemp
from typing import IO

__all__ = [
    "create_scratch_folder",
    "open_unnamed_file",
    "remove_scratch_folder",
    "scratch_file",
    "scratch_folder",
]


def create_scratch_folder(prefix: str) -> str:
    """Create a temporary folder, and return its path. Raises OSError if there is no place for one."""
    return mkdtemp(prefix=prefix)


def remove_scratch_folder(folder: str) -> None:
    """Remove a temporary folder with all that is in it, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def scratch_folder(prefix: str) -> Iterator[str]:
    """Create a temporary folder, yield its path, and remove it. Raises OSError if that fails."""
    folder = create_scratch_folder(prefix)
    try:
        yield folder
    finally:
        remove_scratch_folder(folder)


@contextmanager
def scratch_file(text: str, prefix: str, suffix: str) -> Iterator[Path]:
    """Write a temporary file, yield its path, and remove it. Raises OSError if there is no place for one."""
    descriptor, name = mkstemp(prefix=prefix, suffix=suffix)
    file = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        yield file
    finally:
        file.unlink(missing_ok=True)


def open_unnamed_file(prefix: str) -> IO[bytes]:
    """Open a file without a name, which no other process can open, and which ends with this process."""
    return TemporaryFile(prefix=prefix)
