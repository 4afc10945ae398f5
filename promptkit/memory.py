"""Control over glibc's memory allocator, which keeps freed memory in a separate arena for each thread."""

import sys
from contextlib import suppress
from typing import Any, Final

#: See mallopt(3).
_M_ARENA_MAX: Final = -8


def share_one_arena() -> None:
    """
    Make all threads allocate from one arena, because separate, fragmented arenas outlive their threads.

    The GIL lets only one thread run at a time, so threads do not contend for the arena.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def return_free_memory() -> None:
    """Make glibc return freed memory to the operating system."""
    _call("malloc_trim", 0)


def _call(function: str, *arguments: Any) -> None:
    """Call a glibc function. Do nothing if the process uses another C library."""
    if sys.platform == "linux":
        # Import late, because importing ctypes opens a file, which could take the number of a closed standard
        # descriptor before `serve` has checked the descriptors.
        from ctypes import CDLL

        with suppress(OSError, AttributeError):  # too many files are open, or it is another C library
            getattr(CDLL(None), function)(*arguments)
