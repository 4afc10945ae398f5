"""Caching of values that are computed from types."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar

R = TypeVar("R")

#: Functions that clear the caches.
_clear_functions: Final[list[Callable[[], None]]] = []


def cached_by_type(function: Callable[[Any], R]) -> Callable[[Any], R]:
    """
    Cache the results of a function whose only argument is a type.

    Equal types share a cached result even if they are different objects, such as two ``list[int]``.

    Args:
        function:
            The function. It must always return the same result for the same type. Exceptions are not cached.
    """

    @lru_cache(maxsize=256)
    def cached(annotation: Any, _: str | None) -> R:
        return function(annotation)

    @wraps(function)
    def call(annotation: Any) -> R:
        if isinstance(annotation, type):
            return cached(annotation, None)
        try:
            hash(annotation)
        except TypeError:  # the metadata of `Annotated` can be unhashable
            return function(annotation)
        # `Literal` types and unions are equal in any order of their members, so the `repr` is part of the
        # key.
        return cached(annotation, repr(annotation))

    _clear_functions.append(cached.cache_clear)
    return call


def clear_type_cache() -> None:
    """Clear the caches of all functions decorated with `cached_by_type`."""
    for clear in _clear_functions:
        clear()
