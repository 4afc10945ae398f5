"""
A folder whose files are read, written and removed without leaving it.

The folder may have come with a repository that someone else wrote, so nothing in it is trusted: a path must
be plain and relative, links are not followed, and pipes, devices and hard links are not written to. Where
the system allows it, each name is opened relative to the folder above it, so that a link that appears while
a command runs is not followed either.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Final

from promptkit.files.regular import check_regular

__all__ = ["Folder", "FolderLockedError", "check_plain"]

#: Whether names can be opened relative to an open folder. Elsewhere (Windows) links need privileges.
_HAS_DIR_FD: Final = os.open in os.supports_dir_fd

_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class FolderLockedError(OSError):
    """Another process holds the lock of a folder."""


def check_plain(path: str) -> None:
    """
    Raise OSError unless *path* is relative, and names the same file below a folder on every system.

    Its parts are separated by ``/``, none is empty, ``.`` or ``..``, and none has a backslash, a colon or a
    control character.
    """
    has_parts = all(part not in ("", ".", "..") for part in path.split("/"))
    if not has_parts or not path.isprintable() or any(char in path for char in "\\:"):
        raise OSError(errno.EINVAL, "it is not a plain path within the folder", path)


class Folder:
    """
    A folder that nothing leads out of.

    Args:
        root:
            The trusted folder. Links in its own path are followed.

        within:
            The folder's path below *root*, with ``/`` between its parts; ``""`` for *root* itself. Links in
            it are refused.

    Attributes:
        path:
            The absolute path of the folder.

        shown:
            The path as messages show it: as the user has written it.
    """

    def __init__(self, root: str | os.PathLike[str], within: str = "") -> None:
        self._root = os.path.abspath(root)
        self._within = tuple(filter(None, within.split("/")))
        self.path = Path(self._root, *self._within)
        self.shown = self.path

    @classmethod
    def named(cls, path: str | os.PathLike[str]) -> "Folder":
        """
        Return the folder that a user has named.

        A link in an absolute path was typed by the user. A link in a relative path may have come with the
        repository that is the current folder, so it is not followed.
        """
        normal = os.path.normpath(path)
        parts = Path(normal).parts
        if os.path.isabs(normal) or ".." in parts:
            folder = cls(normal)
        else:
            folder = cls(".", "" if normal == "." else "/".join(parts))
        folder.shown = Path(path)
        return folder

    @classmethod
    def inside(cls, root: str | os.PathLike[str], path: str | os.PathLike[str]) -> "Folder":
        """
        Return a folder whose path may have links, as long as they stay in the trusted folder *root*.

        The links are resolved now: one that appears later is refused, as in every other folder.

        Args:
            root:
                The trusted folder.

            path:
                The folder, absolute or relative to *root*.

        Raises:
            OSError: If a link leads out of *root*.
        """
        real_root = Path(os.path.realpath(root))
        place = Path(root, path)
        real = Path(os.path.realpath(place))
        if not real.is_relative_to(real_root):
            raise OSError(
                errno.ELOOP, f"it leads out of {os.fspath(root)}: put a folder in its place", str(place)
            )
        within = real.relative_to(real_root)
        folder = cls(real_root, "/".join(within.parts))
        folder.shown = place
        return folder

    def __str__(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        """Return whether the folder exists. Raises OSError if a link or a file is in its place."""
        try:
            with self._parent(()):
                return True
        except FileNotFoundError:
            return False

    def create(self, mode: int = 0o777) -> None:
        """
        Create the folder, and those above it, unless they exist.

        Args:
            mode:
                The permissions of the trusted folder, if it is created.

        Raises:
            OSError: If one of them cannot be created.
        """
        Path(self._root).mkdir(mode, parents=True, exist_ok=True)
        with self._parent((), create=True):
            pass

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of the file, link or folder at *path*; None if nothing exists there."""
        try:
            with self._entry(path) as (parent, name):
                return os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def resolve(self, path: str) -> str:
        """
        Return the path of the file that *path* leads to, by links within this folder.

        Raises:
            OSError: If the file does not exist, or a link leads out of the folder.
        """
        check_plain(path)
        root = os.path.realpath(self.path)
        place = os.path.realpath(os.path.join(root, path), strict=True)
        if not place.startswith(os.path.join(root, "")):
            raise OSError(errno.ELOOP, f"it leads out of {self.path.name!r}: put a copy in its place", path)
        return os.path.relpath(place, root).replace(os.sep, "/")

    def read(self, path: str, limit: int, check: Callable[[os.stat_result], object] = bool) -> bytes:
        """
        Return the content of a regular file of at most *limit* bytes.

        Args:
            path:
                The file's path below this folder.

            limit:
                How many bytes it may have.

            check:
                Called with the status of the file before it is read. Its exceptions are raised.

        Raises:
            OSError: If it does not exist, is a link, is not a regular file, or is larger.
        """
        with self.open(path) as file:
            check(os.fstat(file.fileno()))
            data = file.read(limit + 1)
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", path)
        return data

    def digest(self, path: str, limit: int) -> str | None:
        """Return the hexadecimal SHA-256 of a regular file of at most *limit* bytes; None for all others."""
        try:
            return sha256(self.read(path, limit)).hexdigest()
        except OSError:
            return None

    def open(self, path: str) -> BufferedReader:
        """Open a regular file for reading. Raises OSError if it is a link, a pipe, a device or a folder."""
        with self._entry(path) as (parent, name):
            descriptor = self._open(parent, name, os.O_RDONLY)
        return open(descriptor, "rb")

    def open_for_update(self, path: str) -> BufferedRandom:
        """
        Open a file for reading and writing, creating it if it does not exist.

        Raises:
            OSError: If it is a link, has other names (hard links), or is not a regular file.
        """
        with self._entry(path, create=True) as (parent, name):
            descriptor = self._open(parent, name, os.O_RDWR | os.O_CREAT)
        file = open(descriptor, "r+b")  # noqa: SIM115 (the caller closes it)
        if os.fstat(descriptor).st_nlink > 1:
            file.close()
            raise OSError(errno.EMLINK, "it has other names (hard links), and they would change too", path)
        return file

    def write(
        self, path: str, *data: bytes, mode: int = 0o666, finish: Callable[[int], object] = bool
    ) -> None:
        """
        Write a file, replacing a regular file that exists there; folders above it are created.

        The file is replaced at once: a process that is killed leaves the previous content.

        Args:
            path:
                The file's path within the folder.

            *data:
                The content.

            mode:
                The permissions, as far as the process allows them.

            finish:
                Called with the descriptor of the new file before it replaces the other. If it raises an
                exception, the previous file stays.

        Raises:
            OSError: If it cannot be written, or if a link, a pipe, a device or a folder is in its place.
        """
        with self._entry(path, create=True) as (parent, name):
            with suppress(FileNotFoundError):
                check_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), path)
            scratch = f"{name}.{os.getpid()}-{os.urandom(4).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
            descriptor = os.open(scratch, flags, mode, dir_fd=parent)
            try:
                with open(descriptor, "wb") as file:
                    file.write(b"".join(data))
                    file.flush()
                    finish(descriptor)
                os.replace(scratch, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(scratch, dir_fd=parent)
                raise

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself. Raises OSError if it does not exist, or is a folder."""
        with self._entry(path) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def remove_empty_folders(self, path: str) -> None:
        """Remove the folders above the file *path*, up to this one, that are empty."""
        parts = path.split("/")[:-1]
        with suppress(OSError):  # a folder that is not empty, or is in use, stays, and so do those above it
            for end in range(len(parts), 0, -1):
                with self._entry("/".join(parts[:end])) as (parent, name):
                    os.rmdir(name, dir_fd=parent)

    def entries(self, path: str = "") -> list[tuple[str, os.stat_result]]:
        """
        Return the names in this folder, or in the folder *path* below it, with their status, in order.

        Raises:
            OSError: If it cannot be read, or is not a folder.
        """
        if path:
            check_plain(path)
        parts = tuple(filter(None, path.split("/")))
        with self._parent(parts) as parent:
            names = sorted(os.listdir(self._path(parts) if parent is None else parent))
            found = []
            for name in names:
                with suppress(FileNotFoundError):  # removed meanwhile
                    place = self._path((*parts, name)) if parent is None else name
                    found.append((name, os.stat(place, dir_fd=parent, follow_symlinks=False)))
            return found

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the path and the status of each file and link below this folder, in order."""
        waiting = [""]
        while waiting:
            above = waiting.pop()
            below = []
            for name, status in self.entries(above):
                path = f"{above}/{name}" if above else name
                if stat.S_ISDIR(status.st_mode):
                    below.append(path)
                else:
                    yield path, status
            waiting += reversed(below)

    @contextmanager
    def locked(self, *, wait: bool = False) -> Iterator[None]:
        """
        Hold the folder's lock, which ends with the process and leaves no file.

        Args:
            wait:
                Whether to wait until the lock is free.

        Raises:
            FolderLockedError: If another process holds it, unless *wait* is true.
        """
        if sys.platform == "win32":  # where open files keep other processes out
            yield
            return
        import fcntl

        with self._parent(()) as descriptor:
            assert descriptor is not None  # noqa: S101 (dir_fd exists wherever fcntl does)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderLockedError(errno.EAGAIN, "another process is using it", str(self)) from None
            except OSError:  # not every file system has locks
                pass
            yield

    def _path(self, parts: tuple[str, ...]) -> str:
        return os.path.join(self._root, *self._within, *parts)

    @contextmanager
    def _entry(self, path: str, *, create: bool = False) -> Iterator[tuple[int | None, str]]:
        """Yield the folder of *path*, to be given as ``dir_fd``, and the name to use with it."""
        check_plain(path)
        *above, name = path.split("/")
        with self._parent(tuple(above), create=create) as parent:
            yield parent, self._path((*above, name)) if parent is None else name

    @contextmanager
    def _parent(self, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int | None]:
        """Yield a descriptor of a folder below this one; None where the system has no ``dir_fd``."""
        names = (*self._within, *parts)
        if not _HAS_DIR_FD:
            self._check_folders(names, create=create)
            yield None
            return
        here = os.open(self._root, os.O_RDONLY | _FOLDER)
        try:
            for end in range(1, len(names) + 1):
                inner = self._open_folder(here, names[:end], create=create)
                os.close(here)
                here = inner
            yield here
        finally:
            os.close(here)

    def _open_folder(self, above: int, names: tuple[str, ...], *, create: bool) -> int:
        if create:
            with suppress(FileExistsError):
                os.mkdir(names[-1], dir_fd=above)
        status = os.stat(names[-1], dir_fd=above, follow_symlinks=False)
        _check_folder(status, "/".join(names))
        try:
            return os.open(names[-1], os.O_RDONLY | os.O_NOFOLLOW | _FOLDER, dir_fd=above)
        except NotADirectoryError:  # a link took its place meanwhile
            raise OSError(errno.ELOOP, _LINK, "/".join(names)) from None

    def _check_folders(self, names: tuple[str, ...], *, create: bool) -> None:
        for end in range(1, len(names) + 1):
            place = os.path.join(self._root, *names[:end])
            if create:
                with suppress(FileExistsError):
                    os.mkdir(place)
            _check_folder(os.lstat(place), "/".join(names[:end]))

    def _open(self, parent: int | None, name: str, flags: int) -> int:
        try:
            check_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), name)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        descriptor = os.open(name, flags | _FILE, 0o666, dir_fd=parent)
        try:
            check_regular(os.fstat(descriptor), name)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor


_LINK: Final = "it is a link: put what it leads to in its place, or name that"


def _check_folder(status: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, _LINK, path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
