"""How transcripts of workflows, messages or content differ, for failed comparisons in tests."""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias

from promptkit.language.content import Content, EmbeddedResource, Text
from promptkit.language.messages import Message, Workflow
from promptkit.language.validation import describe

__all__ = ["explain", "transcript"]

#: In characters: how long a shown line may be, and how much of it is shown before a difference.
_MAX_LINE: Final = 100
_CONTEXT: Final = 40

#: What a message's transcript does not show.
_ANNOTATIONS: Final = ("audience", "priority", "last_modified")

#: A step of a diff, as in difflib: the kind of change, the old range of lines, the new range of lines.
_Opcode: TypeAlias = tuple[str, int, int, int, int]


class _Line(NamedTuple):
    text: str
    turn: str = ""  # the message that it belongs to


def explain(operator: str, left: object, right: object, *, whole: bool = False) -> list[str] | None:
    """
    Explain in lines why a comparison failed; None if it is not about workflows, messages or content.

    *operator* is ``"=="``, ``"!="``, ``"in"`` or ``"not in"``. Long lines are cut unless *whole*.
    """
    if operator in ("in", "not in"):
        looked_for = isinstance(left, str) and isinstance(right, Workflow | Message)
        return _looked_for(operator, left, right, whole=whole) if looked_for else None
    if not (_has_transcript(left) or _has_transcript(right)):
        return None
    head = f"{type(left).__name__} {operator} {type(right).__name__}"
    if operator == "!=":
        return [f"{head}: they are equal", *(_shown(line.text, whole=whole) for line in _lines(left))]
    found = list(_differences(list(_lines(right)), list(_lines(left)), whole=whole))
    if _never_equal(left, right):
        return [f"{head}: these are never equal; compare {_remedy(left, right)}", *found]
    if not found:
        reprs = ([_Line(line) for line in _reprs(value)] for value in (right, left))
        found = list(_differences(*reprs, whole=True))
    return [f"{head}: the transcripts differ (- right, + left)", *found]


def transcript(value: Workflow | Message | Content) -> str:
    """
    Return all that distinguishes *value* from others, as a transcript, with kinds and annotations.
    """
    lines: list[str] = []
    for message in value if isinstance(value, Workflow) else [value]:
        lines += ["", *(line.text for line in _lines(message))]
    return "\n".join(lines[1:])


def _looked_for(operator: str, text: object, turns: object, *, whole: bool) -> list[str]:
    """Show all lines where *text* is missing, or the lines that contain it where it should be missing."""
    lines = [line.text for line in _lines(turns)]
    having = [line for line in lines if str(text) in line]
    outcome = "its text contains that" if operator == "not in" else "no text of it contains that"
    shown = having if operator == "not in" and having else lines
    head = f"{_shown(repr(text), whole=whole)} {operator} {type(turns).__name__}: {outcome}"
    return [head, *(_shown(line, whole=whole) for line in shown)]


def _has_transcript(value: object) -> bool:
    """Return whether *value* is a workflow, a message, content, or several of these."""
    if isinstance(value, Workflow | Message | Content):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(map(_has_transcript, value))


def _is_turns(value: object) -> bool:
    return isinstance(value, Workflow | Message)


def _is_conversation(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, Message) for item in value)


def _never_equal(left: object, right: object) -> bool:
    """Return whether two values differ because of their types."""
    if _is_turns(left) and _is_turns(right):
        return False
    return not (isinstance(left, type(right)) or isinstance(right, type(left)))


def _remedy(left: object, right: object) -> str:
    turns, other = (left, right) if isinstance(left, Workflow) else (right, left)
    if isinstance(left, str) or isinstance(right, str):
        return "its .text, or str(...) of it, with a string"
    if isinstance(turns, Workflow) and isinstance(other, list | tuple):
        return f"{type(other).__name__}(workflow), or a Workflow"
    return "values of one type"


def _lines(value: Any) -> Iterator[_Line]:
    if isinstance(value, Workflow) or _is_conversation(value):
        for number, message in enumerate(value, 1):
            yield from _turn(message, f"message {number}, {message.role}")
    elif isinstance(value, Message):
        yield from _turn(value, "")
    elif isinstance(value, Content):
        yield from _content(value, type(value).__name__, "")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value, 1):
            yield _Line(f"item {number}:")
            yield from (
                _Line(line.text, ", ".join(filter(None, (f"item {number}", line.turn))))
                for line in _lines(item)
            )
    else:
        yield from map(_Line, value.split("\n") if isinstance(value, str) else [describe(value)])


def _turn(message: Message, turn: str) -> Iterator[_Line]:
    kind = "" if isinstance(message.content, Text) else type(message.content).__name__
    yield from _content(message.content, f"[{message.role}] {kind}".rstrip(), turn)


def _content(content: Content, head: str, turn: str) -> Iterator[_Line]:
    """Yield *head* with the annotations that a transcript does not show, and the transcript."""
    hidden = [name for name in _ANNOTATIONS if getattr(content, name) not in (None, ())]
    if isinstance(content, EmbeddedResource) and content.mime_type is not None:
        hidden.append("mime_type")
    yield _Line(" ".join([head, *(f"{name}={_value(getattr(content, name))}" for name in hidden)]), turn)
    for line in str(content).split("\n"):
        yield _Line(line, turn)


def _value(value: object) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def _reprs(value: Any) -> list[str]:
    items = value if isinstance(value, Workflow | list | tuple) else [value]
    return [repr(item) for item in items]


def _differences(old: list[_Line], new: list[_Line], *, whole: bool) -> Iterator[str]:
    """Yield removed and added lines with one line of context, below the message that they are in."""
    matcher = SequenceMatcher(None, [line.text for line in old], [line.text for line in new])
    for group in matcher.get_grouped_opcodes(1):
        if not any(tag != "equal" for tag, *_ in group):
            continue
        yield from _place(group, old, new)
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (f"  {_shown(line.text, whole=whole)}" for line in old[i:j])
            else:
                yield from _changes(old[i:j], new[k:m], whole=whole)


def _place(group: Iterable[_Opcode], old: list[_Line], new: list[_Line]) -> Iterator[str]:
    """Yield the message in which a group's first difference is."""
    _, i, j, k, _ = next(opcode for opcode in group if opcode[0] != "equal")
    line = old[i] if i < j else new[k]
    if line.turn:
        yield f"{line.turn}:"


def _changes(old: list[_Line], new: list[_Line], *, whole: bool) -> Iterator[str]:
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
