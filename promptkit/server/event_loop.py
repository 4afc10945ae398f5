"""
An event loop on a separate thread, for asynchronous prompts.

The thread starts when the first asynchronous prompt is called.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVar

from promptkit.language.context import cancelled_by
from promptkit.server.pending import PendingRequest
from promptkit.server.threads import DaemonThread
from promptkit.standard_error import say

T = TypeVar("T")

#: The maximum number of threads that coroutines can delegate calls to. They are started on demand. On a small
#: machine, Python's default is six threads, so that six hanging calls would block all others indefinitely.
_DELEGATE_THREADS: Final = 32

#: How long tasks that prompts have left running may take to stop after they are cancelled, in seconds.
_CANCEL_GRACE_S: Final = 1.0


class EventLoopThread:
    """
    An event loop on a daemon thread. A coroutine that blocks the loop delays all others.

    Raises:
        RuntimeError: If no more threads can be started.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_report_error)
        self._loop.set_default_executor(ThreadPoolExecutor(_DELEGATE_THREADS, "promptkit-delegate"))
        self._tasks: dict[PendingRequest, asyncio.Task[Any] | None] = {}
        self._is_ending = False
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
        on_done: Callable[["asyncio.Task[T]"], object],
    ) -> None:
        """
        Start *coroutine*.

        Args:
            pending:
                The request. If it is answered before the coroutine starts, the coroutine never starts.

            coroutine:
                The coroutine to run.

            on_done:
                A callback for the finished task. A cancelled task may continue for a while.

        Raises:
            RuntimeError: If the loop has stopped.
        """
        self._tasks[pending] = None
        try:  # in a new context, because the calling thread's context may contain other requests' variables
            self._loop.call_soon_threadsafe(self._start_task, pending, coroutine, on_done, context=Context())
        except RuntimeError:
            del self._tasks[pending]
            coroutine.close()
            raise

    def cancel(self, pending: PendingRequest) -> bool:
        """
        Cancel the task of a request that has been answered, so that the task can clean up.

        Return whether the task had started.
        """
        with suppress(RuntimeError):  # the loop has stopped
            self._loop.call_soon_threadsafe(self._cancel, pending)
        return self._tasks.get(pending) is not None

    def end(self) -> None:
        """Stop the loop and its thread once no tasks are left."""
        self._is_ending = True
        with suppress(RuntimeError):  # the loop has already stopped
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _start_task(self, pending: PendingRequest, coroutine: Coroutine[Any, Any, T], on_done: Any) -> None:
        task = self._tasks[pending] = self._loop.create_task(_run_unless_answered(pending, coroutine))
        task.add_done_callback(partial(self._finish, pending, coroutine, on_done))

    def _cancel(self, pending: PendingRequest) -> None:
        if (task := self._tasks.get(pending)) is not None:
            task.cancel()

    def _finish(
        self,
        pending: PendingRequest,
        coroutine: Coroutine[Any, Any, T],
        on_done: Any,
        task: "asyncio.Task[T | None]",
    ) -> None:
        try:
            coroutine.close()  # the task may have been cancelled before it started
            on_done(task)
        finally:
            del self._tasks[pending]
            if self._is_ending and not self._tasks:
                self._loop.stop()

    def _run(self) -> None:
        while (self._tasks or not self._is_ending) and not self._loop.is_closed():
            # A SystemExit in a task stops the loop, as can a lack of memory. The loop is run again, so that
            # other tasks continue.
            with suppress(BaseException):
                self._loop.run_forever()
        with suppress(Exception):  # authors' tasks can raise anything
            self._close()

    def _close(self) -> None:
        """Cancel the tasks that prompts have left running, and close the loop."""
        if remaining := asyncio.all_tasks(self._loop):
            for task in remaining:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(remaining, timeout=_CANCEL_GRACE_S))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _run_unless_answered(pending: PendingRequest, coroutine: Coroutine[Any, Any, T]) -> T | None:
    if pending.is_answered:
        coroutine.close()
        return None
    with cancelled_by(lambda: pending.is_answered):
        return await coroutine


def _report_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # Report only the type of the error, because its message may contain a secret.
    error = context.get("exception")
    if error is not None:
        say(f"a task that a prompt did not await raised {type(error).__name__}")
