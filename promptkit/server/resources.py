"""The methods for resources: reading them, and subscribing to changes."""

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from promptkit.errors.exceptions import UnknownResourceError, shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams, ResourceNotFound
from promptkit.server.dispatch import Dispatcher
from promptkit.server.lookup import read_hiding_secrets
from promptkit.server.notifier import Notifier
from promptkit.server.pending import PendingRequest
from promptkit.server.user_code import call_author

if TYPE_CHECKING:  # most recipes have none
    from promptkit.catalog.resources import CompiledResource


class ResourceMethods:
    """
    The handlers of the methods for single resources, and of ``subscriptions/listen``.

    Args:
        dispatcher:
            The dispatcher, which runs authors' functions, and keeps streams open.

        notifier:
            The notifier, which notifies clients of changes.
    """

    def __init__(self, dispatcher: Dispatcher, notifier: Notifier) -> None:
        self._dispatcher = dispatcher
        self._notifier = notifier

    def read(self, pending: PendingRequest) -> bytes | None:
        """Return the contents of a resource, or None if the reply is sent later."""
        params: wire.ResourceParams = pending.request.params
        resource, values = _find_resource(pending)
        if resource.is_fixed:
            return _read_fixed(pending, resource)

        def work() -> bytes:
            content = call_author(resource.content, params.uri, values)
            return pending.snapshot.lowerings[pending.request.revision].contents(content)

        return self._dispatcher.call(pending, work)

    def subscribe(self, pending: PendingRequest) -> bytes:
        """Subscribe the session to a resource."""
        _find_resource(pending)
        self._notifier.of_session(pending.request.method).subscribe(pending.request.params.uri)
        return b"{}"

    def unsubscribe(self, pending: PendingRequest) -> bytes:
        """Unsubscribe the session from a resource."""
        self._notifier.of_session(pending.request.method).unsubscribe(pending.request.params.uri)
        return b"{}"

    def listen(self, pending: PendingRequest) -> None:
        """Notify the client of changes until the client or the server ends the request."""
        self._dispatcher.check_held()
        request = pending.request
        stop = partial(self._notifier.cancel, request)

        def hold() -> None:
            if not self._dispatcher.hold(pending, stop):  # the client has disconnected meanwhile
                stop()

        self._notifier.listen(request, hold)


def _read_fixed(pending: PendingRequest, resource: "CompiledResource") -> bytes:
    """Return the result of reading a constant resource, from the cache if possible."""
    request, snapshot = pending.request, pending.snapshot
    # The key contains the resource's identity, because callers with other scopes may see another resource.
    key = request.method, resource.uri_template, id(resource), request.revision.date, b""
    if (result := snapshot.replies.get(key)) is None:
        content = resource.content(resource.uri_template, {})
        changes = snapshot.capabilities.changes
        result = snapshot.lowerings[request.revision].contents(content, changes=changes)
        snapshot.replies.put(key, result, inf)
    return result


def _find_resource(pending: PendingRequest) -> "tuple[CompiledResource, dict[str, Any]]":
    """Return the resource of a request, and the values of the variables in its URI."""
    request = pending.request
    try:
        resource, variables = pending.snapshot.catalog.resource(request.params.uri)
    except UnknownResourceError as error:
        error_type = ResourceNotFound if request.revision.resource_not_found else InvalidParams
        raise error_type(str(error), {"uri": shortened(request.params.uri)}) from None
    pending.about = resource
    return resource, read_hiding_secrets(resource.arguments, variables, resource.bind)
