"""
The event loops of one server: one, and others for as long as that one is stuck.

Importing this module imports asyncio, so it is done when the first asynchronous prompt is called.
"""

import sys
import time
from contextlib import suppress
from threading import Lock
from typing import Final

from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.server.scheduling.event_loop import EventLoopThread

__all__ = ["EventLoops"]

#: How long a substitute is kept after it was last used, in seconds, as it may be needed again.
_KEPT: Final = 1.0

#: What sets how many arenas glibc's `malloc` may have, as `mallopt` knows it.
_ARENA_MAX: Final = -8


class EventLoops:
    """
    Finds a loop for each coroutine.

    What an author keeps for a loop, such as a lock or a client, belongs to the first one. So
    that is used whenever it is not stuck, and its substitutes end.

    Args:
        limit:
            How many substitutes there may be. A loop that is stuck, and stays so, is never ended.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loops: list[EventLoopThread] = []
        self._ending: list[EventLoopThread] = []
        self._used = 0.0
        self._lock = Lock()
        _share_memory()

    @property
    def unsettled(self) -> bool:
        """
        Whether a loop is stuck, or there are substitutes that end soon: somebody has to look.
        """
        return len(self._loops) > 1 or bool(self._ending) or any(loop.stuck for loop in self._loops)

    def free(self) -> EventLoopThread:
        """
        Return a loop that is not stuck, as far as is known.

        Raises:
            TooManyRequests: If as many are stuck as there may be.

            RuntimeError: If there can be no more threads.
        """
        with self._lock:
            self._forget()
            found = next((loop for loop in self._loops if not loop.stuck), None)
            if found is None:
                if (held_up := len(self._loops) + len(self._ending)) > self._limit:
                    msg = f"{held_up} event loops are held up by prompts that block: try again later"
                    raise TooManyRequests(msg)
                found = EventLoopThread()
                self._loops.append(found)
            if found is not self._loops[0]:
                self._used = time.monotonic()
            return found

    def look(self, now: float) -> None:
        """
        Look after the loops: what waits behind a prompt that blocks is begun on another loop.

        Args:
            now:
                The time, by `time.monotonic`.
        """
        for loop in self._loops:
            loop.look()
            if loop.stuck and loop.waits:
                with suppress(RuntimeError, TooManyRequests):  # it waits on; its time is limited
                    self.free().take_over(loop)
        self._end_idle(now)

    def end(self) -> None:
        """
        End all loops, each once nothing runs there any more.
        """
        with self._lock:
            self._forget()
            for loop in self._loops:
                loop.end()
            self._ending += self._loops
            self._loops = []

    def _end_idle(self, now: float) -> None:
        """
        End the substitutes that have not been needed for a while.
        """
        with self._lock:
            self._forget()
            if now - self._used < _KEPT:
                return
            fine = [loop for loop in self._loops if not loop.stuck]
            for loop in fine[1:]:
                self._loops.remove(loop)
                self._ending.append(loop)
                loop.end()

    def _forget(self) -> None:
        """
        Forget the loops whose threads have come to their ends.
        """
        self._loops = [loop for loop in self._loops if not loop.over]
        self._ending = [loop for loop in self._ending if not loop.over]


def _share_memory() -> None:
    """
    Let the many threads to come allocate from what the few before them do, where the C library is glibc.

    It would give most an arena of their own, which keeps what was freed in it. That is for
    threads which allocate at the same time; Python's lock lets one after the other do so.

    See Also:
        https://man7.org/linux/man-pages/man3/mallopt.3.html
    """
    if sys.platform == "linux":
        import ctypes  # servers without loops never need it

        if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
            mallopt(_ARENA_MAX, 1)
