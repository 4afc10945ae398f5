"""Calls to authors' functions: rendering a prompt with the values of a form, and reading a resource."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import cached_property, partial
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import attrs
from starlette.requests import ClientDisconnect, Request

from promptkit.catalog.arguments import Argument
from promptkit.catalog.cases import is_refused
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.declarations.skill_frontmatter import read_skill
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument, PromptError, UnknownResourceError
from promptkit.errors.tracebacks import format_exception
from promptkit.fragments.budget import FitReport, fit_reports
from promptkit.language.documents import EmbeddedResource
from promptkit.language.files import FilledTextFile, collecting, filled_text_files
from promptkit.language.messages import Workflow
from promptkit.lints.linter import without_suppressed
from promptkit.lints.placeholders import lint_text_files
from promptkit.preview.media import Upload
from promptkit.server.direct_calls import AuthorCall, explain_failure, make_renderer
from promptkit.server.elicitation import askable_arguments
from promptkit.server.timeouts import CallTimeoutError, time_limit

if TYPE_CHECKING:  # most recipes have no skills
    from promptkit.catalog.skills import CompiledSkill

T = TypeVar("T")

#: Maximum number of concurrent calls per prompt or resource. Calls that cannot be stopped count until they
#: return.
_MAX_CONCURRENT: Final = 4

_TOO_MANY_CALLS: Final = (
    f"has {_MAX_CONCURRENT} calls that are still running, and synchronous functions cannot be stopped: "
    "edit the recipe or restart promptkit dev"
)


class LimitedCalls:
    """Calls authors' functions, with limited concurrency for each prompt and resource."""

    def __init__(self) -> None:
        self._semaphores = defaultdict[Hashable, asyncio.Semaphore](
            partial(asyncio.Semaphore, _MAX_CONCURRENT)
        )

    async def call(
        self, key: Hashable, function: Callable[[], T | Coroutine[Any, Any, T]], max_seconds: float
    ) -> T:
        """
        Call an author's function, but first wait until few enough calls with the same key are running.

        Args:
            key:
                The prompt, resource or other purpose whose calls are limited together.

            function:
                The function, synchronous or asynchronous.

            max_seconds:
                The time limit in seconds, for the call and for the wait before it.

        Raises:
            CallTimeoutError: If the call or the wait takes longer than *max_seconds*.

            BaseException: Any exception from the function.
        """
        semaphore = self._semaphores[key]
        try:
            async with asyncio.timeout(max_seconds):
                await semaphore.acquire()
        except TimeoutError:
            raise CallTimeoutError(_TOO_MANY_CALLS) from None
        return await call(function, max_seconds, semaphore.release)


async def call(
    function: Callable[[], T | Coroutine[Any, Any, T]],
    max_seconds: float,
    on_end: Callable[[], object] = bool,
) -> T:
    """
    Call an author's function on a new thread.

    On timeout, or when the page disconnects, asynchronous code is cancelled, and synchronous code is stopped
    as soon as it reports progress or runs a command. The thread does not keep the process alive.

    Args:
        function:
            The function, synchronous or asynchronous.

        max_seconds:
            The time limit in seconds.

        on_end:
            Called on the event loop when the thread has finished, even after the time limit.

    Returns:
        The result of the function.

    Raises:
        CallTimeoutError: If the call takes longer than *max_seconds*.

        BaseException: Any exception from the function.
    """
    loop, author_call = asyncio.get_running_loop(), AuthorCall(function)
    finished: asyncio.Future[None] = loop.create_future()
    finished.add_done_callback(lambda _: on_end())

    def run() -> None:
        try:
            author_call.run()
        finally:
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(finished.set_result, None)

    Thread(target=copy_context().run, args=(run,), name="promptkit-render", daemon=True).start()
    try:
        done, _ = await asyncio.wait([finished], timeout=max_seconds)
        line = None if done else author_call.line
    finally:
        author_call.cancel()
    if not done:
        raise CallTimeoutError.after(max_seconds, line)
    if author_call.raised is not None:
        raise author_call.raised
    return cast("T", author_call.returned)


async def cancel_on_disconnect(request: Request, work: Awaitable[T]) -> T:
    """Return the result of *work*. If the page disconnects, cancel *work* and raise ClientDisconnect."""
    task, disconnect = asyncio.ensure_future(work), asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait((task, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        disconnect.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@attrs.frozen(slots=False)
class Rendering:
    """
    A prompt rendered with the values of a form.

    Args:
        prompt:
            The prompt.

        values:
            The values, as a client would send them.

        workflow:
            The workflow, or None if the prompt was not rendered.

        argument_errors:
            The errors for missing and invalid arguments.

        error:
            The error message for the user, or None if there are only `argument_errors` or no errors at all.

        skip_reason:
            Why the prompt is not rendered with its defaults alone: the prompt raised a `PromptError`, or has
            the option ``sample=False``. This is not an error, because the user has not entered any values.

        exception:
            The exception, if any.

        is_pending:
            Whether the rendering is still running, because it takes longer than a page waits.

        elicited:
            The missing and invalid arguments that a client would ask the user for.

        uploads:
            The uploads, including invalid ones, keyed by argument name.

        warnings:
            The warnings about the text files that the prompt has read.

        fitted:
            The texts that `fit` has shortened.
    """

    prompt: CompiledPrompt
    values: Mapping[str, str]
    workflow: Workflow | None = None
    argument_errors: tuple[InvalidArgument, ...] = ()
    error: str | None = None
    skip_reason: str | None = None
    exception: BaseException | None = None
    is_pending: bool = False
    elicited: tuple[Argument, ...] = ()
    uploads: Mapping[str, Upload] = MappingProxyType({})
    warnings: tuple[Diagnostic, ...] = ()
    fitted: Sequence[FitReport] = ()

    @property
    def transcript(self) -> str:
        """The text to compare: the transcript, or the reason why there is no transcript."""
        if self.workflow is not None:
            return self.redact(str(self.workflow))
        if self.exception is None:
            return f"[not rendered] {self.skip_reason}"
        outcome = "refused" if is_refused(self.exception) else "fails"
        message = describe_failure(f"prompt {self.prompt.name!r}", self.exception)
        return self.redact(f"[{outcome}] {message}")

    @cached_property
    def redactor(self) -> Redactor:
        """A redactor that hides the values of secret arguments."""
        return Redactor.of(self.prompt.arguments, self.values)

    def redact(self, text: str) -> str:
        """Return *text* without the values of secret arguments."""
        return self.redactor.redacted(text) if self.prompt.arguments.secret else text


async def render(
    calls: LimitedCalls, prompt: CompiledPrompt, values: Mapping[str, str], *, is_requested: bool = False
) -> Rendering:
    """
    Render *prompt* with the values of a form.

    Cancelling this coroutine cancels an asynchronous prompt.

    Args:
        calls:
            Runs the calls to authors' functions.

        prompt:
            The prompt.

        values:
            The values, as a client would send them.

        is_requested:
            Whether the user has explicitly requested a rendering with the defaults.
    """
    rendering = Rendering(prompt, values)
    if not (values or is_requested or prompt.sample or prompt.arguments.required):
        return attrs.evolve(rendering, skip_reason=NO_SAMPLE)
    texts: list[FilledTextFile] = []
    reports: list[FitReport] = []
    try:
        with collecting(filled_text_files, texts), collecting(fit_reports, reports):
            workflow = await calls.call(prompt.name, make_renderer(prompt, values), time_limit(prompt))
    except asyncio.CancelledError:
        raise
    except ArgumentsError as errors:
        elicited = askable_arguments(prompt, errors)
        return attrs.evolve(rendering, argument_errors=errors.errors, elicited=elicited, exception=errors)
    except BaseException as error:  # noqa: BLE001 (authors' code can raise anything)
        if isinstance(error, PromptError) and not values:
            return attrs.evolve(rendering, skip_reason=str(error), exception=error)
        message = rendering.redact(describe_failure(f"prompt {prompt.name!r}", error))
        return attrs.evolve(rendering, error=message, exception=error)
    report = Report(f"prompt {prompt.name!r}", prompt.location)
    lint_text_files(texts, report)
    warnings = without_suppressed(report.without_duplicates())
    return attrs.evolve(rendering, workflow=workflow, warnings=warnings, fitted=reports)


@attrs.frozen
class Reading:
    """
    The result of reading the resource at a URI.

    Args:
        resource:
            The resource, or None if no resource has this URI.

        document:
            The content of the resource, or None if it was not read.

        error:
            The error message for the user, or None if there was no error. A template, which cannot be read
            without values, has neither a document nor an error.

        redact:
            Hides the values of secret variables.
    """

    resource: CompiledResource | None = None
    document: EmbeddedResource | None = None
    error: str | None = None
    redact: Callable[[str], str] = str


async def read_resource(calls: LimitedCalls, catalog: Catalog, uri: str) -> Reading:
    """Read the resource at a URI. If the URI is that of a template, return only the template."""
    template = next((candidate for candidate in catalog.resources if candidate.uri_template == uri), None)
    if template is not None and template.is_template:
        return Reading(template)
    try:
        resource, variables = catalog.resource(uri)
    except UnknownResourceError as error:
        return Reading(error=str(error))
    redact = Redactor.of(resource.arguments, variables).redacted if resource.arguments.secret else str
    try:
        read_document = partial(resource.read, uri, variables)
        document = await calls.call(resource.uri_template, read_document, time_limit())
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (authors' code can raise anything)
        return Reading(resource, error=redact(describe_failure(f"resource {resource.name!r}", error)))
    return Reading(resource, document, redact=redact)


def strip_frontmatter(skill: "CompiledSkill", document: EmbeddedResource) -> EmbeddedResource:
    """
    Return a file of a skill, with the frontmatter removed if the file is ``SKILL.md``.

    The page shows the frontmatter separately.
    """
    if document.uri != skill.uri_template or document.text is None:
        return document

    _, body, _ = read_skill(document.text.encode())
    return EmbeddedResource(document.uri, text=body.lstrip("\n"), mime_type=document.mime_type)


def describe_failure(subject: str, error: BaseException) -> str:
    """
    Return an error message for the user.

    Args:
        subject:
            The failed operation, such as ``prompt 'review'``.

        error:
            The exception.
    """
    return explain_failure(subject, error) or format_exception(error)
