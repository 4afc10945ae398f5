"""The gallery: every prompt and resource of a catalog, what is wrong beside them, and search."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs
from markupsafe import Markup

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.diagnostics import Diagnostic, Location, Severity
from promptkit.errors.sources import line_of
from promptkit.preview.templating import environment

__all__ = ["Fault", "Gallery"]

#: A search shows so many prompts: while somebody types, each key lists them anew.
_MOST_FOUND: Final = 100


@attrs.frozen
class Fault:
    """
    A diagnostic with its line of source.

    Args:
        diagnostic:
            What is wrong.

        line:
            Where, counted from 1; 0 if it is the whole file.

        before:
            The line up to the fault.

        marked:
            The fault itself.

        after:
            The rest of the line.
    """

    diagnostic: Diagnostic
    line: int
    before: str
    marked: str
    after: str

    @property
    def is_error(self) -> bool:
        """Whether something cannot be served."""
        return self.diagnostic.severity is Severity.ERROR

    @classmethod
    def of(cls, diagnostic: Diagnostic) -> "Fault":
        """Read the line of a diagnostic. One of a whole function is marked at its name."""
        place = diagnostic.location
        place = place if place.column else place.part("def")
        source = line_of(place.file, place.line).rstrip() if place.line else ""
        begin, end = place.column - 1, place.end - 1
        if begin < 0:
            begin, end = len(source) - len(source.lstrip()), len(source)
        return cls(diagnostic, place.line, source[:begin], source[begin:end], source[end:])


@attrs.frozen
class _Row:
    """One prompt: what is looked for in it, and how it is listed."""

    prompt: CompiledPrompt
    words: str
    card: Markup
    line: Markup


@attrs.frozen(slots=False)
class Gallery:
    """
    What the pages list of one catalog. Each prompt is written once.

    Args:
        catalog:
            The catalog.
    """

    catalog: Catalog
    _written: Mapping[int, _Row] = attrs.field(factory=dict, repr=False)

    def of(self, catalog: Catalog) -> "Gallery":
        """Return the gallery of a newer catalog. Prompts that are still the same are not written again."""
        written = {id(row.prompt): row for row in self._rows}
        return Gallery(catalog, written)

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong, errors first, each with its line as it was when this was asked for first."""
        ordered = sorted(self.catalog.diagnostics, key=lambda one: one.severity is not Severity.ERROR)
        return tuple(map(Fault.of, ordered))

    def faults_beside(self, place: Location) -> list[Fault]:
        """Return what is wrong in the file of a prompt or resource."""
        return [fault for fault in self.faults if fault.diagnostic.location.file == place.file]

    def counted(self, typed: str = "") -> str:
        """Return how many prompts and resources match what was typed, of how many."""
        prompts, resources = self.catalog.prompts, self.catalog.resources
        counts = [_counted(len(self._matching(typed)), len(prompts), "prompt")]
        if resources:
            counts.append(_counted(len(self.resources(typed)), len(resources), "resource"))
        return ", ".join(counts)

    def resources(self, typed: str = "") -> Sequence[CompiledResource]:
        """Return the resources that match what was typed."""
        return [one for one, words in self._resources if _matches(words, typed)]

    def cards(self, typed: str = "") -> Markup:
        """Return the prompts that match what was typed, with all that clients are told of them."""
        return Markup("").join(row.card for row in self._listed(typed))

    def lines(self, typed: str = "", current: str = "") -> Markup:
        """Return the names of the prompts that match what was typed; *current* is the one that is shown."""
        marked = ("<a ", '<a aria-current="page" ')
        return Markup("").join(
            Markup(str(row.line).replace(*marked, 1)) if row.prompt.name == current else row.line  # noqa: S704 (as it was)
            for row in self._listed(typed)
        )

    def left_out(self, typed: str = "") -> int:
        """Return how many prompts match what was typed, and are not shown, as they are so many."""
        return len(self._matching(typed)) - len(self._listed(typed))

    def _listed(self, typed: str) -> Sequence[_Row]:
        found = self._matching(typed)
        return found[:_MOST_FOUND] if typed.strip() else found

    def _matching(self, typed: str) -> Sequence[_Row]:
        return [row for row in self._rows if _matches(row.words, typed)] if typed.strip() else self._rows

    @cached_property
    def _rows(self) -> Sequence[_Row]:
        return [self._written.get(id(prompt)) or _row(prompt) for prompt in self.catalog.prompts]

    @cached_property
    def _resources(self) -> Sequence[tuple[CompiledResource, str]]:
        return [(one, _words_of_resource(one)) for one in self.catalog.resources]


def _matches(words: str, typed: str) -> bool:
    return all(word in words for word in typed.casefold().split())


def _row(prompt: CompiledPrompt) -> _Row:
    macros: Any = environment().get_template("rows.html").module
    return _Row(prompt, _words(prompt), macros.card(prompt), macros.line(prompt))


def _words(prompt: CompiledPrompt) -> str:
    """All that is looked for in a prompt."""
    return _joined(prompt.name, prompt.title, prompt.description, *prompt.tags, *prompt.arguments.by_name)


def _words_of_resource(one: CompiledResource) -> str:
    return _joined(one.uri_template, one.name, one.title, one.description, *one.arguments.by_name)


def _joined(*parts: str | None) -> str:
    return "\n".join(filter(None, parts)).casefold()


def _counted(found: int, number: int, noun: str) -> str:
    of = "" if found == number else f"{found:,} of "
    return f"{of}{number:,} {noun}" if number == 1 else f"{of}{number:,} {noun}s"
