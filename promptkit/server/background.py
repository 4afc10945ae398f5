"""
An event loop on a thread of its own, for prompts that must not hold up the others.

Importing this module imports asyncio, so it is done when the first such prompt is called.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, Final, TypeVar

__all__ = ["Background"]

T = TypeVar("T")

#: How long a loop may take to come round, in seconds, before it counts as stuck.
_ROUND: Final = 0.05


class Background:
    """
    Runs coroutines beside the caller.

    Its thread is a daemon: whatever runs there, it never keeps the process alive.

    Attributes:
        stuck:
            Whether a coroutine holds up all others on this loop. It may come round later.
    """

    def __init__(self) -> None:
        self.stuck = False
        self._loop = asyncio.new_event_loop()
        self._waiting_since: float | None = None
        Thread(target=self._run, name="promptkit-background", daemon=True).start()

    def _run(self) -> None:
        while True:
            # A task that raises SystemExit or the like stops its loop; the others go on.
            with suppress(BaseException):
                self._loop.run_forever()

    def start(self, coroutine: Coroutine[Any, Any, T], done: Callable[[Future[T]], None]) -> Future[T]:
        """
        Start *coroutine*.

        Args:
            coroutine:
                What is run.

            done:
                Called once it has finished, failed or been cancelled.

        Returns:
            A future whose ``cancel()`` cancels it.
        """
        future = asyncio.run_coroutine_threadsafe(_contained(coroutine), self._loop)
        future.add_done_callback(done)
        return future

    def look(self, now: float) -> None:
        """
        Find out whether the loop comes round.

        Args:
            now:
                The time, by `time.monotonic`. To be called every few milliseconds while anything runs.
        """
        if self._waiting_since is None:
            self._waiting_since = now
            self._loop.call_soon_threadsafe(self._came_round)
        elif now - self._waiting_since > _ROUND:
            self.stuck = True

    def _came_round(self) -> None:
        self._waiting_since = None
        self.stuck = False


async def _contained(coroutine: Coroutine[Any, Any, T]) -> T:
    """
    Return what *coroutine* returns.

    Raises:
        RuntimeError: If it raised what would end the loop or its task.

        Exception: Whatever else it raises.
    """
    try:
        return await coroutine
    except Exception:
        raise
    except BaseException as ending:
        task = asyncio.current_task()
        if isinstance(ending, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # nobody wants it any more
        msg = f"the prompt raised {type(ending).__name__}"
        raise RuntimeError(msg) from ending
