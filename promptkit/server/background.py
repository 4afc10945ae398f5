"""
An event loop on a thread of its own, for prompts that must not hold up the others.

Importing this module imports asyncio, so it is done when the first such prompt is called.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, Final, TypeVar

import attrs

from promptkit.standard_error import say

__all__ = ["Background"]

T = TypeVar("T")

#: How long a loop may take to come round, in seconds, before it counts as stuck.
_ROUND: Final = 0.05


@attrs.frozen(eq=False)
class _Work:
    """
    A coroutine, whoever runs it, and who is told what.
    """

    coroutine: Coroutine[Any, Any, Any]
    future: Future[Any]
    over: Callable[[], object]


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
        self._loop.set_exception_handler(_complain)
        self._waiting: deque[_Work] = deque()
        self._running: set[_Work] = set()
        self._waiting_since: float | None = None
        self._pid = os.getpid()
        Thread(target=self._run, name="promptkit-background", daemon=True).start()

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        done: Callable[[Future[T]], None],
        over: Callable[[], object] = lambda: None,
    ) -> Future[T]:
        """
        Start *coroutine*.

        Args:
            coroutine:
                What is run.

            done:
                Called once it has finished, failed or been cancelled.

            over:
                Called once it runs no more; what was cancelled may go on for a while.

        Returns:
            A future whose ``cancel()`` cancels it.

        Raises:
            RuntimeError: If an author's code has closed the loop.
        """
        future: Future[T] = Future()
        future.add_done_callback(done)
        self._begin(_Work(coroutine, future, over))
        return future

    def take_over(self, other: "Background") -> None:
        """
        Begin what *other*, which is stuck, has not begun.
        """
        while other._waiting:  # noqa: SLF001 (it is one of us)
            with suppress(IndexError):  # it came round at this moment
                self._begin(other._waiting.popleft())  # noqa: SLF001

    @property
    def waits(self) -> bool:
        """
        Whether there is something that it has not begun.
        """
        return bool(self._waiting)

    def look(self, now: float) -> None:
        """
        Find out whether the loop comes round.

        Args:
            now:
                The time, by `time.monotonic`. To be called every few milliseconds while anything runs.
        """
        if self._waiting_since is None:
            self._waiting_since = now
            with suppress(RuntimeError):  # it is closed, which `_run` finds out
                self._loop.call_soon_threadsafe(self._came_round)
        elif now - self._waiting_since > _ROUND:
            self.stuck = True

    def _came_round(self) -> None:
        self._waiting_since = None
        self.stuck = False

    def _run(self) -> None:
        while True:
            try:
                self._loop.run_forever()
            except Exception:  # noqa: BLE001 (an author's code has closed the loop or its descriptors)
                break
            except BaseException:  # noqa: BLE001, S112 (a task that exits stops its loop; the others go on)
                continue
        self.stuck = True
        for work in list(self._running):
            _settle(work.future, RuntimeError("the event loop was closed under the prompt"))
            work.over()

    def _begin(self, work: _Work) -> None:
        """
        Have the loop begin some work. Raises RuntimeError if it is closed.
        """
        self._waiting.append(work)
        try:
            self._loop.call_soon_threadsafe(self._create)
        except RuntimeError:
            self._waiting.remove(work)
            work.coroutine.close()
            raise

    def _create(self) -> None:
        self._loop.create_task(self._work())

    async def _work(self) -> None:
        """
        Do what has waited longest, unless another loop has begun it.
        """
        if not self._waiting:
            return
        work = self._waiting.popleft()
        self._running.add(work)
        outcome: BaseException | None = None
        result = None
        try:
            work.future.add_done_callback(self._canceller())
            result = await _contained(work.coroutine, work.future)
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            outcome = error
        if os.getpid() != self._pid:  # a child that an author's code has not ended: its parent serves
            os._exit(0)
        self._running.discard(work)
        try:
            _settle(work.future, outcome, result)
        finally:
            work.over()

    def _canceller(self) -> Callable[[Future[Any]], None]:
        """
        Return what cancels the current task if its future is cancelled.
        """
        task = asyncio.current_task()

        def cancel(future: Future[Any]) -> None:
            if future.cancelled() and task is not None:
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(task.cancel)

        return cancel


async def _contained(coroutine: Coroutine[Any, Any, T], future: Future[T]) -> T | None:
    """
    Return what *coroutine* returns; None if nobody wants it any more.

    Raises:
        RuntimeError: If it raised what would end the loop or its task.

        Exception: Whatever else it raises.
    """
    if future.cancelled():
        coroutine.close()
        return None
    try:
        return await coroutine
    except Exception:
        raise
    except BaseException as ending:
        msg = f"the prompt raised {type(ending).__name__}"
        raise RuntimeError(msg) from ending


def _settle(future: Future[Any], error: BaseException | None, result: Any = None) -> None:
    """
    Say what has come of some work, if anybody still wants to know.
    """
    if not future.set_running_or_notify_cancel():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _complain(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """
    Say that a task which a prompt has left behind failed, but not with which words: they may be secret.
    """
    error = context.get("exception")
    if error is not None:
        say(f"what a prompt has left behind raised {type(error).__name__}")
