"""The newest catalog, its changes since the previous one, and notifications for the pages that show it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from inspect import unwrap
from os.path import commonpath
from pathlib import PurePath
from threading import Lock
from types import CodeType
from typing import TYPE_CHECKING, Final

import attrs

from promptkit.catalog.arguments import schema_of
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.diagnostics import Diagnostic, Location, Severity
from promptkit.preview.rendering import LimitedCalls
from promptkit.protocol.capabilities import ServerInfo
from promptkit.server.identity import UNKNOWN
from promptkit.server.lookup import name_of

if TYPE_CHECKING:  # most recipes have no skills
    from promptkit.catalog.skills import CompiledSkill

#: Maximum number of names in a message. Further names are only counted.
_MAX_NAMES: Final = 5

#: Keep-alive interval of a stream in seconds. A failed keep-alive shows that the page is closed.
_HEARTBEAT_S: Final = 15.0


@attrs.frozen(slots=False, eq=False)
class CatalogVersion:
    """
    A catalog, its changes since the previous one, and the calls for the pages that show it.

    Args:
        catalog:
            The served catalog.

        number:
            The number of the version, starting at 0.

        added:
            The names or URIs of new prompts, resources and skills.

        removed:
            The names or URIs of removed prompts, resources and skills.

        changed:
            The names of prompts with a changed function or listing, and the URIs of skills with changed
            files.

        before:
            The catalog before the last save, or None in the first version.

        calls:
            Runs the calls to authors' functions. A call that hangs in an older version does not block calls
            in this version.
    """

    catalog: Catalog
    number: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    before: Catalog | None = None
    calls: LimitedCalls = attrs.field(factory=LimitedCalls)

    def __str__(self) -> str:
        names_by_verb = {"changed": self.changed, "added": self.added, "removed": self.removed}
        parts = [f"{verb} {_join_names(names)}" for verb, names in names_by_verb.items() if names]
        if not parts:
            return "" if self.load_errors else "Reloaded."
        return f"Reloaded: {'; '.join(parts)}."

    @cached_property
    def load_errors(self) -> str:
        """A message about files that failed to load and whose previous prompts are served; ``""`` if none."""
        errors = [diagnostic for diagnostic in self.diagnostics if not diagnostic.is_ignorable]
        files = dict.fromkeys(PurePath(diagnostic.location.file).name for diagnostic in errors)
        count = f"{len(errors)} error{'' if len(errors) == 1 else 's'}"
        return f"Not loaded: {count} in {_join_names(tuple(files))}." if errors else ""

    def next_version(self, catalog: Catalog) -> "CatalogVersion":
        """Return the version that follows this one, for a newer catalog."""
        before = self.catalog
        old, new = _index_items(before), _index_items(catalog)
        # A file that is imported again yields new prompt objects.
        recompiled = [name for name in catalog if name in old and catalog[name] is not old[name]]
        return CatalogVersion(
            catalog,
            self.number + 1,
            added=tuple(name for name in new if name not in old),
            removed=tuple(name for name in old if name not in new),
            changed=(
                *(name for name in recompiled if _fingerprint(catalog[name]) != _fingerprint(before[name])),
                *(uri for uri, skill in _index_skills(catalog).items() if uri in old and old[uri] != skill),
            ),
            before=before,
        )

    @cached_property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """The diagnostics, with errors first."""
        return sorted(
            self.catalog.diagnostics, key=lambda diagnostic: diagnostic.severity is not Severity.ERROR
        )

    def diagnostics_in_file(self, location: Location) -> list[Diagnostic]:
        """Return the diagnostics for the file of a prompt or resource."""
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.location.file == location.file]

    @cached_property
    def tags(self) -> Sequence[str]:
        """The tags of the prompts, with the most frequent tags first."""
        return [
            tag
            for tag, _ in Counter(tag for prompt in self.catalog.prompts for tag in prompt.tags).most_common()
        ]

    def find_prompts(self, query: str = "") -> list[CompiledPrompt]:
        """Return the prompts whose names, descriptions, tags or arguments contain each word of the query."""
        return [
            prompt
            for prompt in self.catalog.prompts
            if _has_all(
                query, prompt.name, prompt.title, prompt.description, *prompt.tags, *prompt.arguments.by_name
            )
        ]

    def group_by_folder(self, prompts: Iterable[CompiledPrompt]) -> Mapping[str, Sequence[CompiledPrompt]]:
        """Group prompts by the folders of their files, relative to the folder that contains all prompts."""
        by_folder = defaultdict[str, list[CompiledPrompt]](list)
        for prompt in prompts:
            folder = PurePath(prompt.location.file).parent.as_posix()
            by_folder[folder.removeprefix(self._common_folder).strip("/")].append(prompt)
        return dict(sorted(by_folder.items()))

    @cached_property
    def _common_folder(self) -> str:
        folders = {PurePath(prompt.location.file).parent.as_posix() for prompt in self.catalog.prompts}
        try:
            return PurePath(commonpath(folders)).as_posix()
        except ValueError:  # there is no common folder
            return ""

    def find_resources(self, query: str = "") -> list[CompiledResource]:
        """Return the resources that contain each word of the query."""
        return [
            resource
            for resource in self.catalog.resources
            if _has_all(
                query,
                resource.uri_template,
                resource.name,
                resource.title,
                resource.description,
                *resource.arguments.by_name,
            )
        ]

    def find_skills(self, query: str = "") -> "list[CompiledSkill]":
        """Return the skills that contain each word of the query."""
        return [
            skill for skill in self.catalog.skills if _has_all(query, skill.uri_template, skill.description)
        ]


class LiveCatalog:
    """
    The newest version of the catalog, and the pages that wait for changes.

    Args:
        catalog:
            The first catalog.

        identity:
            The identity of the server that serves the catalog.
    """

    def __init__(self, catalog: Catalog, identity: ServerInfo = UNKNOWN) -> None:
        self.identity = identity
        self._newest = CatalogVersion(catalog)
        self._lock = Lock()
        self._change: Future[None] = Future()  # completed by the next version, or when closed
        self._is_closed = False

    @property
    def newest(self) -> CatalogVersion:
        """The newest version."""
        return self._newest

    def publish(self, catalog: Catalog) -> None:
        """Replace the catalog. This method is thread-safe."""
        with self._lock:
            self._newest = self._newest.next_version(catalog)
            self._wake()

    def report(self, catalog: Catalog) -> None:
        """Show a catalog's diagnostics, but continue to serve the current one. This method is thread-safe."""
        served = self._newest.catalog
        if catalog.diagnostics != served.diagnostics:
            self.publish(served.with_diagnostics(catalog.diagnostics))

    def close(self) -> None:
        """End every stream of versions."""
        with self._lock:
            self._is_closed = True
            self._wake()

    async def versions(self, seen: int) -> AsyncIterator[CatalogVersion | None]:
        """
        Yield each version after *seen*, and None as a keep-alive. Superseded versions are skipped.

        Args:
            seen:
                The number of the version that a page shows.
        """
        while not self._is_closed:
            change, newest = self._change, self._newest
            if newest.number > seen:
                seen = newest.number
                yield newest
                continue
            done, _ = await asyncio.wait([asyncio.wrap_future(change)], timeout=_HEARTBEAT_S)
            if not done:
                yield None

    def _wake(self) -> None:
        change, self._change = self._change, Future()
        change.set_result(None)


def _has_all(query: str, *texts: str | None) -> bool:
    """Return whether each word of the query occurs in one of *texts*. None is ignored."""
    text = "\n".join(filter(None, texts)).casefold()
    return all(word in text for word in query.casefold().split())


def _index_items(catalog: Catalog) -> Mapping[str, object]:
    return {**{name_of(item): item for item in catalog.declared}, **_index_skills(catalog)}


def _index_skills(catalog: Catalog) -> Mapping[str, object]:
    """Return the files of each skill, keyed by the skill's URI."""
    return {skill.uri_template: skill.files for skill in catalog.skills}


def _fingerprint(prompt: CompiledPrompt) -> tuple[object, ...]:
    """Return the definition of a prompt, without its location in the file."""
    code = getattr(unwrap(prompt.renderer.function), "__code__", None)
    options = prompt.title, prompt.description, prompt.meta, prompt.timeout, prompt.elicit
    return options, schema_of(prompt.arguments.ordered), _without_lines(code)


def _without_lines(code: object) -> object:
    """Return the parts of a code object without line numbers, or the repr of any other constant."""
    if not isinstance(code, CodeType):
        return repr(code)
    return code.co_code, code.co_names, [_without_lines(constant) for constant in code.co_consts]


def _join_names(names: tuple[str, ...]) -> str:
    if len(names) > _MAX_NAMES:
        return f"{', '.join(names[: _MAX_NAMES - 1])} and {len(names) - _MAX_NAMES + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
