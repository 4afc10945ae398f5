"""
Parsing of models' answers: the JSON is found, repaired if it is malformed, and converted to a type.

JSON is found after prose, between code fences, and despite the mistakes that models make. Its extent is
determined in linear time, and exactly if the JSON is valid.

The library for repairs, json-repair, tries several interpretations of malformed text, which can take
quadratic time or worse. It reads the text character by character, so limiting the number of characters that
it reads also limits its time. The time to build one long string still grows with the square of its length, so
the length is limited as well.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final, Self, SupportsIndex, TypeVar, overload

import msgspec
from msgspec import Struct

from promptkit.errors.distribution import install_command
from promptkit.errors.exceptions import AnswerError, InvalidAnswerPart
from promptkit.types.caching import cached_by_type
from promptkit.types.conversion_reasons import reason_of
from promptkit.types.descriptions import describe_type
from promptkit.types.errors import MAX_ERRORS, ConversionError
from promptkit.types.parsing import malformed_json_error
from promptkit.types.scalar_parsers import ReadFunction
from promptkit.types.schemas import check_answer_type
from promptkit.types.structuring import structurer

#: The maximum number of brackets around a part of a value.
MAX_DEPTH: Final = 100

# Quantifiers are possessive (`*+`), because backtracking can take quadratic time.

#: A line that starts or ends a fenced code block.
_FENCE: Final = re.compile(r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+[\w+.#-]*+[ \t\r]*+$", re.MULTILINE)

#: The start of a value: either a bracket that is not followed by prose, as in ``[see below]``, or a line that
#: consists only of a string, a number, true, false or null.
_START: Final = re.compile(
    r"""
    \{ (?= \s*+ (?: ["'“}] | // | /\* | [\w$-]++ \s*+ : | \Z ) )
    | \[ (?= \s*+ (?: ["'“{\[\]\d-] | // | /\* | (?: true | false | null | True | False | None ) \b | \Z ) )
    | ^ [ \t]*+ (?P<scalar> " (?: [^"\\\n] | \\. )*+ " | -?\d[\d.eE+-]*+ | true | false | null ) [ \t\r]*+ $
    """,
    re.MULTILINE | re.VERBOSE,
)

#: The tokens that determine the extent of a value.
_TOKEN: Final = re.compile(r"""["'“{}\[\],:]""")

#: Patterns for the rest of a string, keyed by its opening quotation mark and whether the string is the value
#: of a member. An unescaped quotation mark in the string ends it only if JSON can continue after it, or could
#: if a missing comma were added.
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


class JsonExtent(Struct, frozen=True):
    """
    The extent of a JSON value in a model's answer. The value can be malformed.

    Args:
        start:
            The index of the value's first character.

        end:
            The index after the value's last character.

        is_closed:
            Whether the value's first bracket is closed. This is also true for a value without brackets.

        is_too_deep:
            Whether more than `MAX_DEPTH` brackets are around a part of the value. Such a value counts as not
            closed.
    """

    start: int
    end: int
    is_closed: bool = True
    is_too_deep: bool = False


def find_values(text: str, *, fences_end_values: bool = True) -> Iterator[JsonExtent]:
    """
    Yield the extent of each JSON value in *text* that is not part of another value.

    Args:
        text:
            A model's answer.

        fences_end_values:
            Whether a line with a code fence ends a value that is not closed. If false, such a line can be
            part of a string.
    """
    marks = [mark.span() for mark in _FENCE.finditer(text)] if fences_end_values else []
    starts, ends = [0, *(end for _, end in marks)], [*(start for start, _ in marks), len(text)]
    for start, end in zip(starts, ends, strict=True):
        position = start
        while (match := _START.search(text, position, end)) is not None:
            is_scalar = match["scalar"] is not None
            value = JsonExtent(*match.span("scalar")) if is_scalar else _find_extent(text, match.start(), end)
            yield value
            position = value.end


def _find_extent(text: str, start: int, end: int) -> JsonExtent:
    """Return the extent of the value whose first bracket is at *start*. It ends at *end* at the latest."""
    brackets: list[str] = []
    position = last = start
    is_value = is_within_words = False
    while (token := _TOKEN.search(text, position, end)) is not None and len(brackets) <= MAX_DEPTH:
        mark, position = token[0], token.end()
        if mark in _QUOTES:
            is_within_words = is_within_words or bool(text[last : token.start()].strip())
            if is_within_words:  # the mark is an apostrophe, or quotes a word
                continue
            string_end = _REST_OF_STRING[mark, is_value].match(text, position, end)
            if string_end is None:
                break
            position = string_end.end()
        elif mark in "{[":
            brackets.append(mark)
        elif mark in _OPENING and _OPENING[mark] in brackets:
            while brackets.pop() != _OPENING[mark]:  # an inner bracket is not closed
                pass
            if not brackets:
                return JsonExtent(start, position)
        last, is_value, is_within_words = position, mark == ":", False
    return JsonExtent(start, end, is_closed=False, is_too_deep=len(brackets) > MAX_DEPTH)


T = TypeVar("T")

#: The maximum length of an answer, in characters.
_MAX_LENGTH: Final = 1024 * 1024

#: The maximum length of malformed JSON, in characters.
_MAX_MALFORMED: Final = 128 * 1024

#: The maximum number of characters that the library for repairs can read for each answer. For common
#: mistakes, it reads each character twice.
_MAX_READ: Final = 8 * _MAX_MALFORMED

#: The maximum number of JSON values that are tried.
_MAX_VALUES: Final = 100

#: A member at the end of a cut answer whose value is missing, or whose name is incomplete.
_UNFINISHED_MEMBER: Final = re.compile(r'"[^"]*"\s*+:\s*+\Z|(?<=\{)\s*+"[^"]*\Z')


@overload
def parse_answer(text: str, answer: type[T], *, allow_cut: bool = False) -> T: ...
@overload
def parse_answer(text: str, answer: Any, *, allow_cut: bool = False) -> Any: ...
def parse_answer(text: str, answer: Any, *, allow_cut: bool = False) -> Any:
    """
    Find the JSON in a model's answer and convert it to a type.

    The JSON can be surrounded by prose and code fences. If there are several JSON values, the last valid one
    is used. If the extra ``answers`` is installed, malformed JSON of up to 131,072 characters is repaired:
    wrong commas and quotation marks, line breaks in strings, comments, and Python's constants.

    Args:
        text:
            The model's answer, which can have at most 1,048,576 characters. Its JSON can be nested at most
            100 levels deep.

        answer:
            The type of the answer: any type that `promptkit.fragments.answer_format` accepts.

        allow_cut:
            Whether to repair an answer whose end is missing. The last string in it can be incomplete.

    Returns:
        A value of the type.

    Raises:
        AnswerError: If no JSON value in the answer is valid, or if the end of the answer is missing. The
            error lists all problems of the longest JSON value, with their paths.

        TypeError: If *text* is not a string, or promptkit does not support the type.
    """
    if not isinstance(text, str):
        msg = f"an answer must be text, not {type(text).__name__}: pass the text of the model's message"
        raise TypeError(msg)
    read, expected = _answer_converter(answer)
    if len(text) > _MAX_LENGTH:
        error = ConversionError(reason=f"has more than {_MAX_LENGTH:,} characters")
        raise AnswerError(text, _invalid_parts(error, expected))
    decoder = _Decoder(text, allow_cut=allow_cut)
    no_json = ConversionError(reason=f"contains no JSON: expected {expected}")
    failures = [((False, 0), _invalid_parts(no_json, expected))]
    for json_value in _candidate_values(text):
        value = None
        try:
            value = decoder.decode(json_value)
            return read(value)
        except ConversionError as error:
            # A longer value is more likely to be the answer. A bracket that is not closed can be prose.
            likelihood = json_value.is_closed, json_value.end - json_value.start
            failures.append((likelihood, _invalid_parts(error, expected, value)))
        if not (json_value.is_closed or allow_cut) and json_value.end == len(text):
            break  # otherwise, a draft before the answer could be used
    _, errors = max(failures, key=itemgetter(0))
    failure = AnswerError(text, errors)
    if decoder.needs_repair:
        failure.add_note(f"to have malformed JSON repaired, install an extra: {install_command('answers')}")
    raise failure


@cached_by_type
def _answer_converter(answer: Any) -> tuple[ReadFunction, str]:
    """Return a function that converts JSON values to a type, and a description of valid values."""
    check_answer_type(answer)
    return structurer(answer), describe_type(answer)


def _candidate_values(text: str) -> Iterator[JsonExtent]:
    """
    Yield the JSON values in an answer, from the last to the first.

    Values that contain a code fence inside a string come after all other values.
    """
    values = deque(find_values(text), _MAX_VALUES)
    yield from reversed(values)
    yield from (
        value
        for value in reversed(deque(find_values(text, fences_end_values=False), _MAX_VALUES))
        if value.is_closed and value not in values
    )


def _invalid_parts(error: ConversionError, expected: str, value: Any = None) -> tuple[InvalidAnswerPart, ...]:
    return tuple(
        InvalidAnswerPart(
            part.path.removeprefix("."),
            reason_of(part, value, part.expected or expected),
            (part.expected or expected) if part.reason is None else None,
            part.nearest,
        )
        for part in error.parts[:MAX_ERRORS]
    )


class _Decoder:
    """
    A decoder for the JSON values in one answer.

    Args:
        text:
            The answer.

        allow_cut:
            Whether to repair truncated values.

    Attributes:
        needs_repair:
            Whether any value could not be decoded because the repair library is not installed.
    """

    def __init__(self, text: str, *, allow_cut: bool) -> None:
        self._text, self._allow_cut, self._unread = text, allow_cut, _MAX_READ
        self.needs_repair = False

    def decode(self, value: JsonExtent) -> Any:
        """Decode a value. Raises `ConversionError` if it is malformed and cannot be repaired."""
        if value.is_too_deep:
            raise ConversionError(reason=f"is nested more than {MAX_DEPTH} levels deep")
        if not (value.is_closed or self._allow_cut):
            raise ConversionError(reason="is cut off: its end is missing")
        text = self._text[value.start : value.end]
        try:
            return msgspec.json.decode(text)
        except (ValueError, RecursionError) as error:
            malformed = malformed_json_error(self._text[: value.end], error, value.start)
        try:
            return self._repair(text if value.is_closed else _UNFINISHED_MEMBER.sub("", text))
        except ModuleNotFoundError:
            self.needs_repair = True
        except Exception as error:  # the library has bugs, such as failing assertions
            raise malformed from error  # the location in it is more useful than the library's reason
        raise malformed

    def _repair(self, text: str) -> Any:
        """
        Return the value that malformed JSON was probably meant to have, without inventing missing values.

        Raises ModuleNotFoundError if the library is not installed, and other exceptions if it finds no value.
        """
        import json_repair  # installed with an extra

        if len(text) > _MAX_MALFORMED:
            msg = f"more than {_MAX_MALFORMED:,} characters"
            raise ValueError(msg)
        value = json_repair.loads(_MeteredText(text, self.count), skip_json_loads=True, strict=True)
        return msgspec.json.decode(json.dumps(value))  # rejects lone surrogates

    def count(self, length: int) -> None:
        """Count characters that the library has read. Raises ValueError if there are too many."""
        self._unread -= length
        if self._unread < 0:
            msg = "too many interpretations"
            raise ValueError(msg)


class _MeteredText(str):
    """A string that reports the number of characters that are read from it."""

    __slots__ = ("_count",)
    _count: Callable[[int], None]

    def __new__(cls, text: str, count: Callable[[int], None]) -> Self:
        metered = super().__new__(cls, text)
        metered._count = count
        return metered

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self._count(len(part))
        return part if len(part) == 1 else _MeteredText(part, self._count)

    def __add__(self, other: str) -> str:
        return _MeteredText(super().__add__(other), self._count)
