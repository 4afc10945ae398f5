"""Rendering within a time limit, as a server renders: on a thread, which may be given up."""

import asyncio
from _thread import start_new_thread
from collections.abc import Mapping
from threading import TIMEOUT_MAX, Lock, current_thread
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.language.messages import Workflow
from promptkit.protocol.limits import Limits

__all__ = ["Outcome", "render_within_limit", "time_limit"]

#: How long an asynchronous prompt may clean up once it is cancelled, in seconds.
_GRACE: Final = 1.0

#: What a rendering comes to: a workflow, what was raised, or None if it took too long.
Outcome = Workflow | BaseException | None


def time_limit(prompt: CompiledPrompt) -> float:
    """
    Return how long *prompt* may take, in seconds: what its author says, else what `serve` allows.
    """
    return prompt.timeout or Limits().timeout


def render_within_limit(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Outcome:
    """
    Return what *prompt* says, or how that failed.

    Args:
        prompt:
            What is rendered.

        arguments:
            Values by argument name, as a client sends them.

    Raises:
        KeyboardInterrupt: If somebody pressed Ctrl-C. An asynchronous prompt is cancelled then.
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
    """
    One rendering on a thread that keeps no process alive.
    """

    def __init__(self, prompt: CompiledPrompt, arguments: Mapping[str, str]) -> None:
        self.outcome: Outcome = None
        self._prompt = prompt
        self._arguments = arguments
        # Neither an event nor a `Thread`, which waits for one when it starts: an interrupt between
        # the steps of that would leave its lock in disorder.
        self._over = Lock()
        self._over.acquire()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None

    def start(self) -> None:
        """
        Begin, on a thread that keeps no process alive.
        """
        start_new_thread(self._run, ())

    def wait(self, seconds: float) -> bool:
        """
        Return whether it is over, waiting for that for so long at most.
        """
        return self._over.acquire(timeout=min(seconds, TIMEOUT_MAX))

    def cancel(self) -> None:
        """
        Cancel what can be cancelled, and give it a moment to clean up.
        """
        if self._running is not None:
            loop, task = self._running
            loop.call_soon_threadsafe(task.cancel)
            self.wait(_GRACE)

    def _run(self) -> None:
        try:
            current_thread()  # from now on, it is counted
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
