"""The files that recipes depend on, and a snapshot of their state, to detect changes."""

import os
import time
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct, structs

from promptkit.compiler.loading.recipe_files import FolderWalk, end_of, is_folder, is_test, may_enter
from promptkit.errors.regular_files import Stamp, Stamps, file_stamp

__all__ = ["Stamps", "WatchedFiles", "compare", "find_files"]

#: Editors' temporary files are ignored. Vim creates 4913 to see whether it can write to a folder.
_TEMPORARY_SUFFIXES: Final = ("~", "#", "___")
_TEMPORARY_NAME: Final = "4913"


class WatchedFiles(Struct, frozen=True):
    """
    The state of all files that the recipes depend on, and the folders to watch.

    Args:
        files:
            The stamp of each file; None if it does not exist.

        folders:
            The device and the inode of each folder; None if it does not exist.

        scanned:
            The folders in which new files count, too.

        suffix:
            What the names of new files must end with.

        skipped:
            Which folders could not be scanned, and why.
    """

    files: Stamps
    folders: Mapping[str, tuple[int, int] | None]
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
        stamps = {path: file_stamp(path) for path in paths if self.concerns(path)}
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
    now = {path: file_stamp(path) for path in read}
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
            The folder of the recipes. Everything in the folders below it that recipes may depend on counts,
            except hidden files and tests.

        read:
            The paths of other files that the recipes have read.

        suffix:
            If given, only files directly in *folder* count, and only those whose names end with it.

        seen:
            Stamps that were taken a moment ago, and are not taken again.
    """
    walk = FolderWalk(os.path.realpath(folder), depth=0 if suffix else inf, private=True)
    files = dict[str, Stamp | None]()
    real = []
    for _, entries in walk:
        for entry in entries:
            path = entry.path
            if not entry.name.endswith(suffix) or not _is_visible(entry.name) or is_folder(entry):
                continue
            files[path] = seen[path] if path in seen else file_stamp(path)
            if entry.is_symlink():  # an edit changes the link's target
                real.append(end_of(path))
    outside = [path for path in dict.fromkeys((*real, *read)) if path and path not in files]
    files.update({path: file_stamp(path) for path in outside})
    folders = {str(folder), *walk.entered, *map(os.path.dirname, outside)}
    identities = {path: _identity(path) for path in folders}
    skipped = [f"{path!a}: {reason}" for path, reason in walk.skipped]
    skipped += [f"{path!a}: its name is not UTF-8" for path in walk.entered if not _is_text(path)]
    return WatchedFiles(files, identities, frozenset(walk.entered), suffix, tuple(skipped))


def _is_text(path: str) -> bool:
    """Whether *path* is valid Unicode: the library that watches folders takes no other paths."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_visible(name: str) -> bool:
    if name.startswith("#") or name.endswith(_TEMPORARY_SUFFIXES) or name == _TEMPORARY_NAME:
        return False
    return may_enter(name) and not is_test(name)


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
