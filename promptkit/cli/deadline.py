"""Rendering within a time limit, on a thread that is abandoned when the time is up, as a server does."""

import asyncio
from _thread import start_new_thread
from collections.abc import Mapping
from threading import TIMEOUT_MAX, Lock, current_thread
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.language.messages import Workflow
from promptkit.protocol.limits import Limits

__all__ = ["Outcome", "render_within_limit", "time_limit"]

#: How long an asynchronous prompt may clean up after it was cancelled, in seconds.
_CANCEL_GRACE_S: Final = 1.0

#: The result of a rendering: a workflow, what was raised, or None if it took too long.
Outcome = Workflow | BaseException | None


def time_limit(prompt: CompiledPrompt) -> float:
    """How long *prompt* may take, in seconds: its author's limit, else the default of `serve`."""
    return prompt.timeout or Limits().timeout


def render_within_limit(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Outcome:
    """
    Render *prompt* for the arguments of a client.

    Raises:
        KeyboardInterrupt: On Ctrl-C; an asynchronous prompt is cancelled first.
    """
    rendering = _Rendering(prompt, arguments)
    try:
        rendering.start()
        if rendering.wait(time_limit(prompt)):
            return rendering.outcome
        rendering.cancel()
    except KeyboardInterrupt:
        rendering.cancel()
        raise
    return None


class _Rendering:
    """One rendering, on a thread that does not keep the process alive."""

    def __init__(self, prompt: CompiledPrompt, arguments: Mapping[str, str]) -> None:
        self.outcome: Outcome = None
        self._prompt = prompt
        self._arguments = arguments
        # A plain lock, since Ctrl-C may interrupt the wait for it at any step. That would break the lock
        # within an `Event`, and within a `Thread`, which waits for such an event when it starts.
        self._over = Lock()
        self._over.acquire()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None

    def start(self) -> None:
        start_new_thread(self._run, ())

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, or so many seconds; tell whether it is over."""
        return self._over.acquire(timeout=min(seconds, TIMEOUT_MAX))

    def cancel(self) -> None:
        """Cancel an asynchronous prompt and let it clean up; a synchronous one cannot be stopped."""
        if self._running is not None:
            loop, task = self._running
            loop.call_soon_threadsafe(task.cancel)
            self.wait(_CANCEL_GRACE_S)

    def _run(self) -> None:
        try:
            current_thread()  # registers this thread with `threading`, which counts it from now on
            if self._prompt.renderer.is_async:
                asyncio.run(self._render_async())
            else:
                self.outcome = self._prompt.render(self._arguments)
        except BaseException as error:  # noqa: BLE001 (authors raise anything; the caller sees it)
            self.outcome = error
        finally:
            self._over.release()

    async def _render_async(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (a coroutine of asyncio.run always has one)
        self._running = asyncio.get_running_loop(), task
        try:
            self.outcome = await self._prompt.render_async(self._arguments)
        except BaseException as error:  # noqa: BLE001 (here, asyncio adds nothing to its traceback)
            self.outcome = error
