"""How workflows, messages and content differ, as a failed test shows it."""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final, TypeAlias

from promptkit.language.messages import Message, Workflow
from promptkit.testing.transcripts import Line, has_transcript, lines_of

#: In characters: how long a shown line may be, and how much of it is shown before a difference.
_MAX_LINE: Final = 100
_CONTEXT: Final = 40

#: How many lines and characters of an explanation pytest shows by default.
_SHOWN_LINES: Final = 8
_SHOWN_CHARACTERS: Final = 640

#: A step of a diff, as in difflib: the kind of change, the old range of lines, the new range of lines.
_Opcode: TypeAlias = tuple[str, int, int, int, int]


def explain(operator: str, left: object, right: object, *, whole: bool = False) -> list[str] | None:
    """
    Explain in lines why a comparison failed; None if it is not about workflows, messages or content.

    *operator* is ``"=="``, ``"!="``, ``"in"`` or ``"not in"``. Long lines are cut unless *whole*.
    """
    if operator in ("in", "not in"):
        looked_for = isinstance(left, str) and isinstance(right, Workflow | Message)
        return _looked_for(operator, left, right, whole=whole) if looked_for else None
    if not (has_transcript(left) or has_transcript(right)):
        return None
    head = f"{type(left).__name__} {operator} {type(right).__name__}"
    if operator == "!=":
        return [f"{head}: they are equal", *(_shown(line.text, whole=whole) for line in lines_of(left))]
    hint = _hint(left, right)
    differ = "the transcripts differ (- right, + left)"
    head = f"{head}: these are never equal; compare {hint}" if hint else f"{head}: {differ}"
    found = _fitting(head, lines_of(right), lines_of(left), whole=whole)
    if hint is None and len(found) == 1:  # the transcripts do not differ
        return _fitting(head, map(Line, _reprs(right)), map(Line, _reprs(left)), whole=True)
    return found


def differences(head: str, old: str, new: str) -> str:
    """Return how two texts differ, line by line, below *head*."""
    return "\n".join(_fitting(head, map(Line, old.splitlines()), map(Line, new.splitlines()), whole=True))


def _looked_for(operator: str, text: object, turns: object, *, whole: bool) -> list[str]:
    """Show all lines where *text* is missing, or the lines that contain it where it should be missing."""
    lines = [line.text for line in lines_of(turns)]
    having = [line for line in lines if str(text) in line]
    outcome = "its text contains that" if operator == "not in" else "no text of it contains that"
    shown = having if operator == "not in" and having else lines
    head = f"{_shown(repr(text), whole=whole)} {operator} {type(turns).__name__}: {outcome}"
    return [head, *(_shown(line, whole=whole) for line in shown)]


def _hint(left: object, right: object) -> str | None:
    """Return what to compare where two values differ because of their types; None if they may be equal."""
    if all(isinstance(one, Workflow | Message) for one in (left, right)):
        return None
    if isinstance(left, type(right)) or isinstance(right, type(left)):
        return None
    if isinstance(left, str) or isinstance(right, str):
        return "its .text, or str(...) of it, with a string"
    turns, other = (left, right) if isinstance(left, Workflow) else (right, left)
    if isinstance(turns, Workflow) and isinstance(other, list | tuple):
        return f"{type(other).__name__}(workflow), or a Workflow"
    return "values of one type"


def _reprs(value: Any) -> list[str]:
    items = value if isinstance(value, Workflow | list | tuple) else [value]
    return [repr(item) for item in items]


def _fitting(head: str, old: Iterable[Line], new: Iterable[Line], *, whole: bool) -> list[str]:
    """Return *head* and the differences, with so much around them that pytest does not cut the changes."""
    old, new = list(old), list(new)
    matcher = SequenceMatcher(None, [line.text for line in old], [line.text for line in new])
    for context, places in ((1, True), (0, True), (0, False)):
        groups = [list(group) for group in matcher.get_grouped_opcodes(context)]
        found = [head, *_differences(groups, old, new, places=places, whole=whole)]
        if whole or (len(found) <= _SHOWN_LINES and sum(map(len, found)) <= _SHOWN_CHARACTERS):
            break
    return found


def _differences(
    groups: Iterable[list[_Opcode]], old: list[Line], new: list[Line], *, places: bool, whole: bool
) -> Iterator[str]:
    """Yield removed and added lines with those around them, below the message that they are in."""
    for group in groups:
        changed = [opcode for opcode in group if opcode[0] != "equal"]
        if not changed:
            continue
        _, i, j, k, _ = changed[0]
        first = old[i] if i < j else new[k]
        if places and first.turn:
            yield f"{first.turn}:"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (f"  {_shown(line.text, whole=whole)}" for line in old[i:j])
            else:
                yield from _changes(old[i:j], new[k:m], whole=whole)


def _changes(old: list[Line], new: list[Line], *, whole: bool) -> Iterator[str]:
    """Yield removed and added lines, in pairs if there are as many of both."""
    if len(old) != len(new):
        yield from (f"- {_shown(line.text, whole=whole)}" for line in old)
        yield from (f"+ {_shown(line.text, whole=whole)}" for line in new)
        return
    for before, after in zip((line.text for line in old), (line.text for line in new), strict=True):
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        cut = 0 if whole else max(sum(1 for _ in alike) - _CONTEXT, 0)
        yield f"- {_shown(before, cut, whole=whole)}"
        yield f"+ {_shown(after, cut, whole=whole)}"


def _shown(line: str, cut: int = 0, *, whole: bool = False) -> str:
    """Return *line*, from *cut* if it is long; as a repr if it has invisible characters."""
    if not whole and len(line) > _MAX_LINE:
        behind = line[cut:]
        rest = "…" if len(behind) > _MAX_LINE else ""
        line = ("…" if cut else "") + behind[:_MAX_LINE] + rest
    hidden = line != line.rstrip() or not line.expandtabs(1).isprintable()
    return repr(line) if hidden else line
