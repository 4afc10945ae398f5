"""The gallery: every prompt and resource of a catalog, what is wrong beside them, and search."""

from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import attrs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.diagnostics import Diagnostic, Location, Severity
from promptkit.preview.live import CatalogVersion
from promptkit.preview.rendering import LimitedCalls

__all__ = ["Gallery"]

T = TypeVar("T")


@attrs.frozen(slots=False)
class Gallery:
    """
    One version of the catalog as the pages list it, and what runs for them.

    Args:
        version:
            The version.

        calls:
            Calls authors' functions. What hangs in an older version holds up nothing of this one.
    """

    version: CatalogVersion
    calls: LimitedCalls = attrs.field(factory=LimitedCalls)

    @property
    def catalog(self) -> Catalog:
        """What is listed."""
        return self.version.catalog

    @cached_property
    def faults(self) -> Sequence[Diagnostic]:
        """What is wrong, errors first."""
        return sorted(self.catalog.diagnostics, key=lambda one: one.severity is not Severity.ERROR)

    def faults_beside(self, place: Location) -> list[Diagnostic]:
        """Return what is wrong in the file of a prompt or resource."""
        return [fault for fault in self.faults if fault.location.file == place.file]

    def prompts(self, typed: str = "") -> Sequence[CompiledPrompt]:
        """Return the prompts that match what was typed."""
        return _matching(self._prompts, typed)

    def resources(self, typed: str = "") -> Sequence[CompiledResource]:
        """Return the resources that match what was typed."""
        return _matching(self._resources, typed)

    @cached_property
    def _prompts(self) -> Sequence[tuple[CompiledPrompt, str]]:
        return [
            (one, _words(one.name, one.title, one.description, *one.tags, *one.arguments.by_name))
            for one in self.catalog.prompts
        ]

    @cached_property
    def _resources(self) -> Sequence[tuple[CompiledResource, str]]:
        return [
            (one, _words(one.uri_template, one.name, one.title, one.description, *one.arguments.by_name))
            for one in self.catalog.resources
        ]


def _words(*texts: str | None) -> str:
    """What is looked for in texts, some of which may be left out."""
    return "\n".join(filter(None, texts)).casefold()


def _matching(things: Sequence[tuple[T, str]], typed: str) -> Sequence[T]:
    """The things that have each word of what was typed."""
    looked_for = typed.casefold().split()
    return [one for one, words in things if all(word in words for word in looked_for)]
