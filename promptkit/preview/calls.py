"""Calling authors' functions beside the event loop of the pages, within a time limit."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, Final, TypeVar, cast

__all__ = ["Calls", "HangsError", "call"]

T = TypeVar("T")

#: How many calls for one thing may run. One that cannot be stopped counts until it ends.
_MOST_AT_ONCE: Final = 4


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
                f"does not return: {_MOST_AT_ONCE} calls of it still run. "
                "Change the recipe, or start promptkit dev again"
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

    What is asynchronous is cancelled when time is over, or nobody waits any more. Nothing else can be
    stopped: its thread goes on alone, and does not keep the process alive.

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

        BaseException: Whatever the function raises.
    """
    work = _Work(function, ended)
    Thread(target=work.run, name="promptkit-preview", daemon=True).start()
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
        self._cancel: Callable[[], object] = bool
        self._is_cancelled = False

    def cancel(self) -> None:
        """Cancel what is asynchronous. No-op if it is over."""
        self._is_cancelled = True
        with suppress(RuntimeError):  # its loop is closed
            self._cancel()

    def run(self) -> None:
        returned, raised = None, None  # type: Any, BaseException | None
        try:
            returned = self._function()
            if isinstance(returned, Coroutine):
                returned = asyncio.run(self._awaited(returned))
        except asyncio.CancelledError as error:  # raised further, it would cancel who waits
            raised = RuntimeError("it was cancelled")
            raised.__cause__ = error
        except BaseException as error:  # noqa: BLE001 (authors raise anything; who waits sees it)
            raised = error
        with suppress(RuntimeError):  # the pages' loop is closed
            self._loop.call_soon_threadsafe(self._settle, returned, raised)

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        task = asyncio.ensure_future(coroutine)
        self._cancel = partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        if self._is_cancelled:  # before this could be told
            task.cancel()
        return await task

    def _settle(self, returned: Any, raised: BaseException | None) -> None:
        if not self.outcome.done():
            self.outcome.set_result((returned, raised))
        self._ended()
