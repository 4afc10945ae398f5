"""
Linking: combines the compiled files into one catalog, in which each name and each URI appears only once.

After a reload, files with new errors keep their previous declarations.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct, structs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skill_access import with_skill_prompts
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, folders_above
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.skill_files import SkillFolder
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Report, printable
from promptkit.errors.rules import Rule
from promptkit.files.reading import HashedBytes
from promptkit.loader.recipes import Declaration, Key
from promptkit.loader.targets import display_path, recipes_near

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

        is_complete:
            Whether all declarations of the file could be served when they were loaded, because none had an
            error.

        age:
            How many loads ago the declarations were loaded (0 for the current version). While newer versions
            of the file have errors, the old declarations are kept, and their age increases.
    """

    file: Path | None
    declarations: tuple[Declaration, ...]
    diagnostics: tuple[Diagnostic, ...]
    is_complete: bool
    age: int = 0

    @property
    def prompts(self) -> tuple[CompiledPrompt, ...]:
        """The prompts that can be served."""
        compiled = (declaration.compiled for declaration in self.declarations)
        return tuple(item for item in compiled if isinstance(item, CompiledPrompt))

    @property
    def served_keys(self) -> set[Key]:
        """The keys of the declarations that can be served."""
        return {declaration.key for declaration in self.declarations if declaration.compiled is not None}


class Linked(Struct, frozen=True):
    """
    The result of linking files.

    Args:
        catalog:
            The catalog of all declarations.

        files:
            The linked files.

        by_key:
            The declaration chosen for each key.
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
_Claim: TypeAlias = tuple[Key, CompiledFile, Declaration]


def link(
    files: Sequence[CompiledFile],
    *,
    owners: Owners = MappingProxyType({}),
    root: Path | None = None,
    elicit: bool | None = None,
) -> Linked:
    """
    Combine the declarations of *files* into one catalog, and choose one declaration for each key.

    Each name and each URI template appears only once. If several declarations have the same key, the one from
    the file with the lowest age is served. At the same age, the first definition is served, and every later
    one is an error.

    Args:
        files:
            The compiled files.

        owners:
            The file that has served each declaration so far. This file has precedence over files that newly
            declare the same key.

        root:
            The folder that contains the files.

        elicit:
            The value of the option `elicit` for prompts that do not set it.
    """
    by_key, duplicates = _resolve(files, owners)
    compiled: dict[str, list[Any]] = {"prompt": [], "resource": [], "skill": []}
    for (kind, _), declaration in by_key.items():
        if declaration.compiled is not None:
            compiled[kind].append(declaration.compiled)
    diagnostics = [diagnostic for file in files for diagnostic in file.diagnostics]
    diagnostics += [diagnostic for _, diagnostic in duplicates]
    if not any(file.declarations for file in files) and all_ignorable(diagnostics):
        diagnostics.append(_diagnose_empty_target(root or next((file.file for file in files), None)))
    prompts, resources, skills = compiled.values()
    if elicit is not None:
        prompts = [structs.replace(each, elicit=elicit) if each.elicit is None else each for each in prompts]
    if skills:
        skills, clashes = _resolve_skill_clashes(skills, resources)
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
    Choose the new declarations of each file, or the old ones if the new version is worse.

    A file's declarations belong together, so a file is replaced as a whole. A new version is worse if it
    has an error and the old version either had none or serves a declaration that is now missing. A new
    declaration of a key that another file has been serving also counts as an error.

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
        by_id[id(file)] = structs.replace(file, diagnostics=(*diagnostics, diagnostic), is_complete=False)
    served = {str(file.file): file for file in before}  # paths are slow to compare
    for key, new in by_id.items():
        old = served.get(str(new.file))
        if old is not None and not new.is_complete and (old.is_complete or old.served_keys - new.served_keys):
            by_id[key] = structs.replace(old, diagnostics=new.diagnostics, age=old.age + 1)
    return list(by_id.values())


def summarize_reload(files: Sequence[CompiledFile]) -> str:
    """
    Return a message that lists the files whose old version is served, and other files with errors.

    Return ``""`` if there are no such files.

    Args:
        files:
            The served files.
    """
    old = [file.file for file in files if file.file and file.age]
    invalid = [file.file for file in files if file.file and not file.age and not file.is_complete]
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


def all_ignorable(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether all declarations can be served despite these diagnostics."""
    return all(diagnostic.is_ignorable for diagnostic in diagnostics)


def _resolve(
    files: Sequence[CompiledFile], owners: Owners
) -> tuple[dict[Key, Declaration], list[tuple[CompiledFile, Diagnostic]]]:
    """Return the declaration to serve for each key, and a diagnostic for each duplicate of the same age."""
    claims = [(declaration.key, file, declaration) for file in files for declaration in file.declarations]
    first, duplicates = dict[Key, _Claim](), []
    for claim in sorted(claims, key=lambda claim: _precedence(claim, owners)):
        key, file, declaration = claim
        _, owner, earlier = first.setdefault(key, claim)
        if earlier.definition is not declaration.definition and owner.age == file.age:
            duplicates.append((file, _diagnose_duplicate(declaration, earlier)))
    return {key: declaration for key, (_, _, declaration) in first.items()}, duplicates


def _precedence(claim: _Claim, owners: Owners) -> tuple[Any, ...]:
    key, file, declaration = claim
    definition = declaration.definition
    is_renamed = isinstance(definition, SkillFolder) and definition.is_renamed
    return file.age, owners.get(key, file.file) != file.file, is_renamed, definition.location, key[1]


def _diagnose_duplicate(declaration: Declaration, first: Declaration) -> Diagnostic:
    definition, earlier = declaration.definition, first.definition.location
    _, key = declaration.key
    if isinstance(definition, Prompt):
        owner = Owner(f"prompt {key!r}", definition.location)
        hint = f"rename one of them, or give it a name with @prompt(name='{definition.options.name}-2')"
        return owner.diagnostic(Rule.DUPLICATE_NAME, f"it is already defined at {earlier}", hint)
    owner = Owner(f"{definition.kind} {definition.name!r}", definition.location)
    message = f"{key!r} is already defined at {earlier}"
    if definition.kind == "skill":
        return owner.diagnostic(Rule.DUPLICATE_SKILL, message, "give one of them another name or prefix")
    hint = "change the URI of one of them, or remove it"
    return owner.diagnostic(Rule.DUPLICATE_TEMPLATE, message, hint)


def _diagnose_empty_target(path: Path | None) -> Diagnostic:
    near = recipes_near(path) if path is not None and path.is_dir() else []
    name = f"pass {display_path(near[0])!r}, which contains recipes, or " if near else ""
    location = "in a *.py file whose name starts with neither '_' nor 'test_'"
    hint = f"{name}decorate a function with @prompt, {location}, or write a file NAME.prompt.md"
    return Diagnostic(Rule.NO_PROMPTS, "no prompt is defined here", hint, Location(str(path or "")))


def _resolve_skill_clashes(
    skills: Sequence[CompiledSkill], resources: Iterable[CompiledResource]
) -> tuple[list[CompiledSkill], list[Diagnostic]]:
    """
    Return the skills that can be served together, and diagnostics for those that clash.

    Args:
        skills:
            All skills, with their prefixes.

        resources:
            All resources, whose URIs can also clash with those of skills.
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
        if not report.diagnostics:
            served[skill.folder] = skill
        diagnostics += report.diagnostics
    return list(served.values()), diagnostics


def _is_renamed(skill: CompiledSkill) -> bool:
    """Return whether the name of a skill differs from the name of its folder."""
    return Path(skill.location.file).parts[-2:] != (skill.name, SKILL_FILE)


def _is_nested(skill: CompiledSkill, outer: CompiledSkill) -> bool:
    """Return whether the folder of a skill is inside the folder of *outer*."""
    folder = outer.location.file.removesuffix(SKILL_FILE)
    return folder != outer.location.file and skill.location.file.startswith(folder)


def _files_by_uri(skill: CompiledSkill) -> Mapping[str, HashedBytes]:
    return {skill.uri_of(file.path): file.content for file in skill.files}


def _files_below(skill: CompiledSkill, folder: str) -> Mapping[str, HashedBytes]:
    return {uri: content for uri, content in _files_by_uri(skill).items() if uri.startswith(f"{folder}/")}
