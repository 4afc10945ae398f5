"""
Hypothesis strategies for the JSON values of a type.

A type is looked at as msgspec sees it, but for those that only promptkit reads. A value need not
fit in every case: whoever uses it reads it first.
"""

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from math import ceil, floor
from pathlib import Path
from types import NoneType
from typing import Any, Final, TypeAlias, get_args

import msgspec
from hypothesis import reject
from hypothesis import strategies as st
from msgspec import inspect as mi

from promptkit.conversion.kinds import bare, is_enum, is_list, is_literal, is_union, plain
from promptkit.conversion.scalars import SCALARS
from promptkit.conversion.unstructuring import json_of

__all__ = ["json_values"]

Values: TypeAlias = st.SearchStrategy[Any]

#: The records that a value lies in, by their classes: one may contain itself.
Outer: TypeAlias = tuple[type, ...]

#: How many items a list has beyond those that it must have, and how often a class lies in itself.
_ITEMS: Final = 4
_DEPTH: Final = 2

#: The largest whole number that every program reads from JSON.
_LARGEST: Final = 2**63 - 1

#: Whole numbers that code forgets most often, and that chance alone seldom makes.
_TELLING: Final = (0, 1, -1)

_OFFSETS: Final = (UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=3)))

#: JSON, which is UTF-8, has no halves of surrogate pairs.
_CHARACTERS: Final = st.characters(exclude_categories=["Cs"])
_TEXT: Final = st.text(_CHARACTERS)
_NUMBERS: Final = st.integers(-_LARGEST, _LARGEST) | st.floats(allow_nan=False, allow_infinity=False)
_ANY: Final = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_PATHS: Final = st.from_regex(r"\.{0,2}/?[\w .-]+(/[\w .-]+){0,2}", fullmatch=True) | _TEXT


def json_values(annotation: Any) -> Values:
    """
    Return a strategy for the JSON values that a parameter takes; null stands only inside of them.

    Args:
        annotation:
            The parameter's type.
    """
    annotation = plain(annotation)
    if is_literal(annotation) or is_enum(annotation):
        members = get_args(annotation) if is_literal(annotation) else annotation
        return st.sampled_from([json_of(member) for member in members if member is not None])
    if is_union(annotation):
        return st.one_of([json_values(kind) for kind in get_args(annotation) if kind is not NoneType])
    if is_list(annotation):
        return st.lists(_item_values(get_args(annotation)[0]), max_size=_ITEMS)
    return _values(mi.type_info(annotation), ())


def _item_values(annotation: Any) -> Values:
    values = json_values(annotation)
    nullable = is_union(plain(annotation)) and NoneType in get_args(plain(annotation))
    return st.none() | values if nullable else values


def _values(tree: mi.Type, outer: Outer) -> Values:
    tree = bare(tree)
    return _BY_TREE[type(tree)](tree, outer)


def _integers(tree: mi.IntType) -> Values:
    least = tree.ge if tree.gt is None else tree.gt + 1
    most = tree.le if tree.lt is None else tree.lt - 1
    step = tree.multiple_of or 1
    lowest = -(-(-_LARGEST if least is None else least) // step)
    highest = (_LARGEST if most is None else most) // step
    telling = [number for number in _TELLING if lowest <= number <= highest]
    numbers = st.integers(lowest, highest)
    return (st.sampled_from(telling) | numbers if telling else numbers).map(lambda number: number * step)


def _floats(tree: mi.FloatType) -> Values:
    least = tree.ge if tree.gt is None else tree.gt
    most = tree.le if tree.lt is None else tree.lt
    if step := tree.multiple_of:
        lowest = None if least is None else ceil(least / step)
        highest = None if most is None else floor(most / step)
        return st.integers(lowest, highest).map(lambda number: number * step)
    return st.floats(
        least,
        most,
        allow_nan=False,
        allow_infinity=False,
        exclude_min=tree.gt is not None,
        exclude_max=tree.lt is not None,
    )


def _texts(tree: mi.StrType) -> Values:
    least, most = tree.min_length or 0, tree.max_length
    if tree.pattern is None:
        return st.text(_CHARACTERS, min_size=least, max_size=most)
    return st.from_regex(tree.pattern, alphabet=_CHARACTERS)


def _bytes(tree: mi.BytesType) -> Values:
    made = st.binary(min_size=tree.min_length or 0, max_size=tree.max_length)
    return made.map(lambda data: b64encode(data).decode())


def _datetimes(tree: mi.DateTimeType) -> Values:
    return st.datetimes(timezones=_zones(tree)).map(json_of)


def _times(tree: mi.TimeType) -> Values:
    return st.times(timezones=_zones(tree)).map(json_of)


def _zones(tree: mi.DateTimeType | mi.TimeType) -> Values:
    """Return a strategy for offsets, which a type of times may ask for, or refuse."""
    return st.sampled_from({None: (None, *_OFFSETS), True: _OFFSETS, False: (None,)}[tree.tz])


def _list(tree: Any, outer: Outer) -> Values:
    items = _values(tree.item_type, outer)
    if items.is_empty:  # deep in a class that contains itself
        return st.just([])
    unique = msgspec.json.encode if isinstance(tree, mi.SetType | mi.FrozenSetType) else None
    least, most = _sizes(tree)
    return st.lists(items, min_size=least, max_size=most, unique_by=unique)


def _dict(tree: mi.DictType, outer: Outer) -> Values:
    keys = _TEXT if isinstance(tree.key_type, mi.AnyType) else _values(tree.key_type, outer).map(_key)
    values = _values(tree.value_type, outer)
    least, most = _sizes(tree)
    return st.just({}) if values.is_empty else st.dictionaries(keys, values, min_size=least, max_size=most)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _sizes(tree: Any) -> tuple[int, int]:
    least = tree.min_length or 0
    most = least + _ITEMS
    return least, most if tree.max_length is None else min(most, tree.max_length)


def _tuple(tree: mi.TupleType, outer: Outer) -> Values:
    return st.tuples(*(_values(item, outer) for item in tree.item_types)).map(list)


def _union(tree: mi.UnionType, outer: Outer) -> Values:
    return st.one_of([_values(member, outer) for member in tree.types])


def _record(tree: Any, outer: Outer) -> Values:
    """Return a strategy for a class with named members."""
    if outer.count(tree.cls) >= _DEPTH:
        return st.nothing()
    members = [(field, _values(field.type, (*outer, tree.cls))) for field in tree.fields]
    tag_field = getattr(tree, "tag_field", None)
    if isinstance(tree, mi.NamedTupleType) or getattr(tree, "array_like", False):
        return _array([st.just(tree.tag)] if tag_field else [], members)
    required = {field.encode_name: values for field, values in members if field.required}
    if tag_field:
        required[tag_field] = st.just(tree.tag)
    optional = {
        field.encode_name: values for field, values in members if not (field.required or values.is_empty)
    }
    return st.fixed_dictionaries(required, optional=optional)


def _array(tag: list[Values], members: list[tuple[mi.Field, Values]]) -> Values:
    """Return a strategy for a record that is an array in JSON, whose last members may be left out."""
    least = max((at for at, (field, _) in enumerate(members, start=1) if field.required), default=0)
    values = [*tag, *(values for _, values in members)]
    ends = range(len(tag) + least, len(values) + 1)
    return st.one_of([st.tuples(*values[:end]).map(list) for end in ends])


def _registered(tree: mi.CustomType) -> Values:
    """Return a strategy for the text of a registered type, whose values hypothesis makes."""
    if tree.cls is Path:
        return _PATHS
    write = SCALARS[tree.cls].write

    def written(value: Any) -> str:
        try:
            return write(value)
        except Exception:  # noqa: BLE001 (an author's function may be unable to write what was made up)
            reject()

    return st.from_type(tree.cls).map(written)


def _flat(make: Callable[[Any], Values]) -> Callable[[Any, Outer], Values]:
    """Return what takes a type without parts: it does not matter what it lies in."""
    return lambda tree, _: make(tree)


_BY_TREE: Final[dict[type[mi.Type], Callable[[Any, Outer], Values]]] = {
    mi.AnyType: _flat(lambda _: _ANY),
    mi.NoneType: _flat(lambda _: st.none()),
    mi.BoolType: _flat(lambda _: st.booleans()),
    mi.IntType: _flat(_integers),
    mi.FloatType: _flat(_floats),
    mi.DecimalType: _flat(lambda _: st.decimals(allow_nan=False, allow_infinity=False).map(str)),
    mi.StrType: _flat(_texts),
    mi.BytesType: _flat(_bytes),
    mi.DateType: _flat(lambda _: st.dates().map(json_of)),
    mi.DateTimeType: _flat(_datetimes),
    mi.TimeType: _flat(_times),
    mi.TimeDeltaType: _flat(lambda _: st.timedeltas().map(json_of)),
    mi.UUIDType: _flat(lambda _: st.uuids().map(str)),
    mi.EnumType: _flat(lambda tree: st.sampled_from([json_of(member) for member in tree.cls])),
    mi.LiteralType: _flat(lambda tree: st.sampled_from(tree.values)),
    mi.CustomType: _flat(_registered),
    mi.ListType: _list,
    mi.SetType: _list,
    mi.FrozenSetType: _list,
    mi.VarTupleType: _list,
    mi.TupleType: _tuple,
    mi.DictType: _dict,
    mi.UnionType: _union,
    mi.TypedDictType: _record,
    mi.DataclassType: _record,
    mi.StructType: _record,
    mi.NamedTupleType: _record,
}
