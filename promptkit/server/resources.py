"""What clients do with resources: read them, and subscribe to changes."""

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from promptkit.errors.exceptions import UnknownResource, shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams, ResourceNotFound
from promptkit.server.exchange import Exchange, State
from promptkit.server.lookup import read_hidden
from promptkit.server.notifier import Notifier
from promptkit.server.scheduling.executor import Executor, call_author
from promptkit.server.scheduling.in_flight import InFlight, Job

if TYPE_CHECKING:  # most recipes have none
    from promptkit.catalog.resources import CompiledResource

__all__ = ["ResourceMethods"]


class ResourceMethods:
    """
    Answers what clients ask of single resources, and ``subscriptions/listen``.

    Args:
        executor:
            Calls authors' functions.

        notifier:
            What tells the client of changes.

        in_flight:
            Where requests go that stay open, as streams do.
    """

    def __init__(self, executor: Executor, notifier: Notifier, in_flight: InFlight) -> None:
        self._executor = executor
        self._notifier = notifier
        self._in_flight = in_flight

    def read(self, exchange: Exchange) -> bytes | None:
        """Return what a resource holds; None if the result comes later."""
        params: wire.ResourceParams = exchange.request.params
        resource, values = _resource_of(exchange)
        if resource.is_fixed:
            return _kept(exchange, resource)

        def work() -> bytes:
            content = call_author(resource.content, params.uri, values)
            return exchange.snapshot.lowerings[exchange.request.revision].contents(content)

        return self._executor.call(exchange, work)

    def subscribe(self, exchange: Exchange) -> bytes:
        """Tell the session of updates of a resource from now on."""
        _resource_of(exchange)
        self._notifier.of_session(exchange.request.method).subscribe(exchange.request.params.uri)
        return b"{}"

    def unsubscribe(self, exchange: Exchange) -> bytes:
        """Tell the session no longer."""
        self._notifier.of_session(exchange.request.method).unsubscribe(exchange.request.params.uri)
        return b"{}"

    def listen(self, exchange: Exchange) -> None:
        """Tell the client of changes until it, or the server, ends the request."""
        self._in_flight.check_room()
        request = exchange.request
        stop = partial(self._notifier.cancel, request)

        def hold() -> None:
            self._in_flight.enter(Job(exchange, stop, works=False))
            if exchange.state is State.ANSWERED:  # the thread was relieved before, and then the client left
                stop()

        self._notifier.listen(request, hold)


def _kept(exchange: Exchange, resource: "CompiledResource") -> bytes:
    """The result of reading what is always the same, encoded once for many."""
    request, snapshot = exchange.request, exchange.snapshot
    # Whoever may read it, the file itself is part of the key.
    key = request.method, resource.uri_template, id(resource), request.revision.date, b""
    if (kept := snapshot.replies.get(key)) is None:
        content = resource.content(resource.uri_template, {})
        changes = snapshot.capabilities.changes
        kept = snapshot.lowerings[request.revision].contents(content, changes=changes)
        snapshot.replies.put(key, kept, inf)
    return kept


def _resource_of(exchange: Exchange) -> "tuple[CompiledResource, dict[str, Any]]":
    """The resource that a request is about, and the values of the variables in its URI."""
    request = exchange.request
    try:
        resource, variables = exchange.snapshot.catalog.resource(request.params.uri)
    except UnknownResource as error:
        kind = ResourceNotFound if request.revision.resource_not_found else InvalidParams
        raise kind(str(error), {"uri": shortened(request.params.uri)}) from None
    exchange.about = resource
    return resource, read_hidden(resource.arguments, variables, resource.bind)
