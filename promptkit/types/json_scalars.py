"""Conversion of JSON values and object keys to scalars, and size limits of containers."""

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any, get_args

import msgspec

from promptkit.errors.exceptions import shortened
from promptkit.errors.suggestions import nearest
from promptkit.types.constraints import located, offset_error, zone_of
from promptkit.types.descriptions import expected_of
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_constrained, is_enum, is_literal
from promptkit.types.scalar_parsing import Read, convert_key
from promptkit.types.scalars import SCALARS


def is_leaf(annotation: Any) -> bool:
    """Whether values of *annotation* have no parts."""
    if is_constrained(annotation):
        return is_leaf(annotation.__origin__)
    is_scalar = isinstance(annotation, type) and annotation in SCALARS
    return is_scalar or annotation is NoneType or is_literal(annotation) or is_enum(annotation)


def leaf(annotation: Any) -> Read:
    """Return a function that converts a JSON value to a type without nested values."""
    kind = annotation.__origin__ if is_constrained(annotation) else annotation
    scalar = SCALARS.get(kind) if isinstance(kind, type) else None
    convert = msgspec.convert if scalar is None else scalar.convert
    # In JSON Schema, 1.0 is an integer. The values of a Literal or an Enum can also be integers.
    takes_integers = scalar is None or scalar.schema.get("type") == "integer"
    zone = zone_of(annotation)

    def structure(value: Any) -> Any:
        if takes_integers and isinstance(value, float) and value.is_integer():
            value = int(value)
        try:
            result = convert(value, annotation)
        except (msgspec.ValidationError, ValueError, OverflowError):
            raise _conversion_error(value, annotation) from None
        return result if zone is None else located(result, zone)

    return structure


def _conversion_error(value: Any, annotation: Any) -> ConversionError:
    choices = _choices(annotation)
    suggestion = partial(nearest, value, choices) if choices and isinstance(value, str) else None
    reason = offset_error(value, annotation, seconds=":00")
    return ConversionError(expected_of(annotation), got=value, nearest=suggestion, reason=reason)


def _choices(annotation: Any) -> list[str]:
    """Return the texts of a Literal or an Enum; no other types have choices."""
    if is_literal(annotation):
        return [str(value) for value in get_args(annotation)]
    return [str(member.value) for member in annotation] if is_enum(annotation) else []


def key_converter(annotation: Any) -> Callable[[str], Any]:
    """Return a function that converts the key of a JSON object to a value of *annotation*."""
    if annotation in (Any, str):
        return str
    scalar = SCALARS.get(annotation) if isinstance(annotation, type) else None
    convert, zone = convert_key if scalar is None else scalar.convert_key, zone_of(annotation)

    def structure(text: str) -> Any:
        try:
            key = convert(text, annotation)
        except (msgspec.ValidationError, ConversionError):
            reason = offset_error(text, annotation, seconds=":00")
            raise ConversionError(expected_of(annotation), got=text, path=step(text), reason=reason) from None
        return key if zone is None else located(key, zone)

    return structure


def step(key: str) -> str:
    """Return the path step for *key*, truncated because every error below it repeats the step."""
    return f"[{shortened(key)!r}]"


def sized(read: Read, annotation: Any, tree: Any) -> Read:
    """Wrap *read* to check the number of parts against the limits of *tree*."""
    minimum, maximum = getattr(tree, "min_length", None) or 0, getattr(tree, "max_length", None)
    if not minimum and maximum is None:
        return read

    def read_sized(value: Any) -> Any:
        result = read(value)
        if len(result) < minimum or (maximum is not None and len(result) > maximum):
            raise ConversionError(expected_of(annotation), got=value)
        return result

    return read_sized
