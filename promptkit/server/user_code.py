"""Calls code of authors: for a server, a test or a command, which all see the same errors."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any, Final, TypeVar, TypeVarTuple

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import (
    ArgumentsError,
    PromptError,
    ResultError,
    UnknownPromptError,
    UnknownResourceError,
)
from promptkit.errors.tracebacks import authors_line
from promptkit.language.cancellation import cancelled_by
from promptkit.language.messages import Workflow
from promptkit.protocol.limits import Limits

Args = TypeVarTuple("Args")
T = TypeVar("T")

#: What an author's function raises if it calls another prompt or resource, which refuses the arguments.
_NESTED_ERRORS: Final = (ArgumentsError, UnknownPromptError, UnknownResourceError)


def call_author(function: Callable[[*Args], T], *args: *Args) -> T:
    """
    Call an author's *function*.

    A prompt that calls another one with wrong arguments has a bug. Its client did nothing wrong, so the
    client must not get the error about these arguments.

    Raises:
        RuntimeError: If something that the function calls refuses its arguments.

        Exception: Whatever else the function raises.
    """
    try:
        return function(*args)
    except _NESTED_ERRORS as error:
        msg = "a call in it was refused"
        raise RuntimeError(msg) from error


#: How long what is asynchronous may clean up after it was cancelled, in seconds.
CANCEL_GRACE_S: Final = 1.0


class CallTimeoutError(Exception):
    """
    An author's function has not returned; the text says so, after its name.

    Attributes:
        line:
            The author's line that it was in; None if that is not known.
    """

    line: Location | None = None

    @classmethod
    def after(cls, seconds: float, line: Location | None = None) -> "CallTimeoutError":
        """Return the error of a function that may take so many seconds, and was in a *line* then."""
        at = "" if line is None else f", and was at {line}"
        error = cls(f"took longer than its limit of {seconds:g} s{at}")
        error.line = line
        return error


def time_limit(prompt: CompiledPrompt | None = None) -> float:
    """How long a call may take, in seconds: the limit of a prompt's author, else the default of `serve`."""
    return (prompt and prompt.timeout) or Limits().timeout


def rendering_of(
    prompt: CompiledPrompt, given: Mapping[str, str]
) -> Callable[[], Workflow | Coroutine[Any, Any, Workflow]]:
    """Return what renders *prompt* for the arguments of a client: a function, plain or asynchronous."""
    return partial(prompt.render_async if prompt.renderer.is_async else prompt.render, given)


def explanation(whose: str, error: BaseException) -> str | None:
    """Return why the call of *whose* function failed, for people; None if only a traceback says it."""
    if isinstance(error, CallTimeoutError):
        return f"{whose} {error}"
    return str(error) if isinstance(error, PromptError | ResultError | ArgumentsError) else None


class AuthorCall:
    """
    One call, on whichever thread runs it, which others may cancel.

    Args:
        function:
            What is called, plain or asynchronous.

    Attributes:
        returned:
            What it returned, once it has.

        raised:
            What it raised, or that it was stopped; None once it has returned.

        is_async:
            Whether it turned out to be asynchronous, and can be cancelled.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self.returned: Any = None
        self.raised: BaseException | None = RuntimeError("it was stopped")
        self.is_async = False
        self._function = function
        self._thread: int | None = None
        self._coroutine: Coroutine[Any, Any, Any] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def run(self) -> None:
        """Call the function, and keep what it returns or raises."""
        self._thread = get_ident()
        with cancelled_by(lambda: self._is_cancelled):
            try:
                self.returned, self.raised = self._call(), None
            except asyncio.CancelledError as error:  # raised further, it would cancel the caller
                self.raised = RuntimeError("it was cancelled")
                self.raised.__cause__ = error
            except BaseException as error:  # noqa: BLE001 (authors raise anything; the caller raises it again)
                self.raised = error

    def _call(self) -> Any:
        returned = self._function()
        if isinstance(returned, Coroutine):
            self.is_async, self._coroutine = True, returned
            returned = asyncio.run(self._awaited(returned))
        return returned

    @property
    def line(self) -> Location | None:
        """The author's line that it is in now; None if it is in none."""
        return authors_line(self._thread, self._coroutine)

    def cancel(self) -> None:
        """Cancel asynchronous code, so that it cleans up. Other code ends where it calls promptkit."""
        self._is_cancelled = True
        if (task := self._task) is not None:
            with suppress(RuntimeError):  # its loop is closed
                task.get_loop().call_soon_threadsafe(task.cancel)

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self._task = asyncio.ensure_future(coroutine)
        if self._is_cancelled:  # before there was a task
            self._task.cancel()
        return await self._task
