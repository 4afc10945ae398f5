"""Observers: what is notified of every request, and of its reply."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Generic, Protocol, TypeVar

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.events import Request

__all__ = ["Observer", "OpenRequests"]

T = TypeVar("T")


class Observer(Protocol):
    """
    What is notified of every request, such as `promptkit.server.audit.Audit`.
    """

    def begin(self, request: Request, catalog: Catalog) -> Callable[[bytes], object]:
        """
        Note that *request* has arrived. Return what is called with the reply before that is sent.
        """

    def close(self) -> None:
        """
        Note what was never answered, and write everything down.
        """


class OpenRequests(Generic[T]):
    """
    What an observer knows of each request that is not answered yet.

    Args:
        end:
            Called once for each, with what is known of it, and the reply; None if there was none.
    """

    def __init__(self, end: "Callable[[T, bytes | None], object]") -> None:
        self._end = end
        self._known: dict[int, T] = {}
        self._numbers = count(1)

    def add(self, known: T) -> Callable[[bytes], None]:
        """Add a request. Return what is to be called with its reply; only the first call counts."""
        number = next(self._numbers)
        self._known[number] = known
        return partial(self._answered, number)

    def end_all(self) -> None:
        """End those that were never answered."""
        for number in list(self._known):
            self._answered(number, None)

    def _answered(self, number: int, reply: bytes | None) -> None:
        known = self._known.pop(number, None)
        if known is not None:
            self._end(known, reply)
