"""Calls of authors' functions: one prompt with the values of a form, or a resource, and what it says."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import attrs

from promptkit.catalog.arguments import Argument
from promptkit.catalog.cases import is_refused
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.declarations.frontmatter import read_skill
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument, PromptError, UnknownResourceError
from promptkit.errors.tracebacks import format_exception
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.preview.media import Upload
from promptkit.server.elicitation import askable
from promptkit.server.elicitation_forms import message
from promptkit.server.user_code import AuthorCall, CallTimeoutError, explanation, rendering_of, time_limit

if TYPE_CHECKING:  # most recipes hold none
    from promptkit.catalog.skills import CompiledSkill

T = TypeVar("T")

#: How many calls for one thing may run. One that cannot be stopped counts until it ends.
_MOST_AT_ONCE: Final = 4

_ALL_HANG: Final = (
    f"does not return: {_MOST_AT_ONCE} calls of it still run, and plain functions cannot be stopped. "
    "Change the recipe, or start promptkit dev again"
)


class LimitedCalls:
    """Calls authors' functions, a few at once for each thing that the pages show."""

    def __init__(self) -> None:
        self._free = defaultdict[Hashable, asyncio.Semaphore](partial(asyncio.Semaphore, _MOST_AT_ONCE))

    async def call(
        self, thing: Hashable, function: Callable[[], T | Coroutine[Any, Any, T]], seconds: float
    ) -> T:
        """
        Call an author's function, once fewer calls for this thing run.

        Args:
            thing:
                What it is called for.

            function:
                What is called, plain or asynchronous.

            seconds:
                How long it may take, and may be waited for before.

        Raises:
            CallTimeoutError: If it takes longer, or others do.

            BaseException: Whatever the function raises.
        """
        free = self._free[thing]
        try:
            async with asyncio.timeout(seconds):
                await free.acquire()
        except TimeoutError:
            raise CallTimeoutError(_ALL_HANG) from None
        return await call(function, seconds, free.release)


async def call(
    function: Callable[[], T | Coroutine[Any, Any, T]], seconds: float, ended: Callable[[], object] = bool
) -> T:
    """
    Call an author's function on a thread of its own.

    When its time is over, or the page has been left, asynchronous code is cancelled, and other code is
    stopped where it reports progress or runs a command. It does not keep the process alive.

    Args:
        function:
            What is called, plain or asynchronous.

        seconds:
            How long it may take.

        ended:
            Called on the event loop when the thread has nothing more to do, however late.

    Returns:
        What it returned.

    Raises:
        CallTimeoutError: If it takes longer.

        BaseException: Whatever the function raises, or what kept its thread from starting.
    """
    loop, author_call = asyncio.get_running_loop(), AuthorCall(function)
    over: asyncio.Future[None] = loop.create_future()
    over.add_done_callback(lambda _: ended())

    def run() -> None:
        try:
            author_call.run()
        finally:
            with suppress(RuntimeError):  # the pages' loop is closed
                loop.call_soon_threadsafe(over.set_result, None)

    try:
        Thread(target=run, name="promptkit-render", daemon=True).start()
    except BaseException:
        ended()
        raise
    try:
        done, _ = await asyncio.wait([over], timeout=seconds)
        line = None if done else author_call.line
    finally:
        author_call.cancel()
    if not done:
        raise CallTimeoutError.after(seconds, line)
    if author_call.raised is not None:
        raise author_call.raised
    return cast("T", author_call.returned)


@attrs.frozen(slots=False)
class Rendering:
    """
    A prompt rendered with the values of a form.

    Args:
        prompt:
            The prompt.

        given:
            The values, as a client would send them.

        workflow:
            What it says; None if it failed.

        faults:
            What is wrong with its arguments.

        error:
            Why it failed, for people; None if it did not, or its arguments are why.

        refusal:
            Why it is not rendered for its defaults alone: the `PromptError` that it raised, or its option
            ``sample=False``. No failure: nothing was entered yet.

        raised:
            What was raised; None if nothing was.

        is_pending:
            Whether it takes longer than a page waits for.

        asked:
            The missing arguments that a client would ask the person for, if the prompt has `elicit`.

        uploads:
            The uploaded files by argument name, also those that cannot be sent.
    """

    prompt: CompiledPrompt
    given: Mapping[str, str]
    workflow: Workflow | None = None
    faults: tuple[InvalidArgument, ...] = ()
    error: str | None = None
    refusal: str | None = None
    raised: BaseException | None = None
    is_pending: bool = False
    asked: tuple[Argument, ...] = ()
    uploads: Mapping[str, Upload] = MappingProxyType({})

    @property
    def question(self) -> str:
        """Why a client would ask the person; ``""`` if it would not."""
        return message(self.prompt, self.asked) if self.asked else ""

    @property
    def said(self) -> str:
        """What it says, or why it says nothing, as text to compare."""
        if self.workflow is not None:
            return self.redacted(str(self.workflow))
        if self.raised is None:
            return f"[not rendered] {self.refusal}"
        outcome = "refused" if is_refused(self.raised) else "fails"
        return self.redacted(f"[{outcome}] {failure(f'prompt {self.prompt.name!r}', self.raised)}")

    @cached_property
    def redactor(self) -> Redactor:
        """Hides the values of secret arguments in what is shown."""
        return Redactor.of(self.prompt.arguments, self.given)

    def redacted(self, text: str) -> str:
        """*text* without the values of secret arguments."""
        return self.redactor.redacted(text) if self.prompt.arguments.secret else text


async def render(
    calls: LimitedCalls, prompt: CompiledPrompt, given: Mapping[str, str], *, is_asked: bool = False
) -> Rendering:
    """
    Render *prompt* for the values that a form has given.

    To cancel this cancels a prompt that is asynchronous.

    Args:
        calls:
            Calls authors' functions.

        prompt:
            The prompt.

        given:
            The values, as a client would send them.

        is_asked:
            Whether a person asks for its defaults, which have not just been opened with the page.
    """
    rendering = Rendering(prompt, given)
    if not (given or is_asked or prompt.sample or prompt.arguments.required):
        return attrs.evolve(rendering, refusal=NO_SAMPLE)
    try:
        workflow = await calls.call(prompt.name, rendering_of(prompt, given), time_limit(prompt))
    except asyncio.CancelledError:
        raise
    except ArgumentsError as errors:
        asked = tuple(askable(prompt, errors))
        return attrs.evolve(rendering, faults=errors.errors, asked=asked, raised=errors)
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        if isinstance(error, PromptError) and not given:
            return attrs.evolve(rendering, refusal=str(error), raised=error)
        shown = rendering.redacted(failure(f"prompt {prompt.name!r}", error))
        return attrs.evolve(rendering, error=shown, raised=error)
    return attrs.evolve(rendering, workflow=workflow)


@attrs.frozen
class Reading:
    """
    A resource, read at a URI.

    Args:
        resource:
            The resource; None if there is none of that URI.

        document:
            What it says; None if it was not read.

        error:
            Why it was not read, for people; None if it is a template, which is read at no URI.

        redacted:
            Hides the values of secret variables in what is shown.
    """

    resource: CompiledResource | None = None
    document: EmbeddedResource | None = None
    error: str | None = None
    redacted: Callable[[str], str] = str


async def read(calls: LimitedCalls, catalog: Catalog, uri: str) -> Reading:
    """Read the resource at a URI; a template is only found."""
    template = next((one for one in catalog.resources if one.uri_template == uri), None)
    if template is not None and template.is_template:
        return Reading(template)
    try:
        resource, variables = catalog.resource(uri)
    except UnknownResourceError as error:
        return Reading(error=str(error))
    redacted = Redactor.of(resource.arguments, variables).redacted if resource.arguments.secret else str
    try:
        reads = partial(resource.read, uri, variables)
        document = await calls.call(resource.uri_template, reads, time_limit())
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        return Reading(resource, error=redacted(failure(f"resource {resource.name!r}", error)))
    return Reading(resource, document, redacted=redacted)


def body_of(skill: "CompiledSkill", document: EmbeddedResource) -> EmbeddedResource:
    """Return a file of a skill; a ``SKILL.md`` without its fields, which stand beside it."""
    if document.uri != skill.uri_template or document.text is None:
        return document

    _, body, _ = read_skill(document.text.encode())
    return EmbeddedResource(document.uri, text=body.lstrip("\n"), mime_type=document.mime_type)


def failure(whose: str, error: BaseException) -> str:
    """
    Return why something failed, for people.

    Args:
        whose:
            What has failed.

        error:
            What was raised.
    """
    return explanation(whose, error) or format_exception(error)
