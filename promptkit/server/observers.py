"""Observers: what is notified of every request, and of its reply."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Generic, Protocol, TypeVar

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import METHODS, TOOL_METHODS
from promptkit.protocol.events import Request
from promptkit.protocol.partial_decoding import error_code, is_failure, is_question

__all__ = ["Observer", "OpenRequests", "known_method", "outcome_of"]

T = TypeVar("T")


class Observer(Protocol):
    """
    What is notified of every request, such as `promptkit.server.audit.Audit`.
    """

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[bytes], object]:
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


def known_method(request: Request, other: str) -> str:
    """Return the method of a request; *other* for what clients make up, of which there is no end."""
    is_known = any(request.method in known for known in (METHODS, TOOL_METHODS))
    return request.method if is_known else other


def outcome_of(reply: bytes | None) -> tuple[str, int | None]:
    """Return what came of a request, in a word, and the code if that is an error."""
    if not reply:
        return "unanswered" if reply is None else "cancelled", None
    if (code := error_code(reply)) is not None:
        return "error", code
    if is_failure(reply):
        return "failed", None
    return "asked" if is_question(reply) else "ok", None
