"""What every fragment does with its parts: check them, make them text, keep their annotations."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from numbers import Number
from typing import Any, Final, Literal, TypeAlias

import attrs

from promptkit.language.content import Content, Text

__all__ = [
    "LINE_END",
    "Cell",
    "Item",
    "Part",
    "Scalar",
    "checked_sequence",
    "hanging_indent",
    "kept_parts",
    "plain_string",
    "scalar_text",
    "with_annotations",
]

#: What `section` and `tag` are made of.
Part: TypeAlias = str | Text | Literal[False] | None

#: What has one obvious text.
Scalar: TypeAlias = str | Text | int | float | Decimal | date | time

#: What lists hold.
Item: TypeAlias = "Scalar | Sequence[Item] | None"

#: What tables hold.
Cell: TypeAlias = Scalar | None

#: Markdown has no other line ends.
LINE_END: Final = re.compile(r"\r\n?|\n")


def hanging_indent(text: str, first: str, rest: str) -> str:
    """
    Return *text* with *first* before its first line and *rest* before the others.
    """
    head, *tail = LINE_END.split(text)
    return "\n".join([first + head, *(rest + line if line.strip() else rest.rstrip() for line in tail)])


def with_annotations(sources: Iterable[object], text: str) -> Text:
    """
    Return *text* with the annotations of each `Text` in *sources*. Raises ValueError if these differ.
    """
    texts = [source for source in sources if isinstance(source, Text)]
    if any(other.annotations != texts[0].annotations for other in texts):
        msg = "texts with different annotations cannot be one block: pass each of them to user(...)"
        raise ValueError(msg)
    return attrs.evolve(texts[0], text=text) if texts else Text(text)


def kept_parts(parts: Iterable[object], place: str) -> list[str | Text]:
    """
    Return *parts* without None, False and blank text. Raises TypeError if one is not text.
    """
    texts = (
        part if isinstance(part, Text) else plain_string(part, f"{place}: part {position}")
        for position, part in enumerate(parts, 1)
        if part is not None and part is not False
    )
    return [text for text in texts if str(text).strip()]


def checked_sequence(value: object, place: str) -> Sequence[Any]:
    """
    Return *value* as a sequence. Raises TypeError if it has no order, or is one string.
    """
    if isinstance(value, str | bytes | Mapping | set | frozenset) or not isinstance(value, Iterable):
        msg = f"{place}: expected a list, not {type(value).__name__}; write [...], or sorted(...) for a set"
        raise TypeError(msg)
    return value if isinstance(value, list | tuple) else list(value)


def scalar_text(value: object, place: str) -> str:
    """
    Return the text of a number, a date, a time or a string. Raises TypeError for anything else.
    """
    return str(value) if isinstance(value, Number | date | time) else plain_string(value, place)


def plain_string(value: object, place: str) -> str:
    """
    Return text as a `str` and of no subclass. Raises TypeError if *value* is not text.
    """
    if isinstance(value, Text):
        return value.text
    if isinstance(value, str):
        return str.__str__(value)  # an enum's member is its value, as on the wire
    remedy = "pass it to user(...) beside the text" if isinstance(value, Content) else "make it a str first"
    msg = f"{place}: expected text, not {type(value).__name__}; {remedy}"
    raise TypeError(msg)
