"""Checking: whether a value is of a type, and how an author writes that type."""

from typing import Any, get_args

from promptkit.conversion.readers import is_literal, is_union

__all__ = ["fits", "type_name"]


def type_name(annotation: Any) -> str:
    """
    Return a type as the author would write it.
    """
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def fits(value: Any, annotation: Any) -> bool:
    """
    Return whether *value* is of the type that *annotation* says.

    The common cases are told apart here; typeguard, which takes longer to import than
    serving does to start, decides the others.
    """
    if type(value) is annotation:
        return True
    if is_literal(annotation) and any(type(value) is type(v) and value == v for v in get_args(annotation)):
        return True
    if is_union(annotation) and any(type(value) is member for member in get_args(annotation)):
        return True
    from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

    try:
        check_type(value, annotation, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    except TypeCheckError:
        return False
    return True
