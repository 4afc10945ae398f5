"""Parsing of models' answers: their JSON is found, repaired if it is malformed, and converted to a type."""

import re
from collections import deque
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final, TypeVar, overload

import msgspec

from promptkit.answers.json_values import MAX_DEPTH, JsonValue, find_values
from promptkit.answers.repair import Repairer, RepairError
from promptkit.errors.distribution import install_command
from promptkit.errors.exceptions import AnswerError, InvalidAnswerPart
from promptkit.types.caching import cached_by_type
from promptkit.types.descriptions import expected_of
from promptkit.types.errors import MAX_ERRORS, ConversionError, reason_of
from promptkit.types.parsing import unreadable
from promptkit.types.scalar_parsers import Read
from promptkit.types.schemas import check_answer_type
from promptkit.types.structuring import structurer

T = TypeVar("T")

#: The maximum length of an answer, in characters.
_MAX_LENGTH: Final = 1024 * 1024

#: The maximum number of values that are tried.
_MAX_VALUES: Final = 100

#: At the end of a cut answer, a member whose value is missing, or whose name is incomplete.
_UNFINISHED_MEMBER: Final = re.compile(r'"[^"]*"\s*+:\s*+\Z|(?<=\{)\s*+"[^"]*\Z')


@overload
def parse_answer(text: str, answer: type[T], *, allow_cut: bool = False) -> T: ...
@overload
def parse_answer(text: str, answer: Any, *, allow_cut: bool = False) -> Any: ...
def parse_answer(text: str, answer: Any, *, allow_cut: bool = False) -> Any:
    """
    Find the JSON in a model's answer, and convert it to a type.

    There can be prose and code fences around the JSON. If there are several JSON values, the last valid one
    counts. With the extra ``answers``, malformed JSON of up to 128 KiB is repaired: wrong commas and
    quotation marks, line breaks in strings, comments, the constants of Python.

    Args:
        text:
            The model's answer: at most 1 MiB, nested at most 100 deep.

        answer:
            The type: any type that `promptkit.fragments.answer_format` accepts.

        allow_cut:
            Whether to repair an answer whose end is missing. Its last text can be incomplete.

    Returns:
        A value of the type.

    Raises:
        AnswerError: If no JSON value in the answer is valid, or its end is missing. The error lists all
            problems of the longest JSON value, with their paths.

        TypeError: If *text* is not a string, or promptkit does not support the type.
    """
    if not isinstance(text, str):
        msg = f"an answer is text, not {type(text).__name__}: pass the text of the model's message"
        raise TypeError(msg)
    read, expected = _reader(answer)
    if len(text) > _MAX_LENGTH:
        error = ConversionError(reason=f"has more than {_MAX_LENGTH:,} characters")
        raise AnswerError(text, _invalid_parts(error, expected))
    decoder = _Decoder(text, allow_cut=allow_cut)
    no_json = ConversionError(reason=f"contains no JSON: expected {expected}")
    failures = [((False, 0), _invalid_parts(no_json, expected))]
    for json_value in _values(text):
        value = None
        try:
            value = decoder.decode(json_value)
            return read(value)
        except ConversionError as error:
            # A longer value is more likely to be the answer. A bracket that is not closed can be prose.
            likelihood = json_value.is_closed, json_value.length
            failures.append((likelihood, _invalid_parts(error, expected, value)))
        if not (json_value.is_closed or allow_cut) and json_value.end == len(text):
            break  # otherwise a draft before the answer could count
    _, errors = max(failures, key=itemgetter(0))
    failure = AnswerError(text, errors)
    if decoder.needs_repair:
        failure.add_note(f"malformed JSON is repaired with an extra: {install_command('answers')}")
    raise failure


@cached_by_type
def _reader(answer: Any) -> tuple[Read, str]:
    """Return the function that converts JSON values to a type, and the description of valid values."""
    check_answer_type(answer)
    return structurer(answer), expected_of(answer)


def _values(text: str) -> Iterator[JsonValue]:
    """
    Yield the JSON values in an answer, from the last to the first.

    Then follow the values that have a line with a code fence in a string.
    """
    values = deque(find_values(text), _MAX_VALUES)
    yield from reversed(values)
    yield from (
        value
        for value in reversed(deque(find_values(text, fences=False), _MAX_VALUES))
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
    Decodes the JSON values in one answer.

    Args:
        text:
            The answer.

        allow_cut:
            Whether a value whose end is missing is repaired.

    Attributes:
        needs_repair:
            Whether a value could not be decoded because the library for repairs is not installed.
    """

    def __init__(self, text: str, *, allow_cut: bool) -> None:
        self._text, self._allow_cut, self._repairer = text, allow_cut, Repairer()
        self.needs_repair = False

    def decode(self, value: JsonValue) -> Any:
        """Decode a value. Raises `ConversionError` if it is malformed and cannot be repaired."""
        if value.is_too_deep:
            raise ConversionError(reason=f"is nested more than {MAX_DEPTH} deep")
        if not (value.is_closed or self._allow_cut):
            raise ConversionError(reason="is cut: its end is missing")
        json = self._text[value.start : value.end]
        try:
            return msgspec.json.decode(json)
        except (ValueError, RecursionError) as error:
            malformed = unreadable(self._text[: value.end], error, value.start)
        try:
            return self._repairer.repair(json if value.is_closed else _UNFINISHED_MEMBER.sub("", json))
        except ModuleNotFoundError:
            self.needs_repair = True
        except RepairError as error:  # the location is more useful than the library's reason
            raise malformed from error
        raise malformed
