"""
Watches folders with the backend of watchfiles, which is written in Rust.

The package itself is not imported: it loads multiprocessing, logging and 2 MiB for what is not used here.
"""

import os
import platform
import sys
from collections.abc import Generator, Iterable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from threading import Event
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

__all__ = ["changes_in"]

_BACKEND: Final = "watchfiles._rust_notify"

#: How often files are looked at where the system does not tell of changes, in milliseconds.
_POLL_EVERY_MS: Final = 300


def changes_in(
    folders: Iterable[str], stop: Event, *, quiet_ms: int, max_delay_ms: int, every_ms: int
) -> Generator[set[str]]:
    """
    Yield the paths that have changed in *folders*, again and again until *stop* is set.

    Args:
        folders:
            The folders. What is in folders below them does not count.

        stop:
            Ends it.

        quiet_ms:
            For how long nothing may have changed before changes are told, in milliseconds.

        max_delay_ms:
            How long after the first of many changes they are told at the latest.

        every_ms:
            After how long without any change that is told, too: no paths are yielded.

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
    with watcher:
        while (found := watcher.watch(max_delay_ms, quiet_ms, every_ms, stop)) not in ("stop", "signal"):
            yield set() if isinstance(found, str) else {path for _, path in found}


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
    if told := os.environ.get("WATCHFILES_FORCE_POLLING"):
        return told.lower() not in {"false", "disable", "disabled"}
    return "microsoft-standard" in platform.uname().release.lower()  # Linux on Windows: it tells nothing
