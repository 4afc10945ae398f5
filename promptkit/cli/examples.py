"""Rendering every prompt, and reading every resource, for its author's examples, to see what fails."""

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.examples import example_arguments, example_uris
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.cli.calls import call_within_limit, render_within_limit
from promptkit.errors.diagnostics import Diagnostic, Location, Rule
from promptkit.errors.exceptions import ArgumentErrors, PromptError, ResultError
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE
from promptkit.server.author_calls import HangsError

__all__ = ["NEEDS_EXAMPLES", "failure_reason", "refusal", "render_examples", "shown_arguments"]

#: What returns all that is wrong with a rendering.
Findings: TypeAlias = Callable[[CompiledPrompt, Workflow], Iterable[Diagnostic]]


#: Why a prompt or a resource is not tried.
NEEDS_EXAMPLES: Final = "it needs examples"


def render_examples(
    catalog: Catalog, findings_in: Findings
) -> tuple[Sequence[Diagnostic], Mapping[str, str]]:
    """
    Render every prompt and read every resource, for its examples, or for its defaults if it requires nothing.

    Args:
        catalog:
            The prompts and the resources.

        findings_in:
            Returns what is wrong with a rendering.

    Returns:
        A diagnostic for each prompt or resource that fails, and for all that is found in renderings; and why
        others are not rendered, by the names of prompts and the templates of resources: they have no examples
        for what they require, or refuse their defaults with a `PromptError`.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    found: list[Diagnostic] = []
    skipped: dict[str, str] = {}
    for prompt in catalog.prompts:
        rounds = example_arguments(prompt.arguments)
        if not rounds:
            skipped[prompt.name] = NEEDS_EXAMPLES
        found += _rendered(prompt, rounds, findings_in, skipped)
    for resource in catalog.resources:
        uris = example_uris(resource)
        if not uris:
            skipped[resource.uri_template] = NEEDS_EXAMPLES
        found += _read(catalog, resource, uris, skipped)
    return found, skipped


def refusal(given: Mapping[str, object] | None, outcome: object) -> str | None:
    """
    Return why what nobody has asked for is refused; None if it is not, or if that is a failure.

    Args:
        given:
            What an author's example gives; nothing if the defaults are tried.

        outcome:
            What came of it.
    """
    return str(outcome) if isinstance(outcome, PromptError) and not given else None


def _rendered(
    prompt: CompiledPrompt,
    rounds: Sequence[Mapping[str, str]],
    findings_in: Findings,
    skipped: dict[str, str],
) -> Sequence[Diagnostic]:
    found: dict[Diagnostic, None] = {}  # examples that differ often have the same findings
    for arguments in rounds:
        outcome = render_within_limit(prompt, arguments)
        if (reason := refusal(arguments, outcome)) is not None:
            skipped[prompt.name] = reason
            continue
        if not isinstance(outcome, Workflow):
            return [*found, _failed_prompt(prompt, arguments, outcome)]
        if (unsent := _refusal(partial(lowering_for(LATEST_HANDSHAKE).result, prompt, outcome))) is not None:
            return [*found, _failed_prompt(prompt, arguments, unsent)]
        found |= dict.fromkeys(findings_in(prompt, outcome))
    return list(found)


def _read(
    catalog: Catalog, resource: CompiledResource, uris: Sequence[str], skipped: dict[str, str]
) -> Sequence[Diagnostic]:
    for uri in uris:
        outcome = call_within_limit(partial(catalog.read, uri))
        if (reason := refusal(resource.match(uri), outcome)) is not None:
            skipped[resource.uri_template] = reason
            continue
        if not isinstance(outcome, EmbeddedResource):
            return [_failed_resource(resource, uri, outcome)]
        if (unsent := _refusal(partial(lowering_for(LATEST_HANDSHAKE).contents, outcome))) is not None:
            return [_failed_resource(resource, uri, unsent)]
    return ()


def _refusal(lower: Callable[[], bytes]) -> ValueError | None:
    """Why a result cannot be sent: half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        lower()
    except ValueError as error:
        return error
    return None


def _failed_prompt(prompt: CompiledPrompt, arguments: Mapping[str, str], error: BaseException) -> Diagnostic:
    reason = Redactor.of(prompt.arguments, arguments).redacted(failure_reason(error))
    return Diagnostic(
        Rule.EXAMPLE_FAILS,
        f"prompt {prompt.name!r}: it fails for {shown_arguments(prompt, arguments)}: {reason}",
        "correct it, or give examples that it can be rendered for",
        _place(prompt.location, error),
    )


def _failed_resource(resource: CompiledResource, uri: str, error: BaseException) -> Diagnostic:
    redactor = Redactor.of(resource.arguments, resource.match(uri) or {})
    message = f"resource {resource.name!r}: it fails for {uri}: {failure_reason(error)}"
    return Diagnostic(
        Rule.RESOURCE_FAILS,
        redactor.redacted(message),
        "correct it, or give examples that it can be read for" if resource.is_template else "correct it",
        _place(resource.location, error),
    )


def shown_arguments(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> str:
    """Return arguments as errors show them, shortened, without secrets."""
    from reprlib import repr as short_repr

    secret = prompt.arguments.secret
    words = (f"{name}={'<secret>' if name in secret else short_repr(arguments[name])}" for name in arguments)
    return ", ".join(words) or "its defaults"


def failure_reason(error: BaseException) -> str:
    """Return why a call failed, on one line."""
    if isinstance(error, HangsError):
        return f"it {error}"
    if isinstance(error, ArgumentErrors):
        return "; ".join(map(str, error.faults))
    told = str(error)
    if isinstance(error, PromptError | ResultError):
        return told
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


def _place(location: Location, error: BaseException) -> Location:
    """The line of the author's file that raised, or else the function."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == location.file and frame.lineno]
    return Location(location.file, lines[-1]) if lines else location.part("def")
