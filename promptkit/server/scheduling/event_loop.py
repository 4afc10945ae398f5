"""
An event loop on a thread of its own, for prompts that must not hold up the others.

Importing this module imports asyncio, so it is done when the first such prompt is called.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from threading import Thread
from typing import Any, Final, TypeVar

import attrs

from promptkit.errors.standard_error import say

__all__ = ["EventLoopThread"]

T = TypeVar("T")

#: How often somebody looks, and the loop has not come round since, before it counts as stuck. It is
#: no time: on a busy machine, or beside many threads, whoever looks is as late as the loop.
_ROUNDS: Final = 5

#: How many threads the coroutines of a loop may delegate to, which start when they are needed. Python gives
#: as many to a large machine, and six to a small one: so many hang soon, and all others wait for ever.
_THREADS: Final = 32

#: How long what prompts have left behind may go on, in seconds, on a loop that is not needed any more;
#: and how long it may take to stop once it is told to.
_LEFT_BEHIND: Final = 30.0
_STOPPING: Final = 1.0


@attrs.frozen(eq=False)
class _Work:
    """
    A coroutine, whoever runs it, and who is told what.

    Its future does not lead to who is told, who may lead to the future: a circle would be garbage that
    only a rare, full collection finds.
    """

    coroutine: Coroutine[Any, Any, Any]
    future: Future[Any]
    done: Callable[[Future[Any]], object]
    over: Callable[[], object]

    def end(self, error: BaseException | None, result: Any = None) -> None:
        """
        Say what has come of it, if anybody still wants to know, and that it runs no more.
        """
        try:
            if not self.future.set_running_or_notify_cancel():
                return
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)
            self.done(self.future)
        except Exception as failure:  # noqa: BLE001 (the other work on the loop goes on)
            say(f"what a prompt came to could not be told: {failure!r}")
        finally:
            self.over()


class EventLoopThread:
    """
    Runs coroutines beside the caller.

    Its thread is a daemon: whatever runs there, it never keeps the process alive.

    Attributes:
        stuck:
            Whether a coroutine holds up all others on this loop. It may come round later.

        over:
            Whether its thread has come to its end.

    Raises:
        RuntimeError: If there can be no more threads.
    """

    def __init__(self) -> None:
        self.stuck = False
        self.over = False
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_complain)
        self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, "promptkit-delegate"))
        self._waiting: deque[_Work] = deque()
        self._running: set[_Work] = set()
        self._asked = False
        self._missed = 0
        self._ending = False
        self._patience: asyncio.TimerHandle | None = None
        self._pid = os.getpid()
        try:
            Thread(target=self._run, name="promptkit-event-loop", daemon=True).start()
        except RuntimeError:
            self._loop.close()
            raise

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        done: Callable[[Future[T]], object],
        over: Callable[[], object] = lambda: None,
    ) -> Future[T]:
        """
        Start *coroutine*.

        Args:
            coroutine:
                What is run.

            done:
                Called once it has finished or failed, with the future, unless that was cancelled.

            over:
                Called once it runs no more; what was cancelled may go on for a while.

        Returns:
            A future whose ``cancel()`` cancels it.

        Raises:
            RuntimeError: If an author's code has closed the loop.
        """
        future: Future[T] = Future()
        work = _Work(coroutine, future, done, over)
        try:
            self._begin(work)
        except RuntimeError:
            coroutine.close()
            raise
        return future

    def take_over(self, other: "EventLoopThread") -> None:
        """
        Begin what *other*, which is stuck, has not begun.
        """
        while other._waiting:  # noqa: SLF001 (it is one of us)
            with suppress(IndexError):  # it came round at this moment
                work = other._waiting.popleft()  # noqa: SLF001
                try:
                    self._begin(work)
                except RuntimeError as error:
                    work.coroutine.close()
                    work.end(error)

    @property
    def waits(self) -> bool:
        """
        Whether there is something that it has not begun.
        """
        return bool(self._waiting)

    def look(self) -> None:
        """
        Find out whether the loop comes round. To be called every few milliseconds while anything runs.
        """
        if not self._asked:
            self._asked, self._missed = True, 0
            with suppress(RuntimeError):  # it is closed, which `_run` finds out
                self._loop.call_soon_threadsafe(self._came_round, context=Context())
        else:
            self._missed += 1
            self.stuck = self.stuck or self._missed >= _ROUNDS

    def end(self) -> None:
        """
        End the loop and its thread once nothing runs there any more. Nothing may be started from now on.
        """
        with suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(self._begin_end, context=Context())

    def _came_round(self) -> None:
        self._asked = self.stuck = False

    def _begin_end(self) -> None:
        self._ending = True
        self._end_soon()

    def _end_soon(self) -> None:
        """
        Stop the loop if it is to end, once nothing runs there but the task that calls this.
        """
        if not self._is_over():
            return
        left = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        if not left:
            self._loop.stop()
        elif self._patience is None:
            self._patience = self._loop.call_later(_LEFT_BEHIND, self._loop.stop)
            for task in left:
                task.add_done_callback(lambda _: self._end_soon())

    def _run(self) -> None:
        while not self._is_over():
            try:
                self._loop.run_forever()
            except Exception:  # noqa: BLE001 (an author's code has closed the loop or its descriptors)
                break
            except BaseException:  # noqa: BLE001, S112 (a task that exits stops its loop; the others go on)
                continue
        self.stuck = True
        while self._running:
            self._running.pop().end(RuntimeError("the event loop was closed under the prompt"))
        if not self._loop.is_closed():
            self._close()
        self.over = True

    def _is_over(self) -> bool:
        return self._ending and not self._running and not self._waiting

    def _close(self) -> None:
        """
        Cancel what was left behind, and let go of the descriptors.
        """
        try:
            self._loop.set_task_factory(None)  # an author's may fail
            if left := asyncio.all_tasks(self._loop):
                for task in left:
                    task.cancel()
                self._loop.run_until_complete(asyncio.wait(left, timeout=_STOPPING))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except BaseException as error:  # noqa: BLE001 (authors' code runs here, too)
            say(f"what prompts have left behind could not be ended: {type(error).__name__}")
        finally:
            with suppress(Exception):  # an author's code has closed its descriptors
                self._loop.close()

    def _begin(self, work: _Work) -> None:
        """
        Have the loop begin some work. Raises RuntimeError if it is closed.
        """
        self._waiting.append(work)
        try:
            # What other requests have set in the context of the calling thread is no business of this one.
            self._loop.call_soon_threadsafe(self._create, context=Context())
        except RuntimeError:
            self._waiting.remove(work)
            raise

    def _create(self) -> None:
        # An author's task factory, which may fail, is for the tasks of prompts.
        asyncio.Task(self._work(), loop=self._loop).add_done_callback(self._create_again)

    def _create_again(self, task: asyncio.Task[None]) -> None:
        """
        Have the work done that a *task* has not begun, as an author's code has cancelled all there are.
        """
        if task.cancelled():
            self._create()

    async def _work(self) -> None:
        """
        Do what has waited longest, unless another loop has begun it.
        """
        if not self._waiting:
            return
        work = self._waiting.popleft()
        self._running.add(work)
        try:
            work.future.add_done_callback(self._canceller())
            result = await _contained(work.coroutine, work.future)
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            self._finish(work, error)  # not kept here: it leads to this frame
        else:
            self._finish(work, None, result)

    def _finish(self, work: _Work, error: BaseException | None, result: Any = None) -> None:
        if os.getpid() != self._pid:  # a child that an author's code has not ended: its parent serves
            os._exit(0)
        if work in self._running:  # else it has ended with the loop
            self._running.remove(work)
            work.end(error, result)
        self._end_soon()

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


def _complain(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """
    Say that a task which a prompt has left behind failed, but not with which words: they may be secret.
    """
    error = context.get("exception")
    if error is not None:
        say(f"what a prompt has left behind raised {type(error).__name__}")
