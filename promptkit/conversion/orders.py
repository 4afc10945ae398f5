"""The order in which authors wrote choices: msgspec sorts those of a ``Literal``."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, get_args

from msgspec import inspect as mi

from promptkit.conversion.kinds import is_literal, plain

__all__ = ["Orders", "orders_of", "values_of"]

#: The values of each ``Literal`` as its author wrote them.
Orders: TypeAlias = Mapping[frozenset[Any], tuple[Any, ...]]


def orders_of(*annotations: Any) -> Orders:
    """Return the orders of the choices within types, but for those within their classes."""
    found: dict[frozenset[Any], tuple[Any, ...]] = {}
    for annotation in map(plain, annotations):
        arguments = get_args(annotation)
        found |= {_typed(arguments): arguments} if is_literal(annotation) else orders_of(*arguments)
    return found


def values_of(tree: mi.LiteralType | mi.EnumType, orders: Orders) -> Iterable[Any]:
    """Return the values of choices in their author's order."""
    if isinstance(tree, mi.EnumType):
        return tree.cls
    return orders.get(_typed(tree.values), tree.values)


def _typed(values: Iterable[Any]) -> frozenset[Any]:
    return frozenset((type(value), value) for value in values)
