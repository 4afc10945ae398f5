"""Changes in a prompt's renderings: the texts of each case before and after an edit."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import attrs

from promptkit.catalog.cases import sendable
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

#: The labels of the bases of comparison, by their choice.
SINCE: Final = {"save": "Since the last save", "commit": "Since the last commit"}

_NOT_SAVED: Final = "Nothing was saved yet. Change a word of the prompt, and save it."

#: How the outcome of a case has changed, by the start of its text.
_OUTCOMES: Final = {
    "[fails]": "fails now",
    "[refused]": "is refused now",
    "[not rendered]": "is not rendered now",
    "": "renders again",
}

#: Maximum size of the cached texts, in characters.
_MAX_CACHED: Final = 16 * 1024 * 1024

#: The name of the case for the values in the form.
_FORM: Final = "what the form holds"


class Comparison(Protocol):
    """Provides the texts of cases at the last commit, and word diffs."""

    def since_commit(self, prompt: CompiledPrompt, version: int) -> Sequence[CaseTexts]:
        """
        Return the cases whose text differs from the last commit.

        Args:
            prompt:
                The prompt.

            version:
                The version number of the recipes.

        Raises:
            PromptkitError: If the last commit cannot be loaded; the message gives the reason.

            OSError: If it cannot be written to a temporary folder.
        """

    def words(self, old: str, new: str) -> list[Line]:
        """Return the changed lines."""


@attrs.frozen
class CaseChange:
    """
    A case whose text has changed.

    Args:
        name:
            The name of the case.

        what:
            The kind of change, as a predicate of its name.

        lines:
            The changed lines.
    """

    name: str
    what: str
    lines: Sequence[Line]


@attrs.frozen
class Changes:
    """
    The changes in a prompt.

    Args:
        since:
            The base of the comparison, one of `SINCE`.

        cases:
            The changed cases.

        note:
            A note for the user.
    """

    since: str
    cases: Sequence[CaseChange] = ()
    note: str = ""


class Comparisons:
    """
    Compares the texts of prompts' cases with their earlier texts.

    Args:
        comparison:
            Provides the texts of the last commit; None to disable the comparison.
    """

    def __init__(self, comparison: Comparison | None) -> None:
        self._comparison = comparison
        # The texts before and in a version, by version number, prompt and values.
        self._cache: BoundedStore[tuple[str | None, str]] = BoundedStore(_MAX_CACHED)

    async def changes(
        self, version: CatalogVersion, prompt: CompiledPrompt, form: Submission, since: str
    ) -> Changes:
        """
        Return the changes in a prompt's cases, and in the rendering of the values in its form.

        Args:
            version:
                The version that the page shows.

            prompt:
                The prompt.

            form:
                The values in its form.

            since:
                One of `SINCE`; any other value selects an available base.
        """
        comparison = self._comparison
        if comparison is None:
            return Changes(since, note="There is nothing to compare with.")
        is_chosen = since in SINCE
        since = since if is_chosen else "commit" if version.before is None else "save"
        try:
            if since == "commit":
                texts = await asyncio.to_thread(comparison.since_commit, prompt, version.number)
            else:
                texts = await self._since_save(version, prompt, form)
            cases = await asyncio.to_thread(_compare, texts, comparison)
        except PromptkitError as error:
            return Changes(since, note=str(error)) if is_chosen else Changes("save", note=_NOT_SAVED)
        except OSError as error:
            return Changes(since, note=f"The last commit cannot be written to a temporary folder: {error}")
        return Changes(since, cases, _unchanged(version, prompt, cases, since))

    async def _since_save(
        self, version: CatalogVersion, prompt: CompiledPrompt, form: Submission
    ) -> list[CaseTexts]:
        inputs = [(case.name, sent) for case, sent in sendable(prompt.saved())]
        if form.given not in [sent for _, sent in inputs]:
            inputs.insert(0, (_FORM, form.given))
        return [
            (name, *await self._old_and_new(version, prompt, sent, is_asked=name != _FORM))
            for name, sent in inputs
        ]

    async def _old_and_new(
        self, version: CatalogVersion, prompt: CompiledPrompt, sent: Mapping[str, Any], *, is_asked: bool
    ) -> tuple[str | None, str]:
        """Return the texts before and after the last save, rendering the old version if it is not cached."""
        key, number = repr((prompt.name, sorted(sent.items()))), version.number
        new = (await render(version.calls, prompt, sent, is_asked=is_asked)).transcript
        if (cached := self._cache.get(f"{number} {key}")) is not None:
            old = cached[0]
        elif (cached := self._cache.get(f"{number - 1} {key}")) is not None:
            old = cached[1] if cached[1] != new else cached[0]  # the save changed other recipes only
        else:
            before = prompt if version.before is None else version.before.find_prompt(prompt.name)
            old = new if before is prompt else None
            if before is not None and before is not prompt:
                old = (await render(version.calls, before, sent, is_asked=is_asked)).transcript
        self._cache.put(f"{number} {key}", (old, new), len(key) + len(old or "") + len(new))
        return old, new


def _unchanged(
    version: CatalogVersion, prompt: CompiledPrompt, changed: Sequence[CaseChange], since: str
) -> str:
    """Return a note about the unchanged cases."""
    if since == "save" and version.before is None:
        return _NOT_SAVED
    if not changed:
        return f"Every case renders the same text as at {SINCE[since].lower().removeprefix('since ')}."
    names = {case.name for case in prompt.saved()}.difference(change.name for change in changed)
    return f"Nothing else has changed: {', '.join(sorted(names))}." if names else ""


def _compare(texts: Iterable[CaseTexts], comparison: Comparison) -> list[CaseChange]:
    return [
        CaseChange(name, _what(old, new), _lines(old, new, comparison))
        for name, old, new in texts
        if old != new
    ]


def _what(old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return "is new" if old is None else "is gone"
    return (
        _OUTCOMES[_outcome_prefix(new)]
        if _outcome_prefix(old) != _outcome_prefix(new)
        else "renders different text"
    )


def _outcome_prefix(text: str) -> str:
    """Return the prefix of a text that is not a rendering; ``""`` for a rendering."""
    return next((prefix for prefix in _OUTCOMES if prefix and text.startswith(prefix)), "")


def _lines(old: str | None, new: str | None, comparison: Comparison) -> Sequence[Line]:
    """Return the changed lines; if the kind of outcome has changed, all lines of the new text."""
    if old is not None and new is not None and _outcome_prefix(old) != _outcome_prefix(new):
        return [[("+" if _outcome_prefix(new) else " ", line)] for line in new.splitlines()]
    return comparison.words(old or "", new or "")
