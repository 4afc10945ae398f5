"""Safe in-place edits of other programs' configuration files."""

import errno
import os
import stat
import sys
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from msgspec import Struct
from platformdirs import user_state_path

from promptkit.files.folder import Folder

#: A larger file is no configuration; that of Claude Code is its memory, too.
_MAX_BYTES: Final = 16 << 20

_CHANGED: Final = (
    "it was changed by somebody else at the same time, and is left as it is: run the command again"
)


class FileRefusedError(Exception):
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


class ForeignEntryError(FileRefusedError):
    """What a file has by a name is somebody else's."""


def check(is_fine: object, reason: str) -> None:
    """Raise `FileRefusedError` unless all is fine."""
    if not is_fine:
        raise FileRefusedError(reason)


class FileContents(Struct, frozen=True):
    """
    The content of a file when it was read.

    Args:
        folder:
            The folder of the file, without links: links stay, and the file that they lead to is written.

        name:
            The name of the file in it.

        data:
            The content; None if there was no file.
    """

    folder: Folder
    name: str
    data: bytes | None

    @property
    def path(self) -> Path:
        """The path of the file, without links."""
        return self.folder.path / self.name

    @property
    def text(self) -> str:
        """The same as text, "" for no file. Raises `FileRefusedError` if it is not UTF-8."""
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError:
            msg = "it is not UTF-8"
            raise FileRefusedError(msg) from None


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
        FileRefusedError: If it is no file, cannot be read, or leads out of the project.
    """
    path = Path(os.path.realpath(file))
    is_within = project is None or path.is_relative_to(os.path.realpath(project))
    check(is_within, "it leads out of the project: replace the link by a file")
    try:
        folder = Folder(path.parent) if project is None else Folder.inside(project, path.parent)
        return FileContents(folder, path.name, _data(folder, path.name))
    except OSError as error:
        is_other = isinstance(error, IsADirectoryError) or error.errno == errno.EINVAL
        msg = "it is no file" if is_other else f"it cannot be read: {error.strerror}"
        raise FileRefusedError(msg) from None


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
        FileRefusedError: If it may not be written, or was changed since it was read.
    """
    try:
        _check_writable(contents)
        contents.folder.create()
        with contents.folder.locked(wait=True):
            backup = back_up(contents)
            _replace(contents, data)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        msg = f"it cannot be written: {error.strerror}{where}"
        raise FileRefusedError(msg) from None
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
    folder = Folder(user_state_path("promptkit") / "backups")
    folder.create(mode=0o700)
    digest = blake2b(os.fsencode(contents.path), digest_size=4).hexdigest()
    backup = f"{digest}-{contents.name}"
    folder.write(backup, contents.data, mode=0o600)
    return folder.path / backup


def newline_of(text: str) -> str:
    """Return what the lines of *text* end with."""
    return "\r\n" if "\r\n" in text else "\n"


def joined(before: str, lines: str, behind: str) -> str:
    """Return a text with lines between others; the line before them is ended if it is not."""
    gap = newline_of(before) if before and not before.endswith("\n") else ""
    return f"{before}{gap}{lines}{behind}"


def _data(folder: Folder, name: str) -> bytes | None:
    try:
        return folder.read(name, _MAX_BYTES)
    except FileNotFoundError:
        return None


def _check_writable(contents: FileContents) -> None:
    if contents.data is None:
        return
    status = contents.folder.status(contents.name)
    if status is None:
        raise FileRefusedError(_CHANGED)
    # The mode counts for root, too: somebody took the right away for a reason.
    is_writable = status.st_mode & 0o222 and os.access(contents.path, os.W_OK)
    check(is_writable, "it is read-only: make it writable, or write into it by hand")
    check(status.st_nlink == 1, "it has other names (hard links), which would no longer be the same")
    is_own = not hasattr(os, "geteuid") or os.geteuid() in (0, status.st_uid)
    check(is_own, "it belongs to somebody else")


def _replace(contents: FileContents, data: bytes) -> None:
    folder, name = contents.folder, contents.name

    def finish(scratch: int) -> None:
        os.fsync(scratch)
        if contents.data is not None:
            _copy_owner_and_mode(folder, name, scratch)
        check(_data(folder, name) == contents.data, _CHANGED)

    folder.write(name, data, mode=0o666 if contents.data is None else 0o600, finish=finish)


def _copy_owner_and_mode(folder: Folder, name: str, scratch: int) -> None:
    if sys.platform == "win32":  # a new file has the owner and the rights of its folder
        return
    try:
        file = folder.open_for_reading(name)
    except FileNotFoundError:
        raise FileRefusedError(_CHANGED) from None
    with file:
        source = file.fileno()
        status = os.fstat(source)
        os.fchown(scratch, status.st_uid, status.st_gid)
        if sys.platform == "linux":
            for attribute in os.listxattr(source):  # access lists are among them
                with suppress(OSError):  # not every file system has each
                    os.setxattr(scratch, attribute, os.getxattr(source, attribute))
        os.fchmod(scratch, stat.S_IMODE(status.st_mode))


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
