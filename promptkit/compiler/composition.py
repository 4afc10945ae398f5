"""Composition: compiled files become one catalog, and broken files keep what they served before."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, structs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.loading.targets import display_path, recipes_near
from promptkit.compiler.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic, Location, Rule, printable

if TYPE_CHECKING:  # most recipes hold no resources
    from promptkit.catalog.resources import CompiledResource
    from promptkit.compiler.resources import Resource

__all__ = [
    "CompiledFile",
    "Declaration",
    "Definition",
    "Owners",
    "compose",
    "is_sound",
    "merge",
    "owners_of",
    "summary",
    "with_duplicates",
]

#: What an author's decorator makes.
Definition: TypeAlias = "Prompt[..., Any] | Resource[..., Any]"

#: What only one declaration may have: whether it is a prompt, and its name or URI template.
Key: TypeAlias = tuple[bool, str]

#: Which file has served what so far.
Owners: TypeAlias = Mapping[Key, Path | None]


class Declaration(Struct, frozen=True):
    """
    One prompt or resource of a file.

    Args:
        definition:
            What the author's decorator made.

        compiled:
            What is served of it; None if it has an error.
    """

    definition: Definition
    compiled: "CompiledPrompt | CompiledResource | None"

    @property
    def key(self) -> Key:
        """What no other declaration may have."""
        definition = self.definition
        if isinstance(definition, Prompt):
            return True, definition.options.name
        return False, definition.uri_template

    @property
    def location(self) -> Location:
        """Where it is defined."""
        return self.definition.location


class CompiledFile(Struct, frozen=True, dict=True):
    """
    What one file declares, compiled.

    Args:
        file:
            The recipe file; None for declarations that were not loaded from a file.

        declarations:
            Its prompts and resources, in the order of their definitions.

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

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The keys of its declarations."""
        return tuple(declaration.key for declaration in self.declarations)

    @cached_property
    def prompts(self) -> tuple[CompiledPrompt, ...]:
        """The prompts that can be served."""
        compiled = (declaration.compiled for declaration in self.declarations)
        return tuple(one for one in compiled if isinstance(one, CompiledPrompt))

    @cached_property
    def resources(self) -> "tuple[CompiledResource, ...]":
        """The resources that can be served."""
        compiled = (declaration.compiled for declaration in self.declarations)
        return tuple(one for one in compiled if one is not None and not isinstance(one, CompiledPrompt))

    @property
    def served(self) -> set[Key]:
        """The keys of what can be served."""
        declared = zip(self.keys, self.declarations, strict=True)
        return {key for key, declaration in declared if declaration.compiled is not None}


#: A key, and which declaration of which file would have it.
Claim: TypeAlias = tuple[Key, CompiledFile, Declaration]


def compose(
    files: Sequence[CompiledFile], *, owners: Owners = MappingProxyType({}), root: Path | None = None
) -> Catalog:
    """
    Return the catalog of all that *files* declare.

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
    winners, duplicates = _find_winners(files, owners)
    if winners:
        compiled = [declaration.compiled for _, _, declaration in _served(files, winners)]
        prompts = [item for item in compiled if isinstance(item, CompiledPrompt)]
        resources = [item for item in compiled if item is not None and not isinstance(item, CompiledPrompt)]
    else:
        prompts = [item for file in files for item in file.prompts]
        resources = [item for file in files for item in file.resources]
    diagnostics = [found for file in files for found in file.diagnostics]
    diagnostics += [found for _, found in duplicates]
    if not any(file.declarations for file in files) and is_sound(diagnostics):
        diagnostics.append(_no_prompts(root or next((file.file for file in files), None)))
    diagnostics.sort(key=lambda found: (found.location, found.rule.value, found.message))
    return Catalog(prompts, tuple(dict.fromkeys(diagnostics)), resources)


def owners_of(files: Sequence[CompiledFile], before: Owners = MappingProxyType({})) -> Owners:
    """
    Return which file serves what.

    Args:
        files:
            What each file declares.

        before:
            Which file has served what so far: it goes on to, whoever else declares the same.
    """
    winners, _ = _find_winners(files, before)
    if winners:
        return {key: file.file for key, file, _ in _served(files, winners)}
    return {key: file.file for file in files for key in file.served}


def with_duplicates(files: Sequence[CompiledFile], owners: Owners) -> list[CompiledFile]:
    """Return *files*; one that declares what another has precedence for has an error of that."""
    faults: dict[int, list[Diagnostic]] = {}
    for file, fault in _find_winners(files, owners)[1]:
        faults.setdefault(id(file), []).append(fault)
    return [_with_faults(file, faults[id(file)]) if id(file) in faults else file for file in files]


def _with_faults(file: CompiledFile, faults: Iterable[Diagnostic]) -> CompiledFile:
    found = (*file.diagnostics, *faults)
    return structs.replace(file, diagnostics=found, is_sound=is_sound(found))


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
    found = with_duplicates(after, owners)
    if all(file.is_sound for file in found):
        return found
    served = {str(file.file): file for file in before}  # paths are slow to compare
    merged = []
    for now in found:
        was = served.get(str(now.file))
        if was is not None and not now.is_sound and (was.is_sound or was.served - now.served):
            merged.append(structs.replace(was, diagnostics=now.diagnostics, age=was.age + 1))
        else:
            merged.append(now)
    return merged


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
    above = os.path.commonpath([file.file.parent for file in files if file.file])

    def named(found: Sequence[Path]) -> str:
        return ", ".join(printable(str(file.relative_to(above))) for file in found)

    parts = [f"still as before, until fixed: {named(old)}"] if old else []
    parts += [f"with errors: {named(faulty)}"] if faulty else []
    return f"reloaded; {'; '.join(parts)}"


def is_sound(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether none of the diagnostics keeps something from being served."""
    return all(found.is_ignorable for found in diagnostics)


def _find_winners(
    files: Sequence[CompiledFile], owners: Owners
) -> tuple[Mapping[Key, Claim], list[tuple[CompiledFile, Diagnostic]]]:
    """Who gets each key that several claim, and a diagnostic for each other claim of the same age."""
    keys = [file.keys for file in files]
    if len(set[Key]().union(*keys)) == sum(map(len, keys)):
        return {}, []
    counts = Counter(chain.from_iterable(keys))
    contested = [claim for claim in _claims(files) if counts[claim[0]] > 1]
    contested.sort(key=lambda claim: _precedence(claim, owners))
    first: dict[Key, Claim] = {}
    duplicates = []
    for claim in contested:
        key, file, declaration = claim
        _, owner, earlier = first.setdefault(key, claim)
        if earlier.definition is not declaration.definition and owner.age == file.age:
            duplicates.append((file, _duplicate(declaration, earlier)))
    return first, duplicates


def _served(files: Sequence[CompiledFile], winners: Mapping[Key, Claim]) -> Iterator[Claim]:
    """What is served: of each key one declaration, unless that has an error."""
    for claim in _claims(files):
        _, file, declaration = claim
        _, winner, won = winners.get(claim[0], claim)
        if declaration.compiled is not None and winner is file and won is declaration:
            yield claim


def _claims(files: Sequence[CompiledFile]) -> Iterator[Claim]:
    for file in files:
        for key, declaration in zip(file.keys, file.declarations, strict=True):
            yield key, file, declaration


def _precedence(claim: Claim, owners: Owners) -> tuple[Any, ...]:
    key, file, declaration = claim
    return file.age, owners.get(key, file.file) != file.file, declaration.location, key[1]


def _duplicate(declaration: Declaration, first: Declaration) -> Diagnostic:
    definition = declaration.definition
    if isinstance(definition, Prompt):
        name = definition.options.name
        return Diagnostic(
            Rule.DUPLICATE_NAME,
            f"prompt {name!r}: already defined at {first.location}",
            f"rename one of the two, or give it a name with @prompt(name='{name}-2')",
            definition.location,
        )
    return Diagnostic(
        Rule.DUPLICATE_TEMPLATE,
        f"resource {definition.name!r}: {definition.uri_template!r} is already defined at {first.location}",
        "change the URI of one of the two, or remove it",
        definition.location,
    )


def _no_prompts(place: Path | None) -> Diagnostic:
    near = recipes_near(place) if place is not None and place.is_dir() else []
    name = f"name {display_path(near[0])!r}, where some are, or " if near else ""
    return Diagnostic(
        Rule.NO_PROMPTS,
        "there is no prompt here",
        f"{name}decorate a function with @prompt, in a *.py file that begins with neither '_' nor 'test_'",
        Location(str(place or "")),
    )
