"""New files that are secrets of their owner."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["write_new_secret"]

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_new_secret(file: Path, data: bytes) -> None:
    """
    Write a new file that only its owner can read, unless the file exists. Folders above it are created.

    The file appears with all of its content, also if the machine fails meanwhile.

    Raises:
        OSError: If it cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = f"{file}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(os.open(scratch, _NEW, 0o600), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())  # an empty file would be in the way forever
        with suppress(FileExistsError):  # another process was faster
            os.link(scratch, file)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(scratch)
