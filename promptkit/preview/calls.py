"""Calling authors' functions beside the event loop of the pages, within a time limit."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from promptkit.server.scheduling.workers import Abandoned, Worker

__all__ = ["Calls", "HangsError", "call"]

T = TypeVar("T")

#: How many calls for one thing may run. One that cannot be stopped counts until it ends.
_MOST_AT_ONCE: Final = 4

#: How long what is asynchronous may clean up after it was cancelled, in seconds, before it is stopped.
_CANCEL_GRACE_S: Final = 1.0


class HangsError(Exception):
    """An author's function has not returned; the text says so, after its name."""


class Calls:
    """Calls authors' functions, a few at once for each thing that the pages show."""

    def __init__(self) -> None:
        self._free: defaultdict[Hashable, asyncio.Semaphore] = defaultdict(_places)

    async def call(
        self, thing: Hashable, function: Callable[[], T | Coroutine[Any, Any, T]], seconds: float
    ) -> T:
        """
        Call an author's function, once fewer calls for this thing run.

        Args:
            thing:
                What it is called for.

            function:
                What is called, plain or asynchronous.

            seconds:
                How long it may take, and may be waited for before.

        Raises:
            HangsError: If it takes longer, or others do.

            BaseException: Whatever the function raises.
        """
        free = self._free[thing]
        try:
            async with asyncio.timeout(seconds):
                await free.acquire()
        except TimeoutError:
            msg = (
                f"does not return: {_MOST_AT_ONCE} calls of it still run, and cannot be stopped while they "
                "wait or run C code. Change the recipe, or start promptkit dev again"
            )
            raise HangsError(msg) from None
        return await call(function, seconds, free.release)


def _places() -> asyncio.Semaphore:
    return asyncio.Semaphore(_MOST_AT_ONCE)


async def call(
    function: Callable[[], T | Coroutine[Any, Any, T]],
    seconds: float,
    ended: Callable[[], object] = bool,
) -> T:
    """
    Call an author's function on a thread of its own.

    When time is over, or nobody waits any more, what is asynchronous is cancelled, and anything else is
    stopped as a server stops it. What waits for the outside world or runs C code goes on alone, until it runs
    Python code again. It does not keep the process alive.

    Args:
        function:
            What is called, plain or asynchronous.

        seconds:
            How long it may take.

        ended:
            Called on the event loop when the thread has nothing more to do, however late.

    Returns:
        What it returned.

    Raises:
        HangsError: If it takes longer.

        BaseException: Whatever the function raises, or what kept its thread from starting.
    """
    work = _Work(function, ended)
    work.start()
    try:
        async with asyncio.timeout(seconds):
            outcome, error = await work.outcome
    except TimeoutError:
        msg = f"took longer than its limit of {seconds:g} s"
        raise HangsError(msg) from None
    finally:
        work.cancel()
    if error is not None:
        raise error
    return cast("T", outcome)


class _Work:
    """One call on its thread, and the future that waits for it on the loop of the pages."""

    def __init__(self, function: Callable[[], Any], ended: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        # Of what is returned and what is raised: a future cannot hold every exception.
        self.outcome: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()
        self._function = function
        self._ended = ended
        self._worker = Worker(self._run)
        self._worker.when_over(self._tell)
        self._returned: Any = None
        self._raised: BaseException | None = RuntimeError("it was stopped")
        self._task: asyncio.Task[Any] | None = None
        self._is_async = self._is_cancelled = self._is_over = False

    def start(self) -> None:
        """Start the thread. Raises RuntimeError if the machine has none left."""
        try:
            self._worker.start()
        except BaseException:
            self._ended()
            raise

    def cancel(self) -> None:
        """Cancel what is asynchronous and let it clean up; stop anything else. No-op if it is over."""
        self._is_cancelled = True
        if self._is_over:
            return
        if self._is_async:
            self._cancel_task()
            self._loop.call_later(_CANCEL_GRACE_S, self._worker.abandon)
        else:
            self._worker.abandon()

    def _cancel_task(self) -> None:
        if (task := self._task) is not None:
            with suppress(RuntimeError):  # its loop is closed
                task.get_loop().call_soon_threadsafe(task.cancel)

    def _run(self) -> None:
        try:
            returned = self._function()
            if isinstance(returned, Coroutine):
                self._is_async = True
                returned = asyncio.run(self._awaited(returned))
            self._returned, self._raised = returned, None
        except Abandoned:
            raise
        except asyncio.CancelledError as error:  # raised further, it would cancel who waits
            self._raised = RuntimeError("it was cancelled")
            self._raised.__cause__ = error
        except BaseException as error:  # noqa: BLE001 (authors raise anything; who waits sees it)
            self._raised = error

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self._task = asyncio.ensure_future(coroutine)
        if self._is_cancelled:  # before this could be told
            self._task.cancel()
        return await self._task

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the pages' loop is closed
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        self._is_over = True
        if not self.outcome.done():
            self.outcome.set_result((self._returned, self._raised))
        self._ended()
