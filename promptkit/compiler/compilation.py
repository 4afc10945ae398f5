"""
The compiler: turns loaded recipes into a catalog.

Each file is compiled separately. Linking combines the files into one catalog, in which broken files keep
their previous declarations. One pass reports every error in the imported files, and equal input gives an
equal catalog.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias, cast

from msgspec import Struct, structs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skill_access import with_skill_prompts
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, folders_above
from promptkit.declarations.options import MAX_NAME
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.skill_files import SkillFolder
from promptkit.declarations.skills import Skill
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Report, printable
from promptkit.errors.exceptions import CompileError
from promptkit.errors.rules import Rule
from promptkit.files.reading import HashedBytes
from promptkit.loader.import_errors import diagnose_import
from promptkit.loader.loader import load
from promptkit.loader.recipes import Compiled, Declaration, Definition, Key, LoadedFile, Recipes, key_of
from promptkit.loader.targets import display_path, recipes_near


def without_clashes(
    skills: Sequence[CompiledSkill], resources: Iterable[CompiledResource]
) -> tuple[list[CompiledSkill], list[Diagnostic]]:
    """
    Return the skills that can be served together, and diagnostics for the others.

    Args:
        skills:
            All skills.

        resources:
            All resources.
    """
    outermost_first = sorted(skills, key=lambda skill: len(skill.folder))
    served, diagnostics = dict[str, CompiledSkill](), list[Diagnostic]()
    skill_resources = {
        resource.uri_template: resource
        for resource in resources
        if resource.uri_template.startswith("skill:")
    }
    for skill in outermost_first:
        report = Report(f"skill {skill.name!r}", skill.location)
        for folder in folders_above(skill.folder):
            outer = served.get(folder)
            if outer is None or (_is_renamed(skill) and _is_nested(skill, outer)):
                continue
            if _files_below(outer, skill.folder) != _files_by_uri(skill):
                message = f"skill {outer.name!r} has different files in the same folder"
                report.add(Rule.DUPLICATE_SKILL, message, "give it another prefix")
        clashing = (skill_resources[uri] for uri in skill.resources if uri in skill_resources)
        if other := next(clashing, None):
            message = f"{other.uri_template!r} is already defined at {other.location}"
            report.add(Rule.DUPLICATE_SKILL, message, "change the URI of that resource")
        if not report.found:
            served[skill.folder] = skill
        diagnostics += report.found
    return list(served.values()), diagnostics


def _is_renamed(skill: CompiledSkill) -> bool:
    """Return whether a skill is in a folder whose name differs from the skill's."""
    return Path(skill.location.file).parts[-2:] != (skill.name, SKILL_FILE)


def _is_nested(skill: CompiledSkill, outer: CompiledSkill) -> bool:
    """Return whether the folder of a skill is inside the folder of *outer*."""
    folder = outer.location.file.removesuffix(SKILL_FILE)
    return folder != outer.location.file and skill.location.file.startswith(folder)


def _files_by_uri(skill: CompiledSkill) -> Mapping[str, HashedBytes]:
    return {skill.uri_of(file.path): file.content for file in skill.files}


def _files_below(skill: CompiledSkill, folder: str) -> Mapping[str, HashedBytes]:
    return {uri: content for uri, content in _files_by_uri(skill).items() if uri.startswith(f"{folder}/")}


#: The file that has served each declaration so far.
Owners: TypeAlias = Mapping[Key, Path | None]


class CompiledFile(Struct, frozen=True):
    """
    The compiled declarations of one file.

    Args:
        file:
            The recipe file; None for declarations that were not loaded from a file.

        declarations:
            The prompts, resources and skills of the file, in the order of their definitions.

        diagnostics:
            The diagnostics of the file's current version.

        is_sound:
            Whether the file had no error when the declarations were loaded.

        age:
            How many loads ago the declarations were loaded: 0 for the current version. While newer versions
            of the file have errors, the declarations stay and their age grows.
    """

    file: Path | None
    declarations: tuple[Declaration, ...]
    diagnostics: tuple[Diagnostic, ...]
    is_sound: bool
    age: int = 0

    @property
    def prompts(self) -> tuple[CompiledPrompt, ...]:
        """The prompts that can be served."""
        compiled = (declaration.compiled for declaration in self.declarations)
        return tuple(item for item in compiled if isinstance(item, CompiledPrompt))

    @property
    def served(self) -> set[Key]:
        """The keys of the declarations that can be served."""
        return {declaration.key for declaration in self.declarations if declaration.compiled is not None}


class Linked(Struct, frozen=True):
    """
    The result of linking files.

    Args:
        catalog:
            The catalog of all declarations.

        files:
            The files.

        by_key:
            The declaration of each key.
    """

    catalog: Catalog
    files: Sequence[CompiledFile]
    by_key: Mapping[Key, Declaration]

    @property
    def owners(self) -> Owners:
        """The file that serves each declaration."""
        return {
            declaration.key: file.file
            for file in self.files
            for declaration in file.declarations
            if declaration.compiled is not None and self.by_key[declaration.key] is declaration
        }


#: A key, and the declaration of a file that claims it.
Claim: TypeAlias = tuple[Key, CompiledFile, Declaration]


def link(
    files: Sequence[CompiledFile],
    *,
    owners: Owners = MappingProxyType({}),
    root: Path | None = None,
    elicit: bool | None = None,
) -> Linked:
    """
    Combine the declarations of *files* into one catalog, and choose the declaration of each key.

    Each name and each URI template appears once. If several declarations have the same key, the declaration
    from the file with the lowest age is served. At the same age, the first definition is served, and the
    others are errors.

    Args:
        files:
            The compiled files.

        owners:
            The file that has served each declaration so far. This file has precedence over files that newly
            declare the same key.

        root:
            The folder that contains the files.

        elicit:
            The option `elicit` of prompts that do not set it.
    """
    by_key, duplicates = _resolve(files, owners)
    compiled: dict[str, list[Any]] = {"prompt": [], "resource": [], "skill": []}
    for (kind, _), declaration in by_key.items():
        if declaration.compiled is not None:
            compiled[kind].append(declaration.compiled)
    diagnostics = [diagnostic for file in files for diagnostic in file.diagnostics]
    diagnostics += [diagnostic for _, diagnostic in duplicates]
    if not any(file.declarations for file in files) and is_sound(diagnostics):
        diagnostics.append(_no_prompts(root or next((file.file for file in files), None)))
    prompts, resources, skills = compiled.values()
    if elicit is not None:
        prompts = [structs.replace(each, elicit=elicit) if each.elicit is None else each for each in prompts]
    if skills:
        skills, clashes = without_clashes(skills, resources)
        diagnostics += clashes
    diagnostics.sort(key=lambda diagnostic: (diagnostic.location, diagnostic.rule.value, diagnostic.message))
    catalog = Catalog(prompts, tuple(dict.fromkeys(diagnostics)), resources, skills)
    if skills:
        catalog = with_skill_prompts(catalog, lambda skill: skill.is_for_users)
    return Linked(catalog, files, by_key)


def merge(
    before: Sequence[CompiledFile], after: Sequence[CompiledFile], owners: Owners
) -> list[CompiledFile]:
    """
    Choose, for each file, the new declarations, or the old declarations if the new version is worse.

    The prompts of a file belong together, so a file is replaced as a whole. A new version is worse if it has
    an error, and the old version had none or has a prompt or resource that the new version lacks. Newly
    declaring a key that another file has been serving is also an error.

    Args:
        before:
            The declarations that are served, by file.

        after:
            The new declarations, by file.

        owners:
            The file that has served each declaration so far.
    """
    by_id = {id(file): file for file in after}
    for file, diagnostic in _resolve(after, owners)[1]:
        diagnostics = by_id[id(file)].diagnostics
        by_id[id(file)] = structs.replace(file, diagnostics=(*diagnostics, diagnostic), is_sound=False)
    served = {str(file.file): file for file in before}  # paths are slow to compare
    for key, new in by_id.items():
        old = served.get(str(new.file))
        if old is not None and not new.is_sound and (old.is_sound or old.served - new.served):
            by_id[key] = structs.replace(old, diagnostics=new.diagnostics, age=old.age + 1)
    return list(by_id.values())


def summary(files: Sequence[CompiledFile]) -> str:
    """
    Return a message that lists the files with errors and the files that are served in an old version.

    Return ``""`` if there are no such files.

    Args:
        files:
            The served files.
    """
    old = [file.file for file in files if file.file and file.age]
    invalid = [file.file for file in files if file.file and not file.age and not file.is_sound]
    if not old and not invalid:
        return ""
    try:
        common = os.path.commonpath([file.file.parent for file in files if file.file]) + os.sep
    except ValueError:  # the targets are on several drives
        common = ""

    def format_paths(paths: Sequence[Path]) -> str:
        return ", ".join(printable(str(file).removeprefix(common)) for file in paths)

    parts = [f"unchanged until fixed: {format_paths(old)}"] if old else []
    parts += [f"with errors: {format_paths(invalid)}"] if invalid else []
    return f"reloaded; {'; '.join(parts)}"


def is_sound(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether no diagnostic keeps a declaration from being served."""
    return all(diagnostic.is_ignorable for diagnostic in diagnostics)


def _resolve(
    files: Sequence[CompiledFile], owners: Owners
) -> tuple[dict[Key, Declaration], list[tuple[CompiledFile, Diagnostic]]]:
    """Return the declaration of each key, and a diagnostic for each duplicate of the same age."""
    by_key = {declaration.key: declaration for file in files for declaration in file.declarations}
    if len(by_key) == sum(len(file.declarations) for file in files):
        return by_key, []
    claims = [(declaration.key, file, declaration) for file in files for declaration in file.declarations]
    first, duplicates = dict[Key, Claim](), []
    for claim in sorted(claims, key=lambda claim: _precedence(claim, owners)):
        key, file, declaration = claim
        _, owner, earlier = first.setdefault(key, claim)
        if earlier.definition is not declaration.definition and owner.age == file.age:
            duplicates.append((file, _duplicate(declaration, earlier)))
    return {key: declaration for key, (_, _, declaration) in first.items()}, duplicates


def _precedence(claim: Claim, owners: Owners) -> tuple[Any, ...]:
    key, file, declaration = claim
    definition = declaration.definition
    is_renamed = isinstance(definition, SkillFolder) and definition.is_renamed
    return file.age, owners.get(key, file.file) != file.file, is_renamed, definition.location, key[1]


def _duplicate(declaration: Declaration, first: Declaration) -> Diagnostic:
    definition, earlier = declaration.definition, first.definition.location
    _, key = declaration.key
    if isinstance(definition, Prompt):
        owner = Owner(f"prompt {key!r}", definition.location)
        hint = f"rename one of them, or give it a name with @prompt(name='{definition.options.name}-2')"
        return owner.diagnostic(Rule.DUPLICATE_NAME, f"already defined at {earlier}", hint)
    owner = Owner(f"{definition.kind} {definition.name!r}", definition.location)
    message = f"{key!r} is already defined at {earlier}"
    if definition.kind == "skill":
        return owner.diagnostic(Rule.DUPLICATE_SKILL, message, "give one of them another name or prefix")
    hint = "change the URI of one of them, or remove it"
    return owner.diagnostic(Rule.DUPLICATE_TEMPLATE, message, hint)


def _no_prompts(path: Path | None) -> Diagnostic:
    near = recipes_near(path) if path is not None and path.is_dir() else []
    name = f"pass {display_path(near[0])!r}, which has some, or " if near else ""
    location = "in a *.py file whose name starts with neither '_' nor 'test_'"
    hint = f"{name}decorate a function with @prompt, {location}, or write a file NAME.prompt.md"
    return Diagnostic(Rule.NO_PROMPTS, "no prompt is defined here", hint, Location(str(path or "")))


#: A target that can be compiled: a folder, file, module or catalog; prompts and resources; or several
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
            A folder, a file or a module, or several of these, each with or without ``PREFIX=``; prompts and
            resources; a catalog, which is returned unchanged; or the result of
            `promptkit.loader.loader.load`.

        lint:
            Whether to also look for probable mistakes in working recipes. Serving skips this, because it
            takes time.

        elicit:
            The option `elicit` of prompts that do not set it.

    Returns:
        A catalog of every prompt and resource that can be served. Its diagnostics include the errors of all
        other prompts and resources, each with file, line and hint. Of two prompts with the same name, or two
        resources with the same URI template, only the first one is served.

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


def sound(catalog: Catalog) -> Catalog:
    """
    Return *catalog* if it is complete.

    Raises `CompileError` if an error kept a prompt, resource or skill out of it.
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
    return [_compile_or_fail(loaded, lint, before_compile) for loaded in recipes.by_file]


def _compile_or_fail(
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
        return CompiledFile(file, (), (*loaded.diagnostics, diagnostic), is_sound=False)


def _compile_file(loaded: LoadedFile, lint: LintFile) -> CompiledFile:
    diagnostics = list(loaded.diagnostics)
    declarations = []
    for definition in _in_source_order(loaded.definitions):
        compiled, new_diagnostics = definition.compile()
        diagnostics += new_diagnostics
        if loaded.prefix:
            compiled, new_diagnostics = _with_prefix(compiled, loaded.prefix)
            diagnostics += new_diagnostics
        declarations.append(Declaration(key_of(definition, loaded.prefix), definition, compiled))
    diagnostics += lint(loaded, declarations)
    if loaded.prefix:
        diagnostics = _with_served_names(diagnostics, loaded)
    return CompiledFile(loaded.file, tuple(declarations), tuple(diagnostics), is_sound(diagnostics))


def _with_prefix(compiled: Compiled | None, prefix: str) -> tuple[Compiled | None, tuple[Diagnostic, ...]]:
    """
    Return a declaration with the prefix of its target (None if its name is then too long), and diagnostics.

    Only this function adds prefixes to names and URIs. The URIs of resources do not change.
    """
    if not isinstance(compiled, CompiledPrompt | CompiledSkill):
        return compiled, ()
    compiled = compiled.with_prefix(prefix)
    if isinstance(compiled, CompiledSkill) or len(compiled.name) <= MAX_NAME:
        return compiled, ()
    owner = Owner(f"prompt {compiled.name!r}", compiled.location)
    message = f"with its prefix, the name has {len(compiled.name)} characters, more than {MAX_NAME}"
    hint = f"choose a shorter prefix than {prefix!r}, or rename the prompt"
    return None, (owner.diagnostic(Rule.BAD_NAME, message, hint, "def"),)


def _with_served_names(diagnostics: Iterable[Diagnostic], loaded: LoadedFile) -> list[Diagnostic]:
    """Return the diagnostics of a file, changed to call each prompt by the name by which it is served."""
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


def _in_source_order(definitions: Iterable[Definition]) -> list[Definition]:
    return sorted(
        definitions,
        key=lambda item: (item.location, item.options.name if isinstance(item, Prompt) else item.name),
    )
