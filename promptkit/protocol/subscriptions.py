"""The subscriptions of a client, in both eras of the protocol."""

from collections.abc import Collection
from threading import Lock
from typing import Final

from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, ResultEncoder
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    RequestId,
    TooManyRequests,
    encode_notification,
    encode_result,
)

#: The lists whose changes are sent to clients, by kind.
_KINDS: Final = {
    "prompts": {"prompts/list"},
    "resources": {"resources/list", "resources/templates/list", "skills/list"},
    "tools": {"tools/list"},
}

#: The maximum number of subscriptions to resources per client, across its session and all its streams.
MAX_SUBSCRIPTIONS: Final = 10_000

#: The maximum length of the URI of a subscription, in characters.
MAX_CHARACTERS: Final = 2048


class Subscriptions:
    """
    The subscriptions of one client.

    A client with a session is notified of every change to a list, and subscribes to individual resources. A
    client of the modern era opens streams, each with a filter. Every notification on a stream carries the id
    of the request that opened it.

    Attributes:
        has_session:
            Whether the client has opened a session, and has declared that it is ready.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
    """

    def __init__(self) -> None:
        self.has_session = False
        self._offered = Capabilities()
        self._uris: set[str] = set()
        self._streams: dict[RequestId, tuple[wire.SubscriptionFilter, frozenset[str]]] = {}
        self._lock = Lock()  # notifications come from a different thread than requests

    def open_session(self, offered: Capabilities) -> None:
        """Open or reopen the session. The client is not ready yet."""
        with self._lock:
            self.has_session = False
            self._offered = offered
            self._uris.clear()

    @property
    def count(self) -> int:
        """The number of subscriptions to resources."""
        return len(self._uris) + sum(len(uris) for _, uris in list(self._streams.values()))

    @property
    def uris(self) -> Collection[str]:
        """The URIs that the session or a stream is subscribed to."""
        with self._lock:
            return self._uris.union(*(uris for _, uris in self._streams.values()))

    def change_subscription(self, uri: str, *, is_subscribed: bool) -> None:
        """
        Start or end the session's subscription to a resource.

        Raises:
            InvalidParams: If the URI is too long.

            TooManyRequests: If there are too many subscriptions.
        """
        with self._lock:
            if not is_subscribed:
                self._uris.discard(uri)
            elif uri not in self._uris:
                self._check_limits((uri,))
                self._uris.add(uri)

    def listen(
        self, request_id: RequestId, requested: wire.SubscriptionFilter, offered: Capabilities
    ) -> bytes:
        """
        Open a stream, and return its acknowledgement, which must be sent before any notification.

        Changes that the server does not offer are removed from the filter.

        Raises:
            InvalidParams: If a URI is too long.

            TooManyRequests: If there are too many subscriptions.
        """
        accepted = _accepted_filter(requested, offered)
        uris = frozenset(accepted.resource_subscriptions or ())
        with self._lock:
            self._streams.pop(request_id, None)
            self._check_limits(uris)
            self._streams[request_id] = accepted, uris
        params = wire.ChangeParams(notifications=accepted, meta=wire.NotificationMeta(request_id))
        return encode_notification("notifications/subscriptions/acknowledged", params)

    def cancel(self, request_id: RequestId) -> None:
        """Close a stream that the client has cancelled."""
        with self._lock:
            self._streams.pop(request_id, None)

    def _check_limits(self, uris: Collection[str]) -> None:
        """Raise InvalidParams or TooManyRequests if these subscriptions exceed a limit."""
        if any(len(uri) > MAX_CHARACTERS for uri in uris):
            msg = f"the URI of a resource to subscribe to can have at most {MAX_CHARACTERS:,} characters"
            raise InvalidParams(msg)
        if self.count + len(uris) > MAX_SUBSCRIPTIONS:
            limit = f"{MAX_SUBSCRIPTIONS:,} subscriptions to resources"
            msg = f"a client can have at most {limit}: end some of them first"
            raise TooManyRequests(msg)

    def encode_list_changes(self, lists: Collection[str]) -> bytes:
        """
        Return the notifications for changed lists. *lists* contains the methods that return these lists.
        """
        with self._lock:
            streams = list(self._streams.items())
        lines = b""
        for kind, methods in _KINDS.items():
            if methods.isdisjoint(lists):
                continue
            member = f"{kind}_list_changed"
            ids = [stream for stream, (requested, _) in streams if getattr(requested, member) is True]
            in_session = self.has_session and (kind != "tools" or self._offered.has_tools)
            lines += _encode_notifications(f"notifications/{kind}/list_changed", ids, in_session=in_session)
        return lines

    def encode_resource_change(self, uri: str) -> bytes:
        """Return the notifications for a changed resource."""
        with self._lock:
            streams = [stream for stream, (_, uris) in self._streams.items() if uri in uris]
            in_session = self.has_session and uri in self._uris
        return _encode_notifications(
            "notifications/resources/updated", streams, in_session=in_session, uri=uri
        )

    def end(self, results: ResultEncoder) -> bytes:
        """Close every stream, and return the lines that notify the client."""
        with self._lock:
            stream_ids = list(self._streams)
            self._streams.clear()
        lines = b""
        for stream in stream_ids:
            # One page of the specification requires a result, and another page requires a cancellation.
            # Clients treat a result as the end of the stream, and a cancellation as a lost stream. A
            # cancellation after a result is harmless.
            lines += encode_result(stream, results.encode_end(stream)).line
            lines += encode_notification("notifications/cancelled", wire.CancelledParams(stream))
        return lines


def _accepted_filter(requested: wire.SubscriptionFilter, offered: Capabilities) -> wire.SubscriptionFilter:
    return wire.SubscriptionFilter(
        (offered.changes and requested.prompts_list_changed is True) or None,
        (offered.changes and requested.resources_list_changed is True) or None,
        (offered.changes and requested.resource_subscriptions) or None,
        (offered.changes and offered.has_tools and requested.tools_list_changed is True) or None,
    )


def _encode_notifications(
    method: str, streams: list[RequestId], *, in_session: bool, uri: str | None = None
) -> bytes:
    notifications = [wire.ChangeParams(uri)] if in_session else []
    notifications += [wire.ChangeParams(uri, meta=wire.NotificationMeta(stream)) for stream in streams]
    return b"".join(encode_notification(method, params) for params in notifications)
