"""`@prompt`: turns an author's function into a prompt, which can be rendered and served."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, NoReturn, ParamSpec, TypedDict, TypeVar, Unpack, overload

import attrs

from promptkit.answers.parsing import parse_answer
from promptkit.catalog.prompts import CompiledPrompt, FunctionRenderer
from promptkit.declarations.arguments import DirectArguments, compile_arguments
from promptkit.declarations.base import Declared, cached_property
from promptkit.declarations.options import Options, check_options, convert_icons, convert_tags, copy_meta
from promptkit.declarations.signature import as_function, local_names, read_signature
from promptkit.errors.diagnostics import Diagnostic, Report, Severity
from promptkit.errors.exceptions import CompileError
from promptkit.language.annotations import Tool
from promptkit.language.media import Icon
from promptkit.language.messages import Workflow

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


@attrs.frozen(slots=False, eq=False, repr=False)
class Prompt(Declared[P, Mapping[str, str]], Generic[P, R]):
    """
    An author's function, decorated with `@prompt`.

    Calling the prompt checks the types of the arguments, then calls the function and returns its result, so
    that one prompt can call another.
    """

    function: Callable[P, R]
    options: Options
    names: Mapping[str, Any]

    # Copied from the function.
    __name__: ClassVar[str]
    __qualname__: ClassVar[str]

    def __repr__(self) -> str:
        return f"<prompt {self.options.name!r} at {self.location}>"

    def __format__(self, spec: str) -> NoReturn:
        msg = f"prompt {self.options.name!r} itself cannot be used in an f-string: call {self.__name__}(...)"
        raise TypeError(msg)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """
        Call the author's function. A parameter annotated `Context` can be omitted.

        Raises:
            TypeError: If an argument does not have its parameter's type.

            ArgumentsError: If an argument is omitted, and its environment variable is invalid or not set.

            Exception: Any exception that the function raises.
        """
        result: R = self._wrapped_function(*args, **self._direct_arguments.checked(args, kwargs))
        return result

    def render(self, *args: P.args, **kwargs: P.kwargs) -> Workflow:
        """
        Call the author's function and return the result as a client would receive it.

        A parameter annotated `Context` can be omitted.

        Args:
            *args:
                Positional arguments, as Python values.

            **kwargs:
                Keyword arguments, as Python values.

        Raises:
            CompileError: If the prompt has errors, so that it cannot be served.

            TypeError: If an argument does not have its parameter's type, or the function's result cannot be
                converted to messages.

            ArgumentsError: If an argument is omitted, and its environment variable is invalid or not set.

            RuntimeError: If the function is asynchronous and an event loop is already running.

            Exception: Any exception that the function raises.
        """
        return self.compiled.renderer.render(*args, **self._direct_arguments.checked(args, kwargs))

    async def render_async(self, *args: P.args, **kwargs: P.kwargs) -> Workflow:
        """
        Render as `render` does, but on the running event loop. The function can also be synchronous.

        Args:
            *args:
                Positional arguments, as Python values.

            **kwargs:
                Keyword arguments, as Python values.

        Raises:
            Exception: Any exception that `render` raises.
        """
        return await self.compiled.renderer.render_async(
            *args, **self._direct_arguments.checked(args, kwargs)
        )

    def render_wire(self, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Render from the strings that a client sends, using the same code as the server.

        Args:
            arguments:
                Values by parameter name, as text.

        Raises:
            CompileError: If the prompt has errors, so that it cannot be served.

            ArgumentsError: If any argument is missing, unknown or invalid; the error lists them all.

            Exception: Any exception that `render` raises.
        """
        return self.compiled.render(arguments)

    async def render_wire_async(self, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Render as `render_wire` does, but on the running event loop.

        Args:
            arguments:
                Values by parameter name, as text.

        Raises:
            Exception: Any exception that `render_wire` raises.
        """
        return await self.compiled.render_async(arguments)

    def to_wire(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, str]:
        """
        Return what a client sends for a call with these arguments: values by parameter name, as text.

        Args:
            *args:
                Positional arguments, as Python values.

            **kwargs:
                Keyword arguments, as Python values.

        Raises:
            TypeError: If an argument does not have its parameter's type, or if no client can send it.
        """
        return self._direct_arguments.to_wire(args, kwargs)

    @cached_property
    def compiled(self) -> CompiledPrompt:
        """The compiled prompt, as it is served. Raises `CompileError` if the prompt has errors."""
        compiled, diagnostics = self.compile()
        if compiled is None:
            raise CompileError(diagnostics)
        return compiled

    def compile(self) -> tuple[CompiledPrompt | None, tuple[Diagnostic, ...]]:
        """Return the compiled prompt (None if it has errors) and all diagnostics."""
        return self._compilation

    @cached_property
    def _compilation(self) -> tuple[CompiledPrompt | None, tuple[Diagnostic, ...]]:
        options = self.options
        report = self._report()
        check_options(options, self.function, report)
        signature = read_signature(self.function, self.names, report)
        arguments = compile_arguments(options.name, signature, report)
        if any(diagnostic.severity is Severity.ERROR for diagnostic in report.diagnostics):
            return None, tuple(report.diagnostics)
        compiled = CompiledPrompt(
            name=options.name,
            title=options.title,
            description=options.describe(options.description or signature.summary),
            icons=options.icons,
            meta=MappingProxyType(options.wire_meta),
            arguments=arguments,
            context=signature.context,
            renderer=FunctionRenderer(self._wrapped_function, options.name, self.location, options.answer),
            timeout=options.timeout,
            cache=options.cache,
            elicit=options.elicit,
            tool=options.tool,
            scopes=frozenset(options.scopes),
            deprecated=options.deprecated,
            sample=options.sample,
            saved=self.saved,
        )
        return compiled, tuple(report.diagnostics)

    def _report(self) -> Report:
        """Return an empty report for the diagnostics of the prompt."""
        return Report(f"prompt {self.options.name!r}", self.location)

    @cached_property
    def _direct_arguments(self) -> DirectArguments:
        return DirectArguments(self.options.name, self.function, self.names, self.location)


class AnsweredPrompt(Prompt[P, R], Generic[P, R, A]):
    """A `Prompt` that declares the type of its answer."""

    def parse_answer(self, text: str, *, allow_cut: bool = False) -> A:
        """
        Find the JSON in a model's answer to this prompt, and convert it to the declared type.

        See `promptkit.answers.parse_answer`.

        Args:
            text:
                The model's answer, which can have at most 1 MiB and be nested at most 100 levels deep.

            allow_cut:
                Whether to repair an answer whose end is missing. The last string in it can be incomplete.

        Raises:
            AnswerError: If no JSON value in the answer is valid, or its end is missing. The error lists all
                problems with their paths.

            TypeError: If *text* is not a string, or promptkit does not support the declared type.
        """
        answer: A = parse_answer(text, self.options.answer, allow_cut=allow_cut)
        return answer


class _PromptOptions(TypedDict, total=False):
    """The options of `prompt`, except for the type of the answer."""

    name: str | None
    title: str | None
    description: str | None
    icons: Iterable[Icon | str]
    tags: Iterable[str]
    version: str | None
    timeout: float | None
    cache: float | None
    meta: Mapping[str, Any] | None
    elicit: Literal["always"] | bool | None
    scopes: Collection[str]
    tool: Tool | bool | None
    deprecated: str | None
    sample: bool


@overload
def prompt(function: Callable[P, R], /) -> Prompt[P, R]: ...
@overload
def prompt(
    *, answer: None = None, **options: Unpack[_PromptOptions]
) -> Callable[[Callable[P, R]], Prompt[P, R]]: ...
@overload
def prompt(
    *, answer: type[A], **options: Unpack[_PromptOptions]
) -> Callable[[Callable[P, R]], AnsweredPrompt[P, R, A]]: ...
@overload
def prompt(
    *, answer: Any, **options: Unpack[_PromptOptions]
) -> Callable[[Callable[P, R]], AnsweredPrompt[P, R, Any]]: ...
def prompt(  # noqa: PLR0913 (each is an option for authors)
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Iterable[Icon | str] = (),
    tags: Iterable[str] = (),
    version: str | None = None,
    timeout: float | None = None,
    cache: float | None = None,
    meta: Mapping[str, Any] | None = None,
    elicit: Literal["always"] | bool | None = None,
    scopes: Collection[str] = (),
    tool: Tool | bool | None = None,
    answer: Any = None,
    deprecated: str | None = None,
    sample: bool = True,
) -> Prompt[P, R] | Callable[[Callable[P, R]], Prompt[P, R]]:
    """
    Declare a prompt.

    The function returns or yields text, content, messages, workflows, sequences of these, or None. It can be
    ``async``. Its parameters become the prompt's arguments.

    Args:
        function:
            A ``def``, ``async def``, generator or asynchronous generator function; or a bound method or a
            `functools.partial` of such a function, whose bound arguments clients cannot fill.

        name:
            The name by which clients request the prompt. Defaults to the function's name.

        title:
            A display name. It has no default, because some clients use it as the name of the command.

        description:
            A description for clients. Defaults to the docstring's summary.

        icons:
            Icons for clients: `Icon` values, or URIs.

        tags:
            Words by which to group prompts; sent in ``_meta``.

        version:
            The author's version of this prompt; sent in ``_meta``.

        timeout:
            The time limit for each rendering by a server, in seconds.

        cache:
            How long, in seconds, a reply can be served again for the same arguments. Replies of a prompt with
            a `Context` parameter are never cached.

        meta:
            Additional entries for ``_meta``, under keys like ``com.example/owner``.

        elicit:
            Whether to ask the user for missing and invalid arguments, if the client supports forms. Users are
            never asked for secrets. By default, they are asked only if they chose the prompt themselves; with
            True, also if a model calls it as a tool. With ``"always"``, the form also asks for optional
            arguments that were not sent, even if nothing else is missing, and shows their defaults.

        scopes:
            Scopes that a caller needs; all are required. For other callers, the prompt does not exist.

        tool:
            Hints for models, for when prompts are served as tools; False if models must not call the prompt.

        answer:
            The type of the answer that the prompt asks for. Its JSON Schema is added to requests to vendors
            and to ``_meta``, and ``.parse_answer(text)`` converts an answer to this type.

        deprecated:
            What to use instead, as in ``"use review-change"``. The prompt is still served, but its
            description and ``_meta`` announce the deprecation.

        sample:
            Whether promptkit may render the prompt speculatively, in ``promptkit check --render``, ``diff``,
            ``dev`` and ``pytest --promptkit``.

    Returns:
        The function as a `Prompt`, or as an `AnsweredPrompt` if *answer* is given. If *function* is omitted,
        a decorator that returns this.

    Raises:
        TypeError: If the decorated object is not a function, or an option has the wrong type.

        ValueError: If *timeout* or *cache* is not above zero, *deprecated* is blank, or an icon is not a URI.
    """
    names = sys._getframe(1).f_locals  # noqa: SLF001 (annotations may use local names)

    def decorate(decorated: Callable[P, R]) -> Prompt[P, R]:
        function = as_function(decorated)
        options = Options(
            name=function.__name__ if name is None else name,
            title=title,
            description=description,
            icons=convert_icons(icons),
            tags=convert_tags(tags),
            version=version,
            timeout=timeout,
            cache=cache,
            meta=copy_meta(meta or {}),
            elicit=elicit,
            tool=tool,
            scopes=scopes,
            answer=answer,
            deprecated=deprecated,
            sample=sample,
        )
        kind = Prompt if answer is None else AnsweredPrompt
        return kind(function, options, local_names(function, names))

    return decorate if function is None else decorate(function)
