"""Compiled prompts, which convert their arguments, call a function, and turn its result into a workflow."""

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from typing import Any, Final, Literal

from msgspec import Struct, structs

from promptkit.catalog.arguments import Arguments, schema_of
from promptkit.catalog.cases import Case
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import EmptyPromptError, ResultError, shortened
from promptkit.language.annotations import Tool
from promptkit.language.bounds import MAX_REPLY_BYTES, TooLongError
from promptkit.language.content import ReprRecord, context_repr_record, repr_record
from promptkit.language.context import Context
from promptkit.language.media import Icon
from promptkit.language.messages import Workflow, make_workflow
from promptkit.language.results import UNCOUNTED_MESSAGES, MessageBuilder
from promptkit.language.validation import UnsendableError
from promptkit.types.functions import is_any_async, run_async
from promptkit.types.schemas import answer_schema

#: Reason shown for prompts that tools do not render speculatively.
NO_SAMPLE: Final = "sample=False"

#: Key of the arguments' JSON Schema in `_meta`.
SCHEMA: Final = "promptkit/arguments"

#: Key of the answer's JSON Schema in `_meta`.
ANSWER: Final = "promptkit/answer"

#: Key of the prompt's tags in `_meta`.
TAGS: Final = "promptkit/tags"


def prefixed_name(prefix: str, name: str) -> str:
    """Return the name that a prompt has in a target with *prefix*; ``""`` means no prefix."""
    return f"{prefix}-{name}" if prefix else name


class FunctionRenderer(Struct, frozen=True):
    """
    Calls an author's function and converts its result to a `Workflow`.

    Args:
        function:
            A function, generator, coroutine function or async generator.

        name:
            The prompt's name, for error messages.

        location:
            Where the function is defined, for error messages.

        answer:
            The type of the answer that the author declared, if any.

        is_async:
            Whether the function must be awaited; derived from *function*.
    """

    function: Callable[..., Any]
    name: str
    location: Location
    answer: Any = None
    is_async: bool = False

    def __post_init__(self) -> None:
        is_async = is_any_async(self.function, inspect.unwrap(self.function))
        structs.force_setattr(self, "is_async", is_async)

    def render(self, /, *args: Any, **kwargs: Any) -> Workflow:
        """
        Call the function, and return its messages in order.

        An asynchronous function is run on a new event loop.

        Raises:
            ResultError: If a returned or yielded value cannot be converted to a message, if text contains the
                ``repr`` of content, or if the reply is too long. The error names the prompt and its location,
                and contains a hint.

            EmptyPromptError: If there are no messages.

            RuntimeError: If the function is asynchronous and an event loop is running.

            Exception: Any exception from the function.
        """
        if self.is_async:
            message = (
                f"prompt {self.name!r} is asynchronous, and an event loop is already running: await "
                ".render_async(...)"
            )
            return run_async(self.render_async, args, kwargs, message)
        rendered = self.render_sync(kwargs, args=args)
        return self._workflow(rendered, MAX_REPLY_BYTES) if isinstance(rendered, str) else rendered

    def render_sync(
        self, values: Mapping[str, Any], limit: int = MAX_REPLY_BYTES, args: tuple[Any, ...] = ()
    ) -> Workflow | str:
        """
        Call a function that is not asynchronous.

        Plain text, which most prompts return, is not wrapped in a workflow.

        Args:
            values:
                The function's keyword arguments.

            limit:
                The maximum size of the reply in bytes. Generators that exceed it are closed.

            args:
                The function's positional arguments.

        Raises:
            Exception: Any exception that `render` raises.
        """
        record = context_repr_record()
        outer, record.texts = record.texts, []
        try:
            result = self.function(*args, **values)
            is_text = type(result) is str and result and not result.isspace()
            rendered = result if is_text else self._workflow(result, limit)
        finally:
            reprs, record.texts = record.texts, outer
        if reprs:
            self._check_texts(rendered, reprs)
        return rendered

    async def render_async(self, /, *args: Any, **kwargs: Any) -> Workflow:
        """
        Call the function on the running event loop, and return its messages in order.

        Raises:
            Exception: Any exception that `render` raises.
        """
        if not self.is_async:
            return self.render(*args, **kwargs)
        return await self.render_awaited(kwargs, args)

    async def render_awaited(
        self, values: Mapping[str, Any], args: tuple[Any, ...] = (), limit: int = MAX_REPLY_BYTES
    ) -> Workflow:
        """Call and await the function, and return its messages; see `render_sync` for the arguments."""
        reprs: list[str] = []
        token = repr_record.set(ReprRecord(reprs))
        try:
            workflow = await self._await_workflow(values, args, limit)
        finally:
            with suppress(ValueError):  # an abandoned coroutine is closed in another context
                repr_record.reset(token)
        if reprs:
            self._check_texts(workflow, reprs)
        return workflow

    async def _await_workflow(self, values: Mapping[str, Any], args: tuple[Any, ...], limit: int) -> Workflow:
        result = self.function(*args, **values)
        if isinstance(result, Coroutine):
            result = await result
        if not isinstance(result, AsyncIterator):
            return self._workflow(result, limit)
        messages, position = MessageBuilder(limit), 0
        async for item in result:
            try:
                messages.add(item, (position,))
            except (UnsendableError, TooLongError) as error:
                if isinstance(result, AsyncGenerator):
                    await result.aclose()
                raise self._result_error(error, "yielded") from None
            position += 1
        return self._finish(messages.build())

    def _workflow(self, result: object, limit: int) -> Workflow:
        if isinstance(result, Workflow):
            if result.messages[UNCOUNTED_MESSAGES:]:  # it may be too long: repeated values share memory
                self._convert(result, limit)
            return result if result.messages and self.answer is None else self._finish(result)
        if isinstance(result, Iterator):
            return self._finish(self._exhaust(result, limit))
        return self._finish(self._convert(result, limit))

    def _exhaust(self, items: Iterator[Any], limit: int) -> Workflow:
        """Return a workflow made from the values that a generator yields and finally returns."""
        messages, position = MessageBuilder(limit), 0
        while True:
            try:
                item = next(items)
            except StopIteration as end:
                return self._convert(end.value, limit, messages)
            try:
                messages.add(item, (position,))
            except (UnsendableError, TooLongError) as error:
                if isinstance(items, Generator):
                    items.close()
                raise self._result_error(error, "yielded") from None
            position += 1

    def _finish(self, workflow: Workflow) -> Workflow:
        if not workflow.messages:
            raise EmptyPromptError(self.name, only_system=workflow.system is not None)
        if self.answer is None:
            return workflow
        return make_workflow(workflow.messages, workflow.system, self.answer, workflow.cache_points)

    def _convert(self, result: object, limit: int, messages: MessageBuilder | None = None) -> Workflow:
        """Return a workflow made from *messages*, followed by *result*."""
        messages = MessageBuilder(limit) if messages is None else messages
        try:
            messages.add(result)
        except (UnsendableError, TooLongError) as error:
            raise self._result_error(error, "returned") from None
        return messages.build()

    def _check_texts(self, rendered: Workflow | str, reprs: Sequence[str]) -> None:
        """Raise ResultError if any text contains one of *reprs*, which the function created while it ran."""
        if isinstance(rendered, str):
            texts = [rendered]
        else:
            texts = [text for message in rendered.shown for text in message.content.texts]
        contained = [repr_text for repr_text in reprs if any(repr_text in text for text in texts)]
        if contained:
            outermost = max(contained, key=len)
            is_turn = outermost.startswith(("Message(", "Workflow("))
            hint = "join turns with +" if is_turn else "pass it to user(...) as a separate part"
            msg = (
                f"prompt {self.name!r} ({self.location}) has text that contains the Python repr "
                f"{shortened(outermost)}: {hint}"
            )
            raise ResultError(msg)

    def _result_error(self, error: UnsendableError | TooLongError, verb: str) -> ResultError:
        where = "".join(f", at position {i + 1}," for i in error.path).replace(",,", ",")
        more = "; use --max-reply to raise a server's limit" if isinstance(error, TooLongError) else ""
        return ResultError(f"prompt {self.name!r} ({self.location}) {verb}{where} {error}{more}")


class CompiledPrompt(Struct, frozen=True):
    """
    One prompt as it is served.

    Args:
        name:
            The name by which clients request the prompt.

        title:
            The display name, if the author declared one.

        description:
            The author's description.

        icons:
            Icons that a client can show.

        meta:
            The prompt's ``_meta``.

        arguments:
            The prompt's arguments, in the order of the signature.

        context:
            The name of the parameter that receives a `Context`, if any.

        renderer:
            Calls the author's function.

        timeout:
            The time limit for one rendering in seconds, if the author set one.

        cache:
            How long, in seconds, a reply can be reused for the same arguments.

        elicit:
            Whether the user is asked for missing and invalid arguments: for every request (True), never
            (False), or only for ``prompts/get`` (None). With ``"always"``, the user is asked even if only
            optional arguments were not sent.

        tool:
            The author's hints about the prompt as a tool; False if the prompt is not offered as a tool.

        scopes:
            The scopes that a caller needs; all are required. The prompt is hidden from other callers.

        deprecated:
            The replacement to use, if the author deprecated the prompt.

        sample:
            Whether tools may render the prompt speculatively (check, diff, dev).

        saved:
            Returns the cases that the author has saved.

        prefix:
            The prefix of the prompt's target, which is the start of the name.
    """

    name: str
    title: str | None
    description: str | None
    icons: tuple[Icon, ...]
    meta: Mapping[str, Any]
    arguments: Arguments
    context: str | None
    renderer: FunctionRenderer
    timeout: float | None = None
    cache: float | None = None
    elicit: Literal["always"] | bool | None = None
    tool: Tool | bool | None = None
    scopes: frozenset[str] = frozenset()
    deprecated: str | None = None
    sample: bool = True
    saved: Callable[[], tuple[Case, ...]] = tuple
    prefix: str = ""

    def with_prefix(self, prefix: str) -> "CompiledPrompt":
        """
        Return the prompt as a target with *prefix* serves it. Its new name also appears in errors.
        """
        name = prefixed_name(prefix, self.name)
        return structs.replace(
            self,
            name=name,
            arguments=structs.replace(self.arguments, owner=name),
            renderer=structs.replace(self.renderer, name=name),
            prefix=prefix,
        )

    @property
    def own_name(self) -> str:
        """The name that the author gave the prompt, without the prefix of its target."""
        return self.name.removeprefix(prefixed_name(self.prefix, ""))

    @property
    def location(self) -> Location:
        """Where the author defined the prompt."""
        return self.renderer.location

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags by which the author groups prompts."""
        tags = self.meta.get(TAGS, ())
        return tuple(map(str, tags)) if isinstance(tags, list | tuple) else ()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the prompt's arguments."""
        return schema_of(self.arguments.ordered)

    @property
    def answer_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the declared answer; None if the author declared none."""
        if self.renderer.answer is None:
            return None

        return answer_schema(self.renderer.answer)

    def bind(
        self,
        given: Mapping[str, Any] | None,
        context: Context | None = None,
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
                Values that are already converted.

        Raises:
            ArgumentsError: If any argument is missing, unknown or invalid. The error lists them all.
        """
        values = self.arguments.read(given, known)
        if self.context is not None:
            values[self.context] = context or Context()
        return values

    def render(self, given: Mapping[str, Any] | None = None, context: Context | None = None) -> Workflow:
        """
        Render the prompt with the arguments that a client sent.

        Args:
            given:
                The values that a client sent, by argument name.

            context:
                The context of the request.

        Raises:
            ArgumentsError: If any argument is missing, unknown or invalid. The error lists them all.

            ResultError: If a returned value cannot be converted to a message.

            RuntimeError: If the function is asynchronous and an event loop is running.

            Exception: Any exception from the author's function.
        """
        return self.renderer.render(**self.bind(given, context))

    async def render_async(
        self, given: Mapping[str, Any] | None = None, context: Context | None = None
    ) -> Workflow:
        """
        Render the prompt as `render` does, but on the running event loop.

        Raises:
            Exception: Any exception that `render` raises.
        """
        return await self.renderer.render_async(**self.bind(given, context))
