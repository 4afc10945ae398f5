"""Writing files where there are none."""

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

__all__ = ["write_new", "write_new_secret"]

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_new(files: Mapping[Path, str]) -> None:
    """
    Write new files; if one is there or cannot be written, none is left, nor a folder that was made.

    Raises:
        OSError: If so; it is a FileExistsError if a file, or one in place of a folder, is in the way.
    """
    with ExitStack() as undo:
        for file, text in files.items():
            for folder in reversed(file.parents):
                if not folder.is_dir():
                    folder.mkdir()
                    undo.callback(folder.rmdir)
            with file.open("x", encoding="utf-8", newline="\n") as stream:
                undo.callback(file.unlink)
                stream.write(text)
        undo.pop_all()


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
