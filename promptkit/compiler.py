"""
The compiler: what the loader found becomes a catalog.

`compile` is a pure function. It finds every fault in one pass, and equal input gives an
equal catalog.
"""

from collections.abc import Iterable
from typing import Any

from promptkit.catalog import Catalog, CompiledPrompt
from promptkit.diagnostics import Diagnostic, Location, Rule
from promptkit.loader import Recipes
from promptkit.prompts import Prompt

__all__ = ["compile"]


def compile(recipes: Recipes) -> Catalog:
    """
    Compile recipes.

    Args:
        recipes:
            What `promptkit.loader.load` found, or a value made by hand.

    Returns:
        A catalog of every prompt that can be served. What cannot be is in its diagnostics,
        each with file, line and remedy. Of two prompts with one name, the one that is
        defined first is served.
    """
    diagnostics = list(recipes.diagnostics)
    compiled: dict[str, CompiledPrompt] = {}
    for prompt in _in_source_order(recipes.prompts):
        made, found = prompt.compile()
        diagnostics += found
        if made is None:
            continue
        if made.name in compiled:
            diagnostics.append(_duplicate(made, compiled[made.name]))
        else:
            compiled[made.name] = made
    for resource in recipes.resources:
        diagnostics += resource.diagnostics
    if not recipes.prompts and not diagnostics:
        diagnostics.append(_no_prompts(recipes))
    diagnostics.sort(key=lambda diagnostic: (diagnostic.location, diagnostic.rule.value, diagnostic.message))
    return Catalog(tuple(compiled.values()), tuple(diagnostics))


def _in_source_order(prompts: Iterable[Prompt[..., Any]]) -> list[Prompt[..., Any]]:
    """
    Return *prompts* as a reader of the files meets them.
    """
    return sorted(prompts, key=lambda prompt: (prompt.location, prompt.options.name))


def _duplicate(second: CompiledPrompt, first: CompiledPrompt) -> Diagnostic:
    """
    Return the diagnostic for two prompts of one name.
    """
    return Diagnostic(
        Rule.DUPLICATE_NAME,
        f"prompt {second.name!r}: already defined at {first.location}",
        f"rename one of the two, or give it a name with @prompt(name='{second.name}-2')",
        second.location,
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
