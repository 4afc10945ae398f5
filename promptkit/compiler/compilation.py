"""
The compiler: turns loaded recipes into a catalog.

Each file is compiled separately, and then all files are linked. One pass reports every error in the imported
files, and equal input gives an equal catalog.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

from msgspec import Struct, structs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.skills import CompiledSkill
from promptkit.compiler.linking import CompiledFile, all_ignorable, link
from promptkit.declarations.options import MAX_NAME
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.skills import Skill
from promptkit.errors.diagnostics import Diagnostic, Owner
from promptkit.errors.exceptions import CompileError
from promptkit.errors.rules import Rule
from promptkit.loader.import_errors import diagnose_import
from promptkit.loader.loader import load
from promptkit.loader.recipes import Compiled, Declaration, Definition, LoadedFile, Recipes, key_of

#: A target that can be compiled: a folder, file, module or catalog; a prompt, resource or skill; or several
#: targets.
Target: TypeAlias = str | Path | ModuleType | Catalog | Definition | Iterable[Definition | str | Path]

#: Yields the warnings for a file and its declarations.
LintFile: TypeAlias = Callable[[LoadedFile, Iterable[Declaration]], Iterable[Diagnostic]]


class LoadedRecipes(Struct):
    """The result of one load: the imported recipes and their compiled files."""

    recipes: Recipes
    files: Sequence[CompiledFile]


def compile(target: Recipes | Target, *, lint: bool = False, elicit: bool | None = None) -> Catalog:
    """
    Compile the recipes at a target, or recipes that are already loaded: ``compile("prompts")["review"]``.

    Args:
        target:
            A folder, a file or a module, or several of these, each with or without ``PREFIX=``; prompts,
            resources and skills; a catalog, which is returned unchanged; or the result of
            `promptkit.loader.loader.load`.

        lint:
            Whether to also look for probable mistakes in working recipes. Servers skip this, because it takes
            time.

        elicit:
            The value of the option `elicit` for prompts that do not set it.

    Returns:
        A catalog of every prompt, resource and skill that can be served. Its diagnostics include the errors
        of all others, each with its file, its line and a hint. If two prompts have the same name, or two
        resources the same URI template, only the first one is served.

    Raises:
        LoadError: If *target* does not exist.
    """
    if isinstance(target, Catalog):
        return target
    recipes = target if isinstance(target, Recipes) else _load_recipes(target)
    if not lint:
        return link(compile_files(recipes), root=recipes.root, elicit=elicit).catalog
    from promptkit.lints import linter  # not needed by servers

    files = compile_files(recipes, lint=linter.lint_file)
    return linter.lint_catalog(link(files, root=recipes.root, elicit=elicit).catalog)


def _load_recipes(target: Target) -> Recipes:
    if isinstance(target, ModuleType):
        target = target.__name__
    if isinstance(target, str | Path):
        return load(target)

    kinds: tuple[type[Any], ...] = (Prompt, Resource, Skill)
    definitions = [target] if isinstance(target, kinds) else list(cast("Iterable[Any]", target))
    if definitions and all(isinstance(item, str | Path) for item in definitions):
        return load(definitions)
    return Recipes(*([item for item in definitions if isinstance(item, kind)] for kind in kinds))


def require_complete(catalog: Catalog) -> Catalog:
    """
    Return *catalog* if it is complete.

    Raises `CompileError` if an error has kept a prompt, resource or skill out of it.
    """
    if not catalog.healthy:
        raise CompileError(catalog.diagnostics)
    return catalog


def compile_files(
    recipes: Recipes,
    *,
    lint: LintFile = lambda *_: (),
    before_compile: Callable[[Path], None] = lambda _: None,
) -> list[CompiledFile]:
    """
    Compile the declarations of each file separately.

    Args:
        recipes:
            The loaded recipes.

        lint:
            Yields the warnings for one file.

        before_compile:
            Called with each file before it is compiled. If it raises, the exception is reported as an error
            of the file.
    """
    return [_compile_safely(loaded, lint, before_compile) for loaded in recipes.by_file]


def _compile_safely(
    loaded: LoadedFile, lint: LintFile, before_compile: Callable[[Path], None]
) -> CompiledFile:
    """Compile one file. Exceptions raised by its defaults, annotations and completers become a diagnostic."""
    file = loaded.file
    if file is None:
        return _compile_file(loaded, lint)
    try:
        if loaded.definitions:
            before_compile(file)
        return _compile_file(loaded, lint)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (authors' code may raise anything)
        diagnostic = diagnose_import(file, file.parent, error)
        return CompiledFile(file, (), (*loaded.diagnostics, diagnostic), is_complete=False)


def _compile_file(loaded: LoadedFile, lint: LintFile) -> CompiledFile:
    diagnostics = list(loaded.diagnostics)
    declarations = []
    for definition in _sort_definitions(loaded.definitions):
        compiled, new_diagnostics = definition.compile()
        diagnostics += new_diagnostics
        if loaded.prefix:
            compiled, new_diagnostics = _add_prefix(compiled, loaded.prefix)
            diagnostics += new_diagnostics
        declarations.append(Declaration(key_of(definition, loaded.prefix), definition, compiled))
    diagnostics += lint(loaded, declarations)
    if loaded.prefix:
        diagnostics = _use_served_names(diagnostics, loaded)
    return CompiledFile(loaded.file, tuple(declarations), tuple(diagnostics), all_ignorable(diagnostics))


def _add_prefix(compiled: Compiled | None, prefix: str) -> tuple[Compiled | None, tuple[Diagnostic, ...]]:
    """
    Return a declaration with its target's prefix (None if this makes its name too long), and diagnostics.

    Only this function adds prefixes to names and URIs. The URIs of resources do not change.
    """
    if not isinstance(compiled, CompiledPrompt | CompiledSkill):
        return compiled, ()
    compiled = compiled.with_prefix(prefix)
    if isinstance(compiled, CompiledSkill) or len(compiled.name) <= MAX_NAME:
        return compiled, ()
    owner = Owner(f"prompt {compiled.name!r}", compiled.location)
    message = f"with its prefix, the name has {len(compiled.name)} characters: the limit is {MAX_NAME}"
    hint = f"choose a shorter prefix than {prefix!r}, or rename the prompt"
    return None, (owner.diagnostic(Rule.BAD_NAME, message, hint, "def"),)


def _use_served_names(diagnostics: Iterable[Diagnostic], loaded: LoadedFile) -> list[Diagnostic]:
    """Return the diagnostics of a file, changed to contain the names under which its prompts are served."""
    subjects = {
        f"prompt {prompt.options.name!r}": f"prompt {loaded.name_of(prompt)!r}" for prompt in loaded.prompts
    }
    return [
        structs.replace(
            diagnostic,
            message=subjects[owner.subject] + diagnostic.message.removeprefix(owner.subject),
            owner=structs.replace(owner, subject=subjects[owner.subject]),
        )
        if (owner := diagnostic.owner) is not None and owner.subject in subjects
        else diagnostic
        for diagnostic in diagnostics
    ]


def _sort_definitions(definitions: Iterable[Definition]) -> list[Definition]:
    return sorted(
        definitions,
        key=lambda item: (item.location, item.options.name if isinstance(item, Prompt) else item.name),
    )
