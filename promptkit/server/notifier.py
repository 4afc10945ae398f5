"""Notifications to clients about changed lists and resources."""

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Final

from promptkit.protocol.capabilities import ResultEncoder, method_not_found
from promptkit.protocol.events import Request, Send
from promptkit.protocol.jsonrpc import InternalError, encode_result
from promptkit.protocol.session import Session
from promptkit.protocol.subscriptions import Subscriptions

#: The maximum number of open streams.
MAX_STREAMS: Final = 1024

#: The maximum number of subscriptions to resources, in all streams together.
_MAX_URIS: Final = 100_000


class Notifier:
    """
    The notifier of one client.

    Args:
        session:
            The client's session.

        send:
            A function that sends whole lines. It may be called from several threads.

        subscriptions:
            The client's subscriptions. By default, they are those of the session.
    """

    def __init__(self, session: Session, send: Send, subscriptions: Subscriptions | None = None) -> None:
        self.subscriptions = session.subscriptions if subscriptions is None else subscriptions
        self._session = session
        self._send = send
        # Held while the client is notified: no notification may precede the acknowledgement of a stream, or
        # follow its end.
        self._notify_lock = Lock()

    @property
    def by_scopes(self) -> "Mapping[frozenset[str] | None, Sequence[Notifier]]":
        """The notifiers, grouped by their clients' scopes; the key is None without authentication."""
        return {None: [self]}

    def of_session(self, method: str) -> Subscriptions:  # noqa: ARG002 (streams name it)
        """Return the subscriptions of the session, which a method changes."""
        return self.subscriptions

    def listen(self, request: Request, hold: Callable[[], object]) -> None:
        """Open the stream that *request* asks for, and call *hold*, which keeps the request open."""
        requested, offered = request.params.notifications, self._session.capabilities
        with self._notify_lock:
            acknowledgement = self.subscriptions.listen(request.id, requested, offered)
            hold()
            self._send(acknowledgement)

    def cancel(self, request: Request) -> None:
        """Close the stream that *request* has opened."""
        self.subscriptions.cancel(request.id)

    def notify(self, lists: Collection[str], is_changed: Callable[[str], bool]) -> None:
        """
        Notify the client of changed lists, named by their methods, and of changed resources.

        The function *is_changed* returns whether the resource at a URI may have changed.
        """
        with self._notify_lock:
            lines = [self.subscriptions.changed(lists)]
            lines += map(self.subscriptions.updated, sorted(filter(is_changed, self.subscriptions.uris)))
            if data := b"".join(lines):
                self._send(data)

    def end(self, results: ResultEncoder) -> None:
        """End all streams."""
        with self._notify_lock:
            if lines := self.subscriptions.end(results):
                self._send(lines)


class Streams(Notifier):
    """
    The notifier for many clients, each of which has opened a stream, and none of which has a session.

    Args:
        session:
            The session that holds the server's capabilities.

        send:
            A function that sends lines that do not belong to a request.
    """

    def __init__(self, session: Session, send: Send) -> None:
        super().__init__(session, send)
        self._open: dict[int, tuple[Request, Notifier, frozenset[str] | None]] = {}
        self._lock = Lock()

    @property
    def by_scopes(self) -> "Mapping[frozenset[str] | None, Sequence[Notifier]]":
        """The streams by the scopes that their clients had when they opened them."""
        notifiers: dict[frozenset[str] | None, list[Notifier]] = {}
        with self._lock:
            for _, stream, scopes in self._open.values():
                notifiers.setdefault(scopes, []).append(stream)
        return notifiers

    def of_session(self, method: str) -> Subscriptions:
        """Raise MethodNotFound, because these clients do not have a session."""
        raise method_not_found(method)

    def listen(self, request: Request, hold: Callable[[], object]) -> None:
        """
        Open the stream that *request* asks for, and call *hold*, which keeps the request open.

        Raises:
            InternalError: If too many streams are open.
        """
        self._check_limits(request)
        # Separate subscriptions, because requests of several clients can have the same id.
        stream = Notifier(self._session, request.sender(self._send), Subscriptions())
        scopes = request.scopes

        def register() -> None:
            with self._lock:  # before `hold`: afterwards, the request can be cancelled at any time
                self._open[id(request)] = request, stream, scopes
            hold()

        stream.listen(request, register)

    def cancel(self, request: Request) -> None:
        """Close the stream that *request* has opened."""
        with self._lock:
            self._open.pop(id(request), None)

    def end(self, results: ResultEncoder) -> None:
        """End all streams, each with its result."""
        with self._lock:
            requests = [request for request, *_ in self._open.values()]
            self._open.clear()
        for request in requests:
            request.sender(self._send)(encode_result(request.id, results.encode_end(request.id)).line)

    def _check_limits(self, request: Request) -> None:
        requested = request.params.notifications.resource_subscriptions or ()
        with self._lock:
            streams = [stream for _, stream, _ in self._open.values()]
        if len(streams) >= MAX_STREAMS:
            msg = f"{MAX_STREAMS:,} streams are open, which is the limit: try again later"
            raise InternalError(msg)
        if sum(len(stream.subscriptions.uris) for stream in streams) + len(requested) > _MAX_URIS:
            msg = f"the limit is {_MAX_URIS:,} subscriptions to resources: try again later"
            raise InternalError(msg)
