"""What a change does to what a prompt says: for each of its cases, what it said before and says now."""

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

#: The name of a case, and what is said for it: before, and now. None if there is no such case.
Said: TypeAlias = tuple[str, str | None, str | None]

#: A line in parts: ``" "`` before what it was and is, ``"-"`` before what it was, ``"+"`` before what it is.
Line: TypeAlias = list[tuple[str, str]]

#: Since when changes are shown, by what chooses it.
SINCE: Final = {"save": "Since the last save", "commit": "Since the last commit"}

_NOT_SAVED: Final = "Nothing was saved yet. Change a word of the prompt, and save it."

#: What has become of a case, by how the text of its outcome begins.
_OUTCOMES: Final = {
    "[fails]": "fails now",
    "[refused]": "is refused now",
    "[not rendered]": "is not rendered now",
    "": "says something again",
}

#: How much is kept of what was said, in characters.
_MOST_KEPT: Final = 16 * 1024 * 1024

#: What stands in place of the name of a case for what the form holds.
_FORM: Final = "what the form holds"


class Comparison(Protocol):
    """Knows what cases said at the last commit, and which words differ between two texts."""

    def since_commit(self, prompt: CompiledPrompt, version: int) -> Sequence[Said]:
        """
        Return the cases that say something else than at the last commit.

        Args:
            prompt:
                The prompt.

            version:
                Counts the versions of the recipes.

        Raises:
            PromptkitError: If nothing is known of the last commit; the message says why.
        """

    def words(self, old: str, new: str) -> list[Line]:
        """Return the lines that differ. Raises OSError if they cannot be compared."""


@attrs.frozen
class CaseChange:
    """
    A case that says something else.

    Args:
        name:
            The name of the case.

        what:
            What has become of it, as a predicate of its name.

        lines:
            The lines that differ.
    """

    name: str
    what: str
    lines: Sequence[Line]


@attrs.frozen
class Changes:
    """
    What has changed in a prompt.

    Args:
        since:
            Since when, one of `SINCE`.

        cases:
            The cases that say something else.

        note:
            What there is to know of it.
    """

    since: str
    cases: Sequence[CaseChange] = ()
    note: str = ""


class Comparisons:
    """
    Compares what prompts say for their cases with what they said before.

    Args:
        comparison:
            Knows the last commit; None if there is nothing to compare with.
    """

    def __init__(self, comparison: Comparison | None) -> None:
        self._comparison = comparison
        # What was said before a version and in it, by its number, the prompt and what is sent.
        self._said: BoundedStore[tuple[str | None, str]] = BoundedStore(_MOST_KEPT)

    async def changes(
        self, version: CatalogVersion, prompt: CompiledPrompt, form: Submission, since: str
    ) -> Changes:
        """
        Return what a prompt says otherwise for its cases, and for what its form holds.

        Args:
            version:
                What is shown, which knows what was shown before.

            prompt:
                The prompt.

            form:
                What its form holds.

            since:
                One of `SINCE`; anything else for what there is to compare with.
        """
        comparison = self._comparison
        if comparison is None:
            return Changes(since, note="There is nothing to compare with.")
        is_chosen = since in SINCE
        since = since if is_chosen else "commit" if version.before is None else "save"
        try:
            if since == "commit":
                said = await asyncio.to_thread(comparison.since_commit, prompt, version.number)
            else:
                said = await self._since_save(version, prompt, form)
            cases = await asyncio.to_thread(_compared, said, comparison)
        except PromptkitError as error:
            return Changes(since, note=str(error)) if is_chosen else Changes("save", note=_NOT_SAVED)
        except OSError as error:
            return Changes(since, note=f"Git compares the words, and cannot be run: {error}")
        return Changes(since, cases, _unchanged(version, prompt, cases, since))

    async def _since_save(
        self, version: CatalogVersion, prompt: CompiledPrompt, form: Submission
    ) -> list[Said]:
        inputs = [(case.name, sent) for case, sent in sendable(prompt.saved())]
        if form.given not in [sent for _, sent in inputs]:
            inputs.insert(0, (_FORM, form.given))
        return [
            (name, *await self._then_and_now(version, prompt, sent, is_asked=name != _FORM))
            for name, sent in inputs
        ]

    async def _then_and_now(
        self, version: CatalogVersion, prompt: CompiledPrompt, sent: Mapping[str, Any], *, is_asked: bool
    ) -> tuple[str | None, str]:
        """What was said until the last save. If nobody looked then, the function of then is called."""
        about, number = repr((prompt.name, sorted(sent.items()))), version.number
        now = (await render(version.calls, prompt, sent, is_asked=is_asked)).said
        if (known := self._said.get(f"{number} {about}")) is not None:
            then = known[0]
        elif (known := self._said.get(f"{number - 1} {about}")) is not None:
            then = known[1] if known[1] != now else known[0]  # a save of something else changes nothing
        else:
            before = prompt if version.before is None else version.before.find_prompt(prompt.name)
            then = now if before is prompt else None
            if before is not None and before is not prompt:
                then = (await render(version.calls, before, sent, is_asked=is_asked)).said
        self._said.put(f"{number} {about}", (then, now), len(about) + len(then or "") + len(now))
        return then, now


def _unchanged(
    version: CatalogVersion, prompt: CompiledPrompt, changed: Sequence[CaseChange], since: str
) -> str:
    """Which cases say the same."""
    if since == "save" and version.before is None:
        return _NOT_SAVED
    if not changed:
        return f"Every case says the same as at {SINCE[since].lower().removeprefix('since ')}."
    names = {case.name for case in prompt.saved()}.difference(one.name for one in changed)
    return f"Nothing else has changed: {', '.join(sorted(names))}." if names else ""


def _compared(said: Iterable[Said], comparison: Comparison) -> list[CaseChange]:
    return [
        CaseChange(name, _what(old, new), _lines(old, new, comparison))
        for name, old, new in said
        if old != new
    ]


def _what(old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return "is new" if old is None else "is gone"
    return _OUTCOMES[_outcome(new)] if _outcome(old) != _outcome(new) else "says something else"


def _outcome(said: str) -> str:
    """How a text begins that says why there is nothing else to say; ``""`` for what a prompt says."""
    return next((one for one in _OUTCOMES if one and said.startswith(one)), "")


def _lines(old: str | None, new: str | None, comparison: Comparison) -> Sequence[Line]:
    """The lines that differ; if another thing came of it, what came of it now."""
    if old is not None and new is not None and _outcome(old) != _outcome(new):
        return [[("+" if _outcome(new) else " ", line)] for line in new.splitlines()]
    return comparison.words(old or "", new or "")
