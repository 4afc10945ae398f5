"""
The compiler: what the loader found becomes a catalog.

Every function here is pure. `compile` finds every fault in one pass, and equal input gives an
equal catalog. What one file declares is compiled by itself, and the files' pieces are composed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct, structs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.compiler.loading.loader import fault_of
from promptkit.compiler.loading.targets import recipes_near, shown
from promptkit.compiler.prompts import Prompt
from promptkit.compiler.recipes import Declarations, Recipes
from promptkit.compiler.resources import Resource
from promptkit.errors.diagnostics import Diagnostic, Location, Rule, Severity

__all__ = ["CompiledFile", "Declaration", "compile", "compile_files", "compose", "merge", "owners_of"]

#: What an author's decorator makes.
Made: TypeAlias = Prompt[..., Any] | Resource[..., Any]


class Declaration(Struct, frozen=True):
    """
    One prompt or resource of a file.

    Args:
        made:
            What the author's decorator made.

        compiled:
            What is served of it, None if it is at fault.
    """

    made: Made
    compiled: CompiledPrompt | CompiledResource | None

    @property
    def key(self) -> tuple[bool, str]:
        """
        What no other may have: whether it is a prompt, and its name or URI template.
        """
        made = self.made
        return (True, made.options.name) if isinstance(made, Prompt) else (False, made.uri_template)

    @property
    def location(self) -> Location:
        """
        Where it is defined.
        """
        return self.made.location


class CompiledFile(Struct, frozen=True):
    """
    What one file declares, compiled: a piece of the catalog.

    Args:
        file:
            The recipe file; None if what is declared was not loaded from one.

        declarations:
            Its prompts and resources, as a reader of the files meets them.

        diagnostics:
            What is wrong with the file as it is now.

        is_sound:
            Whether the file was without a fault when the declarations were loaded.

        age:
            How many loads ago that was: 0 if they are those of the file as it is now. They stay
            while later versions of the file are at fault.
    """

    file: Path | None
    declarations: tuple[Declaration, ...]
    diagnostics: tuple[Diagnostic, ...]
    is_sound: bool
    age: int = 0

    @property
    def served(self) -> set[tuple[bool, str]]:
        """
        The keys of what can be served.
        """
        return {declaration.key for declaration in self.declarations if declaration.compiled is not None}


#: Which file has served what so far.
Owners: TypeAlias = Mapping[tuple[bool, str], Path | None]


def compile(recipes: Recipes, *, lint: bool = False) -> Catalog:
    """
    Compile recipes.

    Args:
        recipes:
            What `promptkit.compiler.loading.loader.load` found, or a value made by hand.

        lint:
            Whether to look, too, for what is probably not what the author meant, though it can
            be served. Serving does not pay for that.

    Returns:
        A catalog of every prompt and resource that can be served. What cannot be is in its
        diagnostics, each with file, line and remedy. Of two prompts with one name, and of two
        resources with one URI template, the one that is defined second is not served.
    """
    return compose(compile_files(recipes, lint=lint), root=recipes.root)


def compile_files(
    recipes: Recipes, *, lint: bool = False, compiling: Callable[[Path], None] = lambda _: None
) -> list[CompiledFile]:
    """
    Compile what each file declares, by itself.

    Args:
        recipes:
            What was loaded.

        lint:
            As for `compile`.

        compiling:
            Called with each file before it is compiled. What it raises is a fault of the file.
    """
    return [_attempt(found, lint, compiling) for found in recipes.by_file]


def compose(
    files: Sequence[CompiledFile], *, owners: Owners = MappingProxyType({}), root: Path | None = None
) -> Catalog:
    """
    Return the catalog of all that *files* declare.

    Args:
        files:
            What each file declares.

        owners:
            Which file has served what so far; it has precedence over one that newly declares the same.

        root:
            The folder in which the files are.

    Returns:
        A catalog in which each name and each URI template stands once. Of declarations of
        different ages the youngest is served, of two of one age the one that is defined first;
        only the latter is a fault.
    """
    served, duplicates = _unique(files, owners)
    compiled = [declaration.compiled for declaration in served]
    diagnostics = [found for file in files for found in file.diagnostics]
    diagnostics += [found for _, found in duplicates]
    if not any(file.declarations for file in files) and not diagnostics:
        diagnostics.append(_no_prompts(root or next((file.file for file in files), None)))
    diagnostics.sort(key=lambda found: (found.location, found.rule.value, found.message))
    return Catalog(
        tuple(item for item in compiled if isinstance(item, CompiledPrompt)),
        tuple(dict.fromkeys(diagnostics)),
        tuple(item for item in compiled if isinstance(item, CompiledResource)),
    )


def merge(before: Sequence[CompiledFile], after: Sequence[CompiledFile]) -> list[CompiledFile]:
    """
    Return what to serve of each file: what it declares now, or while that is worse, what it did before.

    A file is taken as a whole, so that its prompts belong together. It is worse than it was if
    something in it is at fault, and either nothing was, or something would be lost. That it now
    declares what another file has been serving is a fault of its own.

    Args:
        before:
            What is served of each file.

        after:
            What each file declares now.
    """
    served = {file.file: file for file in before}
    _, duplicates = _unique(after, owners_of(before))
    merged = []
    for file in after:
        found = (*file.diagnostics, *(fault for other, fault in duplicates if other is file))
        now = structs.replace(file, diagnostics=found, is_sound=_is_sound(found))
        was = served.get(file.file)
        if was is not None and not now.is_sound and (was.is_sound or was.served - now.served):
            now = structs.replace(was, diagnostics=found, age=was.age + 1)
        merged.append(now)
    return merged


def owners_of(files: Sequence[CompiledFile]) -> Owners:
    """
    Return which file serves what.
    """
    places = {id(declaration): file.file for file in reversed(files) for declaration in file.declarations}
    return {declaration.key: places[id(declaration)] for declaration in _unique(files, {})[0]}


def _attempt(declared: Declarations, lint: bool, compiling: Callable[[Path], None]) -> CompiledFile:  # noqa: FBT001
    """
    Compile what one file declares; whatever its defaults, annotations and completers raise is its fault.
    """
    file = declared.file
    if file is None:
        return _compile_file(declared, lint=lint)
    try:
        if declared.prompts or declared.resources:
            compiling(file)
        return _compile_file(declared, lint=lint)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (it is authors' code that runs)
        fault = fault_of(file, file.parent, error)
        return CompiledFile(file, (), (*declared.diagnostics, fault), is_sound=False)


def _compile_file(declared: Declarations, *, lint: bool) -> CompiledFile:
    """
    Compile what one file declares.
    """
    diagnostics = list(declared.diagnostics)
    declarations = []
    for made in _in_source_order((*declared.prompts, *declared.resources)):
        compiled: CompiledPrompt | CompiledResource | None
        if isinstance(made, Prompt):
            compiled, found = made.compile()
            diagnostics += (*found, *(_lint(made, compiled) if lint else ()))
        else:
            compiled, found = made.compile()
            diagnostics += found
        declarations.append(Declaration(made, compiled))
    if lint:
        diagnostics += _lint_file(declared.file)
    return CompiledFile(declared.file, tuple(declarations), tuple(diagnostics), _is_sound(diagnostics))


def _is_sound(diagnostics: Iterable[Diagnostic]) -> bool:
    return all(found.severity is not Severity.ERROR for found in diagnostics)


def _unique(
    files: Iterable[CompiledFile], owners: Owners
) -> tuple[list[Declaration], list[tuple[CompiledFile, Diagnostic]]]:
    """
    Return what is served of *files*, and each declaration of a key that another of its age has.
    """
    claims = [(file, declaration) for file in files for declaration in file.declarations]
    claims.sort(key=lambda claim: _precedence(claim[0], claim[1], owners))
    first: dict[tuple[bool, str], tuple[CompiledFile, Declaration]] = {}
    duplicates = []
    for file, declaration in claims:
        owner, earlier = first.setdefault(declaration.key, (file, declaration))
        if earlier.made is not declaration.made and owner.age == file.age:
            duplicates.append((file, _duplicate(declaration, earlier)))
    return [found for _, found in first.values() if found.compiled is not None], duplicates


def _precedence(file: CompiledFile, declaration: Declaration, owners: Owners) -> tuple[Any, ...]:
    """
    Return what tells which of two declarations of one key is served.
    """
    key = declaration.key
    return file.age, owners.get(key, file.file) != file.file, declaration.location, key[1]


def _lint(prompt: Prompt[..., Any], made: CompiledPrompt | None) -> Iterable[Diagnostic]:
    """
    Return what is probably not what the author of *prompt* meant.
    """
    from promptkit.compiler.lints.prompts import lint_prompt

    return lint_prompt(prompt, made.arguments if made else None)


def _lint_file(file: Path | None) -> Iterable[Diagnostic]:
    """
    Return what is probably not meant in *file*, and in the helpers beside it.
    """
    from promptkit.compiler.lints.files import lint_file

    return () if file is None else lint_file(file)


def _in_source_order(made: Iterable[Made]) -> list[Made]:
    """
    Return prompts and resources as a reader of the file meets them.
    """
    return sorted(
        made, key=lambda one: (one.location, one.options.name if isinstance(one, Prompt) else one.name)
    )


def _duplicate(declaration: Declaration, first: Declaration) -> Diagnostic:
    """
    Return the diagnostic for two prompts of one name, or two resources of one URI template.
    """
    made = declaration.made
    if isinstance(made, Prompt):
        name = made.options.name
        return Diagnostic(
            Rule.DUPLICATE_NAME,
            f"prompt {name!r}: already defined at {first.location}",
            f"rename one of the two, or give it a name with @prompt(name='{name}-2')",
            made.location,
        )
    return Diagnostic(
        Rule.DUPLICATE_TEMPLATE,
        f"resource {made.name!r}: {made.uri_template!r} is already defined at {first.location}",
        "change the URI of one of the two, or remove it",
        made.location,
    )


def _no_prompts(place: Path | None) -> Diagnostic:
    """
    Return the diagnostic for recipes without a prompt.
    """
    near = recipes_near(place) if place is not None and place.is_dir() else []
    name = f"name {shown(near[0])!r}, where some are, or " if near else ""
    return Diagnostic(
        Rule.NO_PROMPTS,
        "there is no prompt here",
        f"{name}decorate a function with @prompt, in a *.py file that begins with neither '_' nor 'test_'",
        Location(str(place or "")),
    )
