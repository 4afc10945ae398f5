"""
JSON values to values of a type, with every fault and its place.

Structuring is strict: it takes what the JSON Schema of the type takes. `promptkit.types.readers` reads
what people write instead.
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
_NO_MEMBER: Final = "is not a member of this object"

#: Each type that was structured, and the function that does it. By its id, as ``int | float`` equals
#: ``float | int``, but the order of their members counts.
_known: Final[dict[int, tuple[Any, Read]]] = {}


def structurer(annotation: Any) -> Read:
    """
    Make the function that makes values of a type from JSON values.

    It raises `ConversionError` with every part that does not fit.
    """

    def structure(value: Any) -> Any:
        try:
            return _structured(value, annotation)
        except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
            parts = tuple(_parts(error, ""))
        # Where the stack ends, each member of the innermost object says so.
        too_deep = next((part for part in parts if part.reason == _TOO_DEEP), None)
        raise too_deep or ConversionError(inner=parts)

    return structure


def forget_types() -> None:
    """Drop what is known of all types that were structured until now. It is found out again when needed."""
    _known.clear()


def _structured(value: Any, annotation: Any) -> Any:
    if value is ABSENT:
        raise ConversionError(expected_of(annotation), got=ABSENT)
    if (known := _known.get(id(annotation))) is None:
        known = _known[id(annotation)] = annotation, _structure_of(annotation)
    return known[1](value)


def _structure_of(annotation: Any) -> Read:
    """Make the function that structures values of a type. The types of their parts are looked at later."""
    annotation = plain(annotation)
    make = next((make for recognises, make in _STRUCTURES if recognises(annotation)), None)
    return make(annotation) if make else lambda value: value


def _parts(error: BaseException, path: str) -> Iterable[ConversionError]:
    """Return every fault of *error*, with its place below *path*."""
    if isinstance(error, ConversionError):
        return (part.at(path) for part in error.parts)
    if isinstance(error, RecursionError):
        return [ConversionError(path=path, reason=_TOO_DEEP)]
    return [ConversionError(path=path, reason=f"is refused: {error}")]


def _unknown(names: Iterable[str], record: Any) -> list[ConversionError]:
    """A fault for each member that was sent and that *record* does not have."""
    known = [member.name for member in members_of_record(record)]
    if (config := getattr(record, "__struct_config__", None)) and config.tag_field:
        known.append(config.tag_field)
    return [
        ConversionError(path=f".{shortened(name)}", reason=_NO_MEMBER, nearest=partial(nearest, name, known))
        for name in heapq.nsmallest(MAX_FAULTS, map(str, names))  # in a direct call, they may be anything
    ]


def _collect(items: Iterable[tuple[Any, Any, str]]) -> list[Any]:
    """Structure several parts, each a value, its type and its place; raise their faults together."""
    found: list[Any] = []
    faults: list[ConversionError] = []
    for value, annotation, path in items:
        try:
            found.append(_structured(value, annotation))
        except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
            faults += _parts(error, path)
            if len(faults) >= MAX_FAULTS:
                break
    if faults:
        raise ConversionError(inner=tuple(faults))
    return found


def _sequence(annotation: Any) -> Read:
    """Structure a JSON array as a list, a set, a frozen set or a tuple of any length."""
    make = SEQUENCES[get_origin(annotation) or annotation]
    item = (*get_args(annotation), Any)[0]

    def structure(value: Any) -> Any:
        if not isinstance(value, list):
            raise ConversionError(expected_of(annotation), got=value)
        found = _collect((part, item, f"[{i}]") for i, part in enumerate(value))
        try:
            return make(found)
        except TypeError:  # of a set, whose items may have to be hashable
            raise ConversionError(expected_of(annotation), got=value) from None

    return structure


def _fixed(annotation: Any) -> Read:
    """Structure a JSON array whose items have their places: a tuple, or a record that is written so."""
    kind = get_origin(annotation) or annotation
    names: Sequence[str] = ()
    types: Sequence[Any] = get_args(annotation)
    least, tag, is_open = len(types), [], False
    if is_named_tuple(kind):
        hints, names = hints_of(annotation), kind._fields
        types, least = [hints[name] for name in names], len(names) - len(kind._field_defaults)
    elif is_struct(kind):
        fields = msgspec.structs.fields(annotation)
        names, types = [field.name for field in fields], [field.type for field in fields]
        least = max((at for at, field in enumerate(fields, start=1) if field.required), default=0)
        config = kind.__struct_config__
        tag, is_open = [config.tag] if config.tag_field else [], not config.forbid_unknown_fields
    paths = [f"[{i}]" for i in range(len(types))] if kind is tuple else [f".{name}" for name in names]

    def structure(value: Any) -> Any:
        if not isinstance(value, list) or value[: len(tag)] != tag:
            raise ConversionError(expected_of(annotation), got=value)
        value = value[len(tag) :]
        if len(value) < least or (len(value) > len(types) and not is_open):
            raise ConversionError(expected_of(annotation), got=value)
        found = _collect(zip(value, types, paths, strict=False))
        return tuple(found) if kind is tuple else annotation(**dict(zip(names, found, strict=False)))

    return structure


def _mapping(annotation: Any) -> Read:
    """Structure a JSON object as a dict. Its keys are text on the wire, whatever their type."""
    key_type, value_type = get_args(annotation) or (Any, Any)
    convert_key = key_converter(key_type)

    def structure(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(expected_of(annotation), got=value)
        keys: list[Any] = []
        faults: list[ConversionError] = []
        for key in value:
            try:
                keys.append(convert_key(key))
            except ConversionError as error:
                faults += error.parts
                if len(faults) >= MAX_FAULTS:
                    break
        try:
            values = _collect((part, value_type, step(key)) for key, part in value.items())
        except ConversionError as error:
            faults += error.parts
        if faults:
            raise ConversionError(inner=tuple(faults))
        keys = keys if key_type in (Any, str) else checked_hashed(keys)
        return dict(zip(keys, values, strict=True))

    return structure


def _sized(annotation: Any) -> Read:
    """Structure a value with parts, of which there may be only so many."""
    return sized(lambda value: _structured(value, annotation.__origin__), annotation, type_tree(annotation))


def _surrogate(annotation: Any) -> Read:
    """Structure a value as the type that is read in place of its own."""
    surrogate: Any = surrogate_of(annotation)
    return lambda value: surrogate.build(_structured(value, surrogate.model))


def _union(annotation: Any) -> Read:
    """Structure a value as the first member of a union that it fits."""
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
            except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
                errors.append(ConversionError(inner=tuple(_parts(error, ""))))
        if (meant := error_of_union(errors)) is not None:
            raise meant
        raise ConversionError(expected_of(annotation), got=value)

    return structure


def _class(annotation: Any) -> Read:
    """Structure a JSON object as a dataclass, an attrs class or a TypedDict."""
    from cattrs import ClassValidationError, Converter  # they take longer to import than a server to start
    from cattrs.gen import make_dict_structure_fn, override
    from cattrs.gen.typeddicts import make_dict_structure_fn as make_typeddict_structure_fn

    converter = Converter(detailed_validation=True, forbid_extra_keys=True)
    converter.register_structure_hook_func(lambda _: True, _structured)
    is_dict = is_typeddict(get_origin(annotation) or annotation)
    make: Any = make_typeddict_structure_fn if is_dict else make_dict_structure_fn
    # The names in types are resolved here. Members that are called like parameters of `make` cannot be given.
    members = {
        member.name: override(struct_hook=partial(_structured_as, member.type))
        for member in members_of_record(annotation)
        if member.name not in signature(make).parameters
    }
    parameters = getattr(annotation, "__parameters__", ())  # those that are not given may be anything
    given = annotation[(Any,) * len(parameters)] if parameters else annotation
    structure_members = make(given, converter, **members)

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
    """Return every fault that cattrs has found in a class."""
    named, others = error.group_exceptions()
    for inner, note in named:
        path = f".{note.name}"
        if isinstance(inner, KeyError):
            types = {member.name: member.type for member in members_of_record(annotation)}
            yield ConversionError(expected_of(types[note.name]), got=ABSENT, path=path)
        else:
            yield from _parts(inner, path)
    for inner in others:
        extra = getattr(inner, "extra_fields", None)
        yield from _parts(inner, "") if extra is None else _unknown(extra, annotation)


def _struct(annotation: Any) -> Read:
    """Structure a JSON object as a `msgspec.Struct`."""
    config = (get_origin(annotation) or annotation).__struct_config__
    tag = config.tag_field
    members = {member.name: member for member in members_of_record(annotation)}

    def structure(value: Any) -> Any:
        if not isinstance(value, dict) or value.get(tag, config.tag) != config.tag:
            raise ConversionError(expected_of(annotation), got=value)
        known = [member for member in members.values() if member.required or member.name in value]
        faults = _unknown(value.keys() - members.keys() - {tag}, annotation)
        if tag is not None and tag not in value:
            faults.insert(0, ConversionError(repr(config.tag), got=ABSENT, path=f".{tag}"))
        try:
            found = _collect(
                (value.get(member.name, ABSENT), member.type, f".{member.name}") for member in known
            )
        except ConversionError as error:
            raise ConversionError(inner=(*error.parts, *faults)) from None
        if faults:
            raise ConversionError(inner=tuple(faults))
        return annotation(**dict(zip((member.parameter for member in known), found, strict=True)))

    return structure


def _is_placed(annotation: Any) -> bool:
    """Tell whether values are JSON arrays whose items have their places."""
    kind = get_origin(annotation) or annotation
    return kind is tuple or is_named_tuple(kind) or (is_struct(kind) and kind.__struct_config__.array_like)


#: What recognises a type, and what makes the function that structures it. The first row that fits counts.
_STRUCTURES: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Read]], ...]] = (
    (is_leaf, leaf),
    (is_constrained, _sized),
    (lambda t: surrogate_of(t) is not None, _surrogate),
    (is_sequence, _sequence),
    (_is_placed, _fixed),
    (is_mapping, _mapping),
    (is_union, _union),
    (lambda t: is_struct(get_origin(t) or t), _struct),
    (lambda t: is_record(get_origin(t) or t), _class),
)
