"""
An event loop on a thread of its own, for asynchronous prompts.

The thread starts when the first asynchronous prompt is called.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVar

from promptkit.language.cancellation import cancelled_by
from promptkit.server.pending import PendingRequest
from promptkit.server.threads import DaemonThread
from promptkit.standard_error import say

T = TypeVar("T")

#: How many threads the coroutines may delegate to. They start when they are needed. Python's own default is
#: six on a small machine: as soon as six hang, all others would wait for ever.
_DELEGATE_THREADS: Final = 32

#: How long tasks that prompts have left behind may take to stop at the end, once they are cancelled.
_CANCELLED_TASKS_S: Final = 1.0


class EventLoopThread:
    """
    Runs coroutines on a daemon thread. A coroutine that blocks it delays the others.

    Raises:
        RuntimeError: If no more threads can be started.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_complain)
        self._loop.set_default_executor(ThreadPoolExecutor(_DELEGATE_THREADS, "promptkit-delegate"))
        self._tasks: dict[PendingRequest, asyncio.Task[Any] | None] = {}
        self._ends = False
        self._thread = DaemonThread(self._run, "event-loop")
        try:
            self._thread.start()
        except RuntimeError:
            self._loop.close()
            raise

    @property
    def ident(self) -> int:
        """The identifier of the thread."""
        return self._thread.ident or 0

    def start(
        self,
        pending: PendingRequest,
        coroutine: Coroutine[Any, Any, T],
        ended: Callable[["asyncio.Task[T]"], object],
    ) -> None:
        """
        Start *coroutine*.

        Args:
            pending:
                The request that it is for. If that is answered before it begins, it never does.

            coroutine:
                What is run.

            ended:
                Called with its task once it has ended; one that was cancelled may go on for a while.

        Raises:
            RuntimeError: If the loop has ended.
        """
        self._tasks[pending] = None
        try:  # with a fresh context: it must not see what others have set in that of the calling thread
            self._loop.call_soon_threadsafe(self._begin, pending, coroutine, ended, context=Context())
        except RuntimeError:
            del self._tasks[pending]
            coroutine.close()
            raise

    def cancel(self, pending: PendingRequest) -> bool:
        """Cancel what runs for an answered request, so that it cleans up; return whether it has begun."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._cancel, pending)
        return self._tasks.get(pending) is not None

    def end(self) -> None:
        """End the loop and its thread once nothing runs there any more."""
        self._ends = True
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _begin(self, pending: PendingRequest, coroutine: Coroutine[Any, Any, T], ended: Any) -> None:
        task = self._tasks[pending] = self._loop.create_task(_unless_answered(pending, coroutine))
        task.add_done_callback(partial(self._end, pending, coroutine, ended))

    def _cancel(self, pending: PendingRequest) -> None:
        if (task := self._tasks.get(pending)) is not None:
            task.cancel()

    def _end(
        self,
        pending: PendingRequest,
        coroutine: Coroutine[Any, Any, T],
        ended: Any,
        task: "asyncio.Task[T | None]",
    ) -> None:
        try:
            coroutine.close()  # it may have been cancelled before it began
            ended(task)
        finally:
            del self._tasks[pending]
            if self._ends and not self._tasks:
                self._loop.stop()

    def _run(self) -> None:
        while (self._tasks or not self._ends) and not self._loop.is_closed():
            # A task that exits stops its loop, and so may a lack of memory. All others go on.
            with suppress(BaseException):
                self._loop.run_forever()
        with suppress(Exception):  # tasks of authors end here
            self._close()

    def _close(self) -> None:
        """Cancel the tasks that prompts have left behind, and close the descriptors."""
        if left := asyncio.all_tasks(self._loop):
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(left, timeout=_CANCELLED_TASKS_S))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _unless_answered(pending: PendingRequest, coroutine: Coroutine[Any, Any, T]) -> T | None:
    if pending.is_answered:
        coroutine.close()
        return None
    with cancelled_by(lambda: pending.is_answered):
        return await coroutine


def _complain(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # Only the type of the error is said: its words may hold a secret.
    error = context.get("exception")
    if error is not None:
        say(f"a task that a prompt did not await raised {type(error).__name__}")
