"""Linking: compiled files become one catalog, and broken files keep what they served before."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct, structs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import CompiledSkill, folders_above
from promptkit.declarations.compiled import Declaration, Key
from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report, printable
from promptkit.errors.rules import Rule
from promptkit.files.scratch import SpooledBytes
from promptkit.loader.targets import display_path, recipes_near


def without_clashes(
    skills: Sequence[CompiledSkill], resources: Iterable[CompiledResource]
) -> tuple[list[CompiledSkill], list[Diagnostic]]:
    """
    Return the skills that can be served together, and why the others cannot be.

    Args:
        skills:
            All of them.

        resources:
            What is declared beside them.
    """
    outermost_first = sorted(skills, key=lambda skill: len(skill.folder))
    served, found = dict[str, CompiledSkill](), list[Diagnostic]()
    own = {one.uri_template: one for one in resources if one.uri_template.startswith("skill:")}
    for skill in outermost_first:
        report = Report(f"skill {skill.name!r}", skill.location)
        for above in folders_above(skill.folder):
            outer = served.get(above)
            if outer is not None and _below(outer, skill.folder) != _files(skill):
                fault = f"it lies in the folder of skill {outer.name!r}, which has other files there"
                report.add(Rule.DUPLICATE_SKILL, fault, "give it another prefix")
        if other := next((own[uri] for uri in skill.resources if uri in own), None) if own else None:
            fault = f"{other.uri_template!r} is already defined at {other.location}"
            report.add(Rule.DUPLICATE_SKILL, fault, "change the URI of that resource")
        if not report.found:
            served[skill.folder] = skill
        found += report.found
    return list(served.values()), found


def _files(skill: CompiledSkill) -> Mapping[str, SpooledBytes]:
    return {skill.uri_of(file.path): file.content for file in skill.files}


def _below(skill: CompiledSkill, folder: str) -> Mapping[str, SpooledBytes]:
    return {uri: content for uri, content in _files(skill).items() if uri.startswith(f"{folder}/")}


#: Which file has served what so far.
Owners: TypeAlias = Mapping[Key, Path | None]


class CompiledFile(Struct, frozen=True):
    """
    What one file declares, compiled.

    Args:
        file:
            The recipe file; None for declarations that were not loaded from a file.

        declarations:
            Its prompts, resources and skills, in the order of their definitions.

        diagnostics:
            What is wrong with the file as it is now.

        is_sound:
            Whether the file had no error when the declarations were loaded.

        age:
            How many loads ago that was: 0 for the file as it is now. While newer versions of the
            file have errors, the declarations stay and their age grows.
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
        return tuple(one for one in compiled if isinstance(one, CompiledPrompt))

    @property
    def served(self) -> set[Key]:
        """The keys of what can be served."""
        return {one.key for one in self.declarations if one.compiled is not None}


class Linked(Struct, frozen=True):
    """
    Files that were linked.

    Args:
        catalog:
            All that they declare.

        files:
            The files.

        by_key:
            The declaration that has each key.
    """

    catalog: Catalog
    files: Sequence[CompiledFile]
    by_key: Mapping[Key, Declaration]

    @property
    def owners(self) -> Owners:
        """Which file serves what."""
        return {
            one.key: file.file
            for file in self.files
            for one in file.declarations
            if one.compiled is not None and self.by_key[one.key] is one
        }


#: A key, and which declaration of which file would have it.
Claim: TypeAlias = tuple[Key, CompiledFile, Declaration]


def link(
    files: Sequence[CompiledFile], *, owners: Owners = MappingProxyType({}), root: Path | None = None
) -> Linked:
    """
    Return the catalog of all that *files* declare, and which of them serves what.

    Each name and each URI template stands in it once. Of two declarations of one key, the one of the
    younger file is served, and of two of one age the one that is defined first; only then the other is
    an error.

    Args:
        files:
            What each file declares.

        owners:
            Which file has served what so far. It has precedence over a file that newly declares the same.

        root:
            The folder that the files are in.
    """
    by_key, duplicates = _resolve(files, owners)
    compiled: dict[str, list[Any]] = {"prompt": [], "resource": [], "skill": []}
    for (kind, _), declaration in by_key.items():
        if declaration.compiled is not None:
            compiled[kind].append(declaration.compiled)
    diagnostics = [found for file in files for found in file.diagnostics]
    diagnostics += [found for _, found in duplicates]
    if not any(file.declarations for file in files) and is_sound(diagnostics):
        diagnostics.append(_no_prompts(root or next((file.file for file in files), None)))
    prompts, resources, skills = compiled.values()
    if skills:
        skills, clashes = without_clashes(skills, resources)
        diagnostics += clashes
    diagnostics.sort(key=lambda found: (found.location, found.rule.value, found.message))
    return Linked(Catalog(prompts, tuple(dict.fromkeys(diagnostics)), resources, skills), files, by_key)


def merge(
    before: Sequence[CompiledFile], after: Sequence[CompiledFile], owners: Owners
) -> list[CompiledFile]:
    """
    Return what to serve of each file: what it declares now, or what it declared before if now is worse.

    A file is taken as a whole, as its prompts belong together. It is worse now if it has an error, and
    either had none before, or would lose a prompt or resource. It is an error, too, to newly declare what
    another file has been serving.

    Args:
        before:
            What is served of each file.

        after:
            What each file declares now.

        owners:
            Which file has served what so far.
    """
    found = {id(file): file for file in after}
    for file, fault in _resolve(after, owners)[1]:
        known = found[id(file)].diagnostics
        found[id(file)] = structs.replace(file, diagnostics=(*known, fault), is_sound=False)
    served = {str(file.file): file for file in before}  # paths are slow to compare
    for key, now in found.items():
        was = served.get(str(now.file))
        if was is not None and not now.is_sound and (was.is_sound or was.served - now.served):
            found[key] = structs.replace(was, diagnostics=now.diagnostics, age=was.age + 1)
    return list(found.values())


def summary(files: Sequence[CompiledFile]) -> str:
    """
    Return which files are not served as they are now, and which have errors; ``""`` if there are none.

    Args:
        files:
            What is served of each file.
    """
    old = [file.file for file in files if file.file and file.age]
    faulty = [file.file for file in files if file.file and not file.age and not file.is_sound]
    if not old and not faulty:
        return ""
    try:
        above = os.path.commonpath([file.file.parent for file in files if file.file]) + os.sep
    except ValueError:  # the targets lie on several drives
        above = ""

    def named(found: Sequence[Path]) -> str:
        return ", ".join(printable(str(file).removeprefix(above)) for file in found)

    parts = [f"still as before, until fixed: {named(old)}"] if old else []
    parts += [f"with errors: {named(faulty)}"] if faulty else []
    return f"reloaded; {'; '.join(parts)}"


def is_sound(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether none of the diagnostics keeps something from being served."""
    return all(found.is_ignorable for found in diagnostics)


def _resolve(
    files: Sequence[CompiledFile], owners: Owners
) -> tuple[dict[Key, Declaration], list[tuple[CompiledFile, Diagnostic]]]:
    """The declaration that has each key, and a diagnostic for each other one of its age."""
    by_key = {one.key: one for file in files for one in file.declarations}
    if len(by_key) == sum(len(file.declarations) for file in files):
        return by_key, []
    claims = [(one.key, file, one) for file in files for one in file.declarations]
    first, duplicates = dict[Key, Claim](), []
    for claim in sorted(claims, key=lambda claim: _precedence(claim, owners)):
        key, file, declaration = claim
        _, owner, earlier = first.setdefault(key, claim)
        if earlier.definition is not declaration.definition and owner.age == file.age:
            duplicates.append((file, _duplicate(declaration, earlier)))
    return {key: declaration for key, (_, _, declaration) in first.items()}, duplicates


def _precedence(claim: Claim, owners: Owners) -> tuple[Any, ...]:
    key, file, declaration = claim
    return file.age, owners.get(key, file.file) != file.file, declaration.definition.location, key[1]


def _duplicate(declaration: Declaration, first: Declaration) -> Diagnostic:
    made, earlier, place = declaration.definition, first.definition.location, declaration.definition.location
    if isinstance(made, Prompt):
        fault = f"prompt {made.options.name!r}: already defined at {earlier}"
        hint = f"rename one of the two, or give it a name with @prompt(name='{made.options.name}-2')"
        return Diagnostic(Rule.DUPLICATE_NAME, fault, hint, place)
    fault = f"{made.kind} {made.name!r}: {made.uri_template!r} is already defined at {earlier}"
    if made.kind == "skill":
        return Diagnostic(Rule.DUPLICATE_SKILL, fault, "give one of the two another name, or prefix", place)
    return Diagnostic(Rule.DUPLICATE_TEMPLATE, fault, "change the URI of one of the two, or remove it", place)


def _no_prompts(place: Path | None) -> Diagnostic:
    near = recipes_near(place) if place is not None and place.is_dir() else []
    name = f"name {display_path(near[0])!r}, where some are, or " if near else ""
    where = "in a *.py file that begins with neither '_' nor 'test_'"
    hint = f"{name}decorate a function with @prompt, {where}"
    return Diagnostic(Rule.NO_PROMPTS, "there is no prompt here", hint, Location(str(place or "")))
