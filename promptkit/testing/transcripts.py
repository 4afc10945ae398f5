"""Transcripts that tell workflows, messages and content apart."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
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
