"""Notifications to clients about changed lists and resources, and the thread that detects such changes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Event, Lock
from typing import Final

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.exceptions import UnknownResourceError
from promptkit.protocol.capabilities import ResultEncoder, method_not_found
from promptkit.protocol.events import Request, Send
from promptkit.protocol.jsonrpc import TooManyRequests, encode_result
from promptkit.protocol.session import Session
from promptkit.protocol.subscriptions import Subscriptions
from promptkit.server.threads import DaemonThread
from promptkit.standard_error import say

#: The maximum total number of subscriptions to resources, across all streams and sessions.
_MAX_URIS: Final = 100_000

#: The maximum number of sessions whose subscriptions are stored. It exceeds the maximum number of streams, so
#: that there is always a session without a stream to evict.
_MAX_SESSIONS: Final = 4096


class Notifier:
    """
    Notifies one client of changed lists and resources.

    Args:
        session:
            The client's session.

        send:
            A function that sends whole lines. It may be called from several threads.

        subscriptions:
            The client's subscriptions. Defaults to those of the session.
    """

    def __init__(self, session: Session, send: Send, subscriptions: Subscriptions | None = None) -> None:
        self.subscriptions = session.subscriptions if subscriptions is None else subscriptions
        self._session = session
        self._send = send
        # Held while the client is notified: no notification may precede the acknowledgement of a stream, or
        # follow the end of the stream.
        self._notify_lock = Lock()

    @property
    def by_scopes(self) -> "Mapping[frozenset[str] | None, Sequence[Notifier]]":
        """The notifiers, grouped by their clients' scopes; None is the key if there is no authentication."""
        return {None: [self]}

    def change_subscription(self, request: Request, *, is_subscribed: bool) -> None:
        """Start or end the session's subscription to the resource that *request* names."""
        self.subscriptions.change_subscription(request.params.uri, is_subscribed=is_subscribed)

    def listen(self, request: Request, hold: Callable[[], object]) -> None:
        """Open the stream that *request* asks for, and call *hold*, which must keep the request open."""
        requested, offered = request.params.notifications, self._session.capabilities
        with self._notify_lock:
            acknowledgement = self.subscriptions.listen(request.id, requested, offered)
            hold()
            self._send(acknowledgement)

    def stream(self, request: Request, hold: Callable[[], object]) -> Request | None:  # noqa: ARG002
        """Raise MethodNotFound, because the connection to a single client already is a stream."""
        raise method_not_found(request.method)

    def cancel(self, request: Request) -> None:
        """Close the stream that *request* has opened."""
        self.subscriptions.cancel(request.id)

    def notify(self, lists: Collection[str], has_changed: Callable[[str], bool]) -> None:
        """
        Notify the client of changed lists and resources.

        *lists* contains the methods that return the changed lists. The function *has_changed* returns whether
        the resource at a URI may have changed.
        """
        with self._notify_lock:
            lines = [self.subscriptions.encode_list_changes(lists)]
            changed = sorted(filter(has_changed, self.subscriptions.uris))
            lines += map(self.subscriptions.encode_resource_change, changed)
            if data := b"".join(lines):
                self._send(data)

    def end(self, results: ResultEncoder) -> None:
        """End all streams."""
        with self._notify_lock:
            if lines := self.subscriptions.end(results):
                self._send(lines)


class SubscriptionChange(Struct, tag=True):
    """A change to the subscriptions of a session, whose stream may be open in another worker."""

    session_id: str
    uri: str
    is_subscribed: bool


class Streams(Notifier):
    """
    A notifier for many clients. It uses the streams that they have opened.

    A stream belongs either to a session, or to a request that names the changes to notify the client of.

    Args:
        session:
            The session that contains the server's capabilities.

        send:
            A function that sends lines that do not belong to a request.

        pass_on:
            A callback for changes to a session's subscriptions. Other workers must apply these changes, too.
    """

    def __init__(self, session: Session, send: Send, pass_on: Callable[[SubscriptionChange], object]) -> None:
        super().__init__(session, send)
        self._pass_on = pass_on
        self._open: dict[int, tuple[Request, Notifier, frozenset[str] | None]] = {}
        self._sessions: dict[str, Subscriptions] = {}  # the most recently used one is last
        self._lock = Lock()

    @property
    def by_scopes(self) -> "Mapping[frozenset[str] | None, Sequence[Notifier]]":
        """The streams, grouped by the scopes that the client had when it opened the stream."""
        notifiers: dict[frozenset[str] | None, list[Notifier]] = {}
        with self._lock:
            for _, stream, scopes in self._open.values():
                notifiers.setdefault(scopes, []).append(stream)
        return notifiers

    def change_subscription(self, request: Request, *, is_subscribed: bool) -> None:
        """
        Start or end the subscription of a session to the resource that *request* names, in all workers.

        Raises:
            MethodNotFound: If the client has no session.

            TooManyRequests: If all clients together have too many subscriptions.
        """
        if not request.session_id:
            raise method_not_found(request.method)
        change = SubscriptionChange(request.session_id, request.params.uri, is_subscribed)
        self.apply(change)
        self._pass_on(change)

    def apply(self, change: SubscriptionChange) -> None:
        """
        Apply *change* to the subscriptions of its session.

        Raises:
            TooManyRequests: If all clients together have too many subscriptions.
        """
        subscriptions = self._subscriptions_of(change.session_id)
        if change.is_subscribed:
            self._check_subscriptions(1)
        subscriptions.change_subscription(change.uri, is_subscribed=change.is_subscribed)

    def _subscriptions_of(self, session_id: str) -> Subscriptions:
        """
        Return the subscriptions of a session. If there are too many sessions, evict one that has no stream.
        """
        with self._lock:
            if (subscriptions := self._sessions.pop(session_id, None)) is None:
                subscriptions = Subscriptions()
                subscriptions.open_session(self._session.capabilities)
                subscriptions.has_session = True
            self._sessions[session_id] = subscriptions
            if len(self._sessions) > _MAX_SESSIONS:
                streaming = {request.session_id for request, *_ in self._open.values()}
                del self._sessions[next(each for each in self._sessions if each not in streaming)]
        return subscriptions

    def stream(self, request: Request, hold: Callable[[], object]) -> Request | None:
        """
        Open the stream of a session, and call *hold*, which must keep the request open.

        If the session already has a stream, the new one replaces it, because each message is sent on only one
        stream. Return the request of the replaced stream; None if there was none.
        """
        subscriptions = self._subscriptions_of(request.session_id)
        with self._lock:
            open_streams = list(self._open.values())
        replaced = [each for each, stream, _ in open_streams if stream.subscriptions is subscriptions]
        send = request.sender(self._send)
        self._register(request, Notifier(self._session, send, subscriptions))
        hold()
        send(b"")  # sends the head of the response, which the client is waiting for
        return replaced[0] if replaced else None

    def listen(self, request: Request, hold: Callable[[], object]) -> None:
        """
        Open the stream that *request* asks for, and call *hold*, which must keep the request open.

        Raises:
            TooManyRequests: If all clients together have too many subscriptions.
        """
        self._check_subscriptions(len(request.params.notifications.resource_subscriptions or ()))
        # Use separate subscriptions, because requests from several clients can have the same id.
        stream = Notifier(self._session, request.sender(self._send), Subscriptions())

        def register() -> None:
            self._register(request, stream)
            hold()

        stream.listen(request, register)

    def _register(self, request: Request, stream: Notifier) -> None:
        """
        Register a stream for notifications.

        Call this before the stream's request is held, because `cancel` must find the stream.
        """
        scopes = request.scopes
        with self._lock:
            self._open[id(request)] = request, stream, scopes

    def cancel(self, request: Request) -> None:
        """Close the stream that *request* has opened."""
        with self._lock:
            self._open.pop(id(request), None)

    def end(self, results: ResultEncoder) -> None:
        """
        End all streams. In stateless revisions, each ends with the result of the request that opened it.
        """
        with self._lock:
            requests = [request for request, *_ in self._open.values()]
            self._open.clear()
        for request in requests:
            if request.revision.stateless:
                request.sender(self._send)(encode_result(request.id, results.encode_end(request.id)).line)

    def _check_subscriptions(self, added: int) -> None:
        with self._lock:
            subscriptions = {stream.subscriptions for _, stream, _ in self._open.values()}
            subscriptions.update(self._sessions.values())
        if sum(each.count for each in subscriptions) + added > _MAX_URIS:
            msg = (
                f"clients can have at most {_MAX_URIS:,} subscriptions to resources in total: try again later"
            )
            raise TooManyRequests(msg)


#: The interval at which the stamps of watched resources are checked, in seconds.
_CHECK_EVERY_S = 1.0


class ResourceWatch:
    """
    A thread that detects when the stamps of watched resources change. It starts with the first subscription.

    If a stamp function hangs, only the notifications about watched resources are delayed.

    Args:
        catalog_for:
            A function that returns the catalog that callers with the given scopes can see.

        notifier:
            Notifies the subscribers.
    """

    def __init__(self, catalog_for: Callable[[frozenset[str] | None], Catalog], notifier: Notifier) -> None:
        self._catalog_for = catalog_for
        self._notifier = notifier
        self._stamps: dict[str, object] = {}
        self._failed: frozenset[str] = frozenset()
        self._ended = Event()
        self._lock = Lock()
        self._is_started = False

    def start(self) -> None:
        """Record the current stamps and start the thread, unless it is running or no resource is watched."""
        if not self._watched_resources():
            return
        with self._lock:
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._update_stamps()  # before the subscription is confirmed to the client
            DaemonThread(self._run, "resources").start()

    def end(self) -> None:
        """Make the thread stop soon. Do not wait for it."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_CHECK_EVERY_S):
            if changed := self._update_stamps():
                self._notify(changed)

    def _watched_resources(self) -> list[CompiledResource]:
        return [resource for resource in self._catalog_for(None).resources if resource.stamp is not None]

    def _update_stamps(self) -> list[CompiledResource]:
        """Record the current stamps. Return the resources whose stamps have changed since the last update."""
        changed, stamps, errors = list[CompiledResource](), dict[str, object](), set[str]()
        for resource in self._watched_resources():
            uri = resource.uri_template
            stamps[uri] = None  # after an error, the resource may have changed
            try:
                stamps[uri] = resource.stamp and resource.stamp()
                if self._stamps.get(uri, stamps[uri]) != stamps[uri]:
                    changed.append(resource)
            except Exception as error:  # noqa: BLE001 (an author's function can raise anything)
                errors.add(f"resource {resource.name!r} cannot be watched: {type(error).__name__}: {error}")
        for message in sorted(errors - self._failed):
            say(message)
        self._stamps, self._failed = stamps, frozenset(errors)
        return changed

    def _notify(self, changed: list[CompiledResource]) -> None:
        for scopes, notifiers in self._notifier.by_scopes.items():
            catalog = self._catalog_for(scopes)

            def has_changed(uri: str, catalog: Catalog = catalog) -> bool:
                try:
                    return catalog.resource(uri)[0] in changed
                except UnknownResourceError:
                    return False

            for notifier in notifiers:
                notifier.notify((), has_changed)
