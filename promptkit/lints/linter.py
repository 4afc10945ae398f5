"""Linting: what is probably not meant in recipes that can be served."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.compiled import Declaration
from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic
from promptkit.lints.files import lint_source
from promptkit.lints.prompts import lint_prompt, with_lints
from promptkit.lints.skills import lint_skill
from promptkit.lints.suppression import lint_suppressions, without_suppressed
from promptkit.loader.recipes import LoadedFile

__all__ = ["lint_catalog", "lint_file"]


def lint_file(loaded: LoadedFile, declarations: Iterable[Declaration]) -> Iterator[Diagnostic]:
    """
    Yield what is probably not meant in one file.

    Args:
        loaded:
            What was imported from the file.

        declarations:
            What it declares, compiled.
    """
    for declaration in declarations:
        compiled: Any = declaration.compiled
        if isinstance(declaration.definition, Prompt):
            arguments = compiled.arguments if isinstance(compiled, CompiledPrompt) else None
            with suppress(RecursionError):  # a source may be nested more deeply than lints can follow
                yield from lint_prompt(declaration.definition, arguments)
        elif declaration.key[0] == "skill" and compiled is not None:
            yield from lint_skill(compiled)
    if loaded.file is not None and loaded.file.suffix == ".py":
        with suppress(RecursionError):
            yield from lint_source(loaded.file)
        yield from lint_suppressions(loaded.file)


def lint_catalog(catalog: Catalog) -> Catalog:
    """Return *catalog* with what is probably not meant in all files together, less what comments suppress."""
    catalog = with_lints(catalog)
    return catalog.with_diagnostics(without_suppressed(catalog.diagnostics))
