"""
Scalar types, whose values have no parts.

To support a new scalar type, add an entry to `SCALARS`. Authors add their own types with `register_type`.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Struct

from promptkit.types import constraints
from promptkit.types import scalar_parsers as parsing
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import Constraints, split_constraints
from promptkit.types.scalar_parsers import ReadFunction, text_parser

#: A function that converts a JSON value to a type with its constraints. For invalid values, it raises
#: `ConversionError` or an error of msgspec.
Convert: TypeAlias = Callable[[Any, Any], Any]

Schema: TypeAlias = Mapping[str, Any]

#: A constant, or a function that computes the value from a type's constraints.
Words: TypeAlias = str | Callable[[Constraints], str]
Keywords: TypeAlias = Schema | Callable[[Constraints], Schema]


class Reader(Struct, frozen=True):
    """
    The conversion of arguments to values of a type, and how to describe those arguments.

    Args:
        read:
            Converts a client's text or JSON value to a value of the type.

        expected:
            A short description of the values that *read* accepts, to be used at the end of a sentence:
            ``a whole number``.

        hint:
            A description of the values that *read* accepts, to be added to an argument's description; ``""``
            if the argument needs none.

        values:
            All valid strings, if there are only a few. Completion offers them.

        meanings:
            The meanings of *values*, keyed by value. Values without a meaning are omitted.

        is_json:
            Whether users must write JSON.

        accepts_several:
            Whether one string can contain several values.
    """

    read: ReadFunction
    expected: str
    hint: str = ""
    values: tuple[str, ...] = ()
    meanings: Mapping[str, str] = {}
    is_json: bool = False
    accepts_several: bool = False


class ScalarType(Reader, frozen=True, kw_only=True):
    """A scalar type. An attribute that depends on a type's constraints can be a function of them."""

    #: Converts a JSON value that is part of a larger one. It accepts the values that *schema* allows, while
    #: *read* also accepts what people write.
    convert: Convert = msgspec.convert
    #: A short description of the values that *convert* accepts; None if *expected* describes them.
    json_description: Words | None = None
    #: An example as JSON-compatible data.
    example: Any = "text"
    #: The JSON Schema of the values that *convert* accepts.
    schema: Schema
    #: Keywords that constraints add to *schema*, other than the limits of numbers and text.
    extra_keywords: Keywords = {}
    #: The JSON Schema for object keys of this type; None if the type cannot be a key.
    key_schema: Keywords | None = None
    #: Converts the key of a JSON object to a value.
    convert_key: Convert = parsing.convert_key
    #: Converts a value to text that *read* accepts.
    write: Callable[[Any], str] = str
    #: Converts a value to text for descriptions; None to use *write*.
    show: Callable[[Any], str] | None = None
    #: Whether descriptions show several values as a comma-separated list instead of JSON.
    is_inline: bool = True
    #: Whether people write several values on separate lines, because a value can contain commas.
    one_per_line: bool = False

    def describe(self, limits: Constraints) -> str:
        """Describe the values that `convert` accepts for a type with these constraints."""
        words = self.expected if self.json_description is None else self.json_description
        return words(limits) if callable(words) else words

    def example_of(self, limits: Constraints) -> Any:
        """Return an example that meets the constraints."""
        return self.example(limits) if callable(self.example) else self.example

    def extra_keywords_for(self, limits: Constraints) -> Schema:
        """Return the keywords that the constraints add to this type's schema."""
        return self.extra_keywords(limits) if callable(self.extra_keywords) else self.extra_keywords

    def key_schema_of(self, limits: Constraints) -> Schema:
        """Return the JSON Schema of a key that has the constraints."""
        return self.key_schema(limits) if callable(self.key_schema) else self.key_schema or {}


def text_scalar(
    read: Callable[[str], Any], *, expected: str, schema: Schema, write: Callable[[Any], str] = str
) -> ScalarType:
    """
    Return the `ScalarType` for a type that msgspec does not support and whose values are strings in JSON.
    """

    def checked(value: Any, _: Any = None) -> Any:
        if not isinstance(value, str):
            raise ConversionError(expected, got=value)
        try:
            return read(value)
        except Exception:  # noqa: BLE001 (an author's function can raise anything)
            raise ConversionError(expected, got=value) from None

    return _build_scalar(
        checked,
        expected,
        convert=checked,
        schema=schema,
        key_schema=schema,
        convert_key=checked,
        write=write,
        is_inline=False,
    )


def _build_scalar(read: ReadFunction, expected: str, **attributes: Any) -> ScalarType:
    """Return the `ScalarType` for a type whose hint is the same as *expected*."""
    return ScalarType(read, expected, expected, **attributes)


_NUMBER: Final = "a number"
_INTEGER: Final = "a whole number"

#: The built-in and registered scalar types.
SCALARS: Final[dict[type, ScalarType]] = {
    str: ScalarType(
        parsing.parse_text,
        "text",
        json_description=constraints.describe_text,
        schema={"type": "string"},
        key_schema={},
    ),
    bool: _build_scalar(
        parsing.parse_bool,
        "yes or no",
        values=("yes", "no"),
        json_description="true or false",
        example=True,
        schema={"type": "boolean"},
        write=lambda value: "true" if value else "false",
        show=lambda value: "yes" if value else "no",
    ),
    int: _build_scalar(
        parsing.parse_int,
        _INTEGER,
        json_description=partial(constraints.describe_number, _INTEGER),
        example=partial(constraints.number_example, 1),
        schema={"type": "integer"},
        key_schema={"pattern": parsing.INTEGER_KEY},
        convert_key=parsing.convert_int_key,
    ),
    float: _build_scalar(
        parsing.parse_float,
        _NUMBER,
        json_description=partial(constraints.describe_number, _NUMBER),
        example=partial(constraints.number_example, 1.5),
        schema={"type": "number"},
        key_schema={"pattern": parsing.DECIMAL},
    ),
    bytes: _build_scalar(
        parsing.parse_bytes,
        "base64 or a data: URI",
        json_description=constraints.describe_base64,
        example="aGVsbG8=",
        schema={"type": "string", "contentEncoding": "base64", "pattern": parsing.BASE64},
        extra_keywords=constraints.base64_length,
        write=msgspec.to_builtins,
        one_per_line=True,
        is_inline=False,
    ),
    Decimal: _build_scalar(
        parsing.parse_decimal,
        _NUMBER,
        convert=parsing.convert_decimal,
        example="1.50",
        schema={"anyOf": [{"type": "string", "pattern": parsing.DECIMAL}, {"type": "number"}]},
        key_schema={"pattern": parsing.DECIMAL},
    ),
    date: _build_scalar(
        text_parser(date.fromisoformat),
        "a date such as 2026-01-31",
        example="2026-01-31",
        schema={"type": "string", "format": "date"},
        key_schema={"format": "date"},
        write=date.isoformat,
    ),
    datetime: ScalarType(
        text_parser(lambda text: datetime.fromisoformat(text.upper())),  # lower case is also accepted
        "a date and time such as 2026-01-31T12:00",
        "a date and time such as 2026-01-31T12:00, with or without an offset (+01:00)",
        json_description=partial(constraints.describe_temporal, "a date and time", datetime),
        example=partial(constraints.temporal_example, datetime),
        schema={"type": "string"},
        extra_keywords=partial(constraints.temporal_keywords, datetime),
        key_schema=partial(constraints.temporal_pattern, datetime),
        write=datetime.isoformat,
    ),
    time: _build_scalar(
        text_parser(lambda text: time.fromisoformat(text.upper())),
        "a time of day such as 12:00",
        json_description=partial(constraints.describe_temporal, "a time of day", time),
        example=partial(constraints.temporal_example, time),
        schema={"type": "string"},
        extra_keywords=partial(constraints.temporal_keywords, time),
        key_schema=partial(constraints.temporal_pattern, time),
        write=time.isoformat,
    ),
    timedelta: _build_scalar(
        text_parser(parsing.parse_duration),
        "a duration such as 1h 30m",
        write=parsing.duration_text,
        json_description="a duration such as PT1H30M for 1h 30m",
        example="PT1H30M",
        # The format "duration" is omitted, because it makes some clients send years.
        schema={"type": "string", "pattern": parsing.DURATION},
        is_inline=False,
    ),
    UUID: _build_scalar(
        text_parser(UUID),
        "a UUID",
        example="12345678-1234-5678-1234-567812345678",
        # The format "uuid" is omitted, because it makes some clients accept only version 4.
        schema={"type": "string", "pattern": parsing.UUID_TEXT},
        key_schema={"pattern": parsing.UUID_TEXT},
        is_inline=False,
    ),
    Path: text_scalar(
        parsing.parse_path,
        expected="a path",
        schema={"type": "string", "minLength": 1, "pattern": r"^[^\u0000]*$"},
    ),
}

_BUILT_IN: Final = frozenset(SCALARS)


def scalar_of(annotation: Any) -> ScalarType | None:
    """Return the `ScalarType` for a type, with or without constraints; None if it is not a scalar type."""
    kind, _ = split_constraints(annotation)
    return SCALARS.get(kind) if isinstance(kind, type) else None


def scalar_of_value(value: Any) -> ScalarType | None:
    """Return the `ScalarType` for the type of *value* or its nearest base class; None if there is none."""
    return next((SCALARS[kind] for kind in type(value).__mro__ if kind in SCALARS), None)


def register_type(
    kind: type,
    read: Callable[[str], Any],
    *,
    expected: str,
    schema: Mapping[str, Any] | None = None,
    write: Callable[[Any], str] = str,
) -> None:
    """
    Register a type, so that parameters, and parts of their values, can have it.

    Args:
        kind:
            The type. The built-in scalar types, such as `int` and `date`, cannot be replaced: registering
            them has no effect.

        read:
            A function that converts text to a value, and raises an exception for invalid text.

        expected:
            A short description of valid text, to be used at the end of a sentence:
            ``an amount, as in 3 EUR``.

        schema:
            The JSON Schema of the text. By default, any string is valid.

        write:
            A function that converts a value to text that *read* accepts.
    """
    if kind not in _BUILT_IN:
        SCALARS[kind] = text_scalar(read, expected=expected, schema=schema or {"type": "string"}, write=write)


def remove_replaced_types() -> None:
    """Remove registered classes that were replaced when their module was reloaded."""
    for kind in list(SCALARS):
        current: Any = sys.modules.get(kind.__module__)
        for name in kind.__qualname__.split("."):
            current = getattr(current, name, None)
        if current is not kind and isinstance(current, type) and current in SCALARS:
            SCALARS.pop(kind, None)
