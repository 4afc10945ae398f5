"""
From JSON values to values of a type, with every fault and where it is.

Structuring is strict: it takes what the type's JSON Schema takes. What people may write
instead, as text, is read by `promptkit.readers` before. Importing this module imports cattrs,
so that is done for the first parameter that is no plain scalar.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, is_typeddict
from uuid import UUID

import attrs
import msgspec
from cattrs import ClassValidationError, Converter
from cattrs.cols import is_namedtuple
from cattrs.gen import make_dict_structure_fn
from cattrs.gen.typeddicts import make_dict_structure_fn as make_typeddict_structure_fn
from cattrs.preconf.msgspec import make_converter

from promptkit.customs import CUSTOMS, expectations
from promptkit.expectations import DECIMAL, INTEGER_KEY, expectation, type_tree
from promptkit.misfits import ABSENT, Misfit, Misfits

__all__ = ["structurer"]

#: Takes a JSON value; raises `Misfit`.
Structure = Callable[[Any, Any], Any]

_LEAVES: Final = frozenset(
    {str, int, float, bool, bytes, NoneType, Decimal, date, datetime, time, timedelta, UUID},
)


def structurer(annotation: Any) -> Callable[[Any], Any]:
    """
    Return the function that makes values of a type from JSON values.

    It raises `Misfit` for what does not fit, with all of its parts that are at fault.
    """

    def structure(value: Any) -> Any:
        try:
            return _converter.structure(value, annotation)
        except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
            parts = tuple(_parts(error, ""))
        raise Misfits(parts)

    return structure


def _parts(error: BaseException, path: str) -> Iterable[Misfit]:
    """
    Return what is at fault, with its place below *path*.
    """
    if isinstance(error, Misfit):
        return (part.at(path) for part in error.parts)
    if isinstance(error, ClassValidationError):
        named, others = error.group_exceptions()
        found = [
            part
            for inner, note in named
            for part in (
                [Misfit(_expected(note.type), got=ABSENT, path=f"{path}.{note.name}")]
                if isinstance(inner, KeyError)
                else _parts(inner, f"{path}.{note.name}")
            )
        ]
        return [*found, *(part for inner in others for part in _parts(inner, path))]
    return [Misfit(path=path, reason=f"is refused: {error}")]


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
    faults: list[Misfit] = []
    for value, annotation, path in items:
        try:
            found.append(_converter.structure(value, annotation))
        except Exception as error:  # noqa: BLE001 (an author's class may refuse in any way)
            faults += _parts(error, path)
    if faults:
        raise Misfits(tuple(faults))
    return found


def _leaf(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes one JSON value that has no parts.
    """
    kinds = {annotation, getattr(annotation, "__origin__", None)}
    integral, exact = not {float, str, Decimal} & kinds, Decimal in kinds

    def structure(value: Any, _: Any) -> Any:
        if integral and isinstance(value, float) and value.is_integer():
            value = int(value)  # 1.0 is an integer, to JSON Schema
        if exact and isinstance(value, str) and not re.match(DECIMAL, value):
            raise Misfit(_expected(annotation), got=value)
        try:
            found = msgspec.convert(value, annotation)
        except (msgspec.ValidationError, ValueError, OverflowError):
            raise Misfit(_expected(annotation), got=value) from None
        if isinstance(found, Decimal) and not found.is_finite():
            raise Misfit(_expected(annotation), got=value)
        return found

    return structure


def _sequence(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes a JSON array for a list, a set, a frozen set or a tuple of any length.
    """
    origin = get_origin(annotation) or annotation
    item = (*get_args(annotation), Any)[0]

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise Misfit(_expected(annotation), got=value)
        found = _collect((part, item, f"[{i}]") for i, part in enumerate(value))
        try:
            return origin(found)
        except TypeError:  # of a set, whose items may have to be hashable
            raise Misfit(_expected(annotation), got=value) from None

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
            raise Misfit(_expected(annotation), got=value)
        found = _collect(zip(value, types, paths, strict=False))
        return make([*found, *list(defaults.values())[len(defaults) - len(types) + len(found) :]])

    return structure


def _mapping(annotation: Any, _: Converter) -> Structure:
    """
    Return what takes a JSON object for a dict. Its keys are text on the wire, whatever they are.
    """
    key_type, value_type = get_args(annotation) or (Any, Any)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(_expected(annotation), got=value)
        keys = (
            _collect((key, key_type, f"[{key!r}]") for key in value)
            if key_type in (Any, str)
            else [_key(key, key_type) for key in value]
        )
        values = _collect((part, value_type, f"[{key!r}]") for key, part in value.items())
        return dict(zip(keys, values, strict=True))

    return structure


def _key(text: Any, annotation: Any) -> Any:
    """
    Return the key that *text* stands for.
    """
    if annotation is int and not re.match(INTEGER_KEY, text):
        raise Misfit(_expected(annotation), got=text, path=f"[{text!r}]")
    try:
        return next(iter(msgspec.convert({text: None}, dict[annotation, None], str_keys=True)))
    except msgspec.ValidationError:
        raise Misfit(_expected(annotation), got=text, path=f"[{text!r}]") from None


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
        # If a part is at fault, the member that it is part of was meant.
        deep = [parts for parts in faults if all(part.path for part in parts)]
        if len(deep) == 1:
            raise Misfits(tuple(deep[0]))
        raise Misfit(_expected(annotation), got=value)

    return structure


def _record(annotation: Any, converter: Converter) -> Structure:
    """
    Return what takes a JSON object for a class with named members.
    """
    if attrs.has(annotation):
        attrs.resolve_types(annotation)  # a class may name itself
    make = make_typeddict_structure_fn if is_typeddict(annotation) else make_dict_structure_fn
    structure_members = make(annotation, converter)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(_expected(annotation), got=value)
        return structure_members(value, annotation)

    return structure


def _struct(value: Any, annotation: Any) -> Any:
    """
    Take a JSON object, or array, for a `msgspec.Struct`; msgspec finds one fault at a time.
    """
    try:
        return msgspec.convert(value, annotation, dec_hook=_custom)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$")
        reason = f"does not fit: {said[:1].lower()}{said[1:]}"
        raise Misfit(path=place.rstrip("`"), reason=reason) from None


def _custom(annotation: type, value: Any) -> Any:
    """
    Return *value* as one of a type that an author has registered.
    """
    try:
        return CUSTOMS[annotation].read(value)
    except Misfit as misfit:
        msg = f"Expected {misfit.expected}"
        raise ValueError(msg) from None


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
    return origin in (list, set, frozenset)


def _is_record(annotation: Any) -> bool:
    return is_typeddict(annotation) or (
        isinstance(annotation, type) and (is_dataclass(annotation) or attrs.has(annotation))
    )


#: What recognises a type, and what makes the function that structures it; the first row counts.
_HOOKS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Converter], Structure]], ...]] = (
    (lambda t: isinstance(t, type) and t in CUSTOMS, _customs),
    (_is_leaf, _leaf),
    (_is_sequence, _sequence),
    (lambda t: get_origin(t) is tuple or is_namedtuple(t), _fixed),
    (lambda t: (get_origin(t) or t) is dict, _mapping),
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
