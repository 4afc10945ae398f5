"""Calls that commands and the preview make to authors' code, and the messages for calls that fail."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any, Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ArgumentsError, PromptError, ResultError
from promptkit.errors.tracebacks import authors_line
from promptkit.language.context import cancelled_by
from promptkit.language.messages import Workflow
from promptkit.server.timeouts import CallTimeoutError

#: How long cancelled asynchronous code may take to clean up, in seconds.
CANCEL_GRACE_S: Final = 1.0


def make_renderer(
    prompt: CompiledPrompt, arguments: Mapping[str, str]
) -> Callable[[], Workflow | Coroutine[Any, Any, Workflow]]:
    """Return a function, plain or asynchronous, that renders *prompt* with a client's arguments."""
    return partial(prompt.render_async if prompt.renderer.is_async else prompt.render, arguments)


def explain_failure(function_name: str, error: BaseException) -> str | None:
    """Return a message about a function call that raised *error*; None if the error needs a traceback."""
    if isinstance(error, CallTimeoutError):
        return f"{function_name} {error}"
    return str(error) if isinstance(error, PromptError | ResultError | ArgumentsError) else None


class AuthorCall:
    """
    A call to an author's function. Other threads can cancel the call.

    Args:
        function:
            The function, plain or asynchronous.

    Attributes:
        returned:
            The return value, once the function has returned.

        raised:
            The exception that the function raised; None once the function has returned. Until the call ends,
            an error that reports that the call was stopped.

        is_async:
            Whether the function turned out to be asynchronous, so that it can be cancelled.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self.returned: Any = None
        self.raised: BaseException | None = RuntimeError("the call was stopped")
        self.is_async = False
        self._function = function
        self._thread: int | None = None
        self._coroutine: Coroutine[Any, Any, Any] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def run(self) -> None:
        """Call the function, and store its return value or its exception."""
        self._thread = get_ident()
        with cancelled_by(lambda: self._is_cancelled):
            try:
                self.returned, self.raised = self._call(), None
            except asyncio.CancelledError as error:  # raising it again would cancel the caller
                self.raised = RuntimeError("the call was cancelled")
                self.raised.__cause__ = error
            except BaseException as error:  # noqa: BLE001 (authors' code can raise anything)
                self.raised = error

    def _call(self) -> Any:
        returned = self._function()
        if isinstance(returned, Coroutine):
            self.is_async, self._coroutine = True, returned
            returned = asyncio.run(self._await_task(returned))
        return returned

    @property
    def line(self) -> Location | None:
        """The line of the author's code that is running, if any."""
        return authors_line(self._thread, self._coroutine)

    def cancel(self) -> None:
        """
        Cancel asynchronous code, which can still clean up. Other code stops when it next calls promptkit.
        """
        self._is_cancelled = True
        if (task := self._task) is not None:
            with suppress(RuntimeError):  # the loop is closed
                task.get_loop().call_soon_threadsafe(task.cancel)

    async def _await_task(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self._task = asyncio.ensure_future(coroutine)
        if self._is_cancelled:  # `cancel` was called before the task was created
            self._task.cancel()
        return await self._task
