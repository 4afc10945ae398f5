"""
Properties that are computed once, by code of authors.

`functools.cached_property` of Python 3.11 computes under one lock for all instances of a class: while an
annotation hangs when it is evaluated, no other prompt could be compiled. Newer Pythons take no lock.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 (it stands for the other)
        """As `functools.cached_property`, without its lock."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = vars(instance)[self._name] = self._compute(instance)
            return value
