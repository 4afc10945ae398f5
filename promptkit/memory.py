"""The memory of the process: glibc keeps freed memory, in an arena for each thread."""

import sys
from contextlib import suppress
from typing import Any, Final

#: See mallopt(3).
_M_ARENA_MAX: Final = -8


def share_one_arena() -> None:
    """
    Let all threads allocate from one arena: arenas of ended threads stay, each with holes of its own.

    Python's lock lets one thread run at a time, so they do not wait for each other.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def return_free_memory() -> None:
    """Return free memory to the system."""
    _call("malloc_trim", 0)


def _call(function: str, *arguments: Any) -> None:
    """Call a function of glibc; elsewhere this does nothing."""
    if sys.platform == "linux":
        # The import opens a file that would become a closed standard descriptor: `serve` checks those first.
        from ctypes import CDLL

        with suppress(OSError, AttributeError):  # no more files can be opened, or it is another C library
            getattr(CDLL(None), function)(*arguments)
