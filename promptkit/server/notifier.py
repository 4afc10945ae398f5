"""Notifications to clients: which lists and resources have changed."""

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Final

from promptkit.protocol.capabilities import ResultEncoder, method_not_found
from promptkit.protocol.events import Request, Send
from promptkit.protocol.jsonrpc import InternalError, encode_result
from promptkit.protocol.session import Session
from promptkit.protocol.subscriptions import Subscriptions

#: How many streams may be open at once.
MAX_STREAMS: Final = 1024

#: How many resources the streams may be subscribed to together. A resource counts each time.
_MAX_URIS: Final = 100_000


class Notifier:
    """
    Tells one client of changes.

    Args:
        session:
            The client.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        subscriptions:
            What the client wants to be notified of; that of the session by default.
    """

    def __init__(self, session: Session, send: Send, subscriptions: Subscriptions | None = None) -> None:
        self.subscriptions = session.subscriptions if subscriptions is None else subscriptions
        self._session = session
        self._send = send
        # Held while the client is notified: nothing may come before the acknowledgement of a stream, or
        # after its end.
        self._notify_lock = Lock()

    @property
    def by_scopes(self) -> "Mapping[frozenset[str] | None, Sequence[Notifier]]":
        """Who is notified, by what they may do, which is None if nobody asked who they are."""
        return {None: [self]}

    def of_session(self, method: str) -> Subscriptions:  # noqa: ARG002 (streams name it)
        """Return what the session is notified of, which a method changes."""
        return self.subscriptions

    def listen(self, request: Request, hold: Callable[[], object]) -> None:
        """Open the stream that *request* asks for, once *hold* has put it in flight."""
        wanted, offered = request.params.notifications, self._session.capabilities
        with self._notify_lock:
            acknowledgement = self.subscriptions.listen(request.id, wanted, offered)
            hold()
            self._send(acknowledgement)

    def cancel(self, request: Request) -> None:
        """Close the stream that *request* has opened."""
        self.subscriptions.cancel(request.id)

    def tell(self, lists: Collection[str], is_changed: Callable[[str], bool]) -> None:
        """
        Tell of changes.

        Args:
            lists:
                The methods of the lists that have changed.

            is_changed:
                Whether the resource of a URI may have, too.
        """
        with self._notify_lock:
            lines = [self.subscriptions.changed(lists)]
            lines += map(self.subscriptions.updated, sorted(filter(is_changed, self.subscriptions.uris)))
            if data := b"".join(lines):
                self._send(data)

    def correct(self, lists: Collection[str]) -> None:
        """Tell of *lists*, by their methods, that were wrong when they were sent first."""
        with self._notify_lock:
            if lines := self.subscriptions.correct(lists):
                self._send(lines)

    def end(self, results: ResultEncoder) -> None:
        """End all streams."""
        with self._notify_lock:
            if lines := self.subscriptions.end(results):
                self._send(lines)


class Streams(Notifier):
    """
    Tells the clients of changes that have opened a stream. None of them has a session.

    Args:
        session:
            What the server offers to clients.

        send:
            Takes lines that belong to no request.
    """

    def __init__(self, session: Session, send: Send) -> None:
        super().__init__(session, send)
        self._open: dict[int, tuple[Request, Notifier, frozenset[str] | None]] = {}
        self._lock = Lock()

    @property
    def by_scopes(self) -> "Mapping[frozenset[str] | None, Sequence[Notifier]]":
        """The streams by what their clients could do when they opened them."""
        found: dict[frozenset[str] | None, list[Notifier]] = {}
        with self._lock:
            for _, stream, scopes in self._open.values():
                found.setdefault(scopes, []).append(stream)
        return found

    def of_session(self, method: str) -> Subscriptions:
        """
        Refuse a method of clients with a session.

        Raises:
            MethodNotFound: Always: such a client would have no stream.
        """
        raise method_not_found(method)

    def listen(self, request: Request, hold: Callable[[], object]) -> None:
        """
        Open the stream that *request* asks for, once *hold* has put it in flight.

        Raises:
            InternalError: If too many are open.
        """
        self._check_room(request)
        # Of its own, as requests of several clients may have the same id.
        stream = Notifier(self._session, request.sender(self._send), Subscriptions())
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

    def end(self, results: ResultEncoder) -> None:
        """End all streams, each with its result."""
        with self._lock:
            ended = [request for request, *_ in self._open.values()]
            self._open.clear()
        for request in ended:
            request.sender(self._send)(encode_result(request.id, results.encode_end(request.id)).line)

    def _check_room(self, request: Request) -> None:
        wanted = request.params.notifications.resource_subscriptions or ()
        with self._lock:
            streams = [stream for _, stream, _ in self._open.values()]
        if len(streams) >= MAX_STREAMS:
            msg = f"{MAX_STREAMS:,} streams are open, which is the limit: try again later"
            raise InternalError(msg)
        if sum(len(stream.subscriptions.uris) for stream in streams) + len(wanted) > _MAX_URIS:
            msg = f"there would be more than {_MAX_URIS:,} subscriptions to resources: try again later"
            raise InternalError(msg)
