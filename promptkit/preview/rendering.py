"""One prompt with the values of a form: what it says, or why it says nothing."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import attrs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.exceptions import ArgumentErrors, Fault, PromptError, UnknownResource
from promptkit.errors.tracebacks import format_exception
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.preview.calls import Calls
from promptkit.preview.uploads import Upload
from promptkit.server.author_calls import explanation, rendering_of, time_limit
from promptkit.server.elicitation import askable
from promptkit.server.forms import elicitation

__all__ = ["Question", "Reading", "Rendering", "read", "render", "said"]


@attrs.frozen
class Question:
    """
    What a client would ask the person for, as the prompt lacks it.

    Args:
        message:
            Why the person is asked.

        names:
            The arguments that are asked for.

        requested_schema:
            The form, as it is sent.
    """

    message: str
    names: tuple[str, ...]
    requested_schema: Mapping[str, Any]


@attrs.frozen(slots=False)
class Rendering:
    """
    A prompt rendered with the values of a form.

    Args:
        prompt:
            The prompt.

        catalog:
            The catalog that it is from.

        given:
            The values, as a client would send them.

        workflow:
            What it says; None if it failed.

        faults:
            What is wrong with its arguments.

        error:
            Why it failed, for people; None if it did not, or its arguments are why.

        refusal:
            What it says to the person in place of a rendering, of its defaults alone: nobody has asked yet.

        question:
            What a client would ask for, if the prompt lets it.

        uploads:
            Those among the values, by argument name, and those that cannot be sent.
    """

    prompt: CompiledPrompt
    catalog: Catalog
    given: Mapping[str, str]
    workflow: Workflow | None = None
    faults: tuple[Fault, ...] = ()
    error: str | None = None
    refusal: str | None = None
    question: Question | None = None
    uploads: Mapping[str, Upload] = MappingProxyType({})

    @cached_property
    def redactor(self) -> Redactor:
        """Hides the values of secret arguments in what is shown."""
        return Redactor.of(self.prompt.arguments, self.given)

    def redacted(self, text: str) -> str:
        """*text* without the values of secret arguments."""
        return self.redactor.redacted(text) if self.prompt.arguments.secret else text


async def render(
    calls: Calls, catalog: Catalog, prompt: CompiledPrompt, given: Mapping[str, str]
) -> Rendering:
    """
    Render *prompt*, of *catalog*, for the values that a form has given.

    To cancel this cancels a prompt that is asynchronous.
    """
    rendering = Rendering(prompt, catalog, given)
    try:
        workflow = await calls.call(prompt.name, rendering_of(prompt, given), time_limit(prompt))
    except asyncio.CancelledError:
        raise
    except ArgumentErrors as errors:
        return attrs.evolve(rendering, faults=errors.faults, question=_question(prompt, errors))
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        if isinstance(error, PromptError) and not given:
            return attrs.evolve(rendering, refusal=str(error))
        return attrs.evolve(rendering, error=rendering.redacted(said(f"prompt {prompt.name!r}", error)))
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


async def read(calls: Calls, catalog: Catalog, uri: str) -> Reading:
    """Read the resource at a URI; a template is only found."""
    template = next((one for one in catalog.resources if one.uri_template == uri), None)
    if template is not None and template.is_template:
        return Reading(template)
    try:
        resource, variables = catalog.resource(uri)
    except UnknownResource as error:
        return Reading(error=str(error))
    redacted = Redactor.of(resource.arguments, variables).redacted if resource.arguments.secret else str
    try:
        reads = partial(resource.read, uri, variables)
        document = await calls.call(resource.uri_template, reads, time_limit())
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        return Reading(resource, error=redacted(said(f"resource {resource.name!r}", error)))
    return Reading(resource, document, redacted=redacted)


def _question(prompt: CompiledPrompt, errors: ArgumentErrors) -> Question | None:
    wanted = askable(prompt, errors)
    if not wanted:
        return None
    params = elicitation(prompt, wanted, modes=True, multi_select=True)
    names = tuple(argument.name for argument in wanted)
    return Question(params["message"], names, params["requestedSchema"])


def said(whose: str, error: BaseException) -> str:
    """
    Return why something failed, for people.

    Args:
        whose:
            What has failed.

        error:
            What was raised.
    """
    return explanation(whose, error) or format_exception(error)
