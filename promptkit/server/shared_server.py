"""The server for many clients at once, each of which sends single requests."""

from collections.abc import Callable, Iterable

from promptkit.catalog.catalog import Catalog
from promptkit.language.declarations import NO_SCOPES
from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.events import Event, Request
from promptkit.protocol.principals import Principal
from promptkit.server.exchange import Exchange
from promptkit.server.lookup import unmet_scopes
from promptkit.server.scheduling.leader import Leadership
from promptkit.server.server import Server
from promptkit.server.snapshot import Snapshot

__all__ = ["SharedServer"]


class SharedServer(Server):
    """
    Answers many clients from a catalog. Each request has a channel, to which its reply goes.

    Several requests may have the same id. No client has a session in which it could be asked or notified.
    """

    has_many_clients = True

    @property
    def observe(self) -> Callable[[Request, bytes], object] | None:
        """What has to be called with each request that never reaches the server, and its reply."""
        return self._connection.observe

    def handle_from(self, next_events: Callable[[], Iterable[Event] | None]) -> None:
        """
        Answer the requests that *next_events* returns, on threads of the server's own. Returns at once.

        Args:
            next_events:
                Waits for requests; None at the end. It is called by one thread at a time.

        Raises:
            RuntimeError: If there can be no more threads.
        """

        def read_on(leadership: Leadership) -> None:
            while (events := next_events()) is not None:
                leadership.failures = 0
                if not self._leader_followers.handle_events(events, leadership):
                    return
                del events  # the next may come late, and each holds all that its client has sent

        self._leader_followers.start(read_on)

    def drop(self, request: Request) -> None:
        """
        Stop the work on a request, and send no reply. Its channel has to say that the client is gone.

        If it is not begun, it never is; if it is handled right now, it stops as soon as that takes long.
        """
        self._in_flight.drop(request)

    @property
    def capabilities_for(self) -> Callable[[Principal | None], Capabilities] | None:
        """Returns what is declared to one sender; None if all see the same."""
        snapshot = self.snapshot
        if not snapshot.requirements:
            return None
        return lambda sender: self._view(snapshot, None if sender is None else sender.scopes).capabilities

    def scopes_lacking(self, request: Request) -> frozenset[str]:
        """
        Return all scopes of what a request is about, if it exists, and its sender does not have them.
        """
        whole = self.snapshot
        if not whole.requirements:
            return NO_SCOPES
        view = self._view(whole, request.scopes)
        return NO_SCOPES if view is whole else unmet_scopes(request, whole, view)

    def _visible(self, catalog: Catalog) -> Catalog:
        return catalog  # each client has a view of it

    def _view(self, snapshot: Snapshot, scopes: frozenset[str] | None) -> Snapshot:
        return snapshot.view(self._scopes if scopes is None else scopes)

    def _handle(self, event: Event, view: Snapshot | None = None) -> tuple[Exchange | None, bytes | None]:
        if isinstance(event, Request):
            if event.unwanted:
                event.discard()
                return None, None
            snapshot = self.snapshot
            view = self._view(snapshot, event.scopes) if snapshot.requirements else snapshot
        return super()._handle(event, view)
