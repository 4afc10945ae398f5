"""Safe in-place edits of other programs' configuration files."""

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from promptkit.files.folder import Folder
from promptkit.files.reading import CREATE_FLAGS, OPEN_FLAGS

#: Maximum size of a configuration file. Claude Code also keeps its history in its file.
_MAX_BYTES: Final = 16 << 20

_CHANGED: Final = "another program changed it at the same time, so it was not written: run the command again"


class FileEditError(Exception):
    """
    A file cannot be read or written. It has not been changed.

    Args:
        reason:
            The problem, and how to fix it.

        line:
            The line in the file, counted from 1; 0 if unknown.

        column:
            The column in the line, counted from 1; 0 if unknown.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column

    @property
    def location(self) -> str:
        """The line and column as a suffix for the file's path, such as ``:3:5``; empty if unknown."""
        return f":{self.line}:{self.column}" if self.line else ""


class ForeignEntryError(FileEditError):
    """An entry with this name was written by another program or by the user, so it must not be changed."""


def check(condition: object, reason: str) -> None:
    """Raise `FileEditError` with *reason* unless *condition* is true."""
    if not condition:
        raise FileEditError(reason)


class FileContents(Struct, frozen=True):
    """
    The content that a file had when it was read.

    Args:
        folder:
            The folder of the file, with links resolved, so that writing changes the target of a link and not
            the link itself.

        name:
            The name of the file in *folder*.

        data:
            The content; None if the file did not exist.
    """

    folder: Folder
    name: str
    data: bytes | None

    @property
    def path(self) -> Path:
        """The path of the file, with links resolved."""
        return self.folder.path / self.name

    @property
    def text(self) -> str:
        """
        The content as text; "" if the file did not exist. Raises `FileEditError` if the content is not UTF-8.
        """
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError:
            msg = "it is not UTF-8"
            raise FileEditError(msg) from None


def read_file(file: Path, project: str | None = None) -> FileContents:
    """
    Read a file, which need not exist.

    Args:
        file:
            The path of the file.

        project:
            The folder that links must not point out of; None if links can point anywhere.

    Raises:
        FileEditError: If the file is not a regular file, cannot be read, or is outside the project.
    """
    path = Path(os.path.realpath(file))
    is_within = project is None or path.is_relative_to(os.path.realpath(project))
    check(is_within, "it is outside the project: replace the link with a file")
    try:
        folder = Folder(path.parent) if project is None else Folder.inside(project, path.parent)
        return FileContents(folder, path.name, _read_if_exists(folder, path.name))
    except OSError as error:
        is_not_regular = isinstance(error, IsADirectoryError) or error.errno == errno.EINVAL
        msg = "it is not a file" if is_not_regular else f"it cannot be read: {error.strerror}"
        raise FileEditError(msg) from None


def replace_file(contents: FileContents, data: bytes) -> Path | None:
    """
    Replace the content of a file atomically, so that the file is intact even if the process is killed.

    Args:
        contents:
            The content that the file had when it was read.

        data:
            The new content.

    Returns:
        The path to which the old content was backed up; None if the file did not exist.

    Raises:
        FileEditError: If the file cannot be written, or has changed since it was read.
    """
    try:
        _check_writable(contents)
        contents.folder.create()
        with contents.folder.locked(wait=True):
            backup = _back_up(contents)
            _replace(contents, data)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        msg = f"it cannot be written: {error.strerror}{where}"
        raise FileEditError(msg) from None
    return backup


def _back_up(contents: FileContents) -> Path | None:
    """
    Save the old content of a file in a folder that only its owner can read, replacing any earlier backup.

    Args:
        contents:
            The content that the file had when it was read.

    Returns:
        The path of the backup; None if the file did not exist.

    Raises:
        OSError: If the backup cannot be written.
    """
    if contents.data is None:
        return None
    from hashlib import blake2b  # OpenSSL takes 4 MiB of memory, which a server that only logs does not need

    from platformdirs import user_state_path

    folder = Folder(user_state_path("promptkit") / "backups")
    folder.create(mode=0o700)
    digest = blake2b(os.fsencode(contents.path), digest_size=4).hexdigest()
    backup = f"{digest}-{contents.name}"
    folder.write(backup, contents.data, mode=0o600)
    return folder.path / backup


def newline_of(text: str) -> str:
    """Return the line ending that *text* uses."""
    return "\r\n" if "\r\n" in text else "\n"


def insert_lines(before: str, lines: str, after: str) -> str:
    """Join two parts of a text with *lines* between them, ending the first part's last line if necessary."""
    gap = newline_of(before) if before and not before.endswith("\n") else ""
    return f"{before}{gap}{lines}{after}"


def _read_if_exists(folder: Folder, name: str) -> bytes | None:
    try:
        return folder.read(name, _MAX_BYTES)
    except FileNotFoundError:
        return None


def _check_writable(contents: FileContents) -> None:
    if contents.data is None:
        return
    status = contents.folder.lstat(contents.name)
    if status is None:
        raise FileEditError(_CHANGED)
    # Root must not write a read-only file either, because it was made read-only for a reason.
    is_writable = status.st_mode & 0o222 and os.access(contents.path, os.W_OK)
    check(is_writable, "it is read-only: make it writable, or edit it yourself")
    check(status.st_nlink == 1, "it has other hard links, which would keep the old content: edit it yourself")
    is_own = not hasattr(os, "geteuid") or os.geteuid() in (0, status.st_uid)
    check(is_own, "it belongs to another user")


def _replace(contents: FileContents, data: bytes) -> None:
    folder, name = contents.folder, contents.name

    def finish(scratch: int) -> None:
        os.fsync(scratch)
        if contents.data is not None:
            _copy_owner_and_mode(folder, name, scratch)
        check(_read_if_exists(folder, name) == contents.data, _CHANGED)

    folder.write(name, data, mode=0o666 if contents.data is None else 0o600, finish=finish)


def _copy_owner_and_mode(folder: Folder, name: str, scratch: int) -> None:
    if sys.platform == "win32":  # a new file gets the owner and the permissions of its folder
        return
    try:
        file = folder.open_for_reading(name)
    except FileNotFoundError:
        raise FileEditError(_CHANGED) from None
    with file:
        source = file.fileno()
        status = os.fstat(source)
        os.fchown(scratch, status.st_uid, status.st_gid)
        if sys.platform == "linux":
            for attribute in os.listxattr(source):  # including access control lists
                with suppress(OSError):  # not all file systems support all attributes
                    os.setxattr(scratch, attribute, os.getxattr(source, attribute))
        os.fchmod(scratch, stat.S_IMODE(status.st_mode))


def open_log(path: Path) -> int:
    """
    Open a user's file, pipe or device for appending, and return its descriptor.

    If the file is created, only its owner can read and write it. Raises OSError if it cannot be opened.
    """
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | OPEN_FLAGS, 0o600)


def write_new_secret(file: Path, data: bytes) -> None:
    """
    Write a file that only its owner can read, unless the file exists. Create its parent folders.

    The file never exists with only a part of its content, even if the machine crashes.

    Raises:
        OSError: If the file cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = f"{file}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(os.open(scratch, CREATE_FLAGS, 0o600), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())  # an empty file left by a crash would never be replaced
        with suppress(FileExistsError):  # another process has written the file
            os.link(scratch, file)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(scratch)
