"""Writing files where there are none."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

__all__ = ["write_new"]


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
