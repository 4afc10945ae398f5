"""Properties that are computed once, by code of authors."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

__all__ = ["cached_property"]

T = TypeVar("T")


class cached_property(functools.cached_property[T]):  # noqa: N801 (it stands for the other)
    """
    As `functools.cached_property`, without the lock of Python 3.11.

    Under that, while the annotations of one prompt hang, no other prompt could be compiled.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()
