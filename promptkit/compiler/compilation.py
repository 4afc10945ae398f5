"""
The compiler: what the loader found, or whatever else can be served, becomes a catalog.

Each file is compiled by itself; `promptkit.compiler.linking` makes one catalog of all of them.
One pass finds every error of what was imported, and equal input gives an equal catalog.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.compiler.linking import CompiledFile, is_sound, link
from promptkit.declarations.compiled import Declaration, Definition, key_of
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.skills import Skill
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import CompileError
from promptkit.loader.import_errors import fault_of
from promptkit.loader.loader import load
from promptkit.loader.recipes import LoadedFile, Recipes

#: What can be served: a folder, a file, a module, a catalog, or prompts and resources; or several targets.
Target: TypeAlias = "str | Path | ModuleType | Catalog | Definition | Iterable[Definition | str | Path]"

#: Yields the warnings about a file, with what it declares.
LintFile: TypeAlias = Callable[[LoadedFile, Iterable[Declaration]], Iterable[Diagnostic]]


class LoadedRecipes(Struct):
    """One load: what was imported and compiled."""

    recipes: Recipes
    files: Sequence[CompiledFile]


def compile(target: "Recipes | Target", *, lint: bool = False) -> Catalog:
    """
    Compile what is at a target, or was loaded already: ``compile("prompts")["review"]``.

    Args:
        target:
            A folder, a file or a module, or several; prompts and resources; a catalog, which is returned as
            it is; or what `promptkit.loader.loader.load` found.

        lint:
            Whether to look for probable mistakes, too, in what can be served. Serving does not
            do so, as it takes time.

    Returns:
        A catalog of every prompt and resource that can be served. The errors of all others are in its
        diagnostics, each with file, line and hint. Of two prompts with one name, and of two
        resources with one URI template, the one that is defined second is not served.

    Raises:
        LoadError: If there is nothing at *target*.
    """
    if isinstance(target, Catalog):
        return target
    recipes = target if isinstance(target, Recipes) else _recipes_of(target)
    if not lint:
        return link(compile_files(recipes), root=recipes.root).catalog
    from promptkit.lints import linter  # which a server does not need

    files = compile_files(recipes, lint=linter.lint_file)
    return linter.lint_catalog(link(files, root=recipes.root).catalog)


def _recipes_of(target: "Target") -> Recipes:
    if isinstance(target, ModuleType):
        target = target.__name__
    if isinstance(target, str | Path):
        return load(target)

    kinds: tuple[type[Any], ...] = (Prompt, Resource, Skill)
    made = [target] if isinstance(target, kinds) else list(cast("Iterable[Any]", target))
    if made and all(isinstance(one, str | Path) for one in made):
        return load(made)
    return Recipes(*([one for one in made if isinstance(one, kind)] for kind in kinds))


def sound(catalog: Catalog) -> Catalog:
    """Return *catalog*. Raises `CompileError` if something is missing in it."""
    if not catalog.healthy:
        raise CompileError(catalog.diagnostics)
    return catalog


def compile_files(
    recipes: Recipes,
    *,
    lint: LintFile = lambda *_: (),
    compiling: Callable[[Path], None] = lambda _: None,
) -> list[CompiledFile]:
    """
    Compile what each file declares, by itself.

    Args:
        recipes:
            What was loaded.

        lint:
            Yields the warnings about one file.

        compiling:
            Called with each file before it is compiled. If it raises, that is an error of the file.
    """
    return [_compile_or_fail(one, lint, compiling) for one in recipes.by_file]


def _compile_or_fail(loaded: LoadedFile, lint: LintFile, compiling: Callable[[Path], None]) -> CompiledFile:
    """Compile one file. What its defaults, annotations and completers raise becomes a diagnostic."""
    file = loaded.file
    if file is None:
        return _compile_file(loaded, lint)
    try:
        if loaded.definitions:
            compiling(file)
        return _compile_file(loaded, lint)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (it is authors' code that runs)
        fault = fault_of(file, file.parent, error)
        return CompiledFile(file, (), (*loaded.diagnostics, fault), is_sound=False)


def _compile_file(loaded: LoadedFile, lint: LintFile) -> CompiledFile:
    diagnostics = list(loaded.diagnostics)
    declarations = []
    for definition in _in_source_order(loaded.definitions):
        compiled, found = definition.compile()
        diagnostics += found
        declarations.append(Declaration(key_of(definition), definition, compiled))
    diagnostics += lint(loaded, declarations)
    return CompiledFile(loaded.file, tuple(declarations), tuple(diagnostics), is_sound(diagnostics))


def _in_source_order(definitions: Iterable[Definition]) -> list[Definition]:
    return sorted(
        definitions, key=lambda one: (one.location, one.options.name if isinstance(one, Prompt) else one.name)
    )
