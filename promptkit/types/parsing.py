"""
Readers, which convert the text of one argument to a value of its type.

Arguments are strings in the protocol. Each parameter gets its reader when it is compiled.
"""

import re
import types
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import structs

from promptkit.types.choices import enum_reader, literal_reader
from promptkit.types.constraints import located, offset_error, zone_of
from promptkit.types.descriptions import example_text, expected_of
from promptkit.types.errors import ConversionError, collect, error_of_union
from promptkit.types.kinds import (
    SEQUENCES,
    constrained,
    has_parts,
    is_constrained,
    is_enum,
    is_list,
    is_literal,
    is_mapping,
    is_named_tuple,
    is_own,
    is_record,
    is_sequence,
    is_union,
    members_of,
    members_of_record,
    plain,
    surrogate_of,
)
from promptkit.types.scalar_parsers import Read
from promptkit.types.scalars import SCALARS, Reader, ScalarType, scalar_of
from promptkit.types.structuring import is_leaf, sized, structurer


def reader_of(annotation: Any) -> Reader | None:
    """Return the reader of a type; None if the type is not supported."""
    annotation = plain(annotation)
    if isinstance(annotation, type) and annotation in SCALARS:
        return SCALARS[annotation]
    if type(annotation).__hash__ is None:  # an unhashable value, which is not a type
        return None
    factory = next((factory for matches, factory in _FACTORIES if matches(annotation)), None)
    return factory(annotation) if factory else None


def _union_reader(annotation: Any) -> Reader | None:
    """Return a reader for the first matching member of a union, with plain text last."""
    # None is not a member: it means that the argument is missing.
    members = sorted(members_of(annotation), key=lambda member: plain(member) is str)
    readers = [reader_of(member) for member in members]
    member_readers = [reader for reader in readers if reader is not None]
    if len(member_readers) != len(readers) or not member_readers:
        return None
    if len(member_readers) == 1:
        return member_readers[0]

    def read(value: Any) -> Any:
        errors = []
        for reader in member_readers:
            try:
                return reader.read(value)
            except ConversionError as error:
                errors.append(error)
        if (likely_error := error_of_union(errors)) is not None:
            raise likely_error
        raise ConversionError(nearest=next((error.nearest for error in errors if error.nearest), None))

    return _combine_readers(member_readers, read)


def _combine_readers(member_readers: list[Reader], read: Read) -> Reader:
    """Combine the readers of the members of a union."""
    expected = " or ".join(reader.expected for reader in member_readers)
    takes_any_text = any(reader is SCALARS[str] for reader in member_readers)
    hint = "" if takes_any_text else " or ".join(reader.hint or reader.expected for reader in member_readers)
    values = tuple(value for reader in member_readers for value in reader.values)
    is_several = any(reader.is_several for reader in member_readers)
    return Reader(read, expected, hint, values, is_several=is_several)


def _constrained_reader(annotation: Any) -> Reader | None:
    """Return a reader of ``Annotated[T, msgspec.Meta(...)]``."""
    inner = reader_of(annotation.__origin__)
    if inner is None:
        return None
    if zone := zone_of(annotation):
        return _zoned_reader(inner, zone)
    if not _is_supported(annotation):
        return None
    expected = expected_of(annotation)
    if scalar_of(annotation) is None:
        read = sized(inner.read, annotation)
    else:

        def read(value: Any) -> Any:
            value_read = inner.read(value)
            try:
                return msgspec.convert(value_read, annotation)
            except (msgspec.ValidationError, ValueError):
                raise ConversionError(expected, reason=offset_error(value_read, annotation)) from None

    hint = expected if expected != "text" else ""
    return Reader(read, expected, hint, inner.values, is_several=inner.is_several)


def _zoned_reader(inner: Reader, zone: tzinfo) -> Reader:
    """Return a reader of datetimes in which a time without an offset is in *zone*."""
    hint = f"{inner.expected}, in {zone} unless it has an offset"
    return Reader(lambda value: located(inner.read(value), zone), inner.expected, hint)


def _surrogate_reader(annotation: Any) -> Reader | None:
    """Return a reader of a type by way of its surrogate."""
    surrogate: Any = surrogate_of(annotation)
    inner = reader_of(surrogate.model) or _json_reader(surrogate.model)
    if inner is None:
        return None
    read_inner, build, expected = inner.read, surrogate.build, surrogate.expected
    reader = structs.replace(inner, expected=expected, hint=expected, values=surrogate.values)
    if isinstance(reader, ScalarType):
        return structs.replace(reader, read=lambda value: build(read_inner(value)))
    example = surrogate.example
    hint = expected if example is None else f"JSON, for example {msgspec.json.encode(example).decode()}"
    return structs.replace(reader, read=_json_read(annotation), hint=hint)


def _list_reader(annotation: Any) -> Reader | None:
    """Return a reader of a list, set or variable-length tuple, from a JSON array or separated values."""
    make: Any = SEQUENCES[get_origin(annotation)]
    item = get_args(annotation)[0]
    member = reader_of(item)
    if member is None or member.is_json or is_list(item):
        return _json_reader(annotation)
    scalar = member if isinstance(member, ScalarType) else None
    one_per_line = scalar is not None and scalar.one_per_line
    nullable = is_union(plain(item)) and types.NoneType in get_args(plain(item))
    expected = f"a list, each {member.expected}" if member.expected != "text" else "a list"
    separated = "several, one per line" if one_per_line else "several, separated by commas"
    hint = f"{separated}; each {member.hint}" if member.hint else separated
    read = _list_read(member, make, nullable=nullable, one_per_line=one_per_line)
    return Reader(read, expected, hint, is_several=True)


def _list_read(
    member: Reader, make: Callable[[list[Any]], Any], *, nullable: bool, one_per_line: bool
) -> Read:
    """Return a function that reads every item with *member*, and raises all errors together."""

    def read_item(item: Any) -> Any:
        try:
            return None if item is None and nullable else member.read(item)
        except ConversionError as error:
            parts = (
                part.replaced(
                    expected=part.expected or member.expected, got=item if part.got is None else part.got
                )
                for part in error.parts
            )
            raise ConversionError(inner=tuple(parts)) from None

    def read(value: Any) -> Any:
        items = split_list(value, one_per_line=one_per_line) if isinstance(value, str) else value
        if not isinstance(items, list):
            raise ConversionError
        results = collect(enumerate(items), read_item)
        try:
            return make(results)
        except TypeError:  # values of a registered type can be unhashable
            raise ConversionError from None

    return read


def split_list(text: str, *, one_per_line: bool) -> Any:
    """Split the text of a list into items: a JSON array, lines, or values separated by commas."""
    if text.lstrip().startswith("["):
        return _decode(text)
    items = text.splitlines() if one_per_line or "\n" in text.strip() else text.split(",")
    return [item.strip() for item in items if item.strip()]


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        if not text.lstrip().startswith(("[", "{")):
            raise ConversionError from None  # the text is not meant as JSON
        raise unreadable(text, error) from None


_READABLE: Final = "valid JSON"

#: msgspec's error message for malformed JSON, with the byte offset.
_MALFORMED: Final = r"JSON is malformed: (.*) \(byte (\d+)\)"

#: An escaped lone surrogate, which msgspec reports as an early end of the input.
_LONE_SURROGATE: Final = r"(?i)\\u(?:d[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..\\u)d[c-f])"


def unreadable(text: str, error: Exception, start: int = 0) -> ConversionError:
    """
    Return the error for JSON that cannot be read, with the reason and the location.

    Args:
        text:
            A text that ends with the JSON.

        error:
            The error of msgspec.

        start:
            The position of the JSON in the text.
    """
    if isinstance(error, RecursionError):
        return ConversionError(_READABLE, reason="is nested too deeply")
    if isinstance(error, UnicodeError | msgspec.ValidationError):
        return ConversionError(_READABLE, reason=f"is not valid JSON: {error}")
    reason, before = str(error).replace("Input data was truncated", "it ends too early"), text
    if match := re.fullmatch(_MALFORMED, reason):
        json_before = text[start:].encode()[: int(match[2])].decode(errors="ignore")
        reason, before = match[1], text[:start] + json_before
    elif match := re.compile(_LONE_SURROGATE).search(text, start):
        reason, before = "an unpaired surrogate", text[: match.start()]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    reason = f"is not valid JSON at line {line}, column {column}: {reason}"
    return ConversionError(_READABLE, reason=reason)


def _json_read(annotation: Any) -> Read:
    """Return a function that converts JSON, as text or decoded."""
    structure = structurer(annotation)
    return lambda value: structure(_decode(value) if isinstance(value, str) else value)


def _json_reader(annotation: Any) -> Reader | None:
    """Return a reader of a type whose values have parts, which are written as JSON."""
    try:
        if not _is_readable(annotation, frozenset()):
            return None
    except (TypeError, NameError, RecursionError):
        return None
    hint = f"JSON, for example {example_text(annotation)}"
    return Reader(_json_read(annotation), expected_of(annotation), hint, is_json=True, is_several=True)


def _is_supported(annotation: Any) -> bool:
    """Whether msgspec supports a type, with its constraints."""
    try:
        msgspec.json.Decoder(annotation)
    except TypeError:
        return False
    return True


def _is_readable(annotation: Any, seen: frozenset[Any]) -> bool:
    """Whether every part of a type can be read."""
    kind, _ = constrained(annotation)
    if (is_constrained(annotation) or is_leaf(kind)) and not _is_supported(annotation):
        return False
    if kind is Any or kind in seen or is_leaf(kind) or surrogate_of(kind) is not None:
        return True
    if is_record(cls := get_origin(kind) or kind) or is_named_tuple(cls):
        return not is_own(cls) and all(
            _is_readable(member.type, seen | {kind}) for member in members_of_record(kind)
        )
    if is_mapping(kind) and not _can_be_key((*get_args(kind), Any)[0]):
        return False
    is_container = is_mapping(kind) or is_sequence(kind) or is_union(kind) or cls is tuple
    return is_container and all(_is_readable(part, seen) for part in get_args(kind) if part is not Ellipsis)


def _can_be_key(annotation: Any) -> bool:
    """Whether values of a type can be keys of a JSON object."""
    kind, _ = constrained(annotation)
    if (scalar := scalar_of(kind)) is not None:
        return scalar.key_schema is not None
    return kind is Any or is_literal(kind) or is_enum(kind)


#: Predicates of types with parts or alternatives, and factories of their readers. The first match counts, but
#: its factory can still return None.
_FACTORIES: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Reader | None]], ...]] = (
    (is_constrained, _constrained_reader),
    (is_enum, enum_reader),
    (is_literal, literal_reader),
    (lambda t: surrogate_of(t) is not None, _surrogate_reader),
    (is_list, _list_reader),
    (is_union, _union_reader),
    (has_parts, _json_reader),
)
