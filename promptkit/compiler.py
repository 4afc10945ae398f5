"""
The compiler: what the loader found becomes a catalog.

`compile` is a pure function. It finds every fault in one pass, and equal input gives an
equal catalog.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from promptkit.catalog import Catalog, CompiledPrompt, CompiledResource
from promptkit.diagnostics import Diagnostic, Location, Rule
from promptkit.loader import Recipes
from promptkit.prompts import Prompt
from promptkit.resources import Resource

__all__ = ["compile"]


def compile(recipes: Recipes, *, lint: bool = False) -> Catalog:
    """
    Compile recipes.

    Args:
        recipes:
            What `promptkit.loader.load` found, or a value made by hand.

        lint:
            Whether to look, too, for what is probably not what the author meant, though it can
            be served. Serving does not pay for that.

    Returns:
        A catalog of every prompt and resource that can be served. What cannot be is in its
        diagnostics, each with file, line and remedy. Of two prompts with one name, and of two
        resources with one URI template, the one that is defined second is not served.
    """
    diagnostics = list(recipes.diagnostics)
    compiled: list[CompiledPrompt] = []
    first: dict[str, Location] = {}
    for prompt in _in_source_order(recipes.prompts):
        made, found = prompt.compile()
        diagnostics += found
        if lint:
            diagnostics += _lint(prompt, made)
        name, place = prompt.options.name, prompt.location
        if first.setdefault(name, place) is not place:
            diagnostics.append(_duplicate(name, place, first[name]))
        elif made is not None:
            compiled.append(made)
    if lint:
        diagnostics += _lint_files(recipes.files)
    resources = _compile_resources(recipes.resources, diagnostics)
    if not recipes.prompts and not recipes.resources and not diagnostics:
        diagnostics.append(_no_prompts(recipes))
    diagnostics.sort(key=lambda diagnostic: (diagnostic.location, diagnostic.rule.value, diagnostic.message))
    return Catalog(tuple(compiled), tuple(diagnostics), tuple(resources))


def _compile_resources(
    resources: Iterable[Resource[..., Any]], diagnostics: list[Diagnostic]
) -> list[CompiledResource]:
    """
    Return *resources* compiled, and add what is wrong with them to *diagnostics*.
    """
    compiled: list[CompiledResource] = []
    first: dict[str, Resource[..., Any]] = {}
    for resource in sorted(resources, key=lambda resource: (resource.location, resource.uri_template)):
        made, found = resource.compile()
        diagnostics += found
        earlier = first.setdefault(resource.uri_template, resource)
        if earlier is not resource:
            diagnostics.append(_same_template(resource, earlier))
        elif made is not None:
            compiled.append(made)
    return compiled


def _lint(prompt: Prompt[..., Any], made: CompiledPrompt | None) -> Iterable[Diagnostic]:
    """
    Return what is probably not what the author of *prompt* meant.
    """
    from promptkit import lints

    return lints.lint(prompt, made.arguments if made else None)


def _lint_files(files: Iterable[Path]) -> Iterable[Diagnostic]:
    """
    Return what is probably not meant in *files*, and in the helpers beside them, each once.
    """
    from promptkit.source_lints import lint_file

    return dict.fromkeys(found for file in files for found in lint_file(file))


def _in_source_order(prompts: Iterable[Prompt[..., Any]]) -> list[Prompt[..., Any]]:
    """
    Return *prompts* as a reader of the files meets them.
    """
    return sorted(prompts, key=lambda prompt: (prompt.location, prompt.options.name))


def _duplicate(name: str, place: Location, first: Location) -> Diagnostic:
    """
    Return the diagnostic for two prompts of one name.
    """
    return Diagnostic(
        Rule.DUPLICATE_NAME,
        f"prompt {name!r}: already defined at {first}",
        f"rename one of the two, or give it a name with @prompt(name='{name}-2')",
        place,
    )


def _same_template(resource: Resource[..., Any], earlier: Resource[..., Any]) -> Diagnostic:
    """
    Return the diagnostic for two resources of one URI template.
    """
    return Diagnostic(
        Rule.DUPLICATE_TEMPLATE,
        f"resource {resource.name!r}: {resource.uri_template!r} is already defined at {earlier.location}",
        "change the URI of one of the two, or remove it",
        resource.location,
    )


def _no_prompts(recipes: Recipes) -> Diagnostic:
    """
    Return the diagnostic for recipes without a prompt.
    """
    place = recipes.root or (recipes.files[0] if recipes.files else "")
    return Diagnostic(
        Rule.NO_PROMPTS,
        "there is no prompt here",
        "decorate a function with @prompt, in a *.py file that begins with neither '_' nor 'test_'",
        Location(str(place)),
    )
