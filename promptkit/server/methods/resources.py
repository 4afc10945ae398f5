"""What clients do with resources: read them, and subscribe to changes."""

from functools import partial

from promptkit.protocol import wire
from promptkit.protocol.lowering import Lowering
from promptkit.protocol.revisions import Revision
from promptkit.server.calls import Calls, call_author
from promptkit.server.exchange import Exchange
from promptkit.server.lookup import resource_of
from promptkit.server.notifier import Notifier
from promptkit.server.read_history import ReadHistories
from promptkit.server.scheduling.in_flight import InFlight, Job

__all__ = ["ResourceMethods"]


class ResourceMethods:
    """
    Answers what clients ask of single resources, and ``subscriptions/listen``.

    Args:
        calls:
            Calls authors' functions.

        lowerings:
            What writes results, by revision.

        read_histories:
            Where it is noted what clients have read.

        notifier:
            What tells the client of changes.

        in_flight:
            Where requests go that stay open, as streams do.
    """

    def __init__(
        self,
        calls: Calls,
        lowerings: dict[Revision, Lowering],
        read_histories: ReadHistories,
        notifier: Notifier,
        in_flight: InFlight,
    ) -> None:
        self._calls = calls
        self._lowerings = lowerings
        self._read_histories = read_histories
        self._notifier = notifier
        self._in_flight = in_flight

    def read(self, exchange: Exchange) -> bytes | None:
        """Return what a resource holds; None if the result comes later."""
        params: wire.ResourceParams = exchange.request.params
        resource, values = resource_of(exchange)
        history = self._read_histories.of(exchange.request.scopes)

        def work() -> bytes:
            content = call_author(resource.content, params.uri, values)
            history.note(content)
            return self._lowerings[exchange.request.revision].contents(content)

        return self._calls.call(exchange, work)

    def subscribe(self, exchange: Exchange) -> bytes:
        """Tell the session of updates of a resource from now on."""
        resource_of(exchange)
        self._notifier.subscribe(exchange.request.params.uri)
        return b"{}"

    def unsubscribe(self, exchange: Exchange) -> bytes:
        """Tell the session no longer."""
        self._notifier.unsubscribe(exchange.request.params.uri)
        return b"{}"

    def listen(self, exchange: Exchange) -> None:
        """Tell the client of changes until it, or the server, ends the request."""
        self._in_flight.check_room()
        request = exchange.request
        stop = partial(self._notifier.cancel, request)

        def hold() -> None:
            self._in_flight.hold(Job(exchange, stop, works=False))
            if exchange.settled:  # the thread was relieved before, and then the client left
                stop()

        self._notifier.listen(request, hold)
