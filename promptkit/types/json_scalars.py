"""JSON values and object keys to values without parts, such as numbers and dates; and bounds on parts."""

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any, get_args

import msgspec

from promptkit.errors.exceptions import shortened
from promptkit.errors.suggestions import nearest
from promptkit.types.constraints import located, offset_fault, zone_of
from promptkit.types.descriptions import expected_of
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_constrained, is_enum, is_literal
from promptkit.types.scalar_parsing import Read, convert_key
from promptkit.types.scalars import SCALARS


def is_leaf(annotation: Any) -> bool:
    """Tell whether *annotation* is a type whose values have no parts."""
    if is_constrained(annotation):
        return is_leaf(annotation.__origin__)
    is_scalar = isinstance(annotation, type) and annotation in SCALARS
    return is_scalar or annotation is NoneType or is_literal(annotation) or is_enum(annotation)


def leaf(annotation: Any) -> Read:
    """Make the function that structures a JSON value as a type whose values have no parts."""
    kind = annotation.__origin__ if is_constrained(annotation) else annotation
    scalar = SCALARS.get(kind) if isinstance(kind, type) else None
    convert = msgspec.convert if scalar is None else scalar.convert
    # To JSON Schema, 1.0 is an integer. The choices of a Literal or an Enum may be integers, too.
    takes_integers = scalar is None or scalar.schema.get("type") == "integer"
    zone = zone_of(annotation)

    def structure(value: Any) -> Any:
        if takes_integers and isinstance(value, float) and value.is_integer():
            value = int(value)
        try:
            found = convert(value, annotation)
        except (msgspec.ValidationError, ValueError, OverflowError):
            raise _refusal(value, annotation) from None
        return found if zone is None else located(found, zone)

    return structure


def _refusal(value: Any, annotation: Any) -> ConversionError:
    choices = _choices(annotation)
    near = partial(nearest, value, choices) if choices and isinstance(value, str) else None
    reason = offset_fault(value, annotation, seconds=":00")
    return ConversionError(expected_of(annotation), got=value, nearest=near, reason=reason)


def _choices(annotation: Any) -> list[str]:
    """Return the texts of a Literal or an Enum; other types have too many."""
    if is_literal(annotation):
        return [str(value) for value in get_args(annotation)]
    return [str(member.value) for member in annotation] if is_enum(annotation) else []


def key_converter(annotation: Any) -> Callable[[str], Any]:
    """Make a function that reads the key of a JSON object as a value of *annotation*."""
    if annotation in (Any, str):
        return str
    scalar = SCALARS.get(annotation) if isinstance(annotation, type) else None
    convert, zone = convert_key if scalar is None else scalar.convert_key, zone_of(annotation)

    def structure(text: str) -> Any:
        try:
            key = convert(text, annotation)
        except (msgspec.ValidationError, ConversionError):
            reason = offset_fault(text, annotation, seconds=":00")
            raise ConversionError(expected_of(annotation), got=text, path=step(text), reason=reason) from None
        return key if zone is None else located(key, zone)

    return structure


def step(key: str) -> str:
    """Return the path step for *key*, shortened, because every fault below it repeats the step."""
    return f"[{shortened(key)!r}]"


def sized(read: Read, annotation: Any, tree: Any) -> Read:
    """Make a function that reads a value with parts, of which there may be only as many as *tree* says."""
    least, most = getattr(tree, "min_length", None) or 0, getattr(tree, "max_length", None)
    if not least and most is None:
        return read

    def read_sized(value: Any) -> Any:
        found = read(value)
        if len(found) < least or (most is not None and len(found) > most):
            raise ConversionError(expected_of(annotation), got=value)
        return found

    return read_sized
