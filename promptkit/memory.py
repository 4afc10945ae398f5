"""Control of glibc's allocator, which keeps freed memory, in an arena for each thread."""

import sys
from contextlib import suppress
from typing import Any, Final

#: See mallopt(3).
_M_ARENA_MAX: Final = -8


def share_one_arena() -> None:
    """
    Let all threads allocate from one arena, because the fragmented arenas of ended threads would remain.

    The GIL lets only one thread run at a time, so threads do not contend for the arena.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def return_free_memory() -> None:
    """Return freed memory from glibc to the system."""
    _call("malloc_trim", 0)


def _call(function: str, *arguments: Any) -> None:
    """Call a function of glibc; do nothing with other C libraries."""
    if sys.platform == "linux":
        # Import late: it opens a file, which could take the number of a closed standard descriptor before
        # `serve` has checked them.
        from ctypes import CDLL

        with suppress(OSError, AttributeError):  # no more files can be opened, or another C library
            getattr(CDLL(None), function)(*arguments)
