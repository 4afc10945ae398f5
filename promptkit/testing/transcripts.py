"""Transcripts of messages, as snapshots store them, and how pytest shows that two of them differ."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias

from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.language.validation import describe

#: What a prompt renders to, or a part of it.
Turns: TypeAlias = Workflow | Message | Content

#: What every content may have, and its text does not show.
_ANNOTATIONS: Final = ("audience", "priority", "last_modified")

#: A line that begins like the first line of a message.
_HEAD: Final = re.compile(r"\\*\[(?:user|assistant|system)\]")

#: Line ends that files and editors change, and the signs that stand for them.
_LINE_ENDS: Final = dict(zip("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", "␍␋␌␜␝␞␤↵¶", strict=True))
_SIGNS: Final = re.compile(rf"(?<!\\)(\\*+)([{''.join((*_LINE_ENDS, *_LINE_ENDS.values()))}])")


class Line(NamedTuple):
    """
    A line of a transcript.

    Args:
        text:
            The line.

        turn:
            The message that it belongs to, for people; ``""`` for content by itself.
    """

    text: str
    turn: str = ""


def transcript(value: Turns) -> str:
    """
    Return all that distinguishes *value* from others: unequal workflows have unequal transcripts.

    A line of content that begins like a head, as in ``[user]``, has a backslash in front. Line ends are those
    of `visible_line_ends`.
    """
    messages: Iterable[Any] = value.shown if isinstance(value, Workflow) else [value]
    return "\n\n".join("\n".join(_unmistakable(lines_of(message))) for message in messages)


def visible_line_ends(text: str) -> str:
    """
    Return *text* with a sign in place of each line end but a line feed: ``␍`` for a carriage return.

    A sign that stands in *text* itself has a backslash in front.
    """
    return _SIGNS.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    # Backslashes in front are doubled, so that what is a sign and what was one can be told apart.
    backslashes, character = found.groups()
    return backslashes * 2 + _LINE_ENDS.get(character, f"\\{character}")


def _unmistakable(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the head of a message as it is, and its content so that it cannot be taken for a head."""
    head, *content = lines
    yield head.text
    for line in content:
        yield visible_line_ends(f"\\{line.text}" if _HEAD.match(line.text) else line.text)


def has_transcript(value: object) -> bool:
    """Return whether *value* is a workflow, a message, content, or several of these."""
    if isinstance(value, Workflow | Message | Content):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(map(has_transcript, value))


def lines_of(value: Any) -> Iterator[Line]:
    """Yield the lines of a workflow, a message, content, several of these, or of anything else."""
    if isinstance(value, Workflow) and value.system is not None:
        yield from _content(value.system, "[system]", "the system part")
    if isinstance(value, Workflow) or _is_conversation(value):
        for number, message in enumerate(value, 1):
            yield from _turn(message, f"message {number}, {message.role}")
    elif isinstance(value, Message):
        yield from _turn(value, "")
    elif isinstance(value, Content):
        yield from _content(value, type(value).__name__, "")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value, 1):
            place = f"item {number}"
            yield Line(f"{place}:")
            yield from (
                Line(line.text, f"{place}, {line.turn}" if line.turn else place) for line in lines_of(item)
            )
    else:
        yield from map(Line, value.split("\n") if isinstance(value, str) else [describe(value)])


def _is_conversation(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, Message) for item in value)


def _turn(message: Message, turn: str) -> Iterator[Line]:
    kind = "" if isinstance(message.content, Text) else type(message.content).__name__
    yield from _content(message.content, f"[{message.role}] {kind}".rstrip(), turn)


def _content(content: Content, head: str, turn: str) -> Iterator[Line]:
    """Yield *head* with what the text of the content does not show for certain, and that text."""
    details = ((name, getattr(content, name)) for name in (*_ANNOTATIONS, *_ambiguous(content)))
    shown = (f"{name}={_value(value)}" for name, value in details if value not in (None, ()))
    yield Line(" ".join([head, *shown]), turn)
    for line in str(content).split("\n"):
        yield Line(line, turn)


def _ambiguous(content: Content) -> tuple[str, ...]:
    """The fields that content leaves out of its text, or that may read there like others."""
    if isinstance(content, EmbeddedResource):
        return ("mime_type",)
    if isinstance(content, ResourceLink):
        name = ("name",) if content.title is not None or "](" in content.name else ()
        return (*name, "title", "description", "mime_type", "size")
    return ()


def _value(value: object) -> str:
    """Show equal values equally."""
    if isinstance(value, datetime):
        try:
            return value.astimezone(UTC).isoformat()
        except OverflowError:  # on the first or the last day that there is
            return value.isoformat()
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


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
