"""
From JSON values to values of a type, with every fault and where it is.

Structuring is strict: it takes what the type's JSON Schema takes. What people may write
instead, as text, is read by `promptkit.conversion.readers` before. Importing this module imports cattrs,
so that is done for the first parameter that is no plain scalar.
"""

import re
from collections import abc
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, is_typeddict
from uuid import UUID

import attrs
import msgspec
from cattrs import ClassValidationError, Converter
from cattrs.cols import is_namedtuple
from cattrs.gen import make_dict_structure_fn, override
from cattrs.gen.typeddicts import make_dict_structure_fn as make_typeddict_structure_fn
from cattrs.preconf.msgspec import make_converter

from promptkit.conversion.collisions import dict_of, set_of
from promptkit.conversion.descriptions import DECIMAL, INTEGER_KEY, expectation, type_tree
from promptkit.conversion.errors import ABSENT, MAX_FAULTS, ConversionError, ConversionErrors
from promptkit.conversion.registry import CUSTOMS, expectations
from promptkit.conversion.scalars import checked_decimal, located, offset_fault, zone_of
from promptkit.errors.exceptions import nearest, shortened

__all__ = ["forget_types", "structurer"]

#: Takes a JSON value; raises `ConversionError`.
Structure = Callable[[Any, Any], Any]

_LEAVES: Final = frozenset(
    {str, int, float, bool, bytes, NoneType, Decimal, date, datetime, time, timedelta, UUID},
)

#: What is made of a JSON array, by what an author has written.
_SEQUENCES: Final[dict[Any, Callable[[list[Any]], Any]]] = {
    **{kind: kind for kind in (list, set, frozenset, tuple)},
    **dict.fromkeys((abc.Collection, abc.Sequence, abc.MutableSequence), list),
    **dict.fromkeys((abc.Set, abc.MutableSet), set),
}
_MAPPINGS: Final = (dict, abc.Mapping, abc.MutableMapping)


def structurer(annotation: Any) -> Callable[[Any], Any]:
    """
    Return the function that makes values of a type from JSON values.

    It raises `ConversionError` for what does not fit, with all of its parts that are at fault.
    """

    def structure(value: Any) -> Any:
        try:
            return _converter.structure(value, annotation)
        except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
            parts = tuple(_parts(error, ""))
        raise ConversionErrors(parts)

    return structure


def _parts(error: BaseException, path: str) -> Iterable[ConversionError]:
    """
    Return what is at fault, with its place below *path*.
    """
    if isinstance(error, ConversionError):
        return (part.at(path) for part in error.parts)
    if isinstance(error, RecursionError):
        return [ConversionError(path=path, reason="is nested too deeply")]
    if isinstance(error, ClassValidationError):
        named, others = error.group_exceptions()
        found = [
            part
            for inner, note in named
            for part in (
                [ConversionError(_expected(note.type), got=ABSENT, path=f"{path}.{note.name}")]
                if isinstance(inner, KeyError)
                else _parts(inner, f"{path}.{note.name}")
            )
        ]
        return [*found, *(part for inner in others for part in _parts(inner, path))]
    return [ConversionError(path=path, reason=f"is refused: {error}")]


def _expected(annotation: Any) -> str:
    """
    Return what *annotation* takes, in words.
    """
    return expectation(type_tree(annotation), expectations())


def _collect(items: Iterable[tuple[Any, Any, str]]) -> list[Any]:
    """
    Structure several parts, each a value, its type and its place; raise all their faults at once.
    """
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


def _leaf(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes one JSON value that has no parts.
    """
    kinds = {annotation, getattr(annotation, "__origin__", None)}
    choices = _choices(annotation)
    zone = zone_of(annotation)
    integral, exact = not {float, str, Decimal} & kinds, Decimal in kinds

    def structure(value: Any, _: Any) -> Any:
        if integral and isinstance(value, float) and value.is_integer():
            value = int(value)  # 1.0 is an integer, to JSON Schema
        if exact and isinstance(value, str) and not re.match(DECIMAL, value):
            raise ConversionError(_expected(annotation), got=value)
        try:
            found = msgspec.convert(value, annotation)
            if zone is not None:
                return located(found, zone)
            return checked_decimal(found) if exact else found
        except (msgspec.ValidationError, ValueError, OverflowError):
            near = partial(nearest, value, choices) if choices and isinstance(value, str) else None
            reason = offset_fault(value, annotation, seconds=":00")
            raise ConversionError(_expected(annotation), got=value, nearest=near, reason=reason) from None

    return structure


def _choices(annotation: Any) -> list[str]:
    """
    Return the texts that a leaf can be, if they are few.
    """
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    return []


def _sequence(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes a JSON array for a list, a set, a frozen set or a tuple of any length.
    """
    make = _SEQUENCES[get_origin(annotation) or annotation]
    item = (*get_args(annotation), Any)[0]
    may_collide = make in (set, frozenset) and item not in (str, bytes)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise ConversionError(_expected(annotation), got=value)
        found = _collect((part, item, f"[{i}]") for i, part in enumerate(value))
        try:
            return set_of(make, found) if may_collide else make(found)
        except TypeError:  # of a set, whose items may have to be hashable
            raise ConversionError(_expected(annotation), got=value) from None

    return structure


def _fixed(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes a JSON array for a tuple of so many items, or a named one.
    """
    if is_namedtuple(annotation):
        hints = list(annotation.__annotations__)
        types = [_hints(annotation)[name] for name in hints]
        least, paths, make = len(types) - len(annotation._field_defaults), hints, annotation._make
        paths = [f".{name}" for name in hints]
    else:
        types = list(get_args(annotation))
        least, paths, make = len(types), [f"[{i}]" for i in range(len(types))], tuple
    defaults = getattr(annotation, "_field_defaults", {})

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list) or not least <= len(value) <= len(types):
            raise ConversionError(_expected(annotation), got=value)
        found = _collect(zip(value, types, paths, strict=False))
        return make([*found, *list(defaults.values())[len(defaults) - len(types) + len(found) :]])

    return structure


def _mapping(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes a JSON object for a dict. Its keys are text on the wire, whatever they are.
    """
    key_type, value_type = get_args(annotation) or (Any, Any)
    may_collide = key_type not in (Any, str)  # JSON has text for keys

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(_expected(annotation), got=value)
        keys: list[Any] = []
        faults: list[ConversionError] = []
        for key in value:
            try:
                keys.append(_key(key, key_type))
            except ConversionError as misfit:
                faults += misfit.parts
                if len(faults) >= MAX_FAULTS:
                    break
        try:
            values = _collect((part, value_type, _at(key)) for key, part in value.items())
        except ConversionError as misfit:
            faults += misfit.parts
        if faults:
            raise ConversionErrors(tuple(faults))
        return dict_of(keys, values) if may_collide else dict(zip(keys, values, strict=True))

    return structure


def _sized(annotation: Any, converter: Converter) -> Structure:
    """
    Return what takes a value with parts, of which there may be only so many.
    """
    inner = annotation.__origin__
    tree = type_tree(annotation)
    least, most = (getattr(tree, name, None) for name in ("min_length", "max_length"))

    def structure(value: Any, _: Any) -> Any:
        found = converter.structure(value, inner)
        if (least is not None and len(found) < least) or (most is not None and len(found) > most):
            raise ConversionError(_expected(annotation), got=value)
        return found

    return structure


def _key(text: Any, annotation: Any) -> Any:
    """
    Return the key that *text* stands for.
    """
    if annotation in (Any, str):
        return text
    if annotation in CUSTOMS:
        return CUSTOMS[annotation].read(text)
    if annotation is int and not re.match(INTEGER_KEY, text):
        raise ConversionError(_expected(annotation), got=text, path=_at(text))
    try:
        key = next(iter(msgspec.convert({text: None}, dict[annotation, None], str_keys=True)))
    except msgspec.ValidationError:
        reason = offset_fault(text, annotation, seconds=":00")
        raise ConversionError(_expected(annotation), got=text, path=_at(text), reason=reason) from None
    zone = zone_of(annotation)
    return key if zone is None else located(key, zone)


def _at(key: str) -> str:
    """Return where the value of *key* stands; every fault below it repeats that."""
    return f"[{shortened(key)!r}]"


def _union(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes the first member of a union that fits.
    """
    members = get_args(annotation)

    def structure(value: Any, _: Any) -> Any:
        if value is None and NoneType in members:
            return None
        faults = []
        for member in members:
            if member is NoneType:
                continue
            try:
                return _converter.structure(value, member)
            except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
                faults.append(list(_parts(error, "")))
        # The member that was meant is the one whose parts are at fault, or that says why it refuses.
        deep = [parts for parts in faults if all(part.path or part.reason for part in parts)]
        if len(deep) == 1:
            raise ConversionErrors(tuple(deep[0]))
        raise ConversionError(_expected(annotation), got=value)

    return structure


def _of(annotation: Any, converter: Converter) -> Structure:
    """
    Return what structures one member, looked up when it is needed: types may be recursive.
    """
    return lambda value, _: converter.structure(value, annotation)


def _members(annotation: Any, converter: Converter) -> dict[str, Any]:
    """
    Return how each member of a class is structured, the names in its types resolved.
    """
    fields = attrs.fields_dict(annotation) if attrs.has(annotation) else annotation.__dataclass_fields__
    hints = _hints(annotation)
    return {name: override(struct_hook=_of(hints[name], converter)) for name in fields}


def _record(annotation: Any, converter: Converter) -> Structure:
    """
    Return what takes a JSON object for a class with named members.
    """
    if is_typeddict(annotation):
        structure_members = make_typeddict_structure_fn(annotation, converter)
    else:
        structure_members = make_dict_structure_fn(annotation, converter, **_members(annotation, converter))

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(_expected(annotation), got=value)
        return structure_members(value, annotation)

    return structure


def _struct(value: Any, annotation: Any) -> Any:
    """
    Take a JSON object, or array, for a `msgspec.Struct`.
    """
    config = annotation.__struct_config__
    if config.array_like:
        return _struct_of_array(value, annotation)
    if not isinstance(value, dict) or (config.tag_field and value.get(config.tag_field) != config.tag):
        raise ConversionError(_expected(annotation), got=value)
    fields = msgspec.structs.fields(annotation)
    missing = [
        ConversionError(_expected(field.type), got=ABSENT, path=f".{field.encode_name}")
        for field in fields
        if field.required and field.encode_name not in value
    ]
    known = [field for field in fields if field.encode_name in value]
    unknown = value.keys() - {field.encode_name for field in fields} - {config.tag_field}
    if config.forbid_unknown_fields and unknown:
        missing.append(ConversionError(reason=f"has no member {shortened(min(unknown))!r}"))
    try:
        found = _collect((value[f.encode_name], f.type, f".{f.encode_name}") for f in known)
    except ConversionError as misfit:
        raise ConversionErrors((*missing, *misfit.parts)) from None
    if missing:
        raise ConversionErrors(tuple(missing))
    return annotation(**dict(zip((field.name for field in known), found, strict=True)))


def _struct_of_array(value: Any, annotation: Any) -> Any:
    """Take a JSON array for a struct that is written so: its tag, if it has one, then its members."""
    config, fields = annotation.__struct_config__, msgspec.structs.fields(annotation)
    if not isinstance(value, list):
        raise ConversionError(_expected(annotation), got=value)
    if config.tag_field:
        if value[:1] != [config.tag]:
            raise ConversionError(_expected(annotation), got=value)
        value = value[1:]
    least = max((at for at, field in enumerate(fields, start=1) if field.required), default=0)
    if len(value) < least or (config.forbid_unknown_fields and len(value) > len(fields)):
        raise ConversionError(_expected(annotation), got=value)
    known = fields[: len(value)]
    found = _collect((part, f.type, f".{f.name}") for part, f in zip(value, known, strict=False))
    return annotation(**dict(zip((field.name for field in known), found, strict=True)))


def _customs(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes the JSON value for a type that an author has registered.
    """
    return lambda value, _: CUSTOMS[annotation].read(value)


def _hints(annotation: Any) -> dict[str, Any]:
    from typing import get_type_hints

    return get_type_hints(annotation, include_extras=True)


def _is_leaf(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_leaf(annotation.__origin__)
    return (
        isinstance(annotation, type) and (annotation in _LEAVES or issubclass(annotation, Enum))
    ) or get_origin(annotation) is Literal


def _is_sequence(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    if origin is tuple:
        return annotation is tuple or Ellipsis in get_args(annotation)
    return origin in _SEQUENCES


def _is_record(annotation: Any) -> bool:
    return is_typeddict(annotation) or (
        isinstance(annotation, type) and (is_dataclass(annotation) or attrs.has(annotation))
    )


#: What recognises a type, and what makes the function that structures it; the first row counts.
_HOOKS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Converter], Structure]], ...]] = (
    (lambda t: isinstance(t, type) and t in CUSTOMS, _customs),
    (_is_leaf, _leaf),
    (lambda t: get_origin(t) is Annotated, _sized),
    (_is_sequence, _sequence),
    (lambda t: get_origin(t) is tuple or is_namedtuple(t), _fixed),
    (lambda t: (get_origin(t) or t) in _MAPPINGS, _mapping),
    (lambda t: get_origin(t) in (Union, UnionType), _union),
    (_is_record, _record),
)

_converter: Final = make_converter(detailed_validation=True)
# Where the converter has a hook for the very type, it asks no factory.
for _kind in _LEAVES:
    _converter.register_structure_hook(_kind, _leaf(_kind, _converter))
_converter.register_structure_hook(Path, _customs(Path, _converter))
_converter.register_structure_hook(msgspec.Struct, _struct)
for _recognises, _factory in reversed(_HOOKS):  # the converter asks the newest first
    _converter.register_structure_hook_factory(_recognises, _factory)


def forget_types() -> None:
    """
    Keep alive no type that was structured until now; what is needed again is made again.
    """
    # The converter drops all that it has made of types whenever a hook is registered.
    _converter.register_structure_hook(msgspec.Struct, _struct)
