"""Observers: what is told of every request, and of its reply."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.events import Request

__all__ = ["Observer", "Observers", "joined"]


class Observer(Protocol):
    """
    What is told of every request, such as `promptkit.server.audit.Audit`.
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


class Observers:
    """
    Several observers as one.

    Args:
        observers:
            In the order in which they are told.
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
