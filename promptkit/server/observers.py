"""The interface of observers, which are notified of every request and its reply."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import METHODS, TOOL_METHODS
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply

#: The reply to requests that are still open when serving ends.
_UNANSWERED: Final = Reply(b"", "unanswered")

T = TypeVar("T")


class Observer(Protocol):
    """An object that is notified of every request, such as `promptkit.server.audit.Audit`."""

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], object]:
        """
        Record *request*. Return a function to call with the reply before it is sent.

        While recipes are being imported, *catalog* returns an empty catalog.
        """

    def close(self) -> None:
        """Record the requests that were never answered, and flush all records."""


class OpenRequests(Generic[T]):
    """
    An observer's entries for requests that are not answered yet.

    Args:
        end:
            A function that is called once for each entry, with the entry and the reply.
    """

    def __init__(self, end: Callable[[T, Reply], object]) -> None:
        self._end = end
        self._entries: dict[int, T] = {}
        self._keys = count(1)

    def add(self, entry: T) -> Callable[[Reply], None]:
        """Add an entry. Return a function to call with the reply; later calls have no effect."""
        key = next(self._keys)
        self._entries[key] = entry
        return partial(self._finish, key)

    def end_all(self) -> None:
        """End the entries of requests that were never answered."""
        for key in list(self._entries):
            self._finish(key, _UNANSWERED)

    def _finish(self, key: int, reply: Reply) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._end(entry, reply)


def known_method(request: Request, fallback: str) -> str:
    """Return the method of a request, or *fallback* for unknown methods, which are unbounded."""
    is_known = any(request.method in methods for methods in (METHODS, TOOL_METHODS))
    return request.method if is_known else fallback
