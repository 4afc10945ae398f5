"""The newest catalog as the pages list it, and what has changed in it, for pages that follow it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from inspect import unwrap
from os.path import commonpath
from pathlib import PurePath
from threading import Lock
from types import CodeType
from typing import TYPE_CHECKING, Final

import attrs

from promptkit.catalog.cases import Case
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.json_schema import schema_of
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.diagnostics import Diagnostic, Location, Severity
from promptkit.preview.rendering import LimitedCalls
from promptkit.server.lookup import name_of

if TYPE_CHECKING:  # most recipes hold none
    from promptkit.catalog.skills import CompiledSkill

#: How a word of a search begins that is a tag.
_TAG: Final = "tag:"

#: So many names are said; of more, how many they are.
_MOST_NAMES: Final = 5

#: What is sent over a quiet stream, in seconds, so that a page that is gone is noticed.
_HEARTBEAT_S: Final = 15.0


@attrs.frozen(slots=False, eq=False)
class CatalogVersion:
    """
    A catalog, what has changed since the one before, and what runs for the pages that show it.

    Args:
        catalog:
            What is served.

        number:
            Counts the catalogs, from 0.

        added:
            Names of prompts and URIs of resources and skills that are new.

        removed:
            Those that are gone.

        changed:
            The prompts whose function, or what clients see of them, is another, and the skills of which a
            file is.

        found:
            How many warnings are new.

        mended:
            How many faults are gone.

        before:
            What was served until the last save; None at first.

        calls:
            Calls authors' functions. What hangs in an older version holds up nothing of this one.
    """

    catalog: Catalog
    number: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    found: int = 0
    mended: int = 0
    before: Catalog | None = None
    calls: LimitedCalls = attrs.field(factory=LimitedCalls)

    def __str__(self) -> str:
        named = {"changed": self.changed, "added": self.added, "removed": self.removed}
        parts = [f"{verb} {_enumerated(names)}" for verb, names in named.items() if names]
        counted = {"found": self.found, "mended": self.mended}
        parts += [f"{_counted(count)} {verb}" for verb, count in counted.items() if count]
        if not parts:
            return "" if self.broken else "Reloaded."
        return f"Reloaded: {'; '.join(parts)}."

    @cached_property
    def broken(self) -> str:
        """Which files could not be loaded, so that what they declared before is still served; else ``""``."""
        errors = [one for one in self.faults if not one.is_ignorable]
        files = dict.fromkeys(PurePath(one.location.file).name for one in errors)
        return f"Not loaded: {_counted(len(errors))} in {_enumerated(tuple(files))}." if errors else ""

    def next(self, catalog: Catalog) -> "CatalogVersion":
        """Return the version of a newer catalog."""
        before = self.catalog
        old, new = _by_name(before), _by_name(catalog)
        files = {one.location.file for one in catalog.diagnostics if not one.is_ignorable}
        # Of a file with an error, no warnings are known.
        faults, left = (
            _messages(one for one in each.diagnostics if one.location.file not in files)
            for each in (before, catalog)
        )
        # Of a file that was imported again, every prompt is another object.
        remade = [name for name in catalog if name in old and catalog[name] is not old[name]]
        return CatalogVersion(
            catalog,
            self.number + 1,
            added=tuple(name for name in new if name not in old),
            removed=tuple(name for name in old if name not in new),
            changed=(
                *(name for name in remade if _fingerprint(catalog[name]) != _fingerprint(before[name])),
                *(uri for uri, skill in _skills(catalog).items() if uri in old and old[uri] != skill),
            ),
            found=len(left - faults),
            mended=len(faults - left),
            before=before,
        )

    @cached_property
    def faults(self) -> Sequence[Diagnostic]:
        """What is wrong, errors first."""
        return sorted(self.catalog.diagnostics, key=lambda one: one.severity is not Severity.ERROR)

    def faults_beside(self, place: Location) -> list[Diagnostic]:
        """Return what is wrong in the file of a prompt or resource."""
        return [fault for fault in self.faults if fault.location.file == place.file]

    @cached_property
    def tags(self) -> Sequence[str]:
        """The tags of prompts, those of most prompts first."""
        return [
            tag for tag, _ in Counter(tag for one in self.catalog.prompts for tag in one.tags).most_common()
        ]

    def prompts(self, typed: str = "") -> list[CompiledPrompt]:
        """Return the prompts that have each word of what was typed. ``tag:x`` is the tag *x*, whole."""
        words = typed.casefold().split()
        tags = {word for word in words if word.startswith(_TAG)}
        rest = " ".join(word for word in words if not word.startswith(_TAG))
        return [
            one
            for one in self.catalog.prompts
            if tags <= {tag_search(tag) for tag in one.tags}
            and _has_all(rest, one.name, one.title, one.description, *one.tags, *one.arguments.by_name)
        ]

    def folders(self, prompts: Iterable[CompiledPrompt]) -> Mapping[str, Sequence[CompiledPrompt]]:
        """Return prompts by the folders of their files, below the one that all have in common."""
        found = defaultdict[str, list[CompiledPrompt]](list)
        for one in prompts:
            folder = PurePath(one.location.file).parent.as_posix()
            found[folder.removeprefix(self._common_folder).strip("/")].append(one)
        return dict(sorted(found.items()))

    @cached_property
    def _common_folder(self) -> str:
        folders = {PurePath(one.location.file).parent.as_posix() for one in self.catalog.prompts}
        try:
            return PurePath(commonpath(folders)).as_posix()
        except ValueError:  # there is none
            return ""

    def places(self, typed: str) -> Iterator[tuple[CompiledPrompt, Case | None]]:
        """Yield the prompts, and their cases, that have each word of what was typed in their names."""
        for prompt in self.catalog.prompts:
            for case in (None, *prompt.saved()):
                if _has_all(typed, prompt.name, prompt.title, None if case is None else case.name):
                    yield prompt, case

    def resources(self, typed: str = "") -> list[CompiledResource]:
        """Return the resources that have each word of what was typed."""
        return [
            one
            for one in self.catalog.resources
            if _has_all(typed, one.uri_template, one.name, one.title, one.description, *one.arguments.by_name)
        ]

    def skills(self, typed: str = "") -> "list[CompiledSkill]":
        """Return the skills that have each word of what was typed."""
        return [one for one in self.catalog.skills if _has_all(typed, one.uri_template, one.description)]


class Live:
    """
    What the pages show, and which pages wait for news of it.

    Args:
        catalog:
            What they show first.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._newest = CatalogVersion(catalog)
        self._lock = Lock()
        self._news: Future[None] = Future()  # done once there is another version, or the end
        self._closed = False

    @property
    def newest(self) -> CatalogVersion:
        """The newest catalog, and what has changed in it."""
        return self._newest

    def publish(self, catalog: Catalog) -> None:
        """Show another catalog from now on. Any thread may call it."""
        with self._lock:
            self._newest = self._newest.next(catalog)
            self._wake()

    def report(self, catalog: Catalog) -> None:
        """Show the faults of a catalog of which nothing else is served. Any thread may call it."""
        served = self._newest.catalog
        if catalog.diagnostics != served.diagnostics:
            self.publish(served.with_diagnostics(catalog.diagnostics))

    def close(self) -> None:
        """End every stream of versions."""
        with self._lock:
            self._closed = True
            self._wake()

    async def versions(self, seen: int) -> AsyncIterator[CatalogVersion | None]:
        """
        Yield the newest version whenever there is one later than *seen*, and None now and then.

        Args:
            seen:
                The number of the version that a page shows.
        """
        while not self._closed:
            news, newest = self._news, self._newest
            if newest.number > seen:
                seen = newest.number
                yield newest
                continue
            done, _ = await asyncio.wait([asyncio.wrap_future(news)], timeout=_HEARTBEAT_S)
            if not done:
                yield None

    def _wake(self) -> None:
        news, self._news = self._news, Future()
        news.set_result(None)


def tag_search(tag: str) -> str:
    """Return the word that a search finds the prompts of a tag by."""
    return _TAG + "-".join(tag.casefold().split())


def _has_all(typed: str, *texts: str | None) -> bool:
    """Whether texts, some of which may be left out, have each word of what was typed."""
    words = "\n".join(filter(None, texts)).casefold()
    return all(word in words for word in typed.casefold().split())


def _by_name(catalog: Catalog) -> Mapping[str, object]:
    return {**{name_of(item): item for item in catalog.declared}, **_skills(catalog)}


def _skills(catalog: Catalog) -> Mapping[str, object]:
    """What the files of each skill hold, by its URI."""
    return {skill.uri_template: skill.files for skill in catalog.skills}


def _messages(diagnostics: Iterable[Diagnostic]) -> set[tuple[str, str, str]]:
    """Faults without their lines, which move."""
    return {(one.rule.value, one.message, one.location.file) for one in diagnostics}


def _fingerprint(prompt: CompiledPrompt) -> tuple[object, ...]:
    """What a prompt is made of, wherever it stands in its file."""
    code = getattr(unwrap(prompt.renderer.function), "__code__", None)
    options = prompt.title, prompt.description, prompt.meta, prompt.timeout, prompt.elicit
    return options, schema_of(prompt.arguments.ordered), _without_lines(code)


def _without_lines(code: object) -> object:
    """A code object, or a constant of one, without the lines of the file that it is from."""
    if not isinstance(code, CodeType):
        return repr(code)
    return code.co_code, code.co_names, [_without_lines(one) for one in code.co_consts]


def _enumerated(names: tuple[str, ...]) -> str:
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _counted(faults: int) -> str:
    return "1 fault" if faults == 1 else f"{faults} faults"
