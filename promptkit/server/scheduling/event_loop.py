"""
An event loop on a thread of its own, for asynchronous prompts.

Importing this module imports asyncio, so it is done when the first asynchronous prompt is called.
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

#: After how many looks without a sign of life a loop counts as stuck. These are looks, not seconds: on a
#: busy machine the watchdog is as late as the loop.
_STUCK_AFTER_LOOKS: Final = 5

#: How many threads the coroutines of a loop may delegate to. They start when they are needed. Python's own
#: default is six on a small machine: as soon as six hang, all others would wait for ever.
_DELEGATE_THREADS: Final = 32

#: How long tasks that prompts have left behind may go on, on a loop that is not needed any more, and how
#: long they may take to stop once they are cancelled.
_LEFT_TASKS_S: Final = 30.0
_CANCELLED_TASKS_S: Final = 1.0


@attrs.frozen(eq=False)
class _Work:
    """A coroutine, and what is called when it has ended."""

    # `done` stands here and not in the future: it may lead to the future, and such a cycle would be freed
    # only by a full collection, which is rare.

    coroutine: Coroutine[Any, Any, Any]
    future: Future[Any]
    done: Callable[[Future[Any]], object]
    over: Callable[[], object]

    def end(self, error: BaseException | None, result: Any = None) -> None:
        """Call `done`, unless the future was cancelled, and `over`."""
        try:
            if not self.future.set_running_or_notify_cancel():
                return
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)
            self.done(self.future)
        except Exception as failure:  # noqa: BLE001 (the other work on the loop goes on)
            say(f"the result of a prompt could not be handled: {failure!r}")
        finally:
            self.over()


class EventLoopThread:
    """
    Runs coroutines on a daemon thread.

    Attributes:
        stuck:
            Whether a coroutine blocks the loop. It may recover later.

        over:
            Whether the thread has ended.

    Raises:
        RuntimeError: If there can be no more threads.
    """

    def __init__(self) -> None:
        self.stuck = False
        self.over = False
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_complain)
        self._loop.set_default_executor(ThreadPoolExecutor(_DELEGATE_THREADS, "promptkit-delegate"))
        self._waiting: deque[_Work] = deque()
        self._running: set[_Work] = set()
        self._awaits_sign = False
        self._looks = 0
        self._ending = False
        self._left_tasks_end: asyncio.TimerHandle | None = None
        self._pid = os.getpid()
        try:
            Thread(target=self._run, name="promptkit-event-loop", daemon=True).start()
        except RuntimeError:
            self._loop.close()
            raise

    @staticmethod
    def future() -> Future[Any]:
        """A future for `start`, for who has to be able to cancel before the coroutine begins."""
        return Future()

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        done: Callable[[Future[T]], object],
        over: Callable[[], object] = lambda: None,
        future: Future[T] | None = None,
    ) -> Future[T]:
        """
        Start *coroutine*.

        Args:
            coroutine:
                What is run.

            done:
                Called with the future once it has finished or failed, unless it was cancelled.

            over:
                Called once it has ended; a cancelled coroutine may go on for a while.

            future:
                What stands for it; a new one by default. If it is cancelled already, nothing begins.

        Returns:
            A future whose ``cancel()`` cancels it.

        Raises:
            RuntimeError: If an author's code has closed the loop.
        """
        future = Future() if future is None else future
        work = _Work(coroutine, future, done, over)
        try:
            self._begin(work)
        except RuntimeError:
            coroutine.close()
            raise
        return future

    def take_over(self, other: "EventLoopThread") -> None:
        """Begin what *other*, which is stuck, has not begun."""
        while other._waiting:  # noqa: SLF001 (of the same class)
            with suppress(IndexError):  # it has just recovered, and begun that itself
                work = other._waiting.popleft()  # noqa: SLF001
                try:
                    self._begin(work)
                except RuntimeError as error:
                    work.coroutine.close()
                    work.end(error)

    @property
    def waits(self) -> bool:
        """Whether there is work that it has not begun."""
        return bool(self._waiting)

    def look(self) -> None:
        """Find out whether the loop is stuck. To be called every few milliseconds while anything runs."""
        if not self._awaits_sign:
            self._awaits_sign, self._looks = True, 0
            with suppress(RuntimeError):  # it is closed, which `_run` finds out
                self._loop.call_soon_threadsafe(self._show_life, context=Context())
        else:
            self._looks += 1
            self.stuck = self.stuck or self._looks >= _STUCK_AFTER_LOOKS

    def end(self) -> None:
        """End the loop and its thread once nothing runs there any more. Nothing may be started after."""
        with suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(self._begin_end, context=Context())

    def _show_life(self) -> None:
        self._awaits_sign = self.stuck = False

    def _begin_end(self) -> None:
        self._ending = True
        self._end_soon()

    def _end_soon(self) -> None:
        """Stop the loop if it has to end, and nothing runs there but the task that calls this."""
        if not self._is_over():
            return
        left = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        if not left:
            self._loop.stop()
        elif self._left_tasks_end is None:
            self._left_tasks_end = self._loop.call_later(_LEFT_TASKS_S, self._loop.stop)
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
        """Cancel the tasks that are left, and close the descriptors."""
        try:
            self._loop.set_task_factory(None)  # an author's may fail
            if left := asyncio.all_tasks(self._loop):
                for task in left:
                    task.cancel()
                self._loop.run_until_complete(asyncio.wait(left, timeout=_CANCELLED_TASKS_S))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except BaseException as error:  # noqa: BLE001 (authors' code runs here, too)
            say(f"tasks that prompts have left behind could not be ended: {type(error).__name__}")
        finally:
            with suppress(Exception):  # an author's code has closed its descriptors
                self._loop.close()

    def _begin(self, work: _Work) -> None:
        """Have the loop begin some work. Raises RuntimeError if it is closed."""
        self._waiting.append(work)
        try:
            # A fresh context: this request must not see what others have set in that of the calling thread.
            self._loop.call_soon_threadsafe(self._create, context=Context())
        except RuntimeError:
            self._waiting.remove(work)
            raise

    def _create(self) -> None:
        # Not by the loop's task factory: an author may have set one, and it may fail.
        asyncio.Task(self._work(), loop=self._loop).add_done_callback(self._create_again)

    def _create_again(self, task: asyncio.Task[None]) -> None:
        # An author's code may cancel all tasks there are, also one that has not begun its work.
        if task.cancelled():
            self._create()

    async def _work(self) -> None:
        """Do what has waited longest, unless another loop has taken it over."""
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
        if os.getpid() != self._pid:  # an author's code forked, and its child came back here
            os._exit(0)
        if work in self._running:  # else it has ended with the loop
            self._running.remove(work)
            work.end(error, result)
        self._end_soon()

    def _canceller(self) -> Callable[[Future[Any]], None]:
        """What cancels the current task when its future is cancelled."""
        task = asyncio.current_task()

        def cancel(future: Future[Any]) -> None:
            if future.cancelled() and task is not None:
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(task.cancel)

        return cancel


async def _contained(coroutine: Coroutine[Any, Any, T], future: Future[T]) -> T | None:
    """Await *coroutine*; raise RuntimeError in place of what would end the loop or its task."""
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
    # Only the type of the error is said: its words may hold a secret.
    error = context.get("exception")
    if error is not None:
        say(f"a task that a prompt has left behind raised {type(error).__name__}")
