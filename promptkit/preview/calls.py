"""Calling authors' functions beside the event loop of the pages, within a time limit."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, TypeVar, cast

__all__ = ["TookTooLongError", "call"]

T = TypeVar("T")


class TookTooLongError(Exception):
    """
    An author's function has not returned within its limit.

    Args:
        seconds:
            The limit.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"took longer than its limit of {self.seconds:g} s"


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
        TookTooLongError: If it takes longer.

        BaseException: Whatever the function raises.
    """
    work = _Work(function, ended)
    Thread(target=work.run, name="promptkit-preview", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            outcome, error = await work.outcome
    except TimeoutError:
        raise TookTooLongError(seconds) from None
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
