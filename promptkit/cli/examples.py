"""Authors' examples: what comes of rendering every prompt for them, and of reading every resource."""

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
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

__all__ = ["NEEDS_EXAMPLES", "Example", "Item", "failure_reason", "render_examples", "wire_examples"]

Item: TypeAlias = CompiledPrompt | CompiledResource

#: What returns all that is wrong with a rendering.
Findings: TypeAlias = Callable[[CompiledPrompt, Workflow], Iterable[Diagnostic]]

#: Why a prompt or a resource is not tried.
NEEDS_EXAMPLES: Final = "it needs examples"


class Example(Struct, frozen=True):
    """
    What a prompt is rendered for, or a resource is read for.

    Args:
        item:
            The prompt or the resource.

        given:
            The arguments of the prompt, or the variables of the resource; none if its defaults are tried.

        label:
            How errors call that, shortened, without secrets.

        outcome:
            Renders or reads it. Returns what comes of that, or what is raised.
    """

    item: Item
    given: Mapping[str, Any]
    label: str
    outcome: Callable[[], Workflow | EmbeddedResource | BaseException]

    @classmethod
    def of(cls, catalog: Catalog, item: Item, sent: Any) -> "Example":
        """Return the example for arguments of a prompt, or for the URI of a resource."""
        if isinstance(item, CompiledPrompt):
            return cls(item, sent, _shown_arguments(item, sent), partial(render_within_limit, item, sent))
        given = item.match(sent) or {}
        label = Redactor.of(item.arguments, given).redacted(sent)
        return cls(item, given, label, partial(call_within_limit, partial(catalog.read, sent)))

    def redacted(self, text: str) -> str:
        """Return a text without the secrets that are given."""
        return Redactor.of(self.item.arguments, self.given).redacted(text)

    def refusal(self, outcome: object) -> str | None:
        """Return why the defaults, which nobody asked for, are refused; None if they are not."""
        return str(outcome) if isinstance(outcome, PromptError) and not self.given else None


def wire_examples(item: Item) -> Sequence[Any]:
    """Return what the author's examples come to: arguments of a prompt, or URIs of a resource."""
    return item.example_uris if isinstance(item, CompiledResource) else item.arguments.example_texts


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
    items: tuple[Item, ...] = (*catalog.prompts, *catalog.resources)
    for item in items:
        name = item.name if isinstance(item, CompiledPrompt) else item.uri_template
        examples = [Example.of(catalog, item, sent) for sent in wire_examples(item)]
        if not examples:
            skipped[name] = NEEDS_EXAMPLES
        found += _faults(name, examples, findings_in, skipped)
    return found, skipped


def _faults(
    name: str, examples: Iterable[Example], findings_in: Findings, skipped: dict[str, str]
) -> Sequence[Diagnostic]:
    found: dict[Diagnostic, None] = {}  # examples that differ often have the same findings
    for example in examples:
        outcome = example.outcome()
        if (reason := example.refusal(outcome)) is not None:
            skipped[name] = reason
            continue
        error = outcome if isinstance(outcome, BaseException) else _why_unsent(example.item, outcome)
        if error is not None:
            return [*found, _failure(example, error)]
        if isinstance(example.item, CompiledPrompt) and isinstance(outcome, Workflow):
            found |= dict.fromkeys(findings_in(example.item, outcome))
    return list(found)


def _why_unsent(item: Item, result: Any) -> ValueError | None:
    """Why a result cannot be sent: half of a surrogate pair, which UTF-8 cannot encode."""
    lowering = lowering_for(LATEST_HANDSHAKE)
    try:
        lowering.result(item, result) if isinstance(item, CompiledPrompt) else lowering.contents(result)
    except ValueError as error:
        return error
    return None


def _failure(example: Example, error: BaseException) -> Diagnostic:
    item, kind, rule = example.item, "prompt", Rule.EXAMPLE_FAILS
    remedy = "correct it, or give examples that it can be rendered for"
    if isinstance(item, CompiledResource):
        kind, rule = "resource", Rule.RESOURCE_FAILS
        remedy = "correct it, or give examples that it can be read for" if item.is_template else "correct it"
    reason = example.redacted(failure_reason(error))
    message = f"{kind} {item.name!r}: it fails for {example.label}: {reason}"
    return Diagnostic(rule, message, remedy, _place(item.location, error))


def _shown_arguments(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> str:
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
