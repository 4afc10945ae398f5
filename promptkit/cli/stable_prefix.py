"""
How much of what prompts say is the same for all arguments, from its beginning: ``promptkit check --cache``.

Vendors of models keep what they have read of a request for the next that begins alike. So what differs early
costs all that stands behind it. Each prompt is rendered for arguments that are made up, and then with one of
them changed, to see what it changes.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from promptkit.catalog.arguments import Argument
from promptkit.catalog.cases import sendable
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.cli.calls import Call, failure_reason
from promptkit.errors.diagnostics import Diagnostic, Report, Rule
from promptkit.errors.distribution import needed_by
from promptkit.errors.exceptions import shortened
from promptkit.language.messages import Workflow
from promptkit.server.direct_calls import HangsError

if "hypothesis" not in sys.modules:  # it writes to the current folder, or where this says: nowhere
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.devnull)
with needed_by("check --cache", "hypothesis"):
    from hypothesis import HealthCheck, Phase, given, settings
from promptkit.testing.strategies import argument_texts

__all__ = ["StablePrefix", "stable_prefixes"]

#: What a client sends.
_Sent: TypeAlias = Mapping[str, Any]

#: How many values are made up for each argument.
_VALUES: Final = 12

#: How many characters behind what differs are worth a word: vendors keep no less than about 1,024 tokens.
_WORTH: Final = 1_000

#: Where text is cut to look for its parts behind what differs, and how long a part has to be.
_CUTS: Final = re.compile(r"\n|(?<=[.!?:;])\s+")
_LEAST: Final = 8

#: How much is shown of a line.
_LONGEST: Final = 60


class _Unmeasured(Exception):
    """Why nothing can be said of a prompt."""


class Shown(Struct, frozen=True):
    """
    A rendering, as `promptkit render` shows it.

    Args:
        text:
            All of it.

        points:
            Where in it the cache points stand.
    """

    text: str
    points: tuple[int, ...]

    @classmethod
    def of(cls, workflow: Workflow) -> "Shown":
        """Return how a workflow is shown."""
        turns, points = workflow.shown, list[int]()
        begins = list(accumulate((len(str(turn)) + len("\n\n") for turn in turns), initial=0))
        for message, offset in workflow.cache_points:
            turn = message + len(turns) - len(workflow)  # the system part is message -1
            head = len(f"[{turns[turn].role}]\n") if offset else -len("\n\n")
            points.append(max(0, begins[turn] + head + offset))
        return cls(str(workflow), tuple(points))


class StablePrefix(Struct, frozen=True):
    """
    What is the same in all renderings of a prompt.

    Args:
        length:
            How many characters they begin with.

        characters:
            How many the shortest has.

        is_whole:
            Whether that is all that the prompt says.

        line:
            The last line of it, counted from 1.

        end:
            The end of that line.

        changing:
            The arguments that change what follows; ``""`` if it changes by itself.

        behind:
            The parts of the text behind that which all have.

        late:
            How many cache points stand behind what changes.
    """

    length: int
    characters: int
    is_whole: bool
    line: int
    end: str
    changing: tuple[str, ...]
    behind: tuple[str, ...]
    late: int

    @property
    def place(self) -> str:
        """Where it ends, for people."""
        return (
            f"{self.end if len(self.end) <= _LONGEST else f'...{self.end[-_LONGEST:]}'!r} in line {self.line}"
        )

    @property
    def following(self) -> str:
        """What follows it, for people."""
        if "" in self.changing:
            return "text that differs from call to call"
        named = " and ".join(map(repr, self.changing)) or "arguments"
        return f"text that {named} {'changes' if len(self.changing) == 1 else 'change'}"

    @property
    def size_behind(self) -> int:
        """How many characters never differ behind that."""
        return sum(map(len, self.behind))

    def told(self, name: str) -> str:
        """Return it as a sentence on the prompt of that name."""
        if self.is_whole:
            return f"{name}: all {self.characters:,} characters never differ"
        return (
            f"{name}: the first {self.length:,} of {self.characters:,} or more characters never differ; "
            f"then, after {self.place}, comes {self.following}"
        )

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return {
            "prefix": self.length,
            "characters": self.characters,
            "line": self.line,
            "changed_by": [name for name in self.changing if name],
            "differs_by_itself": "" in self.changing,
            "same_behind": self.size_behind,
        }

    def findings(self, prompt: CompiledPrompt) -> list[Diagnostic]:
        """Return what its author may want to change."""
        report = Report(f"prompt {prompt.name!r}", prompt.location)
        if self.late:
            stands = "a cache point stands" if self.late == 1 else f"{self.late} cache points stand"
            fault = f"{stands} behind {self.following}, after {self.place}"
            remedy = "put it before that; if many calls have the same there, ignore this"
            report.add(Rule.LATE_CACHE_POINT, fault, remedy)
        if self.size_behind >= _WORTH:
            begin = repr(shortened(self.behind[0]))
            fault = f"{self.size_behind:,} characters that never differ stand behind {self.following}"
            remedy = "say them first, where vendors keep them for the next call"
            report.add(Rule.STABLE_TEXT_BEHIND, f"{fault}, from {begin} on", remedy)
        return report.found


def stable_prefixes(
    catalog: Catalog,
) -> tuple[list[Diagnostic], Mapping[str, StablePrefix], Mapping[str, str]]:
    """
    Return what authors may want to change, how much of each prompt never differs, or why that is unknown.

    Args:
        catalog:
            The prompts.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    found, measured, unmeasured = list[Diagnostic](), dict[str, StablePrefix](), dict[str, str]()
    for prompt in catalog.prompts:
        try:
            measured[prompt.name] = stable = _measured(prompt)
        except _Unmeasured as reason:
            unmeasured[prompt.name] = str(reason)
        else:
            found += stable.findings(prompt)
    return found, measured, unmeasured


def _measured(prompt: CompiledPrompt) -> StablePrefix:
    """What all renderings of a prompt have in common. Raises `_Unmeasured`."""
    if not prompt.sample:
        raise _Unmeasured(NO_SAMPLE)
    values = {argument.name: _made_up(argument) for argument in prompt.arguments.ordered}
    rendered = _renderings(prompt, values)
    changes = list(_changes(prompt, rendered, values))
    shown = [*(one for _, one in rendered), *(after for _, _, after in changes)]
    texts = sorted({one.text for one in shown}, key=lambda text: (len(text), text))
    same = texts[0][: _shared(*texts)]
    secrets = (Redactor.of_values(prompt.arguments, sent).texts for sent, _ in rendered)
    redacted = Redactor(frozenset().union(*secrets)).redacted
    return StablePrefix(
        length=len(same),
        characters=len(texts[0]),
        is_whole=len(texts) == 1,
        line=same.rstrip().count("\n") + 1,
        end=redacted(same).rstrip().rpartition("\n")[2],
        changing=_changing(len(same), changes),
        behind=tuple(map(redacted, _common_parts(texts, len(same)))),
        late=max(sum(bool(one.text[len(same) : point].strip()) for point in one.points) for one in shown),
    )


def _made_up(argument: Argument) -> list[str | None]:
    """Values of an argument that differ, the same ones each time; None leaves it out."""
    values: list[str | None] = [None] if argument.has_default else []

    @settings(
        max_examples=_VALUES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(argument_texts(argument))
    def keep(text: str) -> None:
        if text not in values:
            values.append(text)

    try:
        keep()
    except Exception as error:  # noqa: BLE001 (it calls what an author's types define)
        msg = f"no values can be made up for {argument.name!r}: {failure_reason(error)}"
        raise _Unmeasured(msg) from None
    return values


def _renderings(
    prompt: CompiledPrompt, values: Mapping[str, Sequence[str | None]]
) -> list[tuple[_Sent, Shown]]:
    """What a prompt says for its author's cases and examples, and for what is made up."""
    sent = [sent for case, sent in sendable(prompt.saved()) if case.refusal is None]
    sent += prompt.arguments.example_texts
    turns = range(max(map(len, values.values()), default=1))
    sent += [_given({name: made[turn % len(made)] for name, made in values.items()}) for turn in turns]
    tried = [(one, _shown(prompt, one)) for one in sent]
    if rendered := [(one, shown) for one, shown in tried if isinstance(shown, Shown)]:
        return rendered
    call, (_, failure) = Call(prompt, sent[0]), tried[0]
    why = failure_reason(cast("BaseException", failure))
    reason = f"it renders for none of {len(sent)} arguments; for {call.label}: {why}"
    raise _Unmeasured(call.redactor.redacted(reason))


def _changes(
    prompt: CompiledPrompt,
    rendered: Sequence[tuple[_Sent, Shown]],
    values: Mapping[str, Sequence[str | None]],
) -> Iterator[tuple[str, Shown, Shown]]:
    """What was said before and after one argument alone was changed, and ``""``, that nothing was."""
    sent, before = rendered[0]
    changed = [("", sent, before)]
    for name, made in values.items():
        for turn, value in enumerate(made):
            if others := [one for one in rendered if one[0].get(name) != value]:
                sent, before = others[turn % len(others)]
                changed.append((name, _given({**sent, name: value}), before))
    for name, sent, before in changed:
        after = _shown(prompt, sent)
        if isinstance(after, Shown) and after.text != before.text:
            yield name, before, after


def _given(values: _Sent) -> _Sent:
    return {name: value for name, value in values.items() if value is not None}


def _shown(prompt: CompiledPrompt, sent: _Sent) -> Shown | BaseException:
    outcome = Call(prompt, sent).outcome()
    if isinstance(outcome, HangsError):  # it may hang for all others, too
        msg = f"it {outcome}"
        raise _Unmeasured(msg)
    if isinstance(outcome, BaseException):
        return outcome
    return Shown.of(cast("Workflow", outcome))


def _shared(*texts: str) -> int:
    """How many characters all texts begin with."""
    first, last = min(texts), max(texts)  # these have least in common
    return next(
        (at for at, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), len(first)
    )


def _changing(end: int, changes: Sequence[tuple[str, Shown, Shown]]) -> tuple[str, ...]:
    """The arguments that change what follows some character; ``""`` if it changes by itself."""
    begins = [(name, before.text[end : _shared(before.text, after.text)]) for name, before, after in changes]
    # The first digits of a clock stay for a while: it changes what is in the same word.
    if any(not name and not re.search(r"\s", same) for name, same in begins):
        return ("",)
    return tuple(dict.fromkeys(name for name, same in begins if name and not same))


def _common_parts(texts: Sequence[str], begin: int) -> Iterator[str]:
    """The parts that all texts have behind some character, in one order. The first is the shortest."""
    first, *others = texts
    ends = [begin] * len(others)
    for part in _CUTS.split(first[begin:]):
        places = [text.find(part, end) for text, end in zip(others, ends, strict=True)]
        if len(part) >= _LEAST and -1 not in places:
            yield part
            ends = [place + len(part) for place in places]
