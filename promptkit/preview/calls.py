"""Calling authors' functions beside the event loop of the pages, within a time limit."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from promptkit.server.author_calls import CANCEL_GRACE_S, AuthorCall, HangsError
from promptkit.server.scheduling.workers import WorkerThread

__all__ = ["Calls", "call"]

T = TypeVar("T")

#: How many calls for one thing may run. One that cannot be stopped counts until it ends.
_MOST_AT_ONCE: Final = 4


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
        raise HangsError.after(seconds) from None
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
        self._ended = ended
        self._call = AuthorCall(function)
        self._worker = WorkerThread(self._call.run)
        self._worker.when_over(self._tell)

    def start(self) -> None:
        """Start the thread. Raises RuntimeError if the machine has none left."""
        try:
            self._worker.start()
        except BaseException:
            self._ended()
            raise

    def cancel(self) -> None:
        """Cancel what is asynchronous and let it clean up; stop anything else. No-op if it is over."""
        self._call.cancel()
        if self._call.is_async:
            self._loop.call_later(CANCEL_GRACE_S, self._worker.abandon)
        else:
            self._worker.abandon()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the pages' loop is closed
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if not self.outcome.done():
            self.outcome.set_result((self._call.returned, self._call.raised))
        self._ended()
