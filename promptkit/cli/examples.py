"""Rendering every prompt for the examples of its author, to see whether it fails, and what clients lose."""

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.examples import example_arguments
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.cli.deadline import Outcome, render_within_limit, time_limit
from promptkit.errors.diagnostics import Diagnostic, Location, Rule
from promptkit.errors.exceptions import ArgumentErrors, PromptError, ResultError
from promptkit.language.messages import Workflow

__all__ = ["render_examples"]

#: What returns all that is wrong with a rendering.
Findings: TypeAlias = Callable[[CompiledPrompt, Workflow], Iterable[Diagnostic]]


def render_examples(catalog: Catalog, findings_in: Findings) -> tuple[Sequence[Diagnostic], Sequence[str]]:
    """
    Render every prompt for its examples, and for its defaults if it requires nothing.

    Args:
        catalog:
            The prompts.

        findings_in:
            Returns what is wrong with a rendering.

    Returns:
        A diagnostic for each prompt that fails, and for all that is found in renderings; and the names of the
        prompts that have no examples for what they require.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    found: list[Diagnostic] = []
    skipped: list[str] = []
    for prompt in catalog.prompts:
        rounds = _arguments(prompt)
        if not rounds:
            skipped.append(prompt.name)
        found += _findings(prompt, rounds, findings_in)
    return found, skipped


def _arguments(prompt: CompiledPrompt) -> Sequence[Mapping[str, str]]:
    try:
        return example_arguments(prompt.arguments)
    except TypeError:  # an example of a type that has no text: nothing can be sent
        return ()


def _findings(
    prompt: CompiledPrompt, rounds: Sequence[Mapping[str, str]], findings_in: Findings
) -> Sequence[Diagnostic]:
    found: dict[Diagnostic, None] = {}  # examples that differ often have the same findings
    for arguments in rounds:
        outcome = render_within_limit(prompt, arguments)
        if not isinstance(outcome, Workflow):
            return [*found, _failure(prompt, arguments, outcome)]
        found |= dict.fromkeys(findings_in(prompt, outcome))
    return list(found)


def _failure(prompt: CompiledPrompt, arguments: Mapping[str, str], outcome: Outcome) -> Diagnostic:
    shown = _shown(prompt, arguments)
    reason = Redactor.of(prompt.arguments, arguments).redacted(_reason(prompt, outcome))
    return Diagnostic(
        Rule.EXAMPLE_FAILS,
        f"prompt {prompt.name!r}: it fails for {shown}: {reason}",
        "correct it, or give examples that it can be rendered for",
        _place(prompt, outcome),
    )


def _shown(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> str:
    from reprlib import repr as short_repr

    secret = prompt.arguments.secret
    words = (f"{name}={'<secret>' if name in secret else short_repr(arguments[name])}" for name in arguments)
    return ", ".join(words) or "its defaults"


def _reason(prompt: CompiledPrompt, outcome: Outcome) -> str:
    if outcome is None:
        return f"it took longer than {time_limit(prompt):g} s"
    if isinstance(outcome, ArgumentErrors):
        return "; ".join(map(str, outcome.faults))
    told = str(outcome)
    if isinstance(outcome, PromptError | ResultError):
        return told
    return f"{type(outcome).__name__}: {told}" if told else type(outcome).__name__


def _place(prompt: CompiledPrompt, outcome: Outcome) -> Location:
    """The line of the prompt's file that raised, or else the prompt."""
    if isinstance(outcome, BaseException):
        frames = traceback.extract_tb(outcome.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == prompt.location.file and frame.lineno]
        if lines:
            return Location(prompt.location.file, lines[-1])
    return prompt.location.part("def")
