"""Lints of a whole catalog: names that people and file systems mix up."""

from collections.abc import Iterable, Iterator

import attrs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Diagnostic, Rule

__all__ = ["with_lints"]


def with_lints(catalog: Catalog) -> Catalog:
    """Return *catalog* with the diagnostics of prompts whose names differ in case alone."""
    found = [*catalog.diagnostics, *_twins(catalog.prompts)]
    found.sort(key=lambda one: (one.location, one.rule.value, one.message))
    return attrs.evolve(catalog, diagnostics=tuple(found))


def _twins(prompts: Iterable[CompiledPrompt]) -> Iterator[Diagnostic]:
    first: dict[str, CompiledPrompt] = {}
    for prompt in sorted(prompts, key=lambda prompt: (prompt.location, prompt.name)):
        earlier = first.setdefault(prompt.name.casefold(), prompt)
        if earlier is not prompt:
            yield Diagnostic(
                Rule.NAMES_DIFFER_IN_CASE,
                f"prompt {prompt.name!r}: {earlier.name!r}, at {earlier.location}, differs in case alone",
                "rename one of the two, so that people find the one they mean",
                prompt.location.part("def"),
            )
