"""
Conversion of JSON values to typed values, which reports all errors with their paths.

Conversion is strict: it accepts only the values that the JSON Schema of the type allows. In contrast,
`promptkit.types.parsing` also accepts what people write.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from inspect import signature
from types import NoneType
from typing import Any, Final, get_args, get_origin

import attrs
import msgspec

from promptkit.errors.exceptions import shortened
from promptkit.errors.suggestions import nearest
from promptkit.types.choices import enum_converter, member_text
from promptkit.types.constraints import offset_error
from promptkit.types.descriptions import describe_type
from promptkit.types.errors import (
    ABSENT,
    MAX_ERRORS,
    TOO_DEEP,
    ConversionError,
    collect,
    conversion_errors_of,
    union_error,
)
from promptkit.types.kinds import (
    SEQUENCES,
    checked_hashable,
    is_constrained,
    is_enum,
    is_literal,
    is_mapping,
    is_named_tuple,
    is_record,
    is_sequence,
    is_union,
    members_of_record,
    split_constraints,
    surrogate_of,
    tag_of,
    unwrap_type,
)
from promptkit.types.scalar_parsers import ReadFunction, convert_key
from promptkit.types.scalar_types import scalar_of
from promptkit.types.unstructuring import json_of

_UNKNOWN_MEMBER: Final = "is not a member of this object"

#: Types and their converters, keyed by the type's id. Types themselves cannot be keys, because
#: ``int | float`` equals ``float | int``, but the order of members matters.
_converters: Final[dict[int, tuple[Any, ReadFunction]]] = {}


def structurer(annotation: Any) -> ReadFunction:
    """
    Return a function that converts JSON values to a type.

    For an invalid value, the function raises a `ConversionError` with an error for every invalid part.
    """

    def structure(value: Any) -> Any:
        try:
            return _convert(value, annotation)
        except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
            parts = conversion_errors_of(error)
        # If the stack overflows, every member of the innermost object has this error.
        too_deep = next((part for part in parts if part.reason == TOO_DEEP), None)
        raise too_deep or ConversionError(inner=parts)

    return structure


def clear_type_cache() -> None:
    """Clear the cache of converters."""
    _converters.clear()


def _convert(value: Any, annotation: Any) -> Any:
    if value is ABSENT:
        raise ConversionError(describe_type(annotation), got=ABSENT)
    if (entry := _converters.get(id(annotation))) is None:
        entry = _converters[id(annotation)] = annotation, _converter_for(annotation)
    return entry[1](value)


def _converter_for(annotation: Any) -> ReadFunction:
    """Return the converter for a type. The types of its parts are inspected on first use."""
    annotation = unwrap_type(annotation)
    factory = next((factory for matches, factory in _CONVERTER_FACTORIES if matches(annotation)), None)
    return factory(annotation) if factory else lambda value: value


def is_leaf(annotation: Any) -> bool:
    """Return whether values of *annotation* have no parts."""
    kind, _ = split_constraints(annotation)
    return scalar_of(kind) is not None or kind is NoneType or is_literal(kind) or is_enum(kind)


def _leaf_converter(annotation: Any) -> ReadFunction:
    """Return a converter for a type whose values have no parts."""
    kind, _ = split_constraints(annotation)
    if is_enum(kind):
        return _enum_member_converter(kind)
    scalar = scalar_of(annotation)
    convert = msgspec.convert if scalar is None else scalar.convert
    if convert is msgspec.convert and (scalar is None or is_constrained(annotation)):
        convert = _msgspec_converter(annotation)
    # In JSON Schema, 1.0 is an integer. The values of a Literal can also be integers.
    takes_integers = scalar is None or scalar.schema.get("type") == "integer"

    def structure(value: Any) -> Any:
        if type(value) is annotation:
            return value
        if takes_integers and isinstance(value, float) and value.is_integer():
            value = int(value)
        try:
            return convert(value, annotation)
        except (msgspec.ValidationError, ValueError, OverflowError):
            raise _leaf_error(value, annotation) from None

    return structure


def _enum_member_converter(annotation: Any) -> ReadFunction:
    """Return a converter for an enumeration."""
    convert = enum_converter(annotation)

    def structure(value: Any) -> Any:
        if type(value) is annotation:
            return value
        try:
            return convert(value)
        except ConversionError:
            raise _leaf_error(value, annotation) from None

    return structure


def _msgspec_converter(annotation: Any) -> Callable[[Any, Any], Any]:
    """
    Return a function that converts values with msgspec.

    It wraps each value in a struct, because msgspec caches its analysis of a type only for structs.
    """
    holder: Any = msgspec.defstruct("Holder", [("held", annotation)])
    return lambda value, _: msgspec.convert({"held": value}, holder).held


def _leaf_error(value: Any, annotation: Any) -> ConversionError:
    names = [str(name) for name in get_args(annotation)] if is_literal(annotation) else []
    names += [member_text(member) for member in annotation] if is_enum(annotation) else []
    suggestion = partial(nearest, value, names) if names and isinstance(value, str) else None
    reason = offset_error(value, annotation, seconds=":00")
    return ConversionError(describe_type(annotation), got=value, nearest=suggestion, reason=reason)


def add_size_check(read: ReadFunction, annotation: Any) -> ReadFunction:
    """Wrap *read* to check that the number of parts in its result meets the constraints of *annotation*."""
    _, limits = split_constraints(annotation)
    minimum, maximum = limits.min_length or 0, limits.max_length
    if not minimum and maximum is None:
        return read

    def read_sized(value: Any) -> Any:
        result = read(value)
        if len(result) < minimum or (maximum is not None and len(result) > maximum):
            raise ConversionError(describe_type(annotation), got=value)
        return result

    return read_sized


def _sized_converter(annotation: Any) -> ReadFunction:
    """Return a converter for a constrained type, which also checks the number of parts."""
    return add_size_check(lambda value: _convert(value, annotation.__origin__), annotation)


def _surrogate_converter(annotation: Any) -> ReadFunction:
    """Return a converter that converts to a type's surrogate first."""
    surrogate: Any = surrogate_of(annotation)
    return lambda value: surrogate.build(_convert(value, surrogate.model))


def _sequence_converter(annotation: Any) -> ReadFunction:
    """Return a converter from JSON arrays to a list, set, frozenset or variable-length tuple."""
    make = SEQUENCES[get_origin(annotation) or annotation]
    item = (*get_args(annotation), Any)[0]

    def structure(value: Any) -> Any:
        if not isinstance(value, list):
            raise ConversionError(describe_type(annotation), got=value)
        items = collect(enumerate(value), lambda part: _convert(part, item))
        try:
            return make(items)
        except TypeError:  # an item of a set is not hashable
            raise ConversionError(describe_type(annotation), got=value) from None

    return structure


def _is_fixed_tuple(annotation: Any) -> bool:
    """Return whether values of a type are JSON arrays with a type for each position."""
    kind = get_origin(annotation) or annotation
    return kind is tuple or is_named_tuple(kind)


def _fixed_tuple_converter(annotation: Any) -> ReadFunction:
    """
    Return a converter from JSON arrays to a tuple with a type for each position.

    For a named tuple, it also accepts JSON objects.
    """
    kind = get_origin(annotation) or annotation
    make: Callable[[list[Any]], Any] = tuple
    types: Sequence[Any] = get_args(annotation)
    keys: Sequence[Any] = range(len(types))
    minimum, step = len(types), "[{}]".format
    read_object: ReadFunction | None = None
    if is_named_tuple(kind):
        read_object = _record_converter(annotation)
        members = members_of_record(annotation)
        types, keys = [member.type for member in members], [member.name for member in members]
        minimum, step = sum(member.required for member in members), ".{}".format

        def make(values: list[Any]) -> Any:
            return kind(*values)

    def structure(value: Any) -> Any:
        if read_object is not None and isinstance(value, dict):
            return read_object(value)
        if not isinstance(value, list) or not minimum <= len(value) <= len(types):
            raise ConversionError(describe_type(annotation), got=value)
        parts = zip(keys, zip(value, types, strict=False), strict=False)
        return make(collect(parts, lambda part: _convert(*part), step))

    return structure


def _mapping_converter(annotation: Any) -> ReadFunction:
    """Return a converter from JSON objects to a dict. Keys of any type are strings in JSON."""
    key_type, value_type = get_args(annotation) or (Any, Any)
    convert_key = _key_converter(key_type)

    def structure(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(describe_type(annotation), got=value)
        try:
            keys, errors = collect(zip(value, value, strict=True), convert_key, _path_step), []
        except ConversionError as error:
            errors = [*error.parts]
        try:
            values = collect(value.items(), lambda part: _convert(part, value_type), _path_step)
        except ConversionError as error:
            errors += error.parts
        if errors:
            raise ConversionError(inner=tuple(errors))
        keys = keys if key_type in (Any, str) else checked_hashable(keys)
        return dict(zip(keys, values, strict=True))

    return structure


def _key_converter(annotation: Any) -> Callable[[str], Any]:
    """Return a function that converts the key of a JSON object to a value of *annotation*."""
    if annotation in (Any, str):
        return str
    scalar = scalar_of(annotation)
    convert = convert_key if scalar is None else scalar.convert_key
    if is_enum(split_constraints(annotation)[0]):
        convert = lambda text, _: _convert(text, annotation)  # noqa: E731

    def structure(text: str) -> Any:
        try:
            return convert(text, annotation)
        except (msgspec.ValidationError, ConversionError):
            reason = offset_error(text, annotation, seconds=":00")
            raise ConversionError(describe_type(annotation), got=text, reason=reason) from None

    return structure


def _path_step(key: str) -> str:
    """Return the path step for *key*. It is truncated, because every error below it repeats the step."""
    return f"[{shortened(key)!r}]"


def _union_converter(annotation: Any) -> ReadFunction:
    """
    Return a converter that converts a value to the first matching member of a union.

    If the union includes text, another member matches text only if converting its value back to JSON gives
    the same text.
    """
    members = get_args(annotation)
    takes_text = any(split_constraints(member)[0] is str for member in members)

    def structure(value: Any) -> Any:
        if value is None and NoneType in members:
            return None
        errors: list[ConversionError] = []
        for member in members:
            if member is NoneType:
                continue
            try:
                result = _convert(value, member)
                if not takes_text or not isinstance(value, str) or json_of(result) == value:
                    return result
            except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
                errors.append(ConversionError(inner=conversion_errors_of(error)))
        if (likely_error := union_error(errors)) is not None:
            raise likely_error
        raise ConversionError(describe_type(annotation), got=value)

    return structure


def _record_converter(annotation: Any) -> ReadFunction:
    """
    Return a converter from JSON objects to a named tuple, or a record that `_class_converter` cannot convert.
    """
    cls = get_origin(annotation) or annotation
    tag, members = tag_of(annotation), members_of_record(annotation)
    names = [*(member.name for member in members), *tag]
    parts = [(member.name, member.parameter, member.type, member.required) for member in members]

    def structure(value: Any) -> Any:
        if not isinstance(value, dict) or (
            tag and any(value.get(key, text) != text for key, text in tag.items())
        ):
            raise ConversionError(describe_type(annotation), got=value)
        arguments: dict[str, Any] = {}
        errors = [
            ConversionError(repr(tag[key]), got=ABSENT, path=f".{key}") for key in tag if key not in value
        ]
        unknown = len(value) + len(errors) - len(tag)
        for name, parameter, kind, is_required in parts:
            is_present = name in value
            unknown -= is_present
            if is_present or is_required:
                try:
                    arguments[parameter] = _convert(value[name] if is_present else ABSENT, kind)
                except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
                    errors += (part.at(f".{name}") for part in conversion_errors_of(error))
        if unknown:
            errors += _unknown_member_errors(value.keys() - names, names)
        if errors:
            raise ConversionError(inner=tuple(errors[:MAX_ERRORS]))
        return cls(**arguments)

    return structure


def _stores_all_members(annotation: Any) -> bool:
    """Return whether a type is an attrs class or a dataclass that stores all members that it accepts."""
    cls = get_origin(annotation) or annotation
    is_class = attrs.has(cls) or is_dataclass(cls)
    return is_class and all(member.attribute is not None for member in members_of_record(annotation))


def _class_converter(annotation: Any) -> ReadFunction:
    """Return a converter from JSON objects to an attrs class or a dataclass."""
    from cattrs import ClassValidationError, Converter  # importing it takes longer than starting a server
    from cattrs.gen import make_dict_structure_fn, override

    converter = Converter(detailed_validation=True, forbid_extra_keys=True)
    converter.register_structure_hook_func(lambda _: True, _convert)
    members = {member.name: member.type for member in members_of_record(annotation)}
    # The hooks use the types from `members_of_record`, in which all names are resolved.
    hooks: dict[str, Any] = {
        name: override(struct_hook=partial(_convert_as, kind))
        for name, kind in members.items()
        if name not in signature(make_dict_structure_fn).parameters
    }
    parameters = getattr(annotation, "__parameters__", ())  # without arguments, type parameters mean Any
    structure_members = make_dict_structure_fn(
        annotation[(Any,) * len(parameters)] if parameters else annotation, converter, **hooks
    )

    def structure(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(describe_type(annotation), got=value)
        try:
            return structure_members(value, annotation)
        except ClassValidationError as error:
            raise ConversionError(inner=tuple(_class_errors(error, members))) from None

    return structure


def _convert_as(annotation: Any, value: Any, _: Any) -> Any:
    return _convert(value, annotation)


def _class_errors(error: Any, members: Mapping[str, Any]) -> Iterator[ConversionError]:
    """Yield conversion errors for an error of cattrs. *members* maps names of members to their types."""
    named_errors, other_errors = error.group_exceptions()
    for inner, note in named_errors:
        if isinstance(inner, KeyError):
            yield ConversionError(describe_type(members[note.name]), got=ABSENT, path=f".{note.name}")
        else:
            yield from (part.at(f".{note.name}") for part in conversion_errors_of(inner))
    for inner in other_errors:
        unknown = getattr(inner, "extra_fields", None)
        yield from (
            conversion_errors_of(inner) if unknown is None else _unknown_member_errors(unknown, members)
        )


def _unknown_member_errors(unknown: Iterable[Any], names: Iterable[str]) -> list[ConversionError]:
    """Return an error for each of *unknown*, the sent members that a record with *names* does not have."""
    return [
        ConversionError(
            path=f".{shortened(name)}", reason=_UNKNOWN_MEMBER, nearest=partial(nearest, name, names)
        )
        for name in heapq.nsmallest(MAX_ERRORS, map(str, unknown))  # direct calls can pass names of any type
    ]


#: Predicates for types, and the factories for their converters. The first match is used.
_CONVERTER_FACTORIES: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], ReadFunction]], ...]] = (
    (is_leaf, _leaf_converter),
    (is_constrained, _sized_converter),
    (lambda t: surrogate_of(t) is not None, _surrogate_converter),
    (is_sequence, _sequence_converter),
    (_is_fixed_tuple, _fixed_tuple_converter),
    (is_mapping, _mapping_converter),
    (is_union, _union_converter),
    (_stores_all_members, _class_converter),
    (lambda t: is_record(get_origin(t) or t), _record_converter),
)
