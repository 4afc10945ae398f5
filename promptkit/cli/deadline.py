"""Calling authors' functions within a time limit, on a thread that is abandoned as a server does it."""

import asyncio
import time
from _thread import start_new_thread
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from threading import Lock, current_thread
from typing import Any, Final, TypeVar

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.language.messages import Workflow
from promptkit.protocol.limits import Limits

__all__ = ["Outcome", "call_within_limit", "render_within_limit", "time_limit"]

T = TypeVar("T")

#: How long an asynchronous prompt may clean up after it was cancelled, in seconds.
_CANCEL_GRACE_S: Final = 1.0

#: How long one wait for a lock is, in seconds.
_LONGEST_WAIT_S: Final = 0.5

#: The result of a rendering: a workflow, what was raised, or None if it took too long.
Outcome = Workflow | BaseException | None


def time_limit(prompt: CompiledPrompt | None = None) -> float:
    """How long a call may take, in seconds: the limit of a prompt's author, else the default of `serve`."""
    return (prompt and prompt.timeout) or Limits().timeout


def render_within_limit(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Outcome:
    """
    Render *prompt* for the arguments of a client.

    Raises:
        KeyboardInterrupt: On Ctrl-C; an asynchronous prompt is cancelled first.
    """
    render = prompt.render_async if prompt.renderer.is_async else prompt.render
    outcome: Outcome = _within(time_limit(prompt), partial(render, arguments))
    return outcome


def call_within_limit(call: Callable[[], T]) -> T | BaseException | None:
    """
    Call an author's function that is no prompt.

    Returns:
        What it returned, what it raised, or None if it took too long.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    outcome: T | BaseException | None = _within(time_limit(), call)
    return outcome


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    work = _Work(call)
    try:
        work.start()
        if work.wait(seconds):
            return work.outcome
        work.cancel()
    except KeyboardInterrupt:
        work.cancel()
        raise
    return None


class _Work:
    """One call, on a thread that does not keep the process alive."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.outcome: Any = None
        self._call = call
        # A plain lock, since Ctrl-C may interrupt the wait for it at any step. That would break the lock
        # within an `Event`, and within a `Thread`, which waits for such an event when it starts.
        self._over = Lock()
        self._over.acquire()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None

    def start(self) -> None:
        start_new_thread(self._run, ())

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, or so many seconds; tell whether it is over."""
        ends = time.monotonic() + seconds
        # Ctrl-C right before a wait begins does not interrupt it: it takes effect when that wait ends.
        while (left := ends - time.monotonic()) > 0:
            if self._over.acquire(timeout=min(left, _LONGEST_WAIT_S)):
                return True
        return False

    def cancel(self) -> None:
        """Cancel what is asynchronous and let it clean up; nothing else can be stopped."""
        if self._running is not None:
            loop, task = self._running
            loop.call_soon_threadsafe(task.cancel)
            self.wait(_CANCEL_GRACE_S)

    def _run(self) -> None:
        try:
            current_thread()  # registers this thread with `threading`, which counts it from now on
            self.outcome = self._call()
            if isinstance(self.outcome, Coroutine):
                asyncio.run(self._await(self.outcome))
        except BaseException as error:  # noqa: BLE001 (authors raise anything; the caller sees it)
            self.outcome = error
        finally:
            self._over.release()

    async def _await(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (a coroutine of asyncio.run always has one)
        self._running = asyncio.get_running_loop(), task
        try:
            self.outcome = await coroutine
        except BaseException as error:  # noqa: BLE001 (here, asyncio adds nothing to its traceback)
            self.outcome = error
