"""Rendering: an author's function is called, and what comes back becomes a workflow."""

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct, structs

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import EmptyPrompt, ResultError
from promptkit.language.messages import Message, Workflow, joined, messages_of
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
    An author's function, and how to get a `Workflow` out of it.

    Args:
        function:
            A function, generator, coroutine function or async generator.

        name:
            The prompt's name, for errors.

        location:
            Where the function is defined, for errors.

        is_async:
            Whether it has to be awaited, which *function* decides.
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
        Call the function and return what it says, in order.

        An asynchronous one is run on an event loop of its own.

        Raises:
            ResultError: If it returned or yielded what no message can hold; the error names
                the function, the place and what to write.

            EmptyPrompt: If it returned or yielded nothing that can be sent.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the function raises.
        """
        if self.is_async:
            refusal = (
                f"prompt {self.name!r} is asynchronous, and an event loop runs here: await .render_async(...)"
            )
            return run_async(self.render_async, args, kwargs, refusal)
        return self._workflow(self.function(*args, **kwargs))

    def say(self, values: Mapping[str, Any]) -> Workflow | str:
        """
        Call the function, which is not asynchronous, and return what it says, in order.

        The text of a single turn of the user is returned as it is: most prompts say no more, and
        nothing has to be made of it to send it.

        Args:
            values:
                The keyword arguments.

        Raises:
            Exception: As `render` does.
        """
        result = self.function(**values)
        if type(result) is str and result and not result.isspace():
            return result
        return self._workflow(result)

    async def render_async(self, *args: Any, **kwargs: Any) -> Workflow:
        """
        Call the function, of whatever kind, and return what it says, in order.

        Raises:
            TypeError: As `render` does.

            Exception: Whatever the function raises.
        """
        if not self.is_async:
            return self.render(*args, **kwargs)
        result = self.function(*args, **kwargs)
        if isinstance(result, Coroutine):
            result = await result
        if isinstance(result, AsyncIterator):
            return self._said(self._messages([item async for item in result], "yielded"))
        return self._workflow(result)

    def _workflow(self, result: object) -> Workflow:
        """
        Return what the function returned, a generator drained, as a workflow.
        """
        if isinstance(result, Workflow) and result.messages:
            return result
        if not isinstance(result, Iterator):
            return self._said(self._messages(result, "returned"))
        yielded, returned = _drain(result)
        return self._said(self._messages(yielded, "yielded") + self._messages(returned, "returned"))

    def _said(self, messages: tuple[Message, ...]) -> Workflow:
        """
        Return *messages* as a workflow. Raises EmptyPrompt if there are none: nobody asked for that.
        """
        if not messages:
            raise EmptyPrompt(self.name)
        return joined(messages)

    def _messages(self, result: object, verb: str) -> tuple[Message, ...]:
        """
        Return the messages that *result* stands for, or raise what the author should read.
        """
        try:
            return tuple(messages_of(result))
        except Unsendable as unsendable:
            where = "".join(f", at position {i + 1}," for i in unsendable.path).replace(",,", ",")
            msg = f"prompt {self.name!r} ({self.location}) {verb}{where} {unsendable}"
            raise ResultError(msg) from None


def _drain(items: Iterator[Any]) -> tuple[list[Any], Any]:
    """
    Return everything that *items* yields, and what it returns in the end.
    """
    yielded: list[Any] = []
    while True:
        try:
            yielded.append(next(items))
        except StopIteration as end:
            return yielded, end.value
