"""Reading and replacing files that are somebody else's, so that nothing of theirs is lost."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from msgspec import Struct
from platformdirs import user_state_path

from promptkit.files.regular import read_regular_file, replace_regular_file

__all__ = [
    "FileContents",
    "FileRefused",
    "NotOurs",
    "back_up",
    "check",
    "joined",
    "newline_of",
    "read_file",
    "replace_file",
]

#: A larger file is no configuration; that of Claude Code is its memory, too.
_MAX_BYTES: Final = 16 << 20

_CHANGED: Final = (
    "it was changed by somebody else at the same time, and is left as it is: run the command again"
)


class FileRefused(Exception):
    """
    A file cannot be read or written, and is as it was before.

    Args:
        reason:
            What is wrong, and what to do.

        line:
            Where in the file, from 1; 0 if that is not known.

        column:
            Where in the line, from 1; 0 if that is not known.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column

    @property
    def place(self) -> str:
        """What follows the path of the file, as in ``:3:5``."""
        return f":{self.line}:{self.column}" if self.line else ""


class NotOurs(FileRefused):
    """What a file has by a name is somebody else's."""


def check(is_fine: object, reason: str) -> None:
    """Raise `FileRefused` unless all is fine."""
    if not is_fine:
        raise FileRefused(reason)


class FileContents(Struct, frozen=True):
    """
    What a file held when it was read.

    Args:
        path:
            Where it lies, without links: what links lead to is written, and they stay.

        data:
            What it held; None if there was no file.
    """

    path: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """The same as text, "" for no file. Raises `FileRefused` if it is not UTF-8."""
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError:
            msg = "it is not UTF-8"
            raise FileRefused(msg) from None


def read_file(file: Path, project: str | None = None) -> FileContents:
    """
    Read a file, which may be missing.

    Args:
        file:
            Its path.

        project:
            The folder that links must not lead out of, as somebody else may have made them; None if they may
            lead anywhere.

    Raises:
        FileRefused: If it is no file, cannot be read, or leads out of the project.
    """
    path = Path(os.path.realpath(file))
    is_within = project is None or path.is_relative_to(os.path.realpath(project))
    check(is_within, "it leads out of the project: replace the link by a file")
    return FileContents(path, _data(path))


def replace_file(contents: FileContents, data: bytes) -> Path | None:
    """
    Replace what a file holds, all at once: a command that is killed half-way leaves the file as it was.

    Args:
        contents:
            What it held when it was read.

        data:
            What it is to hold.

    Returns:
        The backup of what it held; None if there was no file.

    Raises:
        FileRefused: If it may not be written, or was changed since it was read.
    """
    _check_writable(contents)
    folder = contents.path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            backup = back_up(contents)
            _replace(contents, data)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        msg = f"it cannot be written: {error.strerror}{where}"
        raise FileRefused(msg) from None
    return backup


def back_up(contents: FileContents) -> Path | None:
    """
    Keep what a file held, in a folder that its owner alone can read, in place of the backup before.

    Args:
        contents:
            What it held.

    Returns:
        The backup; None if there was no file.

    Raises:
        OSError: If it cannot be written.
    """
    if contents.data is None:
        return None
    folder = user_state_path("promptkit") / "backups"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = blake2b(os.fsencode(contents.path), digest_size=4).hexdigest()
    backup = folder / f"{digest}-{contents.path.name}"
    replace_regular_file(backup, contents.data, mode=0o600)
    return backup


def newline_of(text: str) -> str:
    """Return what the lines of *text* end with."""
    return "\r\n" if "\r\n" in text else "\n"


def joined(before: str, lines: str, behind: str) -> str:
    """Return a text with lines between others; the line before them is ended if it is not."""
    gap = newline_of(before) if before and not before.endswith("\n") else ""
    return f"{before}{gap}{lines}{behind}"


def _data(path: Path) -> bytes | None:
    try:
        check(stat.S_ISREG(path.stat().st_mode), "it is no file")
        return read_regular_file(path, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"it cannot be read: {error.strerror}"
        raise FileRefused(msg) from None


def _check_writable(contents: FileContents) -> None:
    if contents.data is None:
        return
    try:
        found = contents.path.stat()
    except OSError:
        raise FileRefused(_CHANGED) from None
    # The mode counts for root, too: somebody took the right away for a reason.
    is_writable = found.st_mode & 0o222 and os.access(contents.path, os.W_OK)
    check(is_writable, "it is read-only: make it writable, or write into it by hand")
    check(found.st_nlink == 1, "it has other names (hard links), which would no longer be the same")
    is_own = not hasattr(os, "geteuid") or os.geteuid() in (0, found.st_uid)
    check(is_own, "it belongs to somebody else")


def _replace(contents: FileContents, data: bytes) -> None:
    path, is_new = contents.path, contents.data is None

    def finish(scratch: str) -> None:
        with open(scratch, "r+b") as file:
            os.fsync(file.fileno())
        if not is_new:
            _copy_owner_and_mode(path, scratch)
        check(_data(path) == contents.data, _CHANGED)

    replace_regular_file(path, data, mode=0o666 if is_new else 0o600, check=finish)


def _copy_owner_and_mode(source: Path, scratch: str) -> None:
    found = source.stat()
    if hasattr(os, "chown"):
        os.chown(scratch, found.st_uid, found.st_gid)
    shutil.copystat(source, scratch)  # the mode, and access lists where there are any
    os.utime(scratch)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other runs of promptkit out of a folder. The lock ends with the process, and leaves nothing."""
    if sys.platform == "win32":  # where what was changed meanwhile is still noticed
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system can
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
