"""
Conversion of JSON values to typed values, with every error and its path.

Conversion is strict: it accepts the values that the JSON Schema of the type accepts. In contrast,
`promptkit.types.readers` accepts what people write.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from inspect import signature
from types import NoneType
from typing import Any, Final, get_args, get_origin, is_typeddict

import msgspec

from promptkit.errors.exceptions import shortened
from promptkit.errors.suggestions import nearest
from promptkit.types.descriptions import expected_of
from promptkit.types.errors import ABSENT, MAX_FAULTS, ConversionError, error_of_union
from promptkit.types.json_scalars import is_leaf, key_converter, leaf, sized, step
from promptkit.types.kinds import (
    SEQUENCES,
    checked_hashed,
    hints_of,
    is_constrained,
    is_mapping,
    is_named_tuple,
    is_record,
    is_sequence,
    is_struct,
    is_union,
    members_of_record,
    plain,
    surrogate_of,
    type_tree,
)
from promptkit.types.scalar_parsing import Read

_TOO_DEEP: Final = "is nested too deeply"
_UNKNOWN_MEMBER: Final = "is not a member of this object"

#: The converters of types, by the ids of the types: ``int | float`` equals ``float | int``, but the order of
#: members matters.
_structurers: Final[dict[int, tuple[Any, Read]]] = {}


def structurer(annotation: Any) -> Read:
    """
    Return a function that converts JSON values to a type.

    It raises `ConversionError` with every invalid part.
    """

    def structure(value: Any) -> Any:
        try:
            return _structured(value, annotation)
        except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
            parts = tuple(_parts(error, ""))
        # On a stack overflow, every member of the innermost object has this error.
        too_deep = next((part for part in parts if part.reason == _TOO_DEEP), None)
        raise too_deep or ConversionError(inner=parts)

    return structure


def forget_types() -> None:
    """Clear the cache of converters."""
    _structurers.clear()


def _structured(value: Any, annotation: Any) -> Any:
    if value is ABSENT:
        raise ConversionError(expected_of(annotation), got=ABSENT)
    if (entry := _structurers.get(id(annotation))) is None:
        entry = _structurers[id(annotation)] = annotation, _structure_of(annotation)
    return entry[1](value)


def _structure_of(annotation: Any) -> Read:
    """Return the converter of a type. Types of parts are inspected on first use."""
    annotation = plain(annotation)
    factory = next((factory for matches, factory in _STRUCTURES if matches(annotation)), None)
    return factory(annotation) if factory else lambda value: value


def _parts(error: BaseException, path: str) -> Iterable[ConversionError]:
    """Return every error in *error*, with its path below *path*."""
    if isinstance(error, ConversionError):
        return (part.at(path) for part in error.parts)
    if isinstance(error, RecursionError):
        return [ConversionError(path=path, reason=_TOO_DEEP)]
    return [ConversionError(path=path, reason=f"is refused: {error}")]


def _unknown_member_errors(names: Iterable[str], record: Any) -> list[ConversionError]:
    """Return an error for each sent member that *record* does not have."""
    known_names = [member.name for member in members_of_record(record)]
    if (config := getattr(record, "__struct_config__", None)) and config.tag_field:
        known_names.append(config.tag_field)
    return [
        ConversionError(
            path=f".{shortened(name)}", reason=_UNKNOWN_MEMBER, nearest=partial(nearest, name, known_names)
        )
        for name in heapq.nsmallest(MAX_FAULTS, map(str, names))  # direct calls can have names of any type
    ]


def _collect(items: Iterable[tuple[Any, Any, str]]) -> list[Any]:
    """Convert several parts, given as value, type and path, and raise their errors together."""
    results: list[Any] = []
    errors: list[ConversionError] = []
    for value, annotation, path in items:
        try:
            results.append(_structured(value, annotation))
        except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
            errors += _parts(error, path)
            if len(errors) >= MAX_FAULTS:
                break
    if errors:
        raise ConversionError(inner=tuple(errors))
    return results


def _sequence(annotation: Any) -> Read:
    """Return a converter of JSON arrays to a list, set, frozenset or variable-length tuple."""
    make = SEQUENCES[get_origin(annotation) or annotation]
    item = (*get_args(annotation), Any)[0]

    def structure(value: Any) -> Any:
        if not isinstance(value, list):
            raise ConversionError(expected_of(annotation), got=value)
        items = _collect((part, item, f"[{i}]") for i, part in enumerate(value))
        try:
            return make(items)
        except TypeError:  # an item of a set is not hashable
            raise ConversionError(expected_of(annotation), got=value) from None

    return structure


def _fixed(annotation: Any) -> Read:
    """Return a converter of JSON arrays with a type per position: to a tuple or an array-like record."""
    kind = get_origin(annotation) or annotation
    names: Sequence[str] = ()
    types: Sequence[Any] = get_args(annotation)
    minimum, tag, is_open = len(types), [], False
    if is_named_tuple(kind):
        hints, names = hints_of(annotation), kind._fields
        types, minimum = [hints[name] for name in names], len(names) - len(kind._field_defaults)
    elif is_struct(kind):
        fields = msgspec.structs.fields(annotation)
        names, types = [field.name for field in fields], [field.type for field in fields]
        minimum = max((number for number, field in enumerate(fields, start=1) if field.required), default=0)
        config = kind.__struct_config__
        tag, is_open = [config.tag] if config.tag_field else [], not config.forbid_unknown_fields
    paths = [f"[{i}]" for i in range(len(types))] if kind is tuple else [f".{name}" for name in names]

    def structure(value: Any) -> Any:
        if not isinstance(value, list) or value[: len(tag)] != tag:
            raise ConversionError(expected_of(annotation), got=value)
        value = value[len(tag) :]
        if len(value) < minimum or (len(value) > len(types) and not is_open):
            raise ConversionError(expected_of(annotation), got=value)
        values = _collect(zip(value, types, paths, strict=False))
        return tuple(values) if kind is tuple else annotation(**dict(zip(names, values, strict=False)))

    return structure


def _mapping(annotation: Any) -> Read:
    """Return a converter of JSON objects to a dict. Keys are text in JSON, whatever their type."""
    key_type, value_type = get_args(annotation) or (Any, Any)
    convert_key = key_converter(key_type)

    def structure(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(expected_of(annotation), got=value)
        keys: list[Any] = []
        errors: list[ConversionError] = []
        for key in value:
            try:
                keys.append(convert_key(key))
            except ConversionError as error:
                errors += error.parts
                if len(errors) >= MAX_FAULTS:
                    break
        try:
            values = _collect((part, value_type, step(key)) for key, part in value.items())
        except ConversionError as error:
            errors += error.parts
        if errors:
            raise ConversionError(inner=tuple(errors))
        keys = keys if key_type in (Any, str) else checked_hashed(keys)
        return dict(zip(keys, values, strict=True))

    return structure


def _sized(annotation: Any) -> Read:
    """Return a converter that also checks the number of parts."""
    return sized(lambda value: _structured(value, annotation.__origin__), annotation, type_tree(annotation))


def _surrogate(annotation: Any) -> Read:
    """Return a converter by way of a surrogate."""
    surrogate: Any = surrogate_of(annotation)
    return lambda value: surrogate.build(_structured(value, surrogate.model))


def _union(annotation: Any) -> Read:
    """Return a converter to the first matching member of a union."""
    members = get_args(annotation)

    def structure(value: Any) -> Any:
        if value is None and NoneType in members:
            return None
        errors: list[ConversionError] = []
        for member in members:
            if member is NoneType:
                continue
            try:
                return _structured(value, member)
            except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
                errors.append(ConversionError(inner=tuple(_parts(error, ""))))
        if (likely_error := error_of_union(errors)) is not None:
            raise likely_error
        raise ConversionError(expected_of(annotation), got=value)

    return structure


def _class(annotation: Any) -> Read:
    """Return a converter of JSON objects to a dataclass, an attrs class or a TypedDict."""
    from cattrs import ClassValidationError, Converter  # importing them takes longer than starting a server
    from cattrs.gen import make_dict_structure_fn, override
    from cattrs.gen.typeddicts import make_dict_structure_fn as make_typeddict_structure_fn

    converter = Converter(detailed_validation=True, forbid_extra_keys=True)
    converter.register_structure_hook_func(lambda _: True, _structured)
    is_dict = is_typeddict(get_origin(annotation) or annotation)
    make: Any = make_typeddict_structure_fn if is_dict else make_dict_structure_fn
    # Names in types are resolved here. Members with the names of parameters of `make` cannot be overridden.
    members = {
        member.name: override(struct_hook=partial(_structured_as, member.type))
        for member in members_of_record(annotation)
        if member.name not in signature(make).parameters
    }
    parameters = getattr(annotation, "__parameters__", ())  # missing type arguments mean Any
    parametrized = annotation[(Any,) * len(parameters)] if parameters else annotation
    structure_members = make(parametrized, converter, **members)

    def structure(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(expected_of(annotation), got=value)
        try:
            return structure_members(value, annotation)
        except ClassValidationError as error:
            raise ConversionError(inner=tuple(_parts_of_class(error, annotation))) from None

    return structure


def _structured_as(annotation: Any, value: Any, _: Any) -> Any:
    return _structured(value, annotation)


def _parts_of_class(error: Any, annotation: Any) -> Iterator[ConversionError]:
    """Yield every error that cattrs found in a class."""
    named_errors, other_errors = error.group_exceptions()
    for inner, note in named_errors:
        path = f".{note.name}"
        if isinstance(inner, KeyError):
            types = {member.name: member.type for member in members_of_record(annotation)}
            yield ConversionError(expected_of(types[note.name]), got=ABSENT, path=path)
        else:
            yield from _parts(inner, path)
    for inner in other_errors:
        unknown_names = getattr(inner, "extra_fields", None)
        yield from (
            _parts(inner, "") if unknown_names is None else _unknown_member_errors(unknown_names, annotation)
        )


def _struct(annotation: Any) -> Read:
    """Return a converter of JSON objects to a `msgspec.Struct`."""
    config = (get_origin(annotation) or annotation).__struct_config__
    tag = config.tag_field
    members = {member.name: member for member in members_of_record(annotation)}

    def structure(value: Any) -> Any:
        if not isinstance(value, dict) or value.get(tag, config.tag) != config.tag:
            raise ConversionError(expected_of(annotation), got=value)
        present = [member for member in members.values() if member.required or member.name in value]
        errors = _unknown_member_errors(value.keys() - members.keys() - {tag}, annotation)
        if tag is not None and tag not in value:
            errors.insert(0, ConversionError(repr(config.tag), got=ABSENT, path=f".{tag}"))
        try:
            values = _collect(
                (value.get(member.name, ABSENT), member.type, f".{member.name}") for member in present
            )
        except ConversionError as error:
            raise ConversionError(inner=(*error.parts, *errors)) from None
        if errors:
            raise ConversionError(inner=tuple(errors))
        return annotation(**dict(zip((member.parameter for member in present), values, strict=True)))

    return structure


def _is_fixed(annotation: Any) -> bool:
    """Whether values are JSON arrays with a type per position."""
    kind = get_origin(annotation) or annotation
    return kind is tuple or is_named_tuple(kind) or (is_struct(kind) and kind.__struct_config__.array_like)


#: Predicates of types, and the factories of their converters. The first match counts.
_STRUCTURES: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Read]], ...]] = (
    (is_leaf, leaf),
    (is_constrained, _sized),
    (lambda t: surrogate_of(t) is not None, _surrogate),
    (is_sequence, _sequence),
    (_is_fixed, _fixed),
    (is_mapping, _mapping),
    (is_union, _union),
    (lambda t: is_struct(get_origin(t) or t), _struct),
    (lambda t: is_record(get_origin(t) or t), _class),
)
