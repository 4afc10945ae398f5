"""Transcripts of messages, which snapshots store, and diffs of transcripts, which pytest shows."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeAlias

from promptkit.errors.suggestions import common_length
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.language.validation import describe

#: A rendering, or a part of one.
RenderingPart: TypeAlias = Workflow | Message | Content

#: Attributes that any content can have and that its text does not show.
_ANNOTATIONS: Final = ("audience", "priority", "last_modified")

#: The start of a line that looks like the head of a message.
_HEAD: Final = re.compile(r"\\*\[(?:user|assistant|system)\]")

#: Whitespace that editors, formatters or version control change, and the symbols that replace it: any line
#: ending except the line feed, the last space or tab of a line, and a line feed at the end of the text.
_LINE_ENDS: Final = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_SYMBOLS: Final = dict(zip(f"{_LINE_ENDS} \t\n", "␍␋␌␜␝␞␤↵¶␠␉␊", strict=True))
_BACKSLASHES: Final = r"(?<!\\)(\\*+)"
_WHITESPACE: Final = re.compile(rf"{_BACKSLASHES}([{_LINE_ENDS}{''.join(_SYMBOLS.values())}]|[ \t](?=\n|\Z))")
_LAST_LINE_FEED: Final = re.compile(rf"{_BACKSLASHES}(\n)\Z")


class Line(NamedTuple):
    """
    A line of a transcript.

    Args:
        text:
            The line.

        turn:
            A readable label for the message that contains the line; ``""`` if no message contains it.
    """

    text: str
    turn: str = ""


def transcript(value: RenderingPart) -> str:
    """
    Return a transcript of *value*. Unequal workflows have different transcripts.

    A line of content that starts like the head of a message, such as ``[user]``, gets a leading backslash.
    Whitespace is replaced as in `visible_whitespace`.
    """
    messages: Iterable[Any] = value.shown if isinstance(value, Workflow) else [value]
    text = "\n\n".join("\n".join(line.text for line in transcript_lines(message)) for message in messages)
    return _LAST_LINE_FEED.sub(_replace_symbol, text)


def visible_whitespace(text: str) -> str:
    """
    Replace some whitespace with symbols, such as ``␍`` for a carriage return.

    The replaced characters are those that editors and formatters change: line endings except the line feed,
    the last space or tab of a line (``␠``, ``␉``), and the line feed at the end of the text (``␊``). A symbol
    in *text* gets a leading backslash.
    """
    return _LAST_LINE_FEED.sub(_replace_symbol, _show_whitespace(text))


def _show_whitespace(text: str) -> str:
    return _WHITESPACE.sub(_replace_symbol, text)


def _replace_symbol(match: re.Match[str]) -> str:
    # Leading backslashes are doubled, so that replaced and original symbols can be distinguished.
    backslashes, character = match.groups()
    return backslashes * 2 + _SYMBOLS.get(character, f"\\{character}")


def has_transcript(value: object) -> bool:
    """Return whether *value* is a workflow, a message, content, or a list or tuple of messages."""
    return isinstance(value, Workflow | Message | Content) or _is_message_list(value)


def _is_message_list(value: object) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(item, Message) for item in value)


def transcript_lines(value: Any) -> Iterator[Line]:
    """Yield the lines of a workflow, a message, content, a list or tuple of messages, or any other value."""
    if isinstance(value, Workflow) and value.system is not None:
        yield from _content_lines(value.system, "[system]", "the system part")
    if isinstance(value, Workflow) or _is_message_list(value):
        for number, message in enumerate(value, 1):
            yield from _message_lines(message, f"message {number}, {message.role}")
    elif isinstance(value, Message):
        yield from _message_lines(value, "")
    elif isinstance(value, Content):
        yield from _content_lines(value, type(value).__name__, "")
    else:
        yield from map(Line, value.split("\n") if isinstance(value, str) else [describe(value)])


def _message_lines(message: Message, turn: str) -> Iterator[Line]:
    kind = "" if isinstance(message.content, Text) else type(message.content).__name__
    yield from _content_lines(message.content, f"[{message.role}] {kind}".rstrip(), turn)


def _content_lines(content: Content, head: str, turn: str) -> Iterator[Line]:
    """Yield a line with *head* and the attributes that the text does not show, then the lines of the text."""
    details = ((name, getattr(content, name)) for name in (*_ANNOTATIONS, *_hidden_fields(content)))
    attributes = (f"{name}={_format_value(value)}" for name, value in details if value not in (None, ()))
    yield Line(" ".join([head, *attributes]), turn)
    for line in str(content).split("\n"):
        yield Line(_show_whitespace(f"\\{line}" if _HEAD.match(line) else line), turn)


def _hidden_fields(content: Content) -> tuple[str, ...]:
    """Return the names of the fields that the text of *content* omits or shows ambiguously."""
    if isinstance(content, EmbeddedResource):
        return ("mime_type",)
    if isinstance(content, ResourceLink):
        name = ("name",) if content.title is not None or "](" in content.name else ()
        return (*name, "title", "description", "mime_type", "size")
    return ()


def _format_value(value: object) -> str:
    """Format a value. Equal values have the same result."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


#: The maximum length of a line, and how much of it is shown before a difference, in characters.
_MAX_LINE: Final = 100
_CONTEXT: Final = 40

#: The maximum number of differences to label. By default, pytest shows only eight lines of an explanation.
_MAX_LABELLED: Final = 2


def explain(operator: str, left: object, right: object, *, full: bool = False) -> list[str] | None:
    """
    Explain why a comparison failed. Return None unless it involves workflows, messages or content.

    *operator* is ``"=="``, ``"!="``, ``"in"`` or ``"not in"``. Long lines are truncated unless *full* is
    true.
    """
    head = f"{type(left).__name__} {operator} {type(right).__name__}"
    if operator in ("in", "not in"):
        is_search = isinstance(left, str) and isinstance(right, Workflow | Message)
        return _explain_search(operator, left, right, full=full) if is_search else None
    if not (has_transcript(left) or has_transcript(right)):
        return None
    if operator == "!=":
        return [
            f"{head}: they are equal",
            *(_format_line(line.text, full=full) for line in transcript_lines(left)),
        ]
    hint = _suggest_comparison(left, right)
    differ = "the transcripts differ (- right, + left)"
    head = f"{head}: values of these types are never equal: compare {hint}" if hint else f"{head}: {differ}"
    return [head, *_diff_lines([*transcript_lines(right)], [*transcript_lines(left)], full=full)]


def format_differences(head: str, old: str, new: str) -> str:
    """Return a line-by-line diff of *old* and *new*, below *head*."""
    old_lines, new_lines = list(map(Line, old.splitlines())), list(map(Line, new.splitlines()))
    return "\n".join([head, *_diff_lines(old_lines, new_lines, full=True)])


def _explain_search(operator: str, text: object, turns: object, *, full: bool) -> list[str]:
    """Explain why a search failed. Show all lines for ``in``, or the matching lines for ``not in``."""
    lines = [line.text for line in transcript_lines(turns)]
    matching = [line for line in lines if str(text) in line]
    outcome = (
        "its text contains this string" if operator == "not in" else "its text does not contain this string"
    )
    selected = matching if operator == "not in" and matching else lines
    head = f"{_format_line(repr(text), full=full)} {operator} {type(turns).__name__}: {outcome}"
    return [head, *(_format_line(line, full=full) for line in selected)]


def _suggest_comparison(left: object, right: object) -> str | None:
    """Suggest a different comparison if the values have types that are never equal; otherwise return None."""
    if all(isinstance(value, Workflow | Message) for value in (left, right)):
        return None
    if isinstance(left, type(right)) or isinstance(right, type(left)):
        return None
    is_text = isinstance(left, str) or isinstance(right, str)
    return ".text or str(...) with a string" if is_text else "values of the same type"


def _diff_lines(old: list[Line], new: list[Line], *, full: bool) -> Iterator[str]:
    """Yield the lines that differ. Label them by message if there are only a few, or if *full* is true."""
    matcher = SequenceMatcher(None, [line.text for line in old], [line.text for line in new])
    changes = [opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal"]
    for _, i, j, k, m in changes:
        turn = (old[i:j] or new[k:m])[0].turn
        if turn and (full or len(changes) <= _MAX_LABELLED):
            yield f"{turn}:"
        for before, after in zip_longest(old[i:j], new[k:m]):
            common = common_length(before.text, after.text) if before and after else 0
            start = 0 if full else max(common - _CONTEXT, 0)
            for sign, line in (("-", before), ("+", after)):
                if line is not None:
                    yield f"{sign} {_format_line(line.text, start, full=full)}"


def _format_line(line: str, start: int = 0, *, full: bool = False) -> str:
    """
    Return a line, or its repr if it contains invisible characters.

    Unless *full* is true, a line that is too long is shortened to an excerpt that starts at index *start*.
    """
    if not full and len(line) > _MAX_LINE:
        tail = line[start:]
        ellipsis = "…" if len(tail) > _MAX_LINE else ""
        line = ("…" if start else "") + tail[:_MAX_LINE] + ellipsis
    hidden = line != line.rstrip() or not line.expandtabs(1).isprintable()
    return repr(line) if hidden else line
