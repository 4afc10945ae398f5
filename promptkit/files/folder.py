"""
Confined access to a folder, which reads, writes and removes files without leaving the folder.

The folder can be part of an untrusted repository. Therefore, paths must be plain and relative, links are not
followed, and pipes, devices and hard links are not written to. If the system allows it, each name is opened
relative to its parent folder, so that links that appear while a command runs are not followed either.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Final

from promptkit.files.reading import (
    CREATE_FLAGS,
    OPEN_FLAGS,
    HashedBytes,
    TooLargeError,
    check_regular,
    require_within_limit,
)

#: Whether names can be opened relative to an open folder. They cannot on Windows, but there, creating links
#: requires privileges.
_HAS_DIR_FD: Final = os.open in os.supports_dir_fd

_FOLDER_FLAGS: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)

#: The maximum depth of folders in `Folder.walk`.
_MAX_DEPTH: Final = 100


class FolderLockedError(OSError):
    """Another process holds the lock of a folder."""


def check_plain(path: str) -> None:
    """
    Raise OSError unless *path* is plain: relative, and with the same meaning on every system.

    The parts of a plain path are separated by ``/``. No part is empty, ``.`` or ``..``, and none contains a
    backslash, a colon or an unprintable character.
    """
    has_parts = all(part not in ("", ".", "..") for part in path.split("/"))
    if not has_parts or not path.isprintable() or any(char in path for char in "\\:"):
        raise OSError(errno.EINVAL, "it is not a plain path within the folder", path)


def _check_native(path: str) -> None:
    """Raise OSError unless *path* is relative and stays below its folder, by the rules of this system."""
    is_below = all(part not in ("", ".", "..") for part in path.split("/"))
    if not is_below or "\0" in path or (os.name == "nt" and any(char in path for char in "\\:")):
        raise OSError(errno.EINVAL, "it is not a path within the folder", path)


class Folder:
    """
    A folder whose operations never access files outside of it.

    Args:
        root:
            The trusted folder. Symbolic links in the path of this folder are followed.

        within:
            The folder's path below *root*, with ``/`` as separator; ``""`` for *root* itself. Links in this
            path are rejected.

        is_portable:
            Whether paths must be plain, as defined by `check_plain`. Pass False to read files by the names
            that the system lists.

    Attributes:
        path:
            The absolute path of the folder.

        display_root:
            The folder's path as the user typed it, to show in messages.
    """

    def __init__(self, root: str | os.PathLike[str], within: str = "", *, is_portable: bool = True) -> None:
        self._typed = os.fspath(root)
        self._root = os.path.abspath(root)
        self._subfolders = tuple(filter(None, within.split("/")))
        self._check_path: Callable[[str], None] = check_plain if is_portable else _check_native
        self.path = Path(self._root, *self._subfolders)
        self.display_root = Path(os.path.normpath(os.path.join(self._typed, *self._subfolders)))

    @classmethod
    def named(cls, path: str | os.PathLike[str], *, is_portable: bool = True) -> "Folder":
        """
        Return the folder at a path that the user typed.

        Links in absolute paths are followed, because the user typed them. Links in relative paths are not
        followed, because they might be part of the repository in the current folder.
        """
        normalized = os.path.normpath(path)
        parts = Path(normalized).parts
        if os.path.isabs(normalized) or ".." in parts:
            folder = cls(normalized, is_portable=is_portable)
        else:
            folder = cls(".", "" if normalized == "." else "/".join(parts), is_portable=is_portable)
        folder.display_root = Path(path)
        return folder

    @classmethod
    def inside(cls, root: str | os.PathLike[str], path: str | os.PathLike[str]) -> "Folder":
        """
        Return a folder whose path can contain links, as long as they stay inside the trusted folder *root*.

        The links are resolved once. Links that appear later are rejected, as in any other folder.

        Args:
            root:
                The trusted folder.

            path:
                The folder, absolute or relative to *root*.

        Raises:
            OSError: If a link points outside *root*.
        """
        real_root = Path(os.path.realpath(root))
        path_in_root = Path(root, path)
        real = Path(os.path.realpath(path_in_root))
        if not real.is_relative_to(real_root):
            raise OSError(
                errno.ELOOP,
                f"it is outside {os.fspath(root)}: replace the link with a folder",
                str(path_in_root),
            )
        within = real.relative_to(real_root)
        folder = cls(real_root, "/".join(within.parts))
        folder.display_root = path_in_root
        return folder

    def __str__(self) -> str:
        return str(self.path)

    def display_path(self, path: str) -> str:
        """Return a file's path to show in messages. It is relative if the user typed a relative folder."""
        return str(self.display_root / path)

    def exists(self) -> bool:
        """Return whether the folder exists. Raises OSError if its path leads to a link or a file."""
        try:
            with self._open_folder(()):
                return True
        except FileNotFoundError:
            return False

    def create(self, mode: int = 0o777) -> None:
        """
        Create the folder and its parents, if they do not exist.

        Args:
            mode:
                The permissions that the trusted folder gets if it is created.

        Raises:
            OSError: If one of the folders cannot be created.
        """
        Path(self._root).mkdir(mode, parents=True, exist_ok=True)
        with self._open_folder((), create=True):
            pass

    def lstat(self, path: str) -> os.stat_result | None:
        """Return the status of the file, symbolic link or folder at *path*; None if nothing exists there."""
        try:
            with self._entry(path) as (parent, name):
                return os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def resolve(self, path: str) -> str:
        """
        Follow the links in *path*, and return the path of its target within this folder.

        Raises:
            OSError: If the file does not exist, or a link points outside the folder.
        """
        check_plain(path)
        root = os.path.realpath(self.path)
        target = os.path.realpath(os.path.join(root, path), strict=True)
        if not target.startswith(os.path.join(root, "")):
            raise OSError(
                errno.ELOOP, f"it is outside {self.path.name!r}: replace the link with a copy", path
            )
        return os.path.relpath(target, root).replace(os.sep, "/")

    def read(self, path: str, limit: int, check: Callable[[os.stat_result], object] = bool) -> bytes:
        """
        Return the content of a regular file that has at most *limit* bytes.

        Args:
            path:
                The file's path below this folder.

            limit:
                The maximum number of bytes.

            check:
                Called with the status of the file before it is read, to reject the file by raising an
                exception.

        Raises:
            TooLargeError: If the file has more bytes. Unless it has grown in the meantime, it is not read at
                all.

            OSError: If the file does not exist, is a symbolic link, or is not a regular file.
        """
        with self.open_for_reading(path) as file:
            check(status := os.fstat(file.fileno()))
            if status.st_size > limit:
                raise TooLargeError(status.st_size, limit, path)
            return require_within_limit(limit, file.read(limit + 1), path)  # the file may have grown

    def digest(self, path: str, limit: int) -> str | None:
        """Return a regular file's SHA-256; None if it cannot be read or has more than *limit* bytes."""
        try:
            return HashedBytes(self.read(path, limit)).digest
        except OSError:
            return None

    def open_for_reading(self, path: str) -> BufferedReader:
        """Open a regular file for reading. Raises OSError for symbolic links, pipes, devices and folders."""
        with self._entry(path) as (parent, name):
            descriptor = self._open_regular(parent, name, os.O_RDONLY)
        return open(descriptor, "rb")

    def open_for_update(self, path: str) -> BufferedRandom:
        """
        Open a file for reading and writing, creating it if it does not exist.

        Raises:
            OSError: If the file is a symbolic link, has other names (hard links), or is not a regular file.
        """
        with self._entry(path, create=True) as (parent, name):
            descriptor = self._open_regular(parent, name, os.O_RDWR | os.O_CREAT)
        file = open(descriptor, "r+b")  # noqa: SIM115 (the caller closes it)
        if os.fstat(descriptor).st_nlink > 1:
            file.close()
            raise OSError(errno.EMLINK, "it has other hard links, which would change as well", path)
        return file

    def write(
        self, path: str, *data: bytes, mode: int = 0o666, finish: Callable[[int], object] = bool
    ) -> None:
        """
        Write a file, replacing any existing regular file, and create its parent folders.

        The file is replaced atomically, so it keeps its previous content if the process is killed.

        Args:
            path:
                The file's path within the folder.

            *data:
                The content.

            mode:
                The permissions of the file, which the process's umask restricts.

            finish:
                Called with the descriptor of the new file before it replaces the previous file. If the call
                raises an exception, the previous file remains.

        Raises:
            OSError: If the file cannot be written, or if its path leads to a link, a pipe, a device or a
                folder.
        """
        with self._entry(path, create=True) as (parent, name):
            with suppress(FileNotFoundError):
                check_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), path)
            scratch = f"{name}.{os.getpid()}-{os.urandom(4).hex()}"
            descriptor = os.open(scratch, CREATE_FLAGS | _NO_LINK, mode, dir_fd=parent)
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

    def write_new(self, files: Mapping[str, bytes]) -> None:
        """
        Write files that do not exist yet, and create this folder and their parent folders.

        If one of the files cannot be written, remove all files and folders that this call has created.

        Raises:
            OSError: If a file cannot be written; its ``filename`` is the path to show in a message. This is a
                FileExistsError if a file exists already, and a NotADirectoryError if the path of a parent
                folder leads to a file.
        """
        folders = {folder for path in files for folder in (self.path / path).parents}
        missing = sorted(folder for folder in folders if not os.path.lexists(folder))
        written = list[str]()
        try:
            for ancestor in reversed((Path(self._root), *Path(self._root).parents)):
                if not ancestor.is_dir():
                    os.mkdir(ancestor)
            for path, data in files.items():
                with (
                    self._entry(path, create=True) as (parent, name),
                    _errors_with_path("/".join((*self._subfolders, path))),
                ):
                    descriptor = os.open(name, CREATE_FLAGS | _NO_LINK, 0o666, dir_fd=parent)
                    written.append(path)
                    with open(descriptor, "wb") as file:
                        file.write(data)
        except OSError as error:
            self._remove_created(written, missing)
            display_path = os.path.normpath(os.path.join(self._typed, error.filename))
            raise OSError(error.errno, error.strerror, display_path) from None

    def remove(self, path: str) -> None:
        """
        Remove a file or a link, but not a link's target. Raises OSError for a folder or if nothing exists.
        """
        with self._entry(path) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def remove_empty_folders(self, path: str) -> None:
        """Remove the parent folders of *path* below this folder, as long as they are empty."""
        parts = path.split("/")[:-1]
        with suppress(OSError):  # a folder that is not empty or is in use remains, like its parents
            for end in range(len(parts), 0, -1):
                with self._entry("/".join(parts[:end])) as (parent, name):
                    os.rmdir(name, dir_fd=parent)

    def entries(self, path: str = "") -> list[tuple[str, os.stat_result]]:
        """
        Return the names in this folder, or in the folder *path* below it, sorted and each with its status.

        Raises:
            OSError: If the folder does not exist or cannot be read.
        """
        if path:
            self._check_path(path)
        parts = tuple(filter(None, path.split("/")))
        with self._open_folder(parts) as parent:
            with _errors_with_path("/".join((*self._subfolders, *parts)) or os.curdir):
                names = sorted(os.listdir(self._joined_path(parts) if parent is None else parent))
            entries = []
            for name in names:
                with suppress(FileNotFoundError):  # removed in the meantime
                    entry_path = self._joined_path((*parts, name)) if parent is None else name
                    entries.append((name, os.stat(entry_path, dir_fd=parent, follow_symlinks=False)))
            return entries

    def walk(
        self, path: str = "", on_error: Callable[[str, OSError], object] | None = None
    ) -> Iterator[tuple[str, os.stat_result]]:
        """
        Yield the path and the status of each file and symbolic link below this folder, sorted.

        Args:
            path:
                The path of a folder below this one, to yield only the files in that folder.

            on_error:
                Called with the path of a folder that cannot be read, and with the error. Such a folder is
                skipped. By default, the error is raised.

        Raises:
            OSError: If a folder cannot be read, or is nested too deeply.
        """
        pending = [path]
        while pending:
            parent = pending.pop()
            subfolders = []
            try:
                # Each folder is opened from the root, so the time would be quadratic in the depth.
                if parent.count("/") >= _MAX_DEPTH:
                    msg = f"it is nested more than {_MAX_DEPTH} folders deep"
                    raise OSError(errno.ENAMETOOLONG, msg, parent)  # noqa: TRY301
                entries = self.entries(parent)
            except OSError as error:
                if on_error is None:
                    raise
                on_error(parent, error)
                continue
            for name, status in entries:
                child = f"{parent}/{name}" if parent else name
                if stat.S_ISDIR(status.st_mode):
                    subfolders.append(child)
                else:
                    yield child, status
            pending += reversed(subfolders)

    @contextmanager
    def locked(self, *, wait: bool = False) -> Iterator[None]:
        """
        Hold the folder's lock. It does not need a lock file, and is released when the process exits.

        Args:
            wait:
                Whether to wait for the lock if another process holds it.

        Raises:
            FolderLockedError: If another process holds the lock, unless *wait* is true.
        """
        if sys.platform == "win32":  # on Windows, open files already keep other processes out
            yield
            return
        import fcntl

        with self._open_folder(()) as descriptor:
            assert descriptor is not None  # noqa: S101 (dir_fd exists wherever fcntl does)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderLockedError(errno.EAGAIN, "another process is using it", str(self)) from None
            except OSError:  # not every file system supports locks
                pass
            yield

    def _joined_path(self, parts: tuple[str, ...]) -> str:
        return os.path.join(self._root, *self._subfolders, *parts)

    @contextmanager
    def _entry(self, path: str, *, create: bool = False) -> Iterator[tuple[int | None, str]]:
        """Yield a ``dir_fd`` for the parent folder of *path*, and the name to use with it."""
        self._check_path(path)
        *above, name = path.split("/")
        with self._open_folder(tuple(above), create=create) as parent:
            yield parent, self._joined_path((*above, name)) if parent is None else name

    def _remove_created(self, files: Iterable[str], folders: Sequence[Path]) -> None:
        """Remove newly created files, and then the newly created folders if they are empty."""
        for file in files:
            with suppress(OSError):  # the file was removed in the meantime
                self.remove(file)
        for folder in reversed(folders):
            with suppress(OSError):  # the folder is not empty, or was not created
                os.rmdir(folder)

    @contextmanager
    def _open_folder(self, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int | None]:
        """Yield a descriptor of a folder below this one; None if the system does not support ``dir_fd``."""
        if not _HAS_DIR_FD:
            os.scandir(self._root).close()  # raises an error unless it is a folder
        parent = os.open(self._root, os.O_RDONLY | _FOLDER_FLAGS) if _HAS_DIR_FD else None
        names = (*self._subfolders, *parts)
        try:
            for end in range(1, len(names) + 1):
                with _errors_with_path("/".join(names[:end])):
                    child = self._open_child(parent, names[:end], create=create)
                if parent is not None:
                    os.close(parent)
                parent = child
            yield parent
        finally:
            if parent is not None:
                os.close(parent)

    def _open_child(self, parent: int | None, names: tuple[str, ...], *, create: bool) -> int | None:
        name = os.path.join(self._root, *names) if parent is None else names[-1]
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, _LINK_ERROR)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if parent is None:
            return None
        try:
            return os.open(name, os.O_RDONLY | _NO_LINK | _FOLDER_FLAGS, dir_fd=parent)
        except NotADirectoryError:  # a link has replaced the folder in the meantime
            raise OSError(errno.ELOOP, _LINK_ERROR) from None

    def _open_regular(self, parent: int | None, name: str, flags: int) -> int:
        try:
            check_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), name)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        descriptor = os.open(name, flags | OPEN_FLAGS | _NO_LINK, 0o666, dir_fd=parent)
        try:
            check_regular(os.fstat(descriptor), name)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor


_LINK_ERROR: Final = "it is a link: replace it with its target, or use the path of the target"


@contextmanager
def _errors_with_path(path: str) -> Iterator[None]:
    """Replace the filename of an OSError that is raised in this context with *path*."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def remove_outward_links(folder: Path) -> None:
    """
    Remove all symbolic links below *folder* that point out of it, so that no file outside can be read.

    Args:
        folder:
            A folder that no other program writes to. If it does not exist, nothing happens.

    Raises:
        OSError: If a link cannot be removed.
    """
    root = os.path.realpath(folder)
    outward = [
        path
        for parent, folders, files in os.walk(root)
        for path in (os.path.join(parent, name) for name in (*folders, *files))
        if os.path.islink(path) and not f"{os.path.realpath(path)}{os.sep}".startswith(root + os.sep)
    ]
    for path in outward:
        os.unlink(path)
