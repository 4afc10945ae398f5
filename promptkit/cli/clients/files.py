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

from promptkit.errors.regular_files import read_regular_file, replace_regular_file

__all__ = ["FileContents", "FileRefused", "NotOurs", "back_up", "read_file", "replace_file"]

#: A larger file is no configuration; that of Claude Code is its memory, too.
_MAX_BYTES: Final = 16 << 20

_CHANGED = "it was changed by somebody else at the same time, and is left as it is: run the command again"


class FileRefused(Exception):
    """
    A file cannot be read or written, and is as it was before.

    Args:
        file:
            The file.

        reason:
            What is wrong, and what to do.

        place:
            Where in the file, as in ``:3:5``.
    """

    def __init__(self, file: Path, reason: str, place: str = "") -> None:
        super().__init__(f"{file}{place}: {reason}")


class NotOurs(FileRefused):
    """What a file has by a name is somebody else's."""


class FileContents(Struct, frozen=True):
    """
    What a file held when it was read.

    Args:
        file:
            Its path.

        target:
            The same without links: what links lead to is written, and they stay.

        data:
            What it held; None if there was no file.
    """

    file: Path
    target: Path
    data: bytes | None


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
    target = Path(os.path.realpath(file))
    if project is not None and not target.is_relative_to(os.path.realpath(project)):
        raise FileRefused(file, "it leads out of the project: replace the link by a file")
    return FileContents(file, target, _data(file, target))


def replace_file(contents: FileContents, data: bytes) -> Path | None:
    """
    Replace what a file holds, all at once: who is killed half-way leaves the file as it was.

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
    target = contents.target
    _check_writable(contents)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent):
            backup = back_up(contents)
            _replace(contents, data)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise FileRefused(contents.file, f"it cannot be written: {error.strerror}{where}") from None
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
    digest = blake2b(os.fsencode(contents.target), digest_size=4).hexdigest()
    backup = folder / f"{digest}-{contents.target.name}"
    replace_regular_file(backup, contents.data, mode=0o600)
    return backup


def _data(file: Path, target: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(target.stat().st_mode):
            raise FileRefused(file, "it is no file")
        return read_regular_file(target, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileRefused(file, f"it cannot be read: {error.strerror}") from None


def _check_writable(contents: FileContents) -> None:
    if contents.data is None:
        return
    try:
        found = contents.target.stat()
    except OSError:
        raise FileRefused(contents.file, _CHANGED) from None
    # The mode counts for root, too: somebody took the right away for a reason.
    if not found.st_mode & 0o222 or not os.access(contents.target, os.W_OK):
        raise FileRefused(contents.file, "it is read-only: make it writable, or write into it by hand")
    if found.st_nlink > 1:
        raise FileRefused(contents.file, "it has other names (hard links), which would no longer be the same")
    if hasattr(os, "geteuid") and os.geteuid() not in (0, found.st_uid):
        raise FileRefused(contents.file, "it belongs to somebody else")


def _replace(contents: FileContents, data: bytes) -> None:
    target, is_new = contents.target, contents.data is None
    scratch = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(scratch, flags, 0o666 if is_new else 0o600), "wb") as file:  # noqa: PTH123 (a mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not is_new:
            _copy_owner_and_mode(target, scratch)
        _check_unchanged(contents)
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _check_unchanged(contents: FileContents) -> None:
    if _data(contents.file, contents.target) != contents.data:
        raise FileRefused(contents.file, _CHANGED)


def _copy_owner_and_mode(source: Path, scratch: Path) -> None:
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
