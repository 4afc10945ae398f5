"""Observers: what is notified of every request, and of its reply."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Generic, Protocol, TypeVar

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.events import Request

__all__ = ["Observer", "Observers", "OpenRequests", "joined"]

T = TypeVar("T")


class Observer(Protocol):
    """
    What is notified of every request, such as `promptkit.server.audit.Audit`.
    """

    def begin(self, request: Request, catalog: Catalog) -> Callable[[bytes], object]:
        """
        Note that *request* has arrived. Return what is called with the reply before that is sent.
        """
        ...

    def close(self) -> None:
        """
        Note what was never answered, and write everything down.
        """
        ...


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


class Observers:
    """
    Several observers as one.

    Args:
        observers:
            In the order in which they are notified.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def begin(self, request: Request, catalog: Catalog) -> Callable[[bytes], object]:
        """Tell all of them."""
        ends = [observer.begin(request, catalog) for observer in self._observers]

        def end(reply: bytes) -> None:
            for call in ends:
                call(reply)

        return end

    def close(self) -> None:
        """Close all of them."""
        for observer in self._observers:
            observer.close()


def joined(observers: Iterable[Observer | None]) -> Observer | None:
    """
    Return one observer for those that there are; None if there are none.
    """
    found = [observer for observer in observers if observer is not None]
    return Observers(found) if len(found) > 1 else next(iter(found), None)
