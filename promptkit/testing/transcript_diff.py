"""What a failed comparison of workflows, messages or content says: how their transcripts differ."""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias

from promptkit.language.content import Content, EmbeddedResource, Text
from promptkit.language.messages import Message, Workflow
from promptkit.language.unsendable import describe

__all__ = ["explain", "transcript"]

#: How long a line may be, in characters, and how much stands around what differs in it.
_LONGEST: Final = 100
_AROUND: Final = 40

#: Beside its text, what a message's transcript does not show.
_ANNOTATIONS: Final = ("audience", "priority", "last_modified")


#: A step of a diff, as difflib has it: what is done, to which lines, and with which.
_Opcode: TypeAlias = tuple[str, int, int, int, int]


class _Line(NamedTuple):
    """
    A line of a transcript, and the turn that it belongs to.
    """

    text: str
    turn: str = ""


def explain(operator: str, left: object, right: object, *, whole: bool = False) -> list[str] | None:
    """
    Return what to say of a comparison that failed, in lines; None if it is not about turns.

    Args:
        operator:
            ``"=="``, ``"!="``, ``"in"`` or ``"not in"``.

        left:
            What was compared: workflows, messages, content, or a list or tuple of these; or what
            was looked for.

        right:
            What it was compared with. Anything else is never equal, which is said.

        whole:
            Whether long lines are shown whole.
    """
    if operator in ("in", "not in"):
        looked_for = isinstance(left, str) and isinstance(right, Workflow | Message)
        return _looked_for(operator, left, right, whole=whole) if looked_for else None
    if not (_is_said(left) or _is_said(right)):
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
    """
    Return what to say of text that is missing, or that should be: all lines, or those that have it.
    """
    lines = [line.text for line in _lines(turns)]
    having = [line for line in lines if str(text) in line]
    said = "its text contains that" if operator == "not in" else "no text of it contains that"
    shown = having if operator == "not in" and having else lines
    head = f"{_shown(repr(text), whole=whole)} {operator} {type(turns).__name__}: {said}"
    return [head, *(_shown(line, whole=whole) for line in shown)]


def _is_said(value: object) -> bool:
    """
    Return whether *value* is a workflow, a message, content, or several of them.
    """
    if isinstance(value, Workflow | Message | Content):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_said, value))


def _is_turns(value: object) -> bool:
    """
    Return whether *value* is one turn or several, which are compared by their messages.
    """
    return isinstance(value, Workflow | Message)


def _is_conversation(value: object) -> bool:
    """
    Return whether *value* holds messages, as a workflow does.
    """
    return isinstance(value, list | tuple) and all(isinstance(item, Message) for item in value)


def _never_equal(left: object, right: object) -> bool:
    """
    Return whether two values differ by their types alone.
    """
    if _is_turns(left) and _is_turns(right):
        return False
    return not (isinstance(left, type(right)) or isinstance(right, type(left)))


def _remedy(left: object, right: object) -> str:
    """
    Return what to compare in place of values whose types differ.
    """
    turns, other = (left, right) if isinstance(left, Workflow) else (right, left)
    if isinstance(left, str) or isinstance(right, str):
        return "its .text, or str(...) of it, with a string"
    if isinstance(turns, Workflow) and isinstance(other, list | tuple):
        return f"{type(other).__name__}(workflow), or a Workflow"
    return "values of one type"


def _lines(value: Any) -> Iterator[_Line]:
    """
    Yield the lines of the transcript of *value*.
    """
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
    """
    Yield the lines of one message: who says it, and what.
    """
    kind = "" if isinstance(message.content, Text) else type(message.content).__name__
    yield from _content(message.content, f"[{message.role}] {kind}".rstrip(), turn)


def _content(content: Content, head: str, turn: str) -> Iterator[_Line]:
    """
    Yield *head*, with what the transcript does not show of *content*, and the transcript.
    """
    hidden = [name for name in _ANNOTATIONS if getattr(content, name) not in (None, ())]
    if isinstance(content, EmbeddedResource) and content.mime_type is not None:
        hidden.append("mime_type")
    yield _Line(" ".join([head, *(f"{name}={_value(getattr(content, name))}" for name in hidden)]), turn)
    for line in str(content).split("\n"):
        yield _Line(line, turn)


def _value(value: object) -> str:
    """
    Return an annotation in short.
    """
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def _reprs(value: Any) -> list[str]:
    """
    Return what the author would write, a message a line.
    """
    items = value if isinstance(value, Workflow | list | tuple) else [value]
    return [repr(item) for item in items]


def _differences(old: list[_Line], new: list[_Line], *, whole: bool) -> Iterator[str]:
    """
    Yield what was removed and added, with a line around it, below the turn that it is in.
    """
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
    """
    Yield in which turn the first line of a group stands that differs.
    """
    _, i, j, k, _ = next(opcode for opcode in group if opcode[0] != "equal")
    line = old[i] if i < j else new[k]
    if line.turn:
        yield f"{line.turn}:"


def _changes(old: list[_Line], new: list[_Line], *, whole: bool) -> Iterator[str]:
    """
    Yield lines that were removed and lines that stand there instead, in pairs if there are as many.
    """
    if len(old) != len(new):
        yield from (f"- {_shown(line.text, whole=whole)}" for line in old)
        yield from (f"+ {_shown(line.text, whole=whole)}" for line in new)
        return
    for before, after in zip((line.text for line in old), (line.text for line in new), strict=True):
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        cut = 0 if whole else max(sum(1 for _ in alike) - _AROUND, 0)
        yield f"- {_shown(before, cut, whole=whole)}"
        yield f"+ {_shown(after, cut, whole=whole)}"


def _shown(line: str, cut: int = 0, *, whole: bool = False) -> str:
    """
    Return *line* so that all of it can be seen; of a long one what is behind *cut*.
    """
    if not whole and len(line) > _LONGEST:
        behind = line[cut:]
        rest = "…" if len(behind) > _LONGEST else ""
        line = ("…" if cut else "") + behind[:_LONGEST] + rest
    hidden = line != line.rstrip() or not line.expandtabs(1).isprintable()
    return repr(line) if hidden else line
