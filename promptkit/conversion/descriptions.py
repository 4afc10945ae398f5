"""
What a type takes, in words that people understand, and an example where words are not enough.

Words name choices in their author's order. Examples read a type as `msgspec.inspect` sees it.
"""

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, Final, get_args

import msgspec
from msgspec import inspect as mi

from promptkit.conversion.choices import Orders, one_of, orders_of, values_of
from promptkit.conversion.constraints import describe_length
from promptkit.conversion.kinds import is_enum, is_list, is_literal, is_union, plain
from promptkit.conversion.scalars import scalar_of
from promptkit.conversion.unstructuring import json_of

__all__ = ["describe", "describe_choices", "example_text", "expected_of"]

#: How deep an example goes: a type that contains itself ends there.
_MAX_DEPTH: Final = 4

_LISTS: Final = (mi.ListType, mi.SetType, mi.FrozenSetType, mi.VarTupleType)


def expected_of(annotation: Any) -> str:
    """Return what a type takes, in words that end a sentence: ``a whole number of at least 1``."""
    annotation = plain(annotation)
    if is_literal(annotation) or is_enum(annotation):
        return describe_choices(get_args(annotation) or annotation)
    try:
        return describe(mi.type_info(annotation), orders_of(annotation))
    except TypeError:  # msgspec does not have it, though it has readers of its parts
        parts = [expected_of(part) for part in get_args(annotation) if part is not NoneType]
    if is_list(annotation):
        return f"a list, each {parts[0]}"
    return " or ".join(dict.fromkeys(parts)) if is_union(annotation) else "a value"


def describe(tree: mi.Type, orders: Orders) -> str:
    """Return the same of a type as `msgspec.inspect` sees it."""
    tree = plain(tree)
    if (scalar := scalar_of(tree)) is not None:
        return scalar.describe(tree)
    words = _DESCRIBERS.get(type(tree))
    return words(tree, orders) if words else "a value"


def describe_choices(values: Iterable[Any]) -> str:
    """Return what choices look like in JSON. Text is what it says, and null means that nothing is given."""
    found = [value for value in map(json_of, values) if value is not None]
    return one_of(
        [value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in found]
    )


def _describe_union(tree: mi.UnionType, orders: Orders) -> str:
    members = (describe(member, orders) for member in tree.types if not isinstance(member, mi.NoneType))
    return " or ".join(dict.fromkeys(members))


def _describe_list(tree: Any, orders: Orders) -> str:
    words, item = f"a list{describe_length(tree, 'items')}", tree.item_type
    any_text = isinstance(item, mi.StrType) and not describe_length(item, "")
    return words if any_text or isinstance(item, mi.AnyType) else f"{words}, each {describe(item, orders)}"


def _describe_fields(tree: Any, _: Orders) -> str:
    if isinstance(tree, mi.NamedTupleType) or getattr(tree, "array_like", False):
        return f"a list of {', '.join(field.name for field in tree.fields)}"
    return f"a JSON object with {', '.join(field.encode_name for field in tree.fields)}"


def _describe_object(tree: mi.DictType, orders: Orders) -> str:
    words, value = f"a JSON object{describe_length(tree, 'members')}", tree.value_type
    return words if isinstance(value, mi.AnyType) else f"{words}, each value {describe(value, orders)}"


def _describe_tuple(tree: mi.TupleType, orders: Orders) -> str:
    items = ", ".join(describe(item, orders) for item in tree.item_types)
    return f"a list of {len(tree.item_types)} items: {items}" if items else "an empty list"


def _describe_choice(tree: mi.LiteralType | mi.EnumType, orders: Orders) -> str:
    return describe_choices(values_of(tree, orders))


_DESCRIBERS: Final[dict[type[mi.Type], Callable[[Any, Orders], str]]] = {
    mi.NoneType: lambda _tree, _orders: "null",
    mi.CustomType: lambda tree, _: tree.cls.__name__,
    mi.UnionType: _describe_union,
    mi.EnumType: _describe_choice,
    mi.LiteralType: _describe_choice,
    **dict.fromkeys(_LISTS, _describe_list),
    mi.TupleType: _describe_tuple,
    mi.DictType: _describe_object,
    **dict.fromkeys((mi.TypedDictType, mi.DataclassType, mi.StructType, mi.NamedTupleType), _describe_fields),
}


def example_text(tree: mi.Type) -> str:
    """Return an example of a type as JSON."""
    return msgspec.json.encode(_example(tree, 0)).decode()


def _example(tree: mi.Type, depth: int) -> Any:
    tree = plain(tree)
    if depth > _MAX_DEPTH:
        return None
    if (scalar := scalar_of(tree)) is not None:
        return scalar.example_of(tree)
    make = _EXAMPLES.get(type(tree))
    return make(tree, depth) if make else "text"


def _union_example(tree: mi.UnionType, depth: int) -> Any:
    return _example(next(t for t in tree.types if not isinstance(t, mi.NoneType)), depth)


def _array_example(types: Any, depth: int) -> list[Any]:
    return [_example(each, depth + 1) for each in types]


def _fields_example(tree: Any, depth: int) -> Any:
    """Return an example of a record. Members that may be left out are left out, where they have names."""
    tag = tree.tag if isinstance(tree, mi.StructType) else None
    if isinstance(tree, mi.NamedTupleType) or getattr(tree, "array_like", False):
        values = _array_example((field.type for field in tree.fields), depth)
        return values if tag is None else [tag, *values]
    members = {f.encode_name: _example(f.type, depth + 1) for f in tree.fields if f.required}
    return members if tag is None else {tree.tag_field: tag} | members


_EXAMPLES: Final[dict[type[mi.Type], Callable[[Any, int], Any]]] = {
    mi.UnionType: _union_example,
    mi.LiteralType: lambda tree, _: next(value for value in tree.values if value is not None),
    mi.EnumType: lambda tree, _: next(iter(tree.cls)).value,
    **dict.fromkeys(_LISTS, lambda tree, depth: _array_example([tree.item_type], depth)),
    mi.TupleType: lambda tree, depth: _array_example(tree.item_types, depth),
    mi.DictType: lambda tree, depth: {
        str(_example(tree.key_type, depth + 1)): _example(tree.value_type, depth + 1)
    },
    **dict.fromkeys((mi.TypedDictType, mi.DataclassType, mi.StructType, mi.NamedTupleType), _fields_example),
}
