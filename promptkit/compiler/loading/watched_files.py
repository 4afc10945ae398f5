"""The files that recipes are made from, as they are at one moment, to see later what has changed."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from promptkit.compiler.loading.loader import TESTS

__all__ = ["Files", "Stamp", "find_files", "stamp_of"]

#: What tells one state of a file or folder from another.
Stamp: TypeAlias = tuple[int, int, int]

#: What machines make of files, and what editors leave beside them. So do hidden files.
_CACHES: Final = frozenset({"__pycache__", "node_modules", "4913"})
_LEFTOVERS: Final = ("~", "#", "___")

#: How many folders below the recipes are looked into, at most.
_MOST_FOLDERS: Final = 10_000


class Files(Struct, frozen=True):
    """
    The files that matter to recipes, and the folders to watch to learn of more.

    Args:
        files:
            When each file was written, its size and its number; None if it is not there.

        folders:
            The folder that is to be found at each path, None if there is none.

        inside:
            The folders in which files matter that are yet to be made.

        suffix:
            What the names of those end with.

        passed_over:
            Which folders could not be looked into, and why.
    """

    files: Mapping[str, Stamp | None]
    folders: Mapping[str, Stamp | None]
    inside: frozenset[str]
    suffix: str
    passed_over: tuple[str, ...] = ()

    @property
    def watchable(self) -> list[str]:
        """
        The folders that hold the files.
        """
        holding = self.inside.union(map(os.path.dirname, self.files))
        return sorted(folder for folder in holding if self.folders[folder] is not None and _is_text(folder))

    @property
    def is_in_place(self) -> bool:
        """
        Whether each path still leads to the same folder.
        """
        return all(_identity(folder) == identity for folder, identity in self.folders.items())

    def is_being_written(self, seconds: float) -> bool:
        """
        Return whether any Python file was written to within the last so many seconds.

        Its author, or the editor, may not be done: it may be empty, or half of it.
        """
        now = time.time_ns()
        written = (stamp[0] for path, stamp in self.files.items() if stamp and path.endswith(".py"))
        return any(0 <= now - moment < seconds * 1e9 for moment in written)

    def concerns(self, path: str) -> bool:
        """
        Return whether a change at *path* may change what the recipes are.
        """
        folder, name = os.path.split(path)
        if path in self.files or path in self.folders:
            return True
        return folder in self.inside and name.endswith(self.suffix) and _is_visible(name)


def find_files(folder: Path, read: Iterable[Path] = (), suffix: str = "") -> Files:
    """
    Look at all files that matter to the recipes in *folder*.

    Args:
        folder:
            Where they are. Everything below it matters but hidden files, caches and tests.

        read:
            Other files that are known to matter.

        suffix:
            If given, only files whose names end with it matter, and only in *folder* itself.
    """
    walk = _Walk(os.path.realpath(folder), deep=not suffix)
    files: dict[str, Stamp | None] = {}
    real = []
    for entry in walk.files():
        if entry.name.endswith(suffix):
            files[entry.path] = stamp_of(entry.path)
            if entry.is_symlink():  # what will be written is the file that it leads to
                real.append(os.path.realpath(entry.path))
    files.update({path: stamp_of(path) for path in (*real, *map(str, read)) if path not in files})
    folders = {str(folder), *walk.inside, *map(os.path.dirname, files)}
    identities = {path: _identity(path) for path in folders}
    return Files(files, identities, frozenset(walk.inside), suffix, tuple(walk.passed_over))


class _Walk:
    """
    A walk through the folders below one, each once, however links lead through them.
    """

    def __init__(self, folder: str, *, deep: bool) -> None:
        self._folder = folder
        self._deep = deep
        self.inside: set[str] = set()
        self.passed_over: list[str] = []

    def files(self) -> Iterator["os.DirEntry[str]"]:
        """
        Return the visible files, and note the folders and what cannot be looked into.
        """
        ahead = [self._folder]
        while ahead:
            folder = ahead.pop()
            if folder in self.inside:
                continue
            if len(self.inside) == _MOST_FOLDERS:
                self.passed_over.append(f"{folder!a} and further folders: there are too many")
                return
            below = []
            for entry in self._entries(folder):
                if not _is_folder(entry):
                    yield entry
                elif self._deep:
                    below.append(os.path.realpath(entry.path) if entry.is_symlink() else entry.path)
            ahead += reversed(below)

    def _entries(self, folder: str) -> list["os.DirEntry[str]"]:
        """
        Return what is visible in *folder*; nothing if it has just gone, or may not be looked into.
        """
        try:
            with os.scandir(folder) as found:
                entries = [entry for entry in found if _is_visible(entry.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.passed_over.append(f"{folder!a}: {error.strerror}")
            return []
        if not _is_text(folder):
            self.passed_over.append(f"{folder!a}: its name is no UTF-8")
        self.inside.add(folder)
        return entries


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """
    Return whether *entry* is, or leads to, a folder. What cannot be known is none.
    """
    try:
        return entry.is_dir()
    except OSError:  # a link to itself, or into a folder that may not be looked into
        return False


def _is_text(path: str) -> bool:
    """
    Return whether *path* is text, as what watches folders has to have it.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_visible(name: str) -> bool:
    """
    Return whether a file or folder of that name may be part of recipes.
    """
    if name.startswith((".", "#")) or name.endswith(_LEFTOVERS) or name in _CACHES:
        return False
    return not any(fnmatchcase(name, pattern) for pattern in TESTS)


def stamp_of(path: str) -> Stamp | None:
    """
    Return what tells a file from what it was before, None if it is not there.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _identity(folder: str) -> Stamp | None:
    """
    Return what tells a folder from another at the same path, None if it is not there.
    """
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, 0
