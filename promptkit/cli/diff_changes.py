"""
The changes that clients see between two sides of a comparison, and whether the changes break callers.

Both sides are plain data from `promptkit.cli.diff_sides`.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from threading import Lock
from typing import Any, Final, TypeAlias

from msgspec import Struct, field, to_builtins

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.cli.calls import FAILS, REFUSED
from promptkit.cli.diff_sides import (
    NOT_RENDERED,
    Answer,
    ArgumentState,
    ItemState,
    answers_of_sides,
    key_of,
)
from promptkit.cli.repository import Repository

#: The kinds of changes that can break a caller.
BREAKING: Final = frozenset(
    {
        "prompt-removed",
        "resource-removed",
        "skill-removed",
        "argument-removed",
        "required-argument-added",
        "argument-now-required",
        "argument-narrowed",
        "scopes-needed",
        "rendering-fails",
        "reading-fails",
    }
)

#: For each descriptive field, the kind of a change to it, and the name of the field in messages.
_MEMBERS: Final = {
    "name": ("resource-name", "the name"),
    "title": ("title", "the title"),
    "description": ("description", "the description"),
    "mimeType": ("mime-type", "the MIME type"),
    "icons": ("icons", "the list of icons"),
    "annotations": ("annotations", "the annotations"),
    "size": ("size", "the size"),
    "_meta": ("meta", "_meta"),
}

#: The alternative that accepts every text. Clients send arguments as text.
_ANY_TEXT: Final = '{"type": "string"}'

#: Maximum number of lines or words to match, because matching can take quadratic time.
_MAX_MATCHED: Final = 2_000

_WORD: Final = r"\[[a-z]+\]|\w+|\s+|[^\w\s]"

#: The parts of a line: ``" "`` marks unchanged, ``"-"`` removed and ``"+"`` added text.
Line: TypeAlias = list[tuple[str, str]]


class Difference(Struct, frozen=True):
    """
    One change in the lists, or in the outcome of an example.

    Args:
        kind:
            The kind of the change.

        owner:
            The changed item, such as ``prompt 'review'``.

        message:
            The message for the user, without the owner.

        before:
            The old value as text; None if there is no text to compare.

        after:
            The new value as text.
    """

    kind: str
    owner: str = field(name="of")
    message: str
    before: str | None = None
    after: str | None = None

    @property
    def breaking(self) -> bool:
        """Whether the change can break a caller."""
        return self.kind in BREAKING

    @property
    def diff(self) -> list[str]:
        """A unified diff of the old and the new value, without a header."""
        if self.before is None or self.after is None:
            return []
        return changed_lines(self.before, self.after, context=2)

    def __str__(self) -> str:
        return f"{self.owner}: {self.message}"

    def as_data(self) -> dict[str, Any]:
        """Return the change as JSON-compatible data."""
        return {**to_builtins(self), "breaking": self.breaking}


class TextChange(Struct, frozen=True):
    """
    A case whose text has changed.

    Args:
        owner:
            The prompt or resource.

        case:
            The name of the case.

        before:
            The old text; None if the case is new.

        after:
            The new text; None if the case was removed.

        is_unsteady:
            Whether the text differs each time that one of the sides renders it.
    """

    owner: str = field(name="of")
    case: str
    before: str | None
    after: str | None
    is_unsteady: bool = field(default=False, name="unsteady")

    def __str__(self) -> str:
        what = "renders different text"
        if self.before is None or self.after is None:
            what = _describe_presence(self.before, self.after)
        return f"{self.owner}: {self.case!r} {what}{' (it differs each time)' if self.is_unsteady else ''}"

    @property
    def breaking(self) -> bool:
        """Whether the case fails now, and did not fail before."""
        return (self.after or "").startswith(FAILS) and not (self.before or FAILS).startswith(FAILS)

    @property
    def diff(self) -> list[str]:
        """A unified diff of the old and the new text, without a header."""
        return changed_lines(self.before or "", self.after or "", context=1)

    def as_data(self) -> dict[str, Any]:
        """Return the change as JSON-compatible data, from which a CI job can build a pull-request comment."""
        more = {"breaking": self.breaking, "message": str(self), "diff": self.diff}
        return {**to_builtins(self), **more}


#: The changes of one comparison.
Changes: TypeAlias = Sequence[Difference | TextChange]


def effect_of(change: Difference | TextChange) -> str:
    """Return the effect of a change on callers: ``breaking`` or ``harmless``."""
    return "breaking" if change.breaking else "harmless"


def changes_between(old: Answer, new: Answer) -> list[Difference]:
    """
    Return the changes between two sides, sorted by kind and name of the items.

    Args:
        old:
            The old side, with the outcomes of its examples.

        new:
            The new side, with the outcomes of the same examples.
    """
    changes: list[Difference] = []
    for owner in sorted(old.items.keys() | new.items.keys()):
        item_changes = list(_item_changes(owner, old.items.get(owner), new.items.get(owner)))
        # Examples that fail because an argument was removed, for instance, would only repeat that message.
        is_broken = any(change.breaking for change in item_changes)
        outcomes = _outcome_changes(owner, old, new)
        changes += [*item_changes, *(change for change in outcomes if not (is_broken and change.breaking))]
    return changes


def _item_changes(owner: str, old: ItemState | None, new: ItemState | None) -> Iterator[Difference]:
    """Yield the changes to an item, which can be missing on one side."""
    if old is None or new is None:
        noun = owner.partition(" ")[0].replace("template", "resource")
        yield Difference(
            f"{noun}-{'removed' if new is None else 'added'}", owner, _describe_presence(old, new)
        )
        return
    for member, (kind, name) in _MEMBERS.items():
        yield from _text_change(kind, owner, name, old.texts.get(member), new.texts.get(member))
    for name in dict.fromkeys((*old.arguments, *new.arguments)):
        yield from _argument_changes(owner, name, old.arguments.get(name), new.arguments.get(name))
    common = old.arguments.keys() & new.arguments.keys()
    if list(filter(common.__contains__, old.arguments)) != list(filter(common.__contains__, new.arguments)):
        order = f"the arguments are in a different order: {', '.join(new.arguments)}"
        yield Difference("argument-order", owner, order)
    if more := sorted({*new.scopes}.difference(old.scopes)):
        yield Difference("scopes-needed", owner, f"callers need additional scopes: {' '.join(more)}")
    if fewer := sorted({*old.scopes}.difference(new.scopes)):
        yield Difference("scopes-dropped", owner, f"callers no longer need these scopes: {' '.join(fewer)}")
    for path in sorted(old.files.keys() | new.files.keys()):
        before, after = old.files.get(path), new.files.get(path)
        if before != after:
            message = (
                f"{path} {_describe_presence(before, after)}, so hosts ask users to approve the skill again"
            )
            yield Difference("skill-file", owner, message, before and before[1], after and after[1])


def find_uncomparable(old: Answer, new: Answer) -> list[str]:
    """
    Return the prompts and resources that both sides have, but whose text cannot be compared.

    Args:
        old:
            The old side.

        new:
            The new side, with the outcomes of the same calls as the old side.
    """
    owners: list[str] = []
    for owner in sorted(new.items.keys() & old.items.keys() & new.outcomes.keys()):
        before = old.outcomes.get(owner, {})
        after = {label: text for label, text in new.outcomes[owner].items() if label in before}
        has_text = any(not text.startswith((FAILS, REFUSED, NOT_RENDERED)) for text in after.values())
        if not has_text and all(
            text == before[label] or text.startswith(NOT_RENDERED) for label, text in after.items()
        ):
            owners.append(owner)
    return owners


def _is_sample(answer: Answer, owner: str, label: str) -> bool:
    """Return whether the arguments of a call were generated."""
    call = answer.calls.get(owner, {}).get(label)
    return call is not None and call.source == "sample"


def _describe_presence(old: object, new: object) -> str:
    return "was removed" if new is None else "was added" if old is None else "has changed"


def _text_change(kind: str, owner: str, name: str, old: str | None, new: str | None) -> Iterator[Difference]:
    if old != new:
        yield Difference(kind, owner, f"{name} has changed", old or "", new or "")


def _argument_changes(
    owner: str, name: str, old: ArgumentState | None, new: ArgumentState | None
) -> Iterator[Difference]:
    """Yield the changes to an argument, which can be missing on one side."""
    label = f"argument {name!r}"
    if new is None:
        yield Difference("argument-removed", owner, f"{label} was removed")
        return
    word = "required" if new.required else "optional"
    if old is None:
        kind = "required-argument-added" if new.required else "argument-added"
        yield Difference(kind, owner, f"{label} was added, and is {word}")
        return
    if old.required != new.required:
        yield Difference(f"argument-now-{word}", owner, f"{label} is now {word}")
    if old.schema != new.schema:
        kind, message = "argument-narrowed", "no longer accepts all values that it accepted before"
        if accepts_all(old.alternatives, new.alternatives):
            kind, message = "argument-widened", "accepts more values than before"
            if accepts_all(new.alternatives, old.alternatives):
                kind, message = "argument-type", "accepts the same values, but describes them differently"
        types = (old.schema, new.schema) if old.type == new.type else (old.type, new.type)
        yield Difference(kind, owner, f"{label} {message}", *types)
    for member in ("title", "description", "default"):
        words = f"the {member} of {label}"
        yield from _text_change(
            f"argument-{member}", owner, words, old.texts.get(member), new.texts.get(member)
        )


def accepts_all(old: Sequence[str], new: Sequence[str]) -> bool:
    """
    Return whether an argument still accepts every text that it accepted before.

    That is the case if no alternative was removed. The empty string is ignored, because it means "not given"
    for all types except strings.
    """
    return _ANY_TEXT in new or {*old} <= {*new}


def _outcome_changes(owner: str, old: Answer, new: Answer) -> Iterator[Difference]:
    """Yield the changed outcomes; for generated arguments, only if no earlier outcome has changed."""
    noun, verb = ("rendering", "renders") if owner.startswith("prompt ") else ("reading", "contains")
    outcomes = old.outcomes.get(owner, {})
    is_changed = False
    for label, after in new.outcomes.get(owner, {}).items():
        before = outcomes.get(label, after)
        if before == after or (is_changed and _is_sample(old, owner, label)):
            continue
        if not after.startswith((FAILS, REFUSED)):
            yield Difference(noun, owner, f"{verb} different text for {label}", before, after)
        elif not before.startswith((FAILS, REFUSED)):
            yield Difference(f"{noun}-fails", owner, f"fails for {label}: {after.partition('] ')[2]}")
        else:
            continue
        is_changed = True


def text_changes(old: Sequence[Answer], new: Sequence[Answer]) -> list[TextChange]:
    """
    Return each changed case, in the order of the new side; removed cases come last.

    For an item without changed cases, the first change for generated arguments is returned instead.

    Args:
        old:
            The answer of the old side, followed by any repeated answers.

        new:
            The answer of the new side, followed by any repeated answers.
    """
    unsteady = {
        (owner, case)
        for first, *repeated in (old, new)
        for owner, outcomes in first.outcomes.items()
        for case, text in outcomes.items()
        if any(answer.outcomes.get(owner, {}).get(case) != text for answer in repeated)
    }
    changes: list[TextChange] = []
    for owner, outcomes in new[0].outcomes.items():
        own_changes = [
            TextChange(owner, case, before, text, (owner, case) in unsteady)
            for case, text in outcomes.items()
            if (before := old[0].outcomes.get(owner, {}).get(case)) != text
        ]
        saved = [change for change in own_changes if not _is_sample(new[0], owner, change.case)]
        changes += saved or own_changes[:1]
    removed = [
        TextChange(owner, case, "", None)
        for owner, calls in old[0].calls.items()
        for case in calls
        if not _is_sample(old[0], owner, case) and case not in new[0].calls.get(owner, {})
    ]
    return changes + removed


def changed_lines(old: str, new: str, *, context: int) -> list[str]:
    """
    Return a unified diff without a header. If there is only one hunk, its line numbers are omitted.

    Args:
        old:
            The old text.

        new:
            The new text.

        context:
            The number of unchanged lines around changed ones.
    """
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MAX_MATCHED:
        return ["@@", *(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    lines = list(unified_diff(before, after, lineterm="", n=context))[2:]
    return lines[1:] if sum(line.startswith("@@") for line in lines) == 1 else lines


def changed_words(old: str, new: str) -> list[Line]:
    """
    Return the changed lines and one line of context around them.

    Each line is split into unchanged, removed and added parts.

    Args:
        old:
            The old text.

        new:
            The new text.
    """
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MAX_MATCHED:
        return [[("-", line)] for line in before] + [[("+", line)] for line in after]
    lines: list[Line] = []
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(1):
        if lines:
            lines.append([(" ", "...")])
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += [[(" ", line)] for line in before[start:end]]
            else:
                lines += _changed_block("\n".join(before[start:end]), "\n".join(after[new_start:new_end]))
    return lines


def _changed_block(old: str, new: str) -> list[Line]:
    """Return consecutive changed lines, each split into unchanged, removed and added parts."""
    before, after = re.findall(_WORD, old), re.findall(_WORD, new)
    if max(len(before), len(after)) > _MAX_MATCHED:
        before, after = [old], [new]
    lines: list[Line] = [[]]
    for tag, start, end, new_start, new_end in SequenceMatcher(str.isspace, before, after).get_opcodes():
        parts = [("-", before[start:end]), ("+", after[new_start:new_end])]
        if tag == "equal":
            parts = [(" ", before[start:end])]
        for sign, words in parts:
            first, *more = "".join(words).split("\n")
            lines[-1] += [(sign, first)] if first else []
            lines += [[(sign, text)] if text else [] for text in more]
    return lines


class CommitComparison:
    """
    A thread-safe comparison of the recipes with the last commit, cached until either of them changes.

    Args:
        targets:
            The targets to compare.
    """

    words = staticmethod(changed_words)

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = targets
        self._lock = Lock()
        self._compared: tuple[int, str] | None = None
        self._changes: list[TextChange] = []

    def changes_since_commit(
        self, prompt: CompiledPrompt, version: int
    ) -> list[tuple[str, str | None, str | None]]:
        """
        Return the changed cases of a prompt, each as its name, old text and new text.

        The old text is None for an added case, and the new text is None for a removed case. *version* is
        the version number of the recipes.

        Raises:
            PromptkitError: If there is no commit, or if the commit cannot be loaded.
        """
        with self._lock:
            repository = Repository(feature="this comparison")
            compared = version, repository.resolve_commit("HEAD")
            if compared != self._compared:
                sides = answers_of_sides(repository, (compared[1], None), self._targets, by_cases=True)
                self._changes, self._compared = text_changes(*sides), compared
            changes = self._changes
        owner = key_of(prompt)
        return [(change.case, change.before, change.after) for change in changes if change.owner == owner]
