"""The memory of the process, which glibc keeps after it was freed."""

import sys
from contextlib import suppress
from ctypes import CDLL

__all__ = ["return_free_memory"]


def return_free_memory() -> None:
    """Return free memory to the system. Only glibc keeps most of it; elsewhere this does nothing."""
    if sys.platform == "linux":
        with suppress(OSError):  # no more files can be opened
            getattr(CDLL(None), "malloc_trim", int)(0)
