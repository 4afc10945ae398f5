"""
JSON values to values of a type, with every fault and its place.

Structuring is strict: it takes what the JSON Schema of the type takes. `promptkit.conversion.readers` reads
what people write instead. Importing this module imports cattrs, so it is imported for the first value that
has parts.
"""

import heapq
from collections.abc import Callable, Iterable
from functools import partial
from types import NoneType
from typing import Any, Final, get_args, get_origin, is_typeddict

import msgspec
from cattrs import ClassValidationError, Converter
from cattrs.cols import is_namedtuple
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override
from cattrs.gen.typeddicts import make_dict_structure_fn as make_typeddict_structure_fn
from cattrs.preconf.msgspec import make_converter

from promptkit.conversion.collisions import dict_of, set_of
from promptkit.conversion.descriptions import expected_of
from promptkit.conversion.errors import ABSENT, MAX_FAULTS, ConversionError, ConversionErrors, error_of_union
from promptkit.conversion.kinds import (
    SEQUENCES,
    hints_of,
    is_constrained,
    is_enum,
    is_mapping,
    is_record,
    is_sequence,
    is_struct,
    is_union,
    members_of_record,
    type_tree,
)
from promptkit.conversion.leaves import (
    Structure,
    has_salted_hash,
    is_leaf,
    is_registered,
    key_converter,
    leaf,
    registered_leaf,
    step,
)
from promptkit.conversion.scalars import BUILT_IN
from promptkit.errors.exceptions import nearest, shortened

__all__ = ["forget_types", "structurer"]

_TOO_DEEP: Final = "is nested too deeply"
_NO_MEMBER: Final = "is not a member of this object"


def structurer(annotation: Any) -> Callable[[Any], Any]:
    """
    Make the function that makes values of a type from JSON values.

    It raises `ConversionError` with every part that does not fit.
    """

    def structure(value: Any) -> Any:
        try:
            return _converter.structure(value, annotation)
        except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
            parts = tuple(_parts(error, ""))
        # Where the stack ends, each member of the innermost object says so.
        too_deep = next((part for part in parts if part.reason == _TOO_DEEP), None)
        raise too_deep or ConversionErrors(parts)

    return structure


def _parts(error: BaseException, path: str) -> Iterable[ConversionError]:
    """Return every fault of *error*, with its place below *path*."""
    if isinstance(error, ConversionError):
        return (part.at(path) for part in error.parts)
    if isinstance(error, RecursionError):
        return [ConversionError(path=path, reason=_TOO_DEEP)]
    if isinstance(error, ForbiddenExtraKeysError):
        return [part.at(path) for part in _unknown(error.extra_fields, error.cl)]
    if isinstance(error, ClassValidationError):
        named, others = error.group_exceptions()
        found = [
            part
            for inner, note in named
            for part in (
                [ConversionError(expected_of(note.type), got=ABSENT, path=f"{path}.{note.name}")]
                if isinstance(inner, KeyError)
                else _parts(inner, f"{path}.{note.name}")
            )
        ]
        return [*found, *(part for inner in others for part in _parts(inner, path))]
    return [ConversionError(path=path, reason=f"is refused: {error}")]


def _unknown(names: Iterable[str], record: Any) -> list[ConversionError]:
    """A fault for each member that was sent and that *record* does not have."""
    known = [member.name for member in members_of_record(record)]
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
            found.append(_converter.structure(value, annotation))
        except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
            faults += _parts(error, path)
            if len(faults) >= MAX_FAULTS:
                break
    if faults:
        raise ConversionErrors(tuple(faults))
    return found


def _scalar(kind: type, converter: Converter) -> Structure:
    """Structure a JSON value as a scalar type, or as an enumeration that inherits from it."""
    structure = registered_leaf(kind, converter) if is_registered(kind) else leaf(kind, converter)

    def structure_either(value: Any, annotation: Any) -> Any:
        # The converter asks the hook of a class for its subclasses, too.
        inherits = annotation is not kind and is_enum(annotation)
        return (leaf(annotation, converter) if inherits else structure)(value, annotation)

    return structure_either


def _sequence(annotation: Any, _: Converter) -> Structure:
    """Structure a JSON array as a list, a set, a frozen set or a tuple of any length."""
    make = SEQUENCES[get_origin(annotation) or annotation]
    item = (*get_args(annotation), Any)[0]
    may_collide = make in (set, frozenset) and not has_salted_hash(item)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise ConversionError(expected_of(annotation), got=value)
        found = _collect((part, item, f"[{i}]") for i, part in enumerate(value))
        try:
            return set_of(make, found) if may_collide else make(found)
        except TypeError:  # of a set, whose items may have to be hashable
            raise ConversionError(expected_of(annotation), got=value) from None

    return structure


def _fixed(annotation: Any, _: Converter) -> Structure:
    """Structure a JSON array as a tuple of fixed length, or as a named tuple."""
    defaults: dict[str, Any] = getattr(annotation, "_field_defaults", {})
    if is_namedtuple(annotation):
        hints = hints_of(annotation)
        types, make = [hints[name] for name in annotation._fields], annotation._make
        paths = [f".{name}" for name in annotation._fields]
    else:
        types, make = list(get_args(annotation)), tuple
        paths = [f"[{i}]" for i in range(len(types))]
    least = len(types) - len(defaults)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list) or not least <= len(value) <= len(types):
            raise ConversionError(expected_of(annotation), got=value)
        found = _collect(zip(value, types, paths, strict=False))
        return make([*found, *list(defaults.values())[len(defaults) - len(types) + len(found) :]])

    return structure


def _mapping(annotation: Any, _: Converter) -> Structure:
    """Structure a JSON object as a dict. Its keys are text on the wire, whatever their type."""
    key_type, value_type = get_args(annotation) or (Any, Any)
    may_collide = key_type not in (Any, str)  # JSON has text for keys
    convert_key = key_converter(key_type)

    def structure(value: Any, _: Any) -> Any:
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
            raise ConversionErrors(tuple(faults))
        return dict_of(keys, values) if may_collide else dict(zip(keys, values, strict=True))

    return structure


def _sized(annotation: Any, converter: Converter) -> Structure:
    """Structure a value with parts, of which there may be only so many."""
    inner = annotation.__origin__
    tree = type_tree(annotation)
    least, most = (getattr(tree, name, None) for name in ("min_length", "max_length"))

    def structure(value: Any, _: Any) -> Any:
        found = converter.structure(value, inner)
        if (least is not None and len(found) < least) or (most is not None and len(found) > most):
            raise ConversionError(expected_of(annotation), got=value)
        return found

    return structure


def _union(annotation: Any, _: Converter) -> Structure:
    """Structure a value as the first member of a union that it fits."""
    members = get_args(annotation)

    def structure(value: Any, _: Any) -> Any:
        if value is None and NoneType in members:
            return None
        errors: list[ConversionError] = []
        for member in members:
            if member is NoneType:
                continue
            try:
                return _converter.structure(value, member)
            except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
                errors.append(ConversionErrors(tuple(_parts(error, ""))))
        if (meant := error_of_union(errors)) is not None:
            raise meant
        raise ConversionError(expected_of(annotation), got=value)

    return structure


def _of(annotation: Any, converter: Converter) -> Structure:
    """Structure one field. The type is looked up late, as types may be recursive."""
    return lambda value, _: converter.structure(value, annotation)


def _members(annotation: Any, converter: Converter) -> dict[str, Any]:
    """Return how each field of a class is structured, with the names in its types resolved."""
    return {
        member.name: override(struct_hook=_of(member.type, converter))
        for member in members_of_record(annotation)
    }


def _record(annotation: Any, converter: Converter) -> Structure:
    """Structure a JSON object as a dataclass, an attrs class or a TypedDict."""
    if is_typeddict(annotation):
        structure_members = make_typeddict_structure_fn(annotation, converter)
    else:
        structure_members = make_dict_structure_fn(annotation, converter, **_members(annotation, converter))

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(expected_of(annotation), got=value)
        return structure_members(value, annotation)

    return structure


def _struct(value: Any, annotation: Any) -> Any:
    """Structure a JSON object, or array, as a `msgspec.Struct`."""
    config = (get_origin(annotation) or annotation).__struct_config__
    if config.array_like:
        return _struct_of_array(value, annotation)
    if not isinstance(value, dict) or (config.tag_field and value.get(config.tag_field) != config.tag):
        raise ConversionError(expected_of(annotation), got=value)
    members = members_of_record(annotation)
    faults = [
        ConversionError(expected_of(member.type), got=ABSENT, path=f".{member.name}")
        for member in members
        if member.required and member.name not in value
    ]
    unknown = value.keys() - {member.name for member in members} - {config.tag_field}
    faults += _unknown(unknown, annotation)
    known = [member for member in members if member.name in value]
    try:
        found = _collect((value[member.name], member.type, f".{member.name}") for member in known)
    except ConversionError as error:
        raise ConversionErrors((*faults, *error.parts)) from None
    if faults:
        raise ConversionErrors(tuple(faults))
    return annotation(**dict(zip((member.parameter for member in known), found, strict=True)))


def _struct_of_array(value: Any, annotation: Any) -> Any:
    """Structure a JSON array as an ``array_like`` struct: its tag, if it has one, then its fields."""
    config = (get_origin(annotation) or annotation).__struct_config__
    fields = msgspec.structs.fields(annotation)
    if not isinstance(value, list):
        raise ConversionError(expected_of(annotation), got=value)
    if config.tag_field:
        if value[:1] != [config.tag]:
            raise ConversionError(expected_of(annotation), got=value)
        value = value[1:]
    least = max((at for at, field in enumerate(fields, start=1) if field.required), default=0)
    if len(value) < least or (config.forbid_unknown_fields and len(value) > len(fields)):
        raise ConversionError(expected_of(annotation), got=value)
    known = fields[: len(value)]
    found = _collect((part, f.type, f".{f.name}") for part, f in zip(value, known, strict=False))
    return annotation(**dict(zip((field.name for field in known), found, strict=True)))


#: What recognises a type, and what makes the function that structures it. The first row that fits counts.
_HOOKS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Converter], Structure]], ...]] = (
    (is_registered, registered_leaf),
    (is_leaf, leaf),
    (is_constrained, _sized),
    (is_sequence, _sequence),
    (lambda t: get_origin(t) is tuple or is_namedtuple(t), _fixed),
    (is_mapping, _mapping),
    (is_union, _union),
    (is_record, _record),
    (lambda t: is_struct(get_origin(t)), lambda *_: _struct),
)

_converter: Final = make_converter(detailed_validation=True, forbid_extra_keys=True)
# Where the converter has a hook for the very type, it asks no factory.
for _kind in (*BUILT_IN, NoneType):
    _converter.register_structure_hook(_kind, _scalar(_kind, _converter))
_converter.register_structure_hook(msgspec.Struct, _struct)
for _recognises, _factory in reversed(_HOOKS):  # the converter asks the newest first
    _converter.register_structure_hook_factory(_recognises, _factory)


def forget_types() -> None:
    """Drop all types that were structured until now; hooks that are needed again are made again."""
    # The converter drops all that it has made of types whenever a hook is registered.
    _converter.register_structure_hook(msgspec.Struct, _struct)
