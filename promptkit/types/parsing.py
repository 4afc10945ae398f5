"""
Selection of the reader for a type, which converts the text of an argument to a value of the type.

Arguments are strings in the protocol. Each parameter gets its reader when its prompt is compiled.
"""

import re
from collections.abc import Callable
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from promptkit.types.choices import enum_reader, literal_reader
from promptkit.types.constraints import offset_error
from promptkit.types.descriptions import describe_type, example_text
from promptkit.types.errors import ConversionError, collect, union_error
from promptkit.types.kinds import (
    SEQUENCES,
    has_parts,
    is_constrained,
    is_enum,
    is_list,
    is_literal,
    is_mapping,
    is_named_tuple,
    is_nullable,
    is_promptkit_class,
    is_record,
    is_sequence,
    is_union,
    members_of,
    members_of_record,
    split_constraints,
    surrogate_of,
    unwrap_type,
)
from promptkit.types.scalar_parsers import ReadFunction
from promptkit.types.scalar_types import SCALARS, Reader, ScalarType, scalar_of
from promptkit.types.structuring import add_size_check, is_leaf, structurer
from promptkit.types.unstructuring import text_of


def reader_for(annotation: Any) -> Reader | None:
    """Return the reader for a type; None if the type is not supported."""
    annotation = unwrap_type(annotation)
    if isinstance(annotation, type) and annotation in SCALARS:
        return SCALARS[annotation]
    if type(annotation).__hash__ is None:  # an unhashable value, which is not a type
        return None
    factory = next((factory for matches, factory in _READER_FACTORIES if matches(annotation)), None)
    return factory(annotation) if factory else None


def _union_reader(annotation: Any) -> Reader | None:
    """
    Return a reader that converts a value to the first matching member of a union.

    If the union includes text, another member matches only if converting its value back gives the same text.
    Therefore, ``007`` remains text.
    """
    members = sorted(members_of(annotation), key=_is_text)
    readers = [reader for member in members if (reader := reader_for(member)) is not None]
    if len(readers) != len(members) or not readers:
        return None
    takes_text = any(map(_is_text, members))
    reader = readers[0] if len(readers) == 1 else _combine_readers(readers, takes_text=takes_text)
    if is_nullable(annotation):
        return structs.replace(reader, read=_NullableReader(reader.read, takes_text))
    return reader


def _is_text(annotation: Any) -> bool:
    """Return whether a type is text, with or without constraints."""
    kind, _ = split_constraints(annotation)
    return kind is str


def _combine_readers(readers: list[Reader], *, takes_text: bool) -> Reader:
    """Combine the readers for the members of a union."""

    def read(value: Any) -> Any:
        errors = []
        for reader in readers:
            try:
                result = reader.read(value)
            except ConversionError as error:
                errors.append(error)
            else:
                if not takes_text or _is_round_trip(result, value):
                    return result
        if (likely_error := union_error(errors)) is not None:
            raise likely_error
        raise ConversionError(nearest=next((error.nearest for error in errors if error.nearest), None))

    values = [(reader, text) for reader in readers for text in reader.values]
    return Reader(
        read,
        " or ".join(reader.expected for reader in readers),
        "" if SCALARS[str] in readers else " or ".join(reader.hint or reader.expected for reader in readers),
        tuple(text_of(reader.read(text)) if takes_text else text for reader, text in values),
        {text: meaning for reader in readers for text, meaning in reader.meanings.items()},
        accepts_several=any(reader.accepts_several for reader in readers),
    )


def _is_round_trip(result: Any, value: Any) -> bool:
    """
    Return whether converting *result* back to text gives *value*, the text that it was converted from.

    If *value* is JSON or is not text, always return True.
    """
    is_json = isinstance(value, str) and value.lstrip().startswith(("[", "{"))
    return is_json or not isinstance(value, str) or text_of(result) == value


#: The strings that are read as null.
_NULLS: Final = ("null", "None")


class _NullableReader(Struct, frozen=True):
    """
    A callable that reads a value of a type, or null. Unlike closures, instances for equal types are equal.

    Args:
        read:
            Reads a value of the type.

        takes_text:
            Whether the type includes text. If so, the strings for null are treated as ordinary text.
    """

    read: ReadFunction
    takes_text: bool

    def __call__(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            return self.read(value)
        except ConversionError:
            if not self.takes_text and isinstance(value, str) and value.strip() in _NULLS:
                return None
            raise


def _constrained_reader(annotation: Any) -> Reader | None:
    """Return a reader for ``Annotated[T, msgspec.Meta(...)]``."""
    inner = reader_for(annotation.__origin__)
    if inner is None:
        return None
    if not _is_supported(annotation):
        return None
    expected = describe_type(annotation)
    if scalar_of(annotation) is None:
        read = add_size_check(inner.read, annotation)
    else:

        def read(value: Any) -> Any:
            value_read = inner.read(value)
            try:
                return msgspec.convert(value_read, annotation)
            except (msgspec.ValidationError, ValueError):
                raise ConversionError(expected, reason=offset_error(value_read, annotation)) from None

    hint = expected if expected != "text" else ""
    return Reader(read, expected, hint, inner.values, inner.meanings, accepts_several=inner.accepts_several)


def _surrogate_reader(annotation: Any) -> Reader | None:
    """Return a reader that reads a type's surrogate and converts the result to the type."""
    surrogate: Any = surrogate_of(annotation)
    inner = reader_for(surrogate.model) or _json_reader(surrogate.model)
    if inner is None:
        return None
    read_inner, build, expected = inner.read, surrogate.build, surrogate.expected
    reader = structs.replace(inner, expected=expected, hint=expected, values=surrogate.values)
    if isinstance(reader, ScalarType):
        return structs.replace(reader, read=lambda value: build(read_inner(value)))
    example = surrogate.example
    hint = expected if example is None else f"JSON, for example {msgspec.json.encode(example).decode()}"
    return structs.replace(reader, read=_json_read_function(annotation), hint=hint)


def _list_reader(annotation: Any) -> Reader | None:
    """Return a reader for a list, set or variable-length tuple, given as a JSON array or separated values."""
    make: Any = SEQUENCES[get_origin(annotation)]
    item = get_args(annotation)[0]
    member = reader_for(item)
    if member is None or member.is_json or is_list(item):
        return _json_reader(annotation)
    scalar = member if isinstance(member, ScalarType) else None
    one_per_line = scalar is not None and scalar.one_per_line
    expected = f"a list, each {member.expected}" if member.expected != "text" else "a list"
    separated = "several, one per line" if one_per_line else "several, separated by commas"
    hint = f"{separated}; each {member.hint}" if member.hint else separated
    read = _list_read_function(member, make, one_per_line=one_per_line)
    return Reader(read, expected, hint, meanings=member.meanings, accepts_several=True)


def _list_read_function(
    member: Reader, make: Callable[[list[Any]], Any], *, one_per_line: bool
) -> ReadFunction:
    """Return a function that reads each item with *member*, and raises the errors of all items together."""

    def read_item(item: Any) -> Any:
        try:
            return member.read(item)
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
    """Split the text of a list into its items. It can be a JSON array, lines, or comma-separated values."""
    if text.lstrip().startswith("["):
        return _decode(text)
    items = text.splitlines() if one_per_line or "\n" in text.strip() else text.split(",")
    return [item.strip() for item in items if item.strip()]


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        if not text.lstrip().startswith(("[", "{")):
            raise ConversionError from None  # the text was not meant to be JSON
        raise malformed_json_error(text, error) from None


_VALID_JSON: Final = "valid JSON"

#: msgspec's error message for malformed JSON, with the byte offset.
_MALFORMED: Final = r"JSON is malformed: (.*) \(byte (\d+)\)"

#: An escaped lone surrogate, which msgspec reports as truncated input.
_LONE_SURROGATE: Final = r"(?i)\\u(?:d[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..\\u)d[c-f])"


def malformed_json_error(text: str, error: Exception, start: int = 0) -> ConversionError:
    """
    Return an error that describes why JSON cannot be decoded, and where the problem is.

    Args:
        text:
            A string that ends with the JSON.

        error:
            The exception that msgspec raised.

        start:
            The index in *text* at which the JSON starts.
    """
    if isinstance(error, RecursionError):
        return ConversionError(_VALID_JSON, reason="is nested too deeply")
    if isinstance(error, UnicodeError | msgspec.ValidationError):
        return ConversionError(_VALID_JSON, reason=f"is not valid JSON: {error}")
    reason, before = str(error).replace("Input data was truncated", "it ends too early"), text
    if match := re.fullmatch(_MALFORMED, reason):
        json_before = text[start:].encode()[: int(match[2])].decode(errors="ignore")
        reason, before = match[1], text[:start] + json_before
    elif match := re.compile(_LONE_SURROGATE).search(text, start):
        reason, before = "an unpaired surrogate", text[: match.start()]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    reason = f"is not valid JSON at line {line}, column {column}: {reason}"
    return ConversionError(_VALID_JSON, reason=reason)


def _json_read_function(annotation: Any) -> ReadFunction:
    """Return a function that converts JSON to a type. The JSON can be text, or already decoded."""
    structure = structurer(annotation)
    return lambda value: structure(_decode(value) if isinstance(value, str) else value)


def _json_reader(annotation: Any) -> Reader | None:
    """Return a reader for a composite type, whose values are written as JSON; None if it is not supported."""
    try:
        if not _is_readable(annotation, frozenset()):
            return None
    except (TypeError, NameError, RecursionError):
        return None
    hint = f"JSON, for example {example_text(annotation)}"
    return Reader(
        _json_read_function(annotation), describe_type(annotation), hint, is_json=True, accepts_several=True
    )


def _is_supported(annotation: Any) -> bool:
    """Return whether msgspec supports a type with its constraints."""
    try:
        msgspec.json.Decoder(annotation)
    except TypeError:
        return False
    return True


def _is_readable(annotation: Any, seen: frozenset[Any]) -> bool:
    """Return whether every part of a type can be read."""
    kind, _ = split_constraints(annotation)
    if is_enum(kind) and not is_constrained(annotation):
        return len(kind) > 0
    if (is_constrained(annotation) or is_leaf(kind)) and not _is_supported(annotation):
        return False
    if kind is Any or kind in seen or is_leaf(kind) or surrogate_of(kind) is not None:
        return True
    if is_record(cls := get_origin(kind) or kind) or is_named_tuple(cls):
        return not is_promptkit_class(cls) and all(
            _is_readable(member.type, seen | {kind}) for member in members_of_record(kind)
        )
    if is_mapping(kind) and not _can_be_key((*get_args(kind), Any)[0]):
        return False
    is_container = is_mapping(kind) or is_sequence(kind) or is_union(kind) or cls is tuple
    return is_container and all(_is_readable(part, seen) for part in get_args(kind) if part is not Ellipsis)


def _can_be_key(annotation: Any) -> bool:
    """Return whether values of a type can be keys of a JSON object."""
    kind, _ = split_constraints(annotation)
    if (scalar := scalar_of(kind)) is not None:
        return scalar.key_schema is not None
    return kind is Any or is_literal(kind) or is_enum(kind)


#: Predicates for types with parts or alternatives, and factories for their readers. The first match is used,
#: even if its factory returns None.
_READER_FACTORIES: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Reader | None]], ...]] = (
    (is_constrained, _constrained_reader),
    (is_enum, enum_reader),
    (is_literal, literal_reader),
    (lambda t: surrogate_of(t) is not None, _surrogate_reader),
    (is_list, _list_reader),
    (is_union, _union_reader),
    (has_parts, _json_reader),
)
