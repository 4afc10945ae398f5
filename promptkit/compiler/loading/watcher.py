"""
Watches folders with the backend of watchfiles, which is written in Rust.

The package itself is not imported: it loads multiprocessing, logging and 2 MiB for what is not used here.
"""

import os
import sys
import time
from collections.abc import Generator, Iterable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from math import ceil
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

__all__ = ["DEBOUNCE", "Debounce", "changes_in"]

_BACKEND: Final = "watchfiles._rust_notify"

#: What the backend says in place of changes when nobody waits for them any more.
_ENDED: Final = ("stop", "signal")

#: How often files are looked at where the system does not tell of changes, in milliseconds.
_POLL_EVERY_MS: Final = 300


class Debounce(Struct, frozen=True):
    """
    When changes are reported, in milliseconds.

    Args:
        quiet:
            For how long nothing may have changed before.

        at_most:
            How long after the first of many changes they are reported at the latest.

        every:
            After how long without any change that is reported, too.
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
    step_ms = debounce.quiet // 2  # a change is found one step after another look has found it
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
