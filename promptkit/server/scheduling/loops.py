"""
The event loops of one server: one, and substitutes while that one is stuck.

Importing this module imports asyncio, so it is done when the first asynchronous prompt is called.
"""

import sys
import time
from contextlib import suppress
from threading import Lock
from typing import Final

from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.server.scheduling.event_loop import EventLoopThread

__all__ = ["EventLoops", "limit_arenas"]

#: How long a substitute is kept after its last use, as it may be needed again.
_KEEP_SUBSTITUTE_S: Final = 1.0

#: What sets how many arenas glibc's `malloc` may have, as `mallopt` knows it.
_M_ARENA_MAX: Final = -8


class EventLoops:
    """
    Finds a loop for each coroutine.

    What an author keeps for a loop, such as a lock or an HTTP client, belongs to the first one. So
    that one is used whenever it is not stuck, and its substitutes end.

    Args:
        limit:
            How many substitutes there may be. A loop that stays stuck never ends.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loops: list[EventLoopThread] = []
        self._ending: list[EventLoopThread] = []
        self._substitute_used_at = 0.0
        self._lock = Lock()

    @property
    def unsettled(self) -> bool:
        """Whether `look` has to be called: a loop is stuck, or substitutes have to end."""
        return len(self._loops) > 1 or bool(self._ending) or any(loop.stuck for loop in self._loops)

    def free(self) -> EventLoopThread:
        """
        Return a loop that is not known to be stuck.

        Raises:
            TooManyRequests: If as many are stuck as there may be.

            RuntimeError: If there can be no more threads.
        """
        with self._lock:
            self._forget_ended()
            found = next((loop for loop in self._loops if not loop.stuck), None)
            if found is None:
                if (held_up := len(self._loops) + len(self._ending)) > self._limit:
                    msg = f"{held_up} event loops are held up by prompts that block: try again later"
                    raise TooManyRequests(msg)
                found = EventLoopThread()
                self._loops.append(found)
            if found is not self._loops[0]:
                self._substitute_used_at = time.monotonic()
            return found

    def look(self, now: float) -> None:
        """Give what waits behind a prompt that blocks to another loop. *now* is by `time.monotonic`."""
        for loop in self._loops:
            loop.look()
            if loop.stuck and loop.waits:
                with suppress(RuntimeError, TooManyRequests):  # it waits on, until its deadline
                    self.free().take_over(loop)
        self._end_idle(now)

    def end(self) -> None:
        """End all loops, each once nothing runs there any more."""
        with self._lock:
            self._forget_ended()
            for loop in self._loops:
                loop.end()
            self._ending += self._loops
            self._loops = []

    def _end_idle(self, now: float) -> None:
        with self._lock:
            self._forget_ended()
            if now - self._substitute_used_at < _KEEP_SUBSTITUTE_S:
                return
            fine = [loop for loop in self._loops if not loop.stuck]
            for loop in fine[1:]:
                self._loops.remove(loop)
                self._ending.append(loop)
                loop.end()

    def _forget_ended(self) -> None:
        self._loops = [loop for loop in self._loops if not loop.over]
        self._ending = [loop for loop in self._ending if not loop.over]


def limit_arenas() -> None:
    """
    Have all threads of the process allocate from the same memory, where the C library is glibc.
    """
    # Otherwise most threads get an arena of their own, which keeps what was freed in it. That helps
    # threads that allocate at the same time; Python's lock lets only one at a time do so.
    # https://man7.org/linux/man-pages/man3/mallopt.3.html
    if sys.platform == "linux":
        import ctypes  # servers without loops never need it

        if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
            mallopt(_M_ARENA_MAX, 1)
