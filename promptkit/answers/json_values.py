"""
Finds the JSON values in a model's answer: after prose, in code fences, with the mistakes that models make.

Only the extent of a value is determined here, in linear time. For valid JSON, it is exact.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

#: The maximum number of brackets around a part of a value.
MAX_DEPTH: Final = 100

# The quantifiers are possessive (`*+`), because backtracking can take quadratic time.

#: A line that starts or ends a fenced code block.
_FENCE: Final = re.compile(r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+[\w+.#-]*+[ \t\r]*+$", re.MULTILINE)

#: The start of a value: a bracket, unless it is followed by prose, as in ``[see below]``, or a line that
#: consists of a string, a number, true, false or null.
_START: Final = re.compile(
    r"""
    \{ (?= \s*+ (?: ["'“}] | // | /\* | [\w$-]++ \s*+ : | \Z ) )
    | \[ (?= \s*+ (?: ["'“{\[\]\d-] | // | /\* | (?: true | false | null | True | False | None ) \b | \Z ) )
    | ^ [ \t]*+ (?P<scalar> " (?: [^"\\\n] | \\. )*+ " | -?\d[\d.eE+-]*+ | true | false | null ) [ \t\r]*+ $
    """,
    re.MULTILINE | re.VERBOSE,
)

#: The tokens outside strings that matter for the extent of a value.
_TOKEN: Final = re.compile(r"""["'“{}\[\],:]""")

#: The rest of a string by its opening quotation mark, and whether it is the value of a member. A quotation
#: mark in it that is not escaped ends it only if JSON can continue there, or if a comma is missing after it.
_REST_OF_STRING: Final = {
    (opening, is_value): re.compile(
        rf"(?: [^{closing}\\] | \\. | {closing} (?! {continuation} ) )*+ {closing}", re.DOTALL | re.VERBOSE
    )
    for opening, closing in ('""', "''", "“”")
    for is_value, continuation in (
        (True, r"""\s*+ (?: [,}\]] | \Z ) | [ \t\r]*+ \n \s*+ ["'“]"""),
        (False, r"\s*+ (?: [,:}\]] | \Z )"),
    )
}

_QUOTES: Final = "\"'“"
_OPENING: Final = {"}": "{", "]": "["}


class JsonValue(Struct, frozen=True):
    """
    The extent of a value, which can be malformed, in a model's answer.

    Args:
        start:
            The position of its first character.

        end:
            The position after its last character.

        is_closed:
            Whether its first bracket is closed.

        is_too_deep:
            Whether a part of it has more than `MAX_DEPTH` brackets around it. Then it is not closed.
    """

    start: int
    end: int
    is_closed: bool = True
    is_too_deep: bool = False

    @property
    def length(self) -> int:
        """The number of its characters."""
        return self.end - self.start


def find_values(text: str, *, fences: bool = True) -> Iterator[JsonValue]:
    """
    Yield the outermost values in *text*.

    Args:
        text:
            A model's answer.

        fences:
            Whether a line with a code fence ends a value that is not closed. Otherwise, it can be a part of a
            string.
    """
    marks = [mark.span() for mark in _FENCE.finditer(text)] if fences else []
    starts, ends = [0, *(end for _, end in marks)], [*(start for start, _ in marks), len(text)]
    for start, end in zip(starts, ends, strict=True):
        position = start
        while (match := _START.search(text, position, end)) is not None:
            is_scalar = match["scalar"] is not None
            value = JsonValue(*match.span("scalar")) if is_scalar else _extent(text, match.start(), end)
            yield value
            position = value.end


def _extent(text: str, start: int, end: int) -> JsonValue:
    """Return the extent of the value whose first bracket is at *start*; at most until *end*."""
    brackets: list[str] = []
    position = last = start
    is_value = is_within_words = False
    while (token := _TOKEN.search(text, position, end)) is not None and len(brackets) <= MAX_DEPTH:
        mark, position = token[0], token.end()
        if mark in _QUOTES:
            is_within_words = is_within_words or bool(text[last : token.start()].strip())
            if is_within_words:  # it is an apostrophe, or quotes a word
                continue
            string_end = _REST_OF_STRING[mark, is_value].match(text, position, end)
            if string_end is None:
                break
            position = string_end.end()
        elif mark in "{[":
            brackets.append(mark)
        elif mark in _OPENING and _OPENING[mark] in brackets:
            while brackets.pop() != _OPENING[mark]:  # a bracket inside is not closed
                pass
            if not brackets:
                return JsonValue(start, position)
        last, is_value, is_within_words = position, mark == ":", False
    return JsonValue(start, end, is_closed=False, is_too_deep=len(brackets) > MAX_DEPTH)
