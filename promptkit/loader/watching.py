"""
Watches the files that recipes depend on, and records their state.

Uses the Rust backend of watchfiles. The package itself is not imported, because it loads multiprocessing,
logging and 2 MiB of code that is not needed.
"""

import os
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from math import inf
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from promptkit.files.reading import Stamp, Stamps, file_stamp
from promptkit.loader.discovery import (
    MARKDOWN_ENDING,
    FolderWalk,
    is_folder,
    is_test_file,
    may_enter,
    resolve_link,
)
from promptkit.loader.targets import root_for_links

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

#: Temporary files of editors, which are ignored. Vim creates 4913 to test whether a folder is writable.
_TEMPORARY_SUFFIXES: Final = ("~", "#", "___")
_TEMPORARY_NAME: Final = "4913"

_BACKEND: Final = "watchfiles._rust_notify"

#: Results that the backend returns once it has stopped watching.
_ENDED: Final = ("stop", "signal")

#: Interval in milliseconds between two checks on systems that do not report changes.
_POLL_EVERY_MS: Final = 300

#: Interval in seconds between two checks of watched files. Some changes, such as those made by another
#: computer, are noticed only by these checks.
CHECK_EVERY_S: Final = 5.0

#: Interval in seconds between two checks of all files if they cannot be watched.
POLL_EVERY_S: Final = 1.0


class WatchedFiles(Struct, frozen=True):
    """
    The state of all files that the recipes depend on, and the folders to watch.

    Args:
        files:
            The stamp of each file; None if it does not exist.

        folders:
            The device and inode numbers of each folder; None if it does not exist.

        scanned:
            The folders in which new files count as well, each with the suffix that their names must have.
    """

    files: Stamps
    folders: Mapping[str, tuple[int, int] | None]
    scanned: Mapping[str, str]

    @property
    def folders_to_watch(self) -> list[str]:
        """The existing folders that contain the files."""
        folders = {*self.scanned, *map(os.path.dirname, self.files)}
        return sorted(
            folder for folder in folders if self.folders[folder] is not None and _is_unicode(folder)
        )

    @property
    def is_in_place(self) -> bool:
        """Whether the path of each folder still leads to the same folder."""
        return all(_identity(folder) == identity for folder, identity in self.folders.items())

    def is_being_written(self, seconds: float) -> bool:
        """
        Return whether a Python file or a Markdown prompt was written in the last *seconds*.

        The editor may still be writing: the file may be empty or incomplete.
        """
        now = time.time_ns()
        written = (
            stamp[0]
            for path, stamp in self.files.items()
            if stamp and path.endswith((".py", MARKDOWN_ENDING))
        )
        return any(0 <= now - moment < seconds * 1e9 for moment in written)

    def changed(self, later: "WatchedFiles") -> set[str]:
        """
        Return the paths of the files that differ in *later*.

        Files outside of the scanned folders count only if both states contain them.
        """
        scanned = self.scanned.keys() | later.scanned.keys()
        return {
            path
            for path in self.files.keys() | later.files.keys()
            if self.files.get(path) != later.files.get(path)
            and (os.path.dirname(path) in scanned or (path in self.files and path in later.files))
        }

    def concerns(self, path: str) -> bool:
        """Return whether a change at *path* may affect the recipes."""
        folder, name = os.path.split(path)
        if path in self.files or path in self.folders:
            return True
        return folder in self.scanned and name.endswith(self.scanned[folder]) and _is_visible(name)


def find_files(folders: Mapping[Path, str], read: Iterable[str] = ()) -> WatchedFiles:
    """
    Find all files that the recipes in some folders depend on.

    Args:
        folders:
            The folders of the recipes, each with a suffix. With ``""``, all files in the folder and its
            subfolders count, except for hidden files and tests. With any other suffix, only files count that
            are directly in the folder and whose names end with the suffix.

        read:
            The paths of other files that the recipes have read.
    """
    files, link_targets = dict[str, Stamp | None](), list[str]()
    scanned = dict[str, str]()
    for folder, suffix in folders.items():
        path = os.path.realpath(folder)
        walk = FolderWalk(path, depth=0 if suffix else inf, private=True, project=root_for_links(path))
        for entry in (entry for _, entries in walk for entry in entries):
            path = entry.path
            if not entry.name.endswith(suffix) or not _is_visible(entry.name) or is_folder(entry):
                continue
            files[path] = file_stamp(path)
            if entry.is_symlink():  # an edit changes the link's target
                link_targets.append(resolve_link(path))
        scanned |= dict.fromkeys(walk.entered, suffix)
    outside = [path for path in dict.fromkeys((*link_targets, *read)) if path and path not in files]
    files.update({path: file_stamp(path) for path in outside})
    parents = {*map(str, folders), *scanned, *map(os.path.dirname, outside)}
    return WatchedFiles(files, {path: _identity(path) for path in parents}, scanned)


def _is_unicode(path: str) -> bool:
    """Return whether *path* is valid Unicode. The backend that watches folders accepts no other paths."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def _is_visible(name: str) -> bool:
    if name.startswith("#") or name.endswith(_TEMPORARY_SUFFIXES) or name == _TEMPORARY_NAME:
        return False
    return may_enter(name) and not is_test_file(name)


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


class Debounce(Struct, frozen=True):
    """
    The timing of reports about changes, in milliseconds.

    Args:
        quiet:
            How long there must be no further change before changes are reported.

        at_most:
            The maximum time between the first change in a series and the report.

        every:
            The interval between reports while there are no changes.
    """

    quiet: int = 50
    at_most: int = 1000
    every: int = 250


#: The default timing of reports.
DEBOUNCE: Final = Debounce()


def changes_in(folders: Iterable[str], stop: Event, debounce: Debounce = DEBOUNCE) -> Generator[set[str]]:
    """
    Yield sets of changed paths in *folders* until *stop* is set.

    Args:
        folders:
            The folders. Their subfolders are not watched.

        stop:
            Stops watching when set.

        debounce:
            The timing of the sets. While there are no changes, empty sets are yielded regularly.

    Raises:
        FileNotFoundError: If a folder does not exist.

        OSError: If the system cannot watch the folders.

    See Also:
        https://watchfiles.helpmanual.io/api/rust_backend/
    """
    watcher = _load_backend()(
        list(folders),
        debug=False,
        force_polling=_must_poll(),
        poll_delay_ms=_POLL_EVERY_MS,
        recursive=False,
        ignore_permission_denied=False,
    )
    # The backend returns after the first quiet period that follows a change.
    arguments = debounce.at_most, debounce.quiet, debounce.every, stop
    with watcher:
        while (result := watcher.watch(*arguments)) not in _ENDED:
            yield set() if isinstance(result, str) else {path for _, path in result}


def _load_backend() -> "type[RustNotify]":
    module: Any = sys.modules.get(_BACKEND)
    if module is None:
        package = find_spec("watchfiles")
        spec = PathFinder.find_spec(_BACKEND, package.submodule_search_locations if package else [])
        if spec is None or spec.loader is None:
            msg = f"No module named {_BACKEND!r}"
            raise ModuleNotFoundError(msg, name=_BACKEND)
        # Registered under its own name, because a process can load it only once, and authors can import it.
        sys.modules[_BACKEND] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    backend: type[RustNotify] = module.RustNotify
    return backend


def _must_poll() -> bool:
    """Return whether to poll the files. Like watchfiles, decide it by the environment and the platform."""
    import platform  # slow to import, and not needed before the first reply

    if setting := os.environ.get("WATCHFILES_FORCE_POLLING"):
        return setting.lower() not in {"false", "disable", "disabled"}
    return "microsoft-standard" in platform.uname().release.lower()  # WSL does not report changes
