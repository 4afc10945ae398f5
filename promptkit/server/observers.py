"""Observers: what is notified of every request, and of its reply."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import METHODS, TOOL_METHODS
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply

#: For a request that is still open at the end.
_UNANSWERED: Final = Reply(b"", "unanswered")

T = TypeVar("T")


class Observer(Protocol):
    """
    What is notified of every request, such as `promptkit.server.audit.Audit`.
    """

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], object]:
        """
        Note that *request* has arrived. Return what is called with the reply before that is sent.

        While recipes are being imported, *catalog* returns an empty one.
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
            Called once for each, with what is known of it, and the reply.
    """

    def __init__(self, end: Callable[[T, Reply], object]) -> None:
        self._end = end
        self._known: dict[int, T] = {}
        self._numbers = count(1)

    def add(self, known: T) -> Callable[[Reply], None]:
        """Add a request. Return what is to be called with its reply; only the first call counts."""
        number = next(self._numbers)
        self._known[number] = known
        return partial(self._answered, number)

    def end_all(self) -> None:
        """End those that were never answered."""
        for number in list(self._known):
            self._answered(number, _UNANSWERED)

    def _answered(self, number: int, reply: Reply) -> None:
        known = self._known.pop(number, None)
        if known is not None:
            self._end(known, reply)


def known_method(request: Request, other: str) -> str:
    """Return the method of a request; *other* for what clients make up, of which there is no end."""
    is_known = any(request.method in known for known in (METHODS, TOOL_METHODS))
    return request.method if is_known else other
