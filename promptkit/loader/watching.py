"""
Watches the files that recipes depend on: how they are, and when they change.

The backend of watchfiles does so, which is written in Rust. The package itself is not imported: it loads
multiprocessing, logging and 2 MiB for what is not used here.
"""

import os
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from math import ceil, inf
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from promptkit.files.reading import Stamp, Stamps, file_stamp
from promptkit.loader.discovery import FolderWalk, resolve_link, is_folder, is_test, may_enter

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

#: Editors' temporary files are ignored. Vim creates 4913 to see whether it can write to a folder.
_TEMPORARY_SUFFIXES: Final = ("~", "#", "___")
_TEMPORARY_NAME: Final = "4913"

_BACKEND: Final = "watchfiles._rust_notify"

#: What the backend says in place of changes when nobody waits for them any more.
_ENDED: Final = ("stop", "signal")

#: How often files are looked at where the system does not tell of changes, in milliseconds.
_POLL_EVERY_MS: Final = 300


class WatchedFiles(Struct, frozen=True):
    """
    The state of all files that the recipes depend on, and the folders to watch.

    Args:
        files:
            The stamp of each file; None if it does not exist.

        folders:
            The device and the inode of each folder; None if it does not exist.

        scanned:
            The folders in which new files count, too, each with what their names must end with.

        skipped:
            Which folders could not be scanned, and why.
    """

    files: Stamps
    folders: Mapping[str, tuple[int, int] | None]
    scanned: Mapping[str, str]
    skipped: tuple[str, ...] = ()

    @property
    def folders_to_watch(self) -> list[str]:
        """The folders that hold the files."""
        holding = {*self.scanned, *map(os.path.dirname, self.files)}
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

    def changed(self, later: "WatchedFiles") -> set[str]:
        """
        Return the paths of the files that are not the same in *later*.

        Of the files outside of the scanned folders, only those count that are in both.
        """
        scanned = self.scanned.keys() | later.scanned.keys()
        return {
            path
            for path in self.files.keys() | later.files.keys()
            if self.files.get(path) != later.files.get(path)
            and (os.path.dirname(path) in scanned or (path in self.files and path in later.files))
        }

    def concerns(self, path: str) -> bool:
        """Return whether a change at *path* may change the recipes."""
        folder, name = os.path.split(path)
        if path in self.files or path in self.folders:
            return True
        return folder in self.scanned and name.endswith(self.scanned[folder]) and _is_visible(name)


def find_files(folders: Mapping[Path, str], read: Iterable[str] = ()) -> WatchedFiles:
    """
    Find all files that the recipes in some folders depend on.

    Args:
        folders:
            The folders of the recipes. Everything in the folders below that recipes may depend on counts,
            except hidden files and tests. If a folder has a suffix, only files directly in it count, and only
            those whose names end with that.

        read:
            The paths of other files that the recipes have read.
    """
    files, link_targets = dict[str, Stamp | None](), list[str]()
    scanned, skipped = dict[str, str](), list[str]()
    for folder, suffix in folders.items():
        walk = FolderWalk(os.path.realpath(folder), depth=0 if suffix else inf, private=True)
        for entry in (entry for _, entries in walk for entry in entries):
            path = entry.path
            if not entry.name.endswith(suffix) or not _is_visible(entry.name) or is_folder(entry):
                continue
            files[path] = file_stamp(path)
            if entry.is_symlink():  # an edit changes what it leads to
                link_targets.append(resolve_link(path))
        scanned |= dict.fromkeys(walk.entered, suffix)
        skipped += [f"{path!a}: {reason}" for path, reason in walk.skipped]
        skipped += [f"{path!a}: its name is not UTF-8" for path in walk.entered if not _is_text(path)]
    outside = [path for path in dict.fromkeys((*link_targets, *read)) if path and path not in files]
    files.update({path: file_stamp(path) for path in outside})
    holding = {*map(str, folders), *scanned, *map(os.path.dirname, outside)}
    return WatchedFiles(files, {path: _identity(path) for path in holding}, scanned, tuple(skipped))


def _is_text(path: str) -> bool:
    """Whether *path* is valid Unicode: the library that watches folders takes no other paths."""
    return not any("\ud800" <= one <= "\udfff" for one in path)


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


class Debounce(Struct, frozen=True):
    """
    When changes are reported, in milliseconds.

    Args:
        quiet:
            For how long nothing may have changed before.

        at_most:
            How long after the first of many changes they are reported at the latest.

        every:
            After how long it is reported that nothing has changed.
    """

    quiet: int = 50
    at_most: int = 1000
    every: int = 250


#: A saved file is read so long after its editor has written it.
DEBOUNCE: Final = Debounce()


def changes_in(folders: Iterable[str], stop: Event, debounce: Debounce = DEBOUNCE) -> Generator[set[str]]:
    """
    Yield the paths that have changed in *folders*, again and again until *stop* is set.

    Args:
        folders:
            The folders. What is in folders below them does not count.

        stop:
            Ends it.

        debounce:
            When changes are yielded. Where nothing has changed, no paths are.

    Raises:
        FileNotFoundError: If one of the folders does not exist.

        OSError: If the system cannot watch them.

    See Also:
        https://watchfiles.helpmanual.io/api/rust_backend/
    """
    watcher = _backend()(
        list(folders),
        debug=False,
        force_polling=_polls(),
        poll_delay_ms=_POLL_EVERY_MS,
        recursive=False,
        ignore_permission_denied=False,
    )
    step_ms = debounce.quiet // 2  # a round of changes ends with the first step in which nothing changes
    with watcher:
        while (found := watcher.watch(debounce.at_most, step_ms, debounce.every, stop)) not in _ENDED:
            paths = _paths(found)
            until = time.monotonic() + debounce.at_most / 1000
            while (rest_ms := _rest_of(debounce.quiet, paths)) and time.monotonic() < until:
                if (found := watcher.watch(debounce.at_most, rest_ms, rest_ms, stop)) in _ENDED:
                    return
                paths |= _paths(found)
            yield paths


def _paths(found: "set[tuple[int, str]] | str") -> set[str]:
    return set() if isinstance(found, str) else {path for _, path in found}


def _rest_of(quiet_ms: int, paths: set[str]) -> int:
    """How many milliseconds are left until nothing at *paths* has changed for *quiet_ms*."""
    now = time.time_ns()
    # A file that is gone has changed its folder.
    changed = (_changed_at(place) for place in paths.union(map(os.path.dirname, paths)))
    last = max((moment for moment in changed if moment <= now), default=0)
    return max(0, ceil(quiet_ms - (now - last) / 1e6))


def _changed_at(path: str) -> int:
    """When a file or folder was last written, renamed or replaced, in nanoseconds; 0 if it is gone."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return 0
    return max(found.st_mtime_ns, found.st_ctime_ns)


def _backend() -> "type[RustNotify]":
    module: Any = sys.modules.get(_BACKEND)
    if module is None:
        package = find_spec("watchfiles")
        spec = PathFinder.find_spec(_BACKEND, package.submodule_search_locations if package else [])
        if spec is None or spec.loader is None:
            msg = f"No module named {_BACKEND!r}"
            raise ModuleNotFoundError(msg, name=_BACKEND)
        # Kept under its name, for authors who import the package: a process can load it only once.
        sys.modules[_BACKEND] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    found: type[RustNotify] = module.RustNotify
    return found


def _polls() -> bool:
    """Whether to look at the files again and again: as watchfiles decides it, by the same variable."""
    import platform  # slow to import, and not needed before the first reply

    if told := os.environ.get("WATCHFILES_FORCE_POLLING"):
        return told.lower() not in {"false", "disable", "disabled"}
    return "microsoft-standard" in platform.uname().release.lower()  # Linux on Windows: it tells nothing
