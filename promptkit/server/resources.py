"""What clients do with resources: read them, and subscribe to changes."""

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from promptkit.errors.exceptions import UnknownResourceError, shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams, ResourceNotFound
from promptkit.server.dispatch import Dispatcher
from promptkit.server.lookup import read_hidden
from promptkit.server.notifier import Notifier
from promptkit.server.pending import PendingRequest
from promptkit.server.user_code import call_author

if TYPE_CHECKING:  # most recipes have none
    from promptkit.catalog.resources import CompiledResource


class ResourceMethods:
    """
    Answers what clients ask of single resources, and ``subscriptions/listen``.

    Args:
        dispatcher:
            Runs authors' functions, and holds streams open.

        notifier:
            Notifies the client of changes.
    """

    def __init__(self, dispatcher: Dispatcher, notifier: Notifier) -> None:
        self._dispatcher = dispatcher
        self._notifier = notifier

    def read(self, pending: PendingRequest) -> bytes | None:
        """Return what a resource holds; None if the result comes later."""
        params: wire.ResourceParams = pending.request.params
        resource, values = _resource_of(pending)
        if resource.is_fixed:
            return _kept(pending, resource)

        def work() -> bytes:
            content = call_author(resource.content, params.uri, values)
            return pending.snapshot.lowerings[pending.request.revision].contents(content)

        return self._dispatcher.call(pending, work)

    def subscribe(self, pending: PendingRequest) -> bytes:
        """Tell the session of updates of a resource from now on."""
        _resource_of(pending)
        self._notifier.of_session(pending.request.method).subscribe(pending.request.params.uri)
        return b"{}"

    def unsubscribe(self, pending: PendingRequest) -> bytes:
        """Tell the session no longer."""
        self._notifier.of_session(pending.request.method).unsubscribe(pending.request.params.uri)
        return b"{}"

    def listen(self, pending: PendingRequest) -> None:
        """Tell the client of changes until it, or the server, ends the request."""
        self._dispatcher.check_held()
        request = pending.request
        stop = partial(self._notifier.cancel, request)

        def hold() -> None:
            if not self._dispatcher.hold(pending, stop):  # the client left a moment ago
                stop()

        self._notifier.listen(request, hold)


def _kept(pending: PendingRequest, resource: "CompiledResource") -> bytes:
    """The result of reading what is always the same, encoded once for many."""
    request, snapshot = pending.request, pending.snapshot
    # Whoever may read it, the file itself is part of the key.
    key = request.method, resource.uri_template, id(resource), request.revision.date, b""
    if (kept := snapshot.replies.get(key)) is None:
        content = resource.content(resource.uri_template, {})
        changes = snapshot.capabilities.changes
        kept = snapshot.lowerings[request.revision].contents(content, changes=changes)
        snapshot.replies.put(key, kept, inf)
    return kept


def _resource_of(pending: PendingRequest) -> "tuple[CompiledResource, dict[str, Any]]":
    """The resource that a request is about, and the values of the variables in its URI."""
    request = pending.request
    try:
        resource, variables = pending.snapshot.catalog.resource(request.params.uri)
    except UnknownResourceError as error:
        kind = ResourceNotFound if request.revision.resource_not_found else InvalidParams
        raise kind(str(error), {"uri": shortened(request.params.uri)}) from None
    pending.about = resource
    return resource, read_hidden(resource.arguments, variables, resource.bind)
