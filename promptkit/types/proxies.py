"""Surrogates: the types that are read in the place of others, and how the others are made of their values."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct


class Surrogate(Struct, frozen=True):
    """
    How values of one type are read and written by way of another.

    Args:
        model:
            The type that is read in its place. msgspec converts JSON values to it exactly.

        build:
            From a value of *model* to the value. Raises `ConversionError` with every part that does not fit.

        dump:
            From the value to JSON.

        schema:
            The JSON Schema of what *build* takes. Its ``$defs`` are its own.

        expected:
            What *build* takes, in a few words that end a sentence.

        example:
            An example in JSON; None if there is none.

        values:
            All texts that can be read, if there are few.
    """

    model: Any
    build: Callable[[Any], Any]
    dump: Callable[[Any], Any]
    schema: Mapping[str, Any]
    expected: str
    example: Any = None
    values: tuple[str, ...] = ()
