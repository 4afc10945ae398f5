"""The newest catalog, and what its pages are told when recipes change."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from inspect import unwrap
from pathlib import PurePath
from threading import Lock
from types import CodeType
from typing import Final

import attrs

from promptkit.catalog.arguments import short
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Diagnostic

__all__ = ["Change", "Live", "Published", "change_between"]

#: So many names are said; of more, how many they are.
_MOST_NAMES: Final = 5

#: What is sent over a quiet stream, in seconds, so that a page that is gone is noticed.
_HEARTBEAT_S: Final = 15.0


@attrs.frozen
class Change:
    """
    What a reload has changed.

    Args:
        version:
            Counts the catalogs, from 0.

        added:
            Names of prompts and URIs of resources that are new.

        removed:
            Those that are gone.

        changed:
            The prompts whose function, or what clients see of them, is another.

        found:
            How many warnings are new.

        mended:
            How many faults are gone.

        errors:
            How many keep files from being loaded. What these declared before is still served.

        broken:
            The names of these files.
    """

    version: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    found: int = 0
    mended: int = 0
    errors: int = 0
    broken: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.broken:
            return f"Reloaded{self._reloaded()}."
        kept = f"Not reloaded: {_counted(self.errors)} in {_enumerated(self.broken)}."
        reloaded = self._reloaded()
        return f"{kept} Reloaded{reloaded}." if reloaded else kept

    def _reloaded(self) -> str:
        parts = [
            f"{verb} {_enumerated(names)}"
            for verb, names in (("changed", self.changed), ("added", self.added), ("removed", self.removed))
            if names
        ]
        parts += [f"{_counted(self.found)} found"] if self.found else []
        parts += [f"{_counted(self.mended)} mended"] if self.mended else []
        return f": {'; '.join(parts)}" if parts else ""


@attrs.frozen
class Published:
    """
    A catalog, and what it has changed. One value, so that nobody sees a catalog with another's version.

    Args:
        catalog:
            The catalog.

        change:
            What differs from the one before.
    """

    catalog: Catalog
    change: Change


class Live:
    """
    What the pages show, and who waits for news of it.

    Args:
        catalog:
            What they show first.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._newest = Published(catalog, Change(0))
        self._lock = Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._closed = False

    @property
    def newest(self) -> Published:
        """The newest catalog, and what it has changed."""
        return self._newest

    def publish(self, catalog: Catalog) -> None:
        """Show another catalog from now on. Any thread may call it."""
        with self._lock:
            before = self._newest
            change = change_between(before.catalog, catalog, before.change.version + 1)
            self._newest = Published(catalog, change)
        self._wake()

    def report(self, catalog: Catalog) -> None:
        """Show the faults of a catalog of which nothing else is served. Any thread may call it."""
        served = self._newest.catalog
        if catalog.diagnostics != served.diagnostics:
            self.publish(served.with_diagnostics(catalog.diagnostics))

    def close(self) -> None:
        """End every stream of changes."""
        self._closed = True
        self._wake()

    async def changes(self, seen: int) -> AsyncIterator[Change | None]:
        """
        Yield the newest change whenever there is one later than *seen*, and None now and then.

        Args:
            seen:
                The version that a page shows.
        """
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._waiting.add((loop, woken))
        try:
            while not self._closed:
                woken.clear()
                change = self._newest.change
                if change.version > seen:
                    seen = change.version
                    yield change
                    continue
                try:
                    async with asyncio.timeout(_HEARTBEAT_S):
                        await woken.wait()
                except TimeoutError:
                    yield None
        finally:
            self._waiting.discard((loop, woken))

    def _wake(self) -> None:
        for loop, woken in tuple(self._waiting):
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(woken.set)


def change_between(before: Catalog, after: Catalog, version: int) -> Change:
    """
    Return what differs between two catalogs.

    Args:
        before:
            The older one.

        after:
            The newer one.

        version:
            The number of the newer one.
    """
    old, new = _by_name(before), _by_name(after)
    errors = [one for one in after.diagnostics if not one.is_ignorable]
    files = tuple(dict.fromkeys(one.location.file for one in errors))
    # Of a file with an error, no warnings are known.
    faults, left = (
        _messages(one for one in catalog.diagnostics if one.location.file not in files)
        for catalog in (before, after)
    )
    # Of a file that was imported again, every prompt is another object.
    remade = [name for name in after if name in old and after[name] is not old[name]]
    return Change(
        version,
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(name for name in remade if _fingerprint(after[name]) != _fingerprint(before[name])),
        found=len(left - faults),
        mended=len(faults - left),
        errors=len(errors),
        broken=tuple(PurePath(file).name for file in files),
    )


def _by_name(catalog: Catalog) -> Mapping[str, object]:
    return {**catalog, **{resource.uri_template: resource for resource in catalog.resources}}


def _messages(diagnostics: Iterable[Diagnostic]) -> set[tuple[str, str, str]]:
    """Faults without their lines, which move."""
    return {(one.rule.value, one.message, one.location.file) for one in diagnostics}


def _fingerprint(prompt: CompiledPrompt) -> tuple[object, ...]:
    """What a prompt is made of, wherever it stands in its file."""
    # Values of authors may fail to be shown or compared; this takes any.
    show = short.repr
    seen = [
        (one.name, one.title, one.description, show(one.annotation), show(one.default))
        for one in prompt.arguments.ordered
    ]
    code = getattr(unwrap(prompt.renderer.function), "__code__", None)
    said = (prompt.title, prompt.description, prompt.meta, prompt.timeout, prompt.elicit)
    return (said, seen, _written(code) if isinstance(code, CodeType) else None)


def _written(code: CodeType) -> tuple[object, ...]:
    constants = [_written(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return code.co_code, code.co_names, constants


def _enumerated(names: tuple[str, ...]) -> str:
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _counted(faults: int) -> str:
    return "1 fault" if faults == 1 else f"{faults} faults"
