"""Lints of a whole catalog: names that people mix up, and templates that answer in place of a resource."""

from collections.abc import Iterable, Iterator

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.diagnostics import Diagnostic, Rule

__all__ = ["with_lints"]


def with_lints(catalog: Catalog) -> Catalog:
    """Return *catalog* with the diagnostics of what is fine by itself, and not beside the rest."""
    found = [*catalog.diagnostics, *_twins(catalog.prompts), *_answered(catalog.resources)]
    found.sort(key=lambda one: (one.location, one.rule.value, one.message))
    return catalog.with_diagnostics(found)


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


def _answered(resources: Iterable[CompiledResource]) -> Iterator[Diagnostic]:
    """Resources whose URIs are answered, by a template, to callers who lack their scopes."""
    templates = [one for one in resources if one.is_template]
    for resource in resources:
        if resource.is_template or not resource.scopes:
            continue
        for template in templates:
            if resource.scopes <= template.scopes or template.match(resource.uri_template) is None:
                continue
            yield Diagnostic(
                Rule.ANSWERED_WITHOUT_SCOPES,
                f"resource {resource.name!r}: callers who lack its scopes are answered at its URI by the "
                f"template {template.uri_template!r}, at {template.location}",
                "give the template these scopes, too, or the resource a URI that no template matches",
                resource.location.part("def"),
            )
