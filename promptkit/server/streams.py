"""Notifications to many clients: each stream that a request opens is notified by itself."""

from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Lock
from typing import Final

from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import InternalError, encode_result
from promptkit.protocol.methods import method_not_found
from promptkit.protocol.results import ResultEncoder
from promptkit.protocol.session import Session
from promptkit.protocol.subscriptions import Subscriptions
from promptkit.server.notifier import Audience, Notifier

__all__ = ["MAX_STREAMS", "Streams"]

#: How many streams may be open at once.
MAX_STREAMS: Final = 1024

#: How many resources the streams may be subscribed to together. A resource counts each time.
_MAX_URIS: Final = 100_000

_SUBSCRIBE: Final = "resources/subscribe"
_UNSUBSCRIBE: Final = "resources/unsubscribe"


class Streams(Notifier):
    """
    Tells the clients of changes that have opened a stream. None of them has a session.

    Args:
        session:
            What the server offers to clients.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session, _nowhere)
        self._session = session
        self._open: dict[int, tuple[Request, Notifier, frozenset[str] | None]] = {}
        self._lock = Lock()

    @property
    def audiences(self) -> Sequence[Audience]:
        """The clients by what they could do when they opened their streams."""
        found: dict[frozenset[str] | None, list[Notifier]] = {}
        with self._lock:
            for _, stream, scopes in self._open.values():
                found.setdefault(scopes, []).append(stream)
        return [Audience(scopes, streams) for scopes, streams in found.items()]

    def subscribe(self, _uri: str) -> None:
        """
        Refuse to subscribe a session.

        Raises:
            MethodNotFound: Always: a client with a session would have no stream.
        """
        raise method_not_found(_SUBSCRIBE)

    def unsubscribe(self, _uri: str) -> None:
        """
        Refuse to end a subscription.

        Raises:
            MethodNotFound: Always, as `subscribe`.
        """
        raise method_not_found(_UNSUBSCRIBE)

    def listen(self, request: Request, hold: Callable[[], object]) -> None:
        """
        Open the stream that *request* asks for, once *hold* has put it in flight.

        Raises:
            InternalError: If too many are open.
        """
        self._check_room(request)
        # Of its own, as requests of several clients may have the same id.
        stream = Notifier(self._session, request.sender(_nowhere), Subscriptions())
        scopes = request.scopes

        def enter() -> None:
            with self._lock:  # first of all: a request in flight may be cancelled at any moment
                self._open[id(request)] = request, stream, scopes
            hold()

        stream.listen(request, enter)

    def cancel(self, request: Request) -> None:
        """Close the stream that *request* has opened."""
        with self._lock:
            self._open.pop(id(request), None)

    def tell(self, lists: Collection[str], stale: Iterable[str] = ()) -> None:
        """Tell all clients of changes, as `Notifier.tell`."""
        Audience(None, self._all()).tell(lists, stale)

    def correct(self, lists: Collection[str]) -> None:
        """Tell of *lists* that were wrong when they were sent first."""
        for stream in self._all():
            stream.correct(lists)

    def end(self, results: ResultEncoder) -> None:
        """End all streams, each with its result."""
        with self._lock:
            ended = [request for request, *_ in self._open.values()]
            self._open.clear()
        for request in ended:
            request.sender(_nowhere)(encode_result(request.id, results.encode_end(request.id)))

    def _all(self) -> list[Notifier]:
        with self._lock:
            return [stream for _, stream, _ in self._open.values()]

    def _check_room(self, request: Request) -> None:
        wanted = request.params.notifications.resource_subscriptions or ()
        if len(self._open) >= MAX_STREAMS:
            msg = f"{MAX_STREAMS:,} streams are open, which is the limit: try again later"
            raise InternalError(msg)
        if sum(len(stream.uris) for stream in self._all()) + len(wanted) > _MAX_URIS:
            msg = f"there would be more than {_MAX_URIS:,} subscriptions to resources: try again later"
            raise InternalError(msg)


def _nowhere(_line: bytes) -> None:
    """Where lines go that belong to no request: to nobody."""
