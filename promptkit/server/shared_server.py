"""The server for many clients at once, each of which sends single requests."""

from collections.abc import Callable, Iterable

from promptkit.catalog.catalog import Catalog
from promptkit.language.annotations import NO_SCOPES
from promptkit.protocol.events import Event, Request
from promptkit.protocol.session import Observe
from promptkit.server.lookup import unmet_scopes
from promptkit.server.server import Server
from promptkit.server.snapshot import Snapshot


class SharedServer(Server):
    """
    Answers many clients from a catalog. Each request has a channel, to which its reply goes.

    Several requests may have the same id. No client has a session in which it could be asked or notified.
    """

    has_many_clients = True

    @property
    def observe(self) -> Observe | None:
        """What has to be called with each request that never reaches the server, and its reply."""
        return self._connection.observe

    def handle_from(self, next_events: Callable[[], Iterable[Event] | None]) -> None:
        """
        Answer the requests that *next_events* returns, on threads of the server's own. Returns at once.

        Args:
            next_events:
                Waits for requests; returns None at the end. One thread at a time calls it.

        Raises:
            RuntimeError: If there can be no more threads.
        """
        self._dispatcher.start(next_events)

    def drop(self, request: Request) -> None:
        """
        Stop the work on a request, and send no reply. Its channel has to be marked as gone before.
        """
        self._dispatcher.drop(request)

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

    def _snapshot_for(self, request: Request) -> Snapshot:
        snapshot = self.snapshot
        return self._view(snapshot, request.scopes) if snapshot.requirements else snapshot
