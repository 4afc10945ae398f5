"""Notifications to a client: which lists and resources have changed."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from threading import Lock

from msgspec import Struct

from promptkit.protocol.events import Request, Send
from promptkit.protocol.results import ResultEncoder
from promptkit.protocol.session import Session
from promptkit.protocol.subscriptions import Subscriptions

__all__ = ["Audience", "Notifier"]


class Audience(Struct, frozen=True, eq=False):
    """
    Clients that see the same, so that the same changes concern them.

    Args:
        scopes:
            What they may do; None if nobody asked who they are.

        notifiers:
            What tells each of them.
    """

    scopes: frozenset[str] | None
    notifiers: "Sequence[Notifier]"

    @property
    def uris(self) -> Collection[str]:
        """The resources of which any of them wants to know when they change."""
        return set().union(*(notifier.uris for notifier in self.notifiers))

    def tell(self, lists: Collection[str], stale: Iterable[str] = ()) -> None:
        """Tell all of them, as `Notifier.tell`."""
        stale = list(stale)
        for notifier in self.notifiers:
            notifier.tell(lists, stale)


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
        # Held while the client is told: nothing may come before the acknowledgement of a stream, or
        # after its end.
        self._notify_lock = Lock()

    @property
    def audiences(self) -> Sequence[Audience]:
        """Who is told of changes."""
        return [Audience(None, [self])]

    @property
    def uris(self) -> Collection[str]:
        """The resources of which the client wants to know when they change."""
        return self.subscriptions.uris

    def subscribe(self, uri: str) -> None:
        """Tell the session of updates of a resource from now on."""
        self.subscriptions.subscribe(uri)

    def unsubscribe(self, uri: str) -> None:
        """Tell the session no longer."""
        self.subscriptions.unsubscribe(uri)

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

    def tell(self, lists: Collection[str], stale: Iterable[str] = ()) -> None:
        """
        Tell of changes.

        Args:
            lists:
                The methods of the lists that have changed.

            stale:
                The URIs of the resources that have.
        """
        changes = [partial(self.subscriptions.changed, lists)]
        changes += [partial(self.subscriptions.updated, uri) for uri in stale]
        with self._notify_lock:
            if lines := b"".join(change() for change in changes):
                self._send(lines)

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
