"""
Descriptions of types in words, and examples where words are not enough.

Choices are described in the author's order. Examples use types as `msgspec.inspect` returns them.
"""

from collections.abc import Iterable
from types import NoneType
from typing import Any, Final, get_args

import msgspec
from msgspec import inspect as mi

from promptkit.types.choices import Orders, one_of, orders_of, values_of
from promptkit.types.constraints import describe_length
from promptkit.types.kinds import fields_of, is_enum, is_list, is_literal, is_union, plain, surrogate_of
from promptkit.types.scalars import scalar_of
from promptkit.types.unstructuring import json_of

#: The maximum depth of an example, which ends recursive types.
_MAX_DEPTH: Final = 4


def described(words: str | None, clauses: Iterable[str]) -> str:
    """Return an author's description, followed by further details in parentheses."""
    details = "; ".join(filter(None, clauses))
    return f"{words} ({details})" if words and details else words or details


def default_clause(variable: str | None, values: Iterable[str]) -> str:
    """Describe the default: an environment variable, a value, or both; return ``""`` for neither."""
    sources = [f"from ${variable}", *values] if variable else [*values]
    return f"default {', else '.join(sources)}" if sources else ""


def expected_of(annotation: Any) -> str:
    """Describe the valid values of a type, for the end of a sentence: ``a whole number of at least 1``."""
    annotation = plain(annotation)
    if is_literal(annotation) or is_enum(annotation):
        return describe_choices(get_args(annotation) or annotation)
    if (surrogate := surrogate_of(annotation)) is not None:
        return surrogate.expected
    try:
        return describe(mi.type_info(annotation), orders_of(annotation))
    except TypeError:  # msgspec does not support the type, but there are readers of its parts
        parts = [expected_of(part) for part in get_args(annotation) if part is not NoneType]
    if is_list(annotation):
        return f"a list, each {parts[0]}"
    return " or ".join(dict.fromkeys(parts)) if is_union(annotation) else "a value"


def describe(tree: mi.Type, orders: Orders) -> str:
    """Describe a type as `msgspec.inspect` returns it."""
    tree = plain(tree)
    if (scalar := scalar_of(tree)) is not None:
        return scalar.describe(tree)
    if (surrogate := surrogate_of(getattr(tree, "cls", None))) is not None:
        return surrogate.expected
    words = "a value"
    match tree:
        case mi.NoneType():
            words = "null"
        case mi.CustomType():
            words = tree.cls.__name__
        case mi.UnionType():
            members = (describe(part, orders) for part in tree.types if not isinstance(part, mi.NoneType))
            words = " or ".join(dict.fromkeys(members))
        case mi.EnumType() | mi.LiteralType():
            words = describe_choices(values_of(tree, orders))
        case mi.TupleType():
            items = ", ".join(describe(item, orders) for item in tree.item_types)
            words = f"a list of {len(tree.item_types)} items: {items}" if items else "an empty list"
        case mi.TypedDictType() | mi.DataclassType() | mi.StructType() | mi.NamedTupleType():
            words = _describe_fields(tree)
        case _ if hasattr(tree, "item_type") or hasattr(tree, "value_type"):
            words = _describe_items(tree, orders)
    return words


def describe_choices(values: Iterable[Any]) -> str:
    """Describe choices in JSON. Text is not quoted, and null, which means a missing value, is omitted."""
    texts = [value for value in map(json_of, values) if value is not None]
    return one_of(
        [value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in texts]
    )


def _describe_items(tree: Any, orders: Orders) -> str:
    """Describe a list, or an object with arbitrary members."""
    if isinstance(tree, mi.DictType):
        words, item, prefix = (
            f"a JSON object{describe_length(tree, 'members')}",
            tree.value_type,
            "each value",
        )
        is_plain = False
    else:
        words, item, prefix = f"a list{describe_length(tree, 'items')}", tree.item_type, "each"
        is_plain = isinstance(item, mi.StrType) and not describe_length(item, "")
    return (
        words if is_plain or isinstance(item, mi.AnyType) else f"{words}, {prefix} {describe(item, orders)}"
    )


def _describe_fields(tree: Any) -> str:
    if isinstance(tree, mi.NamedTupleType) or getattr(tree, "array_like", False):
        return f"a list of {', '.join(field.name for field in tree.fields)}"
    return f"a JSON object with {', '.join(field.encode_name for field in fields_of(tree))}"


def example_text(tree: mi.Type) -> str:
    """Return an example of a type as JSON."""
    return msgspec.json.encode(_example(tree, 0)).decode()


def _example(tree: mi.Type, depth: int) -> Any:  # noqa: C901 (one for each kind of type)
    tree = plain(tree)
    if depth > _MAX_DEPTH:
        return None
    if (scalar := scalar_of(tree)) is not None:
        return scalar.example_of(tree)
    if (surrogate := surrogate_of(getattr(tree, "cls", None))) is not None:
        return surrogate.example
    example: Any = "text"
    match tree:
        case mi.UnionType():
            example = _example(next(t for t in tree.types if not isinstance(t, mi.NoneType)), depth)
        case mi.LiteralType():
            example = next(value for value in tree.values if value is not None)
        case mi.EnumType():
            example = next(iter(tree.cls)).value
        case mi.ListType() | mi.SetType() | mi.FrozenSetType() | mi.VarTupleType():
            example = _array_example([tree.item_type], depth)
        case mi.TupleType():
            example = _array_example(tree.item_types, depth)
        case mi.DictType():
            example = {str(_example(tree.key_type, depth + 1)): _example(tree.value_type, depth + 1)}
        case mi.TypedDictType() | mi.DataclassType() | mi.StructType() | mi.NamedTupleType():
            example = _fields_example(tree, depth)
    return example


def _array_example(types: Any, depth: int) -> list[Any]:
    return [_example(kind, depth + 1) for kind in types]


def _fields_example(tree: Any, depth: int) -> Any:
    """Return an example of a record. Optional members are omitted if members have names."""
    tag = tree.tag if isinstance(tree, mi.StructType) else None
    if isinstance(tree, mi.NamedTupleType) or getattr(tree, "array_like", False):
        values = _array_example((field.type for field in tree.fields), depth)
        return values if tag is None else [tag, *values]
    members = {f.encode_name: _example(f.type, depth + 1) for f in fields_of(tree) if f.required}
    return members if tag is None else {tree.tag_field: tag} | members
