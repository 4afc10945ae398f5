"""One compiled prompt: its arguments are read, its function is called, and the result becomes a workflow."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.json_schema import schema_of
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import EmptyPromptError, ResultError
from promptkit.language.bounds import MAX_REPLY_BYTES, TooLongError
from promptkit.language.context import Context
from promptkit.language.messages import Workflow, workflow_of
from promptkit.language.results import FREE_MESSAGES, MessageBuilder
from promptkit.language.validation import UnsendableError
from promptkit.types.functions import is_asynchronous, run_async
from promptkit.types.schemas import answer_schema

if TYPE_CHECKING:
    from promptkit.catalog.cases import Case
    from promptkit.language.media import Icon
    from promptkit.language.tools import Tool

#: Why a prompt is not called that nobody has asked for.
NO_SAMPLE: Final = "sample=False"

#: Where `_meta` has the JSON Schema of the arguments.
SCHEMA: Final = "promptkit/arguments"

#: Where `_meta` has the JSON Schema of the answer.
ANSWER: Final = "promptkit/answer"

#: Where `_meta` has the words that authors group prompts by.
TAGS: Final = "promptkit/tags"


class FunctionRenderer(Struct, frozen=True):
    """
    Calls an author's function, and makes a `Workflow` of its result.

    Args:
        function:
            A function, generator, coroutine function or async generator.

        name:
            The prompt's name, for errors.

        location:
            Where the function is defined, for errors.

        answer:
            The type of the answer that its author declared; None if there is none.

        is_async:
            Whether it has to be awaited; found out from *function*.
    """

    function: Callable[..., Any]
    name: str
    location: Location
    answer: Any = None
    is_async: bool = False

    def __post_init__(self) -> None:
        is_async = is_asynchronous(self.function, inspect.unwrap(self.function))
        structs.force_setattr(self, "is_async", is_async)

    def render(self, *args: Any, **kwargs: Any) -> Workflow:
        """
        Call the function, and return its messages in order.

        An asynchronous function is run on an event loop of its own.

        Raises:
            ResultError: If a value that it returned or yielded cannot become a message, or no reply may be
                so long; the error names the prompt, its place and the hint.

            EmptyPromptError: If there are no messages.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the function raises.
        """
        if self.is_async:
            refusal = (
                f"prompt {self.name!r} is asynchronous, and an event loop runs here: await .render_async(...)"
            )
            return run_async(self.render_async, args, kwargs, refusal)
        return self._workflow(self.function(*args, **kwargs), MAX_REPLY_BYTES)

    def render_sync(self, values: Mapping[str, Any], most: int = MAX_REPLY_BYTES) -> Workflow | str:
        """
        Call the function, which is not asynchronous.

        A plain text is returned as it is. Most prompts return one, and it is sent without a workflow.

        Args:
            values:
                Its keyword arguments.

            most:
                How many bytes a reply may have. What yields more is stopped.

        Raises:
            Exception: As `render` does.
        """
        result = self.function(**values)
        if type(result) is str and result and not result.isspace():
            return result
        return self._workflow(result, most)

    async def render_async(self, *args: Any, **kwargs: Any) -> Workflow:
        """
        Call the function on the running event loop, and return its messages in order.

        Raises:
            Exception: As `render` does.
        """
        if not self.is_async:
            return self.render(*args, **kwargs)
        return await self.render_awaited(kwargs, args)

    async def render_awaited(
        self, values: Mapping[str, Any], args: tuple[Any, ...] = (), most: int = MAX_REPLY_BYTES
    ) -> Workflow:
        """As `render_sync`, for a function that is asynchronous."""
        result = self.function(*args, **values)
        if isinstance(result, Coroutine):
            result = await result
        if not isinstance(result, AsyncIterator):
            return self._workflow(result, most)
        said, position = MessageBuilder(most), 0
        async for item in result:
            try:
                said.add(item, (position,))
            except (UnsendableError, TooLongError) as error:
                if isinstance(result, AsyncGenerator):
                    await result.aclose()
                raise self._refusal(error, "yielded") from None
            position += 1
        return self._finished(said.workflow())

    def _workflow(self, result: object, most: int) -> Workflow:
        if isinstance(result, Workflow):
            if result.messages[FREE_MESSAGES:]:  # what is in it many times takes memory when it is encoded
                self._read(result, most)
            return result if result.messages and self.answer is None else self._finished(result)
        if isinstance(result, Iterator):
            return self._finished(self._drained(result, most))
        return self._finished(self._read(result, most))

    def _drained(self, items: Iterator[Any], most: int) -> Workflow:
        """What a generator yields, and what it returns at its end."""
        said, position = MessageBuilder(most), 0
        while True:
            try:
                item = next(items)
            except StopIteration as end:
                return self._read(end.value, most, said)
            try:
                said.add(item, (position,))
            except (UnsendableError, TooLongError) as error:
                if isinstance(items, Generator):
                    items.close()
                raise self._refusal(error, "yielded") from None
            position += 1

    def _finished(self, said: Workflow) -> Workflow:
        if not said.messages:
            raise EmptyPromptError(self.name, only_system=said.system is not None)
        if self.answer is None:
            return said
        return workflow_of(said.messages, said.system, self.answer, said.cache_points)

    def _read(self, result: object, most: int, said: MessageBuilder | None = None) -> Workflow:
        said = MessageBuilder(most) if said is None else said
        try:
            said.add(result)
        except (UnsendableError, TooLongError) as error:
            raise self._refusal(error, "returned") from None
        return said.workflow()

    def _refusal(self, error: UnsendableError | TooLongError, verb: str) -> ResultError:
        where = "".join(f", at position {i + 1}," for i in error.path).replace(",,", ",")
        more = "; --max-reply lets a server send more" if isinstance(error, TooLongError) else ""
        return ResultError(f"prompt {self.name!r} ({self.location}) {verb}{where} {error}{more}")


class CompiledPrompt(Struct, frozen=True):
    """
    One prompt as it is served.

    Args:
        name:
            The name that clients ask for.

        title:
            The name that people see, if the author gave one.

        description:
            The author's description.

        icons:
            Icons that a client may show.

        meta:
            Its ``_meta``.

        arguments:
            Its arguments, in the order of the signature.

        context:
            The name of the parameter that receives a `Context`, if there is one.

        renderer:
            Calls the author's function.

        timeout:
            How long one rendering may take, in seconds, if the author set a limit.

        cache:
            How long a reply may be reused for the same arguments, in seconds.

        elicit:
            Whether the user is asked for required arguments that are missing.

        tool:
            What its author says of it as a tool; False if it is none.

        scopes:
            The scopes that a caller must have, all of them. For other callers the prompt does not exist.

        deprecated:
            What to use in its place, if its author says so.

        sample:
            Whether it may be called though nobody has asked for it.

        saved:
            Returns the cases that its author has saved.
    """

    name: str
    title: str | None
    description: str | None
    icons: "tuple[Icon, ...]"
    meta: Mapping[str, Any]
    arguments: Arguments
    context: str | None
    renderer: FunctionRenderer
    timeout: float | None = None
    cache: float | None = None
    elicit: bool = False
    tool: "Tool | bool | None" = None
    scopes: frozenset[str] = frozenset()
    deprecated: str | None = None
    sample: bool = True
    saved: "Callable[[], tuple[Case, ...]]" = tuple

    @property
    def location(self) -> Location:
        """Where the author defined it."""
        return self.renderer.location

    @property
    def tags(self) -> tuple[str, ...]:
        """The words that its author groups it by."""
        tags = self.meta.get(TAGS, ())
        return tuple(map(str, tags)) if isinstance(tags, list | tuple) else ()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return schema_of(self.arguments.ordered)

    @property
    def answer_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the answer that it asks for; None if its author says nothing of it."""
        if self.renderer.answer is None:
            return None

        return answer_schema(self.renderer.answer)

    def bind(
        self,
        given: Mapping[str, Any] | None,
        context: "Context | None" = None,
        known: Mapping[str, Any] = {},
    ) -> dict[str, Any]:
        """
        Return the keyword arguments for the author's function.

        Args:
            given:
                The values that a client sent, by argument name.

            context:
                The context of the request.

            known:
                Values that have their type already.

        Raises:
            ArgumentsError: With every argument that is missing, unknown or has a wrong value.
        """
        values = self.arguments.read(given, known)
        if self.context is not None:
            values[self.context] = context or Context()
        return values

    def render(self, given: Mapping[str, Any] | None = None, context: "Context | None" = None) -> Workflow:
        """
        Render with the arguments of a client.

        Args:
            given:
                The values that a client sent, by argument name.

            context:
                The context of the request.

        Raises:
            ArgumentsError: With every argument that is missing, unknown or has a wrong value.

            ResultError: If a value that the function returned cannot become a message.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the author's function raises.
        """
        return self.renderer.render(**self.bind(given, context))

    async def render_async(
        self, given: Mapping[str, Any] | None = None, context: "Context | None" = None
    ) -> Workflow:
        """
        Render with the arguments of a client, on the running event loop.

        Raises:
            Exception: As `render` does.
        """
        return await self.renderer.render_async(**self.bind(given, context))
