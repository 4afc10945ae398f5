"""Rendering: an author's function is called, and its result becomes a workflow."""

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct, structs

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import EmptyPrompt, ResultError
from promptkit.language.messages import Message, Workflow, messages_of, workflow_of
from promptkit.language.unsendable import Unsendable

__all__ = ["Renderer", "is_asynchronous", "run_async"]

T = TypeVar("T")


def is_asynchronous(*layers: Callable[..., Any]) -> bool:
    """Whether a function has to be awaited, or iterated asynchronously; a decorator may add or hide that."""
    return any(inspect.iscoroutinefunction(layer) or inspect.isasyncgenfunction(layer) for layer in layers)


def run_async(
    function: Callable[..., Coroutine[Any, Any, T]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusal: str,
) -> T:
    """
    Call a coroutine function on an event loop of its own.

    Args:
        function:
            The function.

        args:
            Its arguments.

        kwargs:
            Its keyword arguments, which may have any names.

        refusal:
            The message of the error that is raised if an event loop runs already.

    Raises:
        RuntimeError: If an event loop runs on this thread.

        Exception: Whatever the function raises.
    """
    import asyncio  # most programs that get here have it loaded

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # it is called below, so that this is not the context of what it raises
    else:
        raise RuntimeError(refusal)
    return asyncio.run(function(*args, **kwargs))


class Renderer(Struct, frozen=True):
    """
    Calls an author's function, and makes a `Workflow` of its result.

    Args:
        function:
            A function, generator, coroutine function or async generator.

        name:
            The prompt's name, for errors.

        location:
            Where the function is defined, for errors.

        is_async:
            Whether it has to be awaited; found out from *function*.
    """

    function: Callable[..., Any]
    name: str
    location: Location
    is_async: bool = False

    def __post_init__(self) -> None:
        is_async = is_asynchronous(self.function, inspect.unwrap(self.function))
        structs.force_setattr(self, "is_async", is_async)

    def render(self, *args: Any, **kwargs: Any) -> Workflow:
        """
        Call the function, and return its messages in order.

        An asynchronous function is run on an event loop of its own.

        Raises:
            ResultError: If a value that it returned or yielded cannot become a message; the error
                names the prompt, its place and the remedy.

            EmptyPrompt: If there are no messages.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the function raises.
        """
        if self.is_async:
            refusal = (
                f"prompt {self.name!r} is asynchronous, and an event loop runs here: await .render_async(...)"
            )
            return run_async(self.render_async, args, kwargs, refusal)
        return self._workflow(self.function(*args, **kwargs))

    def render_sync(self, values: Mapping[str, Any]) -> Workflow | str:
        """
        Call the function, which is not asynchronous.

        A plain text is returned as it is. Most prompts return one, and it is sent without a workflow.

        Raises:
            Exception: As `render` does.
        """
        result = self.function(**values)
        if type(result) is str and result and not result.isspace():
            return result
        return self._workflow(result)

    async def render_async(self, *args: Any, **kwargs: Any) -> Workflow:
        """
        Call the function on the running event loop, and return its messages in order.

        Raises:
            Exception: As `render` does.
        """
        if not self.is_async:
            return self.render(*args, **kwargs)
        result = self.function(*args, **kwargs)
        if isinstance(result, Coroutine):
            result = await result
        if isinstance(result, AsyncIterator):
            return self._joined(self._messages([item async for item in result], "yielded"))
        return self._workflow(result)

    def _workflow(self, result: object) -> Workflow:
        if isinstance(result, Workflow) and result.messages:
            return result
        if not isinstance(result, Iterator):
            return self._joined(self._messages(result, "returned"))
        yielded, returned = _drain(result)
        return self._joined(self._messages(yielded, "yielded") + self._messages(returned, "returned"))

    def _joined(self, messages: tuple[Message, ...]) -> Workflow:
        if not messages:
            raise EmptyPrompt(self.name)
        return workflow_of(messages)

    def _messages(self, result: object, verb: str) -> tuple[Message, ...]:
        try:
            return tuple(messages_of(result))
        except Unsendable as unsendable:
            where = "".join(f", at position {i + 1}," for i in unsendable.path).replace(",,", ",")
            msg = f"prompt {self.name!r} ({self.location}) {verb}{where} {unsendable}"
            raise ResultError(msg) from None


def _drain(items: Iterator[Any]) -> tuple[list[Any], Any]:
    """What a generator yields, and what it returns at its end."""
    yielded: list[Any] = []
    while True:
        try:
            yielded.append(next(items))
        except StopIteration as end:
            return yielded, end.value
