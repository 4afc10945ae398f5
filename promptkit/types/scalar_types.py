"""
Scalar types: a `ScalarType` for each type whose values have no parts.

A new scalar type is one entry in `SCALARS`. `register_type` adds authors' own types.
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
from promptkit.types.kinds import Constraints, constrained
from promptkit.types.scalar_parsers import Read, text_parser

#: Converts a JSON value to a type with its constraints. Raises `ConversionError`, or an error of msgspec.
Convert: TypeAlias = Callable[[Any, Any], Any]

Schema: TypeAlias = Mapping[str, Any]

#: Either constant, or derived from the constraints of a type.
Words: TypeAlias = str | Callable[[Constraints], str]
Facets: TypeAlias = Schema | Callable[[Constraints], Schema]


class Reader(Struct, frozen=True):
    """
    The conversion of one argument to values of a type.

    Args:
        read:
            Converts text or a JSON value from a client to a value of the type.

        expected:
            A short description of the input of *read*, for the end of a sentence: ``a whole number``.

        hint:
            The same for an argument's description; ``""`` if the description needs none.

        values:
            All valid strings, if there are few. Completion offers them.

        meanings:
            The meanings of those of *values* that have one.

        is_json:
            Whether people have to write JSON.

        is_several:
            Whether one string can contain several values.
    """

    read: Read
    expected: str
    hint: str = ""
    values: tuple[str, ...] = ()
    meanings: Mapping[str, str] = {}
    is_json: bool = False
    is_several: bool = False


class ScalarType(Reader, frozen=True, kw_only=True):
    """A scalar type. Attributes that depend on constraints can be functions of them."""

    #: Converts a JSON value inside a larger one. It accepts the values of *schema*, while *read* also accepts
    #: what people write.
    convert: Convert = msgspec.convert
    #: A short description of the input of *convert*; None if *expected* describes it.
    described: Words | None = None
    #: An example in JSON.
    example: Any = "text"
    #: The JSON Schema of the input of *convert*.
    schema: Schema
    #: Keywords that constraints add to *schema*, except bounds of numbers and text.
    facets: Facets = {}
    #: The JSON Schema of the type as the key of an object; None if the type cannot be a key.
    key_schema: Facets | None = None
    #: Converts the key of a JSON object to a value.
    convert_key: Convert = parsing.convert_key
    #: Converts a value to text that *read* accepts.
    write: Callable[[Any], str] = str
    #: Converts a value to text for descriptions; None if *write* does.
    show: Callable[[Any], str] | None = None
    #: Whether descriptions show several values separated by commas instead of JSON.
    is_inline: bool = True
    #: Whether people write several values on separate lines, because a value can contain commas.
    one_per_line: bool = False

    def describe(self, limits: Constraints) -> str:
        """Describe the input of `convert` with its constraints."""
        words = self.expected if self.described is None else self.described
        return words(limits) if callable(words) else words

    def example_of(self, limits: Constraints) -> Any:
        """Return an example that meets the constraints."""
        return self.example(limits) if callable(self.example) else self.example

    def facets_of(self, limits: Constraints) -> Schema:
        """Return the keywords that the constraints add to the schema of this type."""
        return self.facets(limits) if callable(self.facets) else self.facets

    def key_schema_of(self, limits: Constraints) -> Schema:
        """Return the JSON Schema of a key with its constraints."""
        return self.key_schema(limits) if callable(self.key_schema) else self.key_schema or {}


def text_scalar(
    read: Callable[[str], Any], *, expected: str, schema: Schema, write: Callable[[Any], str] = str
) -> ScalarType:
    """
    Return the `ScalarType` of a type that msgspec does not support. Its values are text, in JSON as well.
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


def _build_scalar(read: Read, expected: str, **attributes: Any) -> ScalarType:
    """Return the `ScalarType` of a type whose hint equals *expected*."""
    return ScalarType(read, expected, expected, **attributes)


_NUMBER: Final = "a number"
_INTEGER: Final = "a whole number"

#: The scalar types, built in and registered.
SCALARS: Final[dict[type, ScalarType]] = {
    str: ScalarType(
        parsing.parse_text,
        "text",
        described=constraints.describe_text,
        schema={"type": "string"},
        key_schema={},
    ),
    bool: _build_scalar(
        parsing.parse_bool,
        "yes or no",
        values=("yes", "no"),
        described="true or false",
        example=True,
        schema={"type": "boolean"},
        write=lambda value: "true" if value else "false",
        show=lambda value: "yes" if value else "no",
    ),
    int: _build_scalar(
        parsing.parse_int,
        _INTEGER,
        described=partial(constraints.describe_number, _INTEGER),
        example=partial(constraints.number_example, 1),
        schema={"type": "integer"},
        key_schema={"pattern": parsing.INTEGER_KEY},
        convert_key=parsing.convert_int_key,
    ),
    float: _build_scalar(
        parsing.parse_float,
        _NUMBER,
        described=partial(constraints.describe_number, _NUMBER),
        example=partial(constraints.number_example, 1.5),
        schema={"type": "number"},
        key_schema={"pattern": parsing.DECIMAL},
    ),
    bytes: _build_scalar(
        parsing.parse_bytes,
        "base64 or a data: URI",
        described=constraints.describe_base64,
        example="aGVsbG8=",
        schema={"type": "string", "contentEncoding": "base64", "pattern": parsing.BASE64},
        facets=constraints.base64_length,
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
        "a date, as in 2026-01-31",
        example="2026-01-31",
        schema={"type": "string", "format": "date"},
        key_schema={"format": "date"},
        write=date.isoformat,
    ),
    datetime: ScalarType(
        text_parser(lambda text: datetime.fromisoformat(text.upper())),  # lower case is also accepted
        "a date and time, as in 2026-01-31T12:00",
        "a date and time, as in 2026-01-31T12:00, with an offset (+01:00) or without",
        described=partial(constraints.describe_moment, "a date and time", datetime),
        example=partial(constraints.moment_example, datetime),
        schema={"type": "string"},
        facets=partial(constraints.moment_facets, datetime),
        key_schema=partial(constraints.moment_pattern, datetime),
        write=datetime.isoformat,
    ),
    time: _build_scalar(
        text_parser(lambda text: time.fromisoformat(text.upper())),
        "a time of day, as in 12:00",
        described=partial(constraints.describe_moment, "a time of day", time),
        example=partial(constraints.moment_example, time),
        schema={"type": "string"},
        facets=partial(constraints.moment_facets, time),
        key_schema=partial(constraints.moment_pattern, time),
        write=time.isoformat,
    ),
    timedelta: _build_scalar(
        text_parser(parsing.parse_duration),
        "a duration, as in 1h 30m",
        write=parsing.duration_text,
        described="a duration, as in PT1H30M for 1h 30m",
        example="PT1H30M",
        schema={"type": "string", "pattern": parsing.DURATION},  # with the format, some clients send years
        is_inline=False,
    ),
    UUID: _build_scalar(
        text_parser(UUID),
        "a UUID",
        example="12345678-1234-5678-1234-567812345678",
        schema={"type": "string", "pattern": parsing.UUID_TEXT},  # with the format, some want version 4
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
    """Return the `ScalarType` of a type, with or without constraints; None if it is not a scalar type."""
    kind, _ = constrained(annotation)
    return SCALARS.get(kind) if isinstance(kind, type) else None


def scalar_of_value(value: Any) -> ScalarType | None:
    """Return the `ScalarType` of the type of *value*, or of its nearest base class; None if there is none."""
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
    Register a type for parameters and for parts of their values.

    Args:
        kind:
            The type. Built-in types, such as `int` and `date`, cannot be replaced.

        read:
            Converts text to a value; raises an exception for invalid text.

        expected:
            A short description of valid text, for the end of a sentence: ``an amount, as in 3 EUR``.

        schema:
            The JSON Schema of the text. The default is any string.

        write:
            Converts a value to text that *read* accepts.
    """
    if kind not in _BUILT_IN:
        SCALARS[kind] = text_scalar(read, expected=expected, schema=schema or {"type": "string"}, write=write)


def remove_replaced_types() -> None:
    """Remove registered classes that a reload of their module has replaced."""
    for kind in list(SCALARS):
        current: Any = sys.modules.get(kind.__module__)
        for name in kind.__qualname__.split("."):
            current = getattr(current, name, None)
        if current is not kind and isinstance(current, type) and current in SCALARS:
            SCALARS.pop(kind, None)
