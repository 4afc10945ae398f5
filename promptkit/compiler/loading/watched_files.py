"""The files that recipes depend on, and a snapshot of their state, to detect changes."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct, structs

__all__ = ["Stamp", "Stamps", "WatchedFiles", "compare", "find_files", "is_test", "stamp_of"]

#: Identifies a version of a file, or a folder. If it differs, the file or folder was changed or replaced.
Stamp: TypeAlias = tuple[int, int, int]

#: By path: the stamp of each file; None if it does not exist.
Stamps: TypeAlias = Mapping[str, Stamp | None]

#: Caches and editors' temporary files are ignored. Vim creates 4913 to see whether it can write to a folder.
_IGNORED_NAMES: Final = frozenset({"__pycache__", "node_modules", "4913"})
_TEMPORARY_SUFFIXES: Final = ("~", "#", "___")

#: At most this many folders are scanned.
_MAX_FOLDERS: Final = 10_000


class WatchedFiles(Struct, frozen=True):
    """
    The state of all files that the recipes depend on, and the folders to watch.

    Args:
        files:
            The stamp of each file; None if it does not exist.

        folders:
            The stamp of each folder; None if it does not exist.

        scanned:
            The folders in which new files count, too.

        suffix:
            What the names of new files must end with.

        skipped:
            Which folders could not be scanned, and why.
    """

    files: Mapping[str, Stamp | None]
    folders: Mapping[str, Stamp | None]
    scanned: frozenset[str]
    suffix: str
    skipped: tuple[str, ...] = ()

    @property
    def folders_to_watch(self) -> list[str]:
        """The folders that hold the files."""
        holding = self.scanned.union(map(os.path.dirname, self.files))
        return sorted(folder for folder in holding if self.folders[folder] is not None and _is_text(folder))

    @property
    def is_in_place(self) -> bool:
        """Whether each path still leads to the same folder."""
        return all(_identity(folder) == identity for folder, identity in self.folders.items())

    def is_being_written(self, seconds: float) -> bool:
        """
        Return whether a Python file was written to in the last *seconds*.

        Its editor may not be done: the file may be empty, or half written.
        """
        now = time.time_ns()
        written = (stamp[0] for path, stamp in self.files.items() if stamp and path.endswith(".py"))
        return any(0 <= now - moment < seconds * 1e9 for moment in written)

    def after_edits(self, paths: Iterable[str]) -> "WatchedFiles | None":
        """
        Return the state of the files now, if only known ones at *paths* have changed; else None.
        """
        stamps = {path: stamp_of(path) for path in paths if self.concerns(path)}
        if not stamps or None in stamps.values() or not stamps.keys() <= self.files.keys():
            return None
        return structs.replace(self, files={**self.files, **stamps})

    def concerns(self, path: str) -> bool:
        """Return whether a change at *path* may change the recipes."""
        folder, name = os.path.split(path)
        if path in self.files or path in self.folders:
            return True
        return folder in self.scanned and name.endswith(self.suffix) and _is_visible(name)


def compare(before: Stamps, read: Iterable[str]) -> tuple[bool, Stamps]:
    """
    Return whether the files at the paths *read* are as *before*; and the stamps of all, as they were then.
    """
    now = {path: stamp_of(path) for path in read}
    return all(before.get(path, stamp) == stamp for path, stamp in now.items()), {**now, **before}


def find_files(
    folder: Path,
    read: Iterable[str] = (),
    suffix: str = "",
    seen: Stamps = MappingProxyType({}),
) -> WatchedFiles:
    """
    Find all files that the recipes in *folder* depend on.

    Args:
        folder:
            The folder of the recipes. Everything below it counts, except hidden files, caches and tests.

        read:
            The paths of other files that the recipes have read.

        suffix:
            If given, only files directly in *folder* count, and only those whose names end with it.

        seen:
            Stamps that were taken a moment ago, and are not taken again.
    """
    walk = _Walk(os.path.realpath(folder), deep=not suffix)
    files: dict[str, Stamp | None] = {}
    real = []
    for entry in walk.files():
        if entry.name.endswith(suffix):
            path = entry.path
            files[path] = seen[path] if path in seen else stamp_of(path)
            if entry.is_symlink():  # an edit changes the link's target
                real.append(os.path.realpath(path))
    outside = [path for path in dict.fromkeys((*real, *read)) if path not in files]
    files.update({path: stamp_of(path) for path in outside})
    folders = {str(folder), *walk.scanned, *map(os.path.dirname, outside)}
    identities = {path: _identity(path) for path in folders}
    return WatchedFiles(files, identities, frozenset(walk.scanned), suffix, tuple(walk.skipped))


class _Walk:
    """A walk through a folder and those below it. Links are followed, but no folder is visited twice."""

    def __init__(self, folder: str, *, deep: bool) -> None:
        self._folder = folder
        self._deep = deep
        self.scanned: set[str] = set()
        self.skipped: list[str] = []

    def files(self) -> Iterator["os.DirEntry[str]"]:
        """Yield the visible files, and note the folders and what cannot be scanned."""
        ahead = [self._folder]
        while ahead:
            folder = ahead.pop()
            if folder in self.scanned:
                continue
            if len(self.scanned) == _MAX_FOLDERS:
                self.skipped.append(f"{folder!a} and further folders: there are too many")
                return
            below = []
            for entry in self._entries(folder):
                if not _is_folder(entry):
                    yield entry
                elif self._deep:
                    below.append(os.path.realpath(entry.path) if entry.is_symlink() else entry.path)
            ahead += reversed(below)

    def _entries(self, folder: str) -> list["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as found:
                entries = [entry for entry in found if _is_visible(entry.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.skipped.append(f"{folder!a}: {error.strerror}")
            return []
        if not _is_text(folder):
            self.skipped.append(f"{folder!a}: its name is not UTF-8")
        self.scanned.add(folder)
        return entries


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself, or into a folder that may not be read
        return False


def _is_text(path: str) -> bool:
    """Whether *path* is valid Unicode: the library that watches folders takes no other paths."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_visible(name: str) -> bool:
    if name.startswith((".", "#")) or name.endswith(_TEMPORARY_SUFFIXES) or name in _IGNORED_NAMES:
        return False
    return not is_test(name)


def is_test(name: str) -> bool:
    """Return whether a file of that name belongs to pytest."""
    return name.endswith(".py") and (
        name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    )


def stamp_of(path: str) -> Stamp | None:
    """Return the stamp of a file: when it was written, its size and its inode; None if it does not exist."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _identity(folder: str) -> Stamp | None:
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, 0
