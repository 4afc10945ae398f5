"""Surrogates: types that are read in place of others, with conversions between the two."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct


class Surrogate(Struct, frozen=True):
    """
    A type that is read in place of another, and the conversions between them.

    Args:
        model:
            The type that is read. msgspec converts JSON values to it exactly.

        build:
            Converts a value of *model* to the original type. Raises `ConversionError` for every invalid part.

        dump:
            Converts a value to JSON.

        schema:
            The JSON Schema of the input of *build*, with its own ``$defs``.

        expected:
            A short description of the input of *build*, for the end of a sentence.

        example:
            An example in JSON; None if there is none.

        values:
            All valid texts, if there are few.
    """

    model: Any
    build: Callable[[Any], Any]
    dump: Callable[[Any], Any]
    schema: Mapping[str, Any]
    expected: str
    example: Any = None
    values: tuple[str, ...] = ()
