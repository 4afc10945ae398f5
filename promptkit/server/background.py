"""
An event loop on a thread of its own, for prompts that must not hold up the others.

Importing this module imports asyncio, so it is done when the first such prompt is called.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Condition, Thread
from typing import Any, TypeVar

from promptkit.messages import Workflow
from promptkit.protocol.jsonrpc import InternalError
from promptkit.rendering import Renderer

__all__ = ["Background", "render_within"]

T = TypeVar("T")


class Background:
    """
    Runs coroutines beside the caller.

    Its thread is a daemon: whatever runs there, it never keeps the process alive.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._running: set[Future[Any]] = set()
        self._idle = Condition()
        Thread(target=self._run, name="promptkit-background", daemon=True).start()

    def _run(self) -> None:
        while True:
            # A task that raises SystemExit or the like stops its loop; the others go on.
            with suppress(BaseException):
                self._loop.run_forever()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """
        Start *coroutine*; return a future whose ``cancel()`` cancels it.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        with self._idle:
            self._running.add(future)
        return future

    def when_done(self, future: Future[T], done: Callable[[Future[T]], None]) -> None:
        """
        Call *done* once *future* is finished, failed or cancelled, now if it is already.
        """
        future.add_done_callback(done)
        future.add_done_callback(self._forget)  # after *done*, so that close() waits for that too

    def _forget(self, future: Future[Any]) -> None:
        with self._idle:
            self._running.discard(future)
            self._idle.notify_all()

    def close(self, grace: float) -> None:
        """
        Wait for what is running, *grace* seconds at most.
        """
        with self._idle:
            self._idle.wait_for(lambda: not self._running, timeout=grace)


async def render_within(renderer: Renderer, values: dict[str, Any], seconds: float | None) -> Workflow:
    """
    Render, a plain function on a thread, and stop waiting after *seconds*.

    Raises:
        InternalError: If it took longer.

        RuntimeError: If the author's function raised what would end this loop or its task.

        Exception: As `Renderer.render` does.
    """
    render = renderer.render_async if renderer.is_async else partial(_in_thread, renderer)
    try:
        async with asyncio.timeout(seconds) as limit:
            return await render(**values)
    except TimeoutError:
        if not limit.expired():
            raise
        msg = f"prompt {renderer.name!r} took longer than its {seconds:g} s"
        raise InternalError(msg) from None
    except Exception:
        raise
    except BaseException as ending:
        task = asyncio.current_task()
        if isinstance(ending, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # the client, and not the prompt, has ended it
        msg = f"the prompt raised {type(ending).__name__}"
        raise RuntimeError(msg) from ending


async def _in_thread(renderer: Renderer, /, **values: Any) -> Workflow:
    """
    Render on a thread that may be left behind: a daemon, of this rendering alone.
    """
    outcome: Future[Workflow] = Future()

    def work() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            workflow = renderer.render(**values)
        except StopIteration as error:  # which no future can hold
            outcome.set_exception(RuntimeError(f"the prompt raised {error!r}"))
        except BaseException as error:  # noqa: BLE001 (whoever awaits it sorts it out)
            outcome.set_exception(error)
        else:
            outcome.set_result(workflow)

    Thread(target=work, name=f"promptkit-{renderer.name}", daemon=True).start()
    return await asyncio.wrap_future(outcome)
