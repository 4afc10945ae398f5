"""Changes in a prompt's renderings: the text of each case before and after an edit."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import attrs

from promptkit.catalog.cases import iterate_sendable
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import PromptkitError
from promptkit.preview.forms import Submission
from promptkit.preview.live import CatalogVersion
from promptkit.preview.media import BoundedStore
from promptkit.preview.rendering import render

#: The name of a case, and its old and new text. A text is None if the case does not exist.
CaseTexts: TypeAlias = tuple[str, str | None, str | None]

#: The parts of a line: ``" "`` marks unchanged, ``"-"`` removed and ``"+"`` added text.
Line: TypeAlias = list[tuple[str, str]]

#: The labels of the versions to compare with, keyed by their names in URLs.
BASE_LABELS: Final = {"save": "Since the last save", "commit": "Since the last commit"}

_NOT_SAVED: Final = "Nothing has been saved yet. Edit the prompt and save it to see what changes."

#: Maximum size of the cached text, in characters.
_MAX_CACHED: Final = 16 * 1024 * 1024

#: The name of the case that consists of the values in the form.
_FORM: Final = "current form values"


class CaseComparer(Protocol):
    """Provides the text of cases as of the last commit, and compares it word by word."""

    def changes_since_commit(self, prompt: CompiledPrompt, version: int) -> Sequence[CaseTexts]:
        """
        Return the cases whose text differs from the last commit.

        Args:
            prompt:
                The prompt.

            version:
                The version number of the recipes.

        Raises:
            PromptkitError: If the last commit cannot be loaded; the message gives the reason.

            OSError: If the files of the last commit cannot be written to a temporary folder.
        """

    def words(self, old: str, new: str) -> list[Line]:
        """Return the changed lines with some context, split into unchanged, removed and added parts."""


@attrs.frozen
class CaseChange:
    """
    A case whose text has changed.

    Args:
        name:
            The name of the case.

        summary:
            The kind of change, as a sentence.

        lines:
            The changed lines.
    """

    name: str
    summary: str
    lines: Sequence[Line]


@attrs.frozen
class Changes:
    """
    The changes in a prompt.

    Args:
        base:
            The version to compare with, one of `BASE_LABELS`.

        cases:
            The changed cases.

        note:
            A note for the user.
    """

    base: str
    cases: Sequence[CaseChange] = ()
    note: str = ""


class Comparisons:
    """
    Compares the current text of cases with their text in an earlier version.

    Args:
        comparison:
            Provides the text of cases at the last commit, or None to disable the comparison.
    """

    def __init__(self, comparison: CaseComparer | None) -> None:
        self._comparison = comparison
        # The text before and after the save that created a version, keyed by version number, prompt and
        # values.
        self._cache: BoundedStore[tuple[str | None, str]] = BoundedStore(_MAX_CACHED)

    async def find_changes(
        self, version: CatalogVersion, prompt: CompiledPrompt, form: Submission, base: str
    ) -> Changes:
        """
        Return the changes in a prompt's cases, and in the rendering of the values in its form.

        Args:
            version:
                The version that the page shows.

            prompt:
                The prompt.

            form:
                The values in the prompt's form.

            base:
                The version to compare with, one of `BASE_LABELS`. Any other value selects an available one.
        """
        comparison = self._comparison
        if comparison is None:
            return Changes(base, note="This preview cannot compare versions.")
        is_chosen = base in BASE_LABELS
        base = base if is_chosen else "commit" if version.before is None else "save"
        try:
            if base == "commit":
                texts = await asyncio.to_thread(comparison.changes_since_commit, prompt, version.number)
            else:
                texts = await self._render_since_save(version, prompt, form)
            cases = await asyncio.to_thread(_compare, texts, comparison)
        except PromptkitError as error:
            return Changes(base, note=str(error)) if is_chosen else Changes("save", note=_NOT_SAVED)
        except OSError as error:
            return Changes(base, note=f"The last commit cannot be written to a temporary folder: {error}")
        return Changes(base, cases, _summarize_unchanged(version, prompt, cases, base))

    async def _render_since_save(
        self, version: CatalogVersion, prompt: CompiledPrompt, form: Submission
    ) -> list[CaseTexts]:
        inputs = [(case.name, values) for case, values in iterate_sendable(prompt.saved())]
        if form.values not in [values for _, values in inputs]:
            inputs.insert(0, (_FORM, form.values))
        return [
            (name, *await self._render_versions(version, prompt, values, is_requested=name != _FORM))
            for name, values in inputs
        ]

    async def _render_versions(
        self,
        version: CatalogVersion,
        prompt: CompiledPrompt,
        values: Mapping[str, Any],
        *,
        is_requested: bool,
    ) -> tuple[str | None, str]:
        """
        Return the text before and after the last save.

        The earlier text comes from the cache, or from a rendering of the previous version. It is None if the
        prompt is new.
        """
        key, number = repr((prompt.name, sorted(values.items()))), version.number
        new = (await render(version.calls, prompt, values, is_requested=is_requested)).transcript
        if (cached := self._cache.get(f"{number} {key}")) is not None:
            old = cached[0]
        elif (cached := self._cache.get(f"{number - 1} {key}")) is not None:
            old = cached[1] if cached[1] != new else cached[0]  # the save changed only other recipes
        else:
            before = prompt if version.before is None else version.before.find_prompt(prompt.name)
            old = new if before is prompt else None
            if before is not None and before is not prompt:
                old = (await render(version.calls, before, values, is_requested=is_requested)).transcript
        self._cache.put(f"{number} {key}", (old, new), len(key) + len(old or "") + len(new))
        return old, new


def _summarize_unchanged(
    version: CatalogVersion, prompt: CompiledPrompt, changed: Sequence[CaseChange], base: str
) -> str:
    """Return a note about the unchanged cases."""
    if base == "save" and version.before is None:
        return _NOT_SAVED
    if not changed:
        return f"No case has changed {BASE_LABELS[base].lower()}."
    names = {case.name for case in prompt.saved()}.difference(change.name for change in changed)
    return f"Unchanged: {', '.join(sorted(names))}." if names else ""


def _compare(texts: Iterable[CaseTexts], comparison: CaseComparer) -> list[CaseChange]:
    return [
        CaseChange(name, _summarize(old, new), comparison.words(old or "", new or ""))
        for name, old, new in texts
        if old != new
    ]


def _summarize(old: str | None, new: str | None) -> str:
    return "New." if old is None else "Removed." if new is None else "Text changed."
