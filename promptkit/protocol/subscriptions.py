"""Subscriptions: what one client is notified of, in both eras."""

from collections.abc import Callable, Collection, Iterable
from threading import Lock
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, ResultEncoder
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    RequestId,
    TooManyRequests,
    encode_notification,
    encode_result,
)


class _Kind(Struct, frozen=True):
    """The lists whose changes have one notification, and the member of a filter that asks for it."""

    notification: str
    lists: tuple[str, ...]
    wanted: str
    is_offered: Callable[[Capabilities], bool]


_KINDS: Final = (
    _Kind(
        "notifications/prompts/list_changed",
        ("prompts/list",),
        "prompts_list_changed",
        lambda _: True,
    ),
    _Kind(
        "notifications/resources/list_changed",
        ("resources/list", "resources/templates/list", "skills/list"),
        "resources_list_changed",
        lambda _: True,
    ),
    _Kind(
        "notifications/tools/list_changed",
        ("tools/list",),
        "tools_list_changed",
        lambda offered: bool(offered.tools),
    ),
)
_UPDATED: Final = "notifications/resources/updated"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

#: How many resources a client may subscribe to, in its session and all of its streams together. A resource
#: counts each time.
MAX_SUBSCRIPTIONS: Final = 10_000

#: The longest URI of such a resource, in characters.
MAX_CHARACTERS: Final = 2048


class Subscriptions:
    """
    What one client is notified of.

    A client with a session is notified of every change of a list, and subscribes to single resources. One of
    the modern era opens streams, each with a filter; every notification to a stream has the id of the request
    that opened it.

    Attributes:
        session:
            Whether the client has opened a session, and said that it is ready.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
    """

    def __init__(self) -> None:
        self.session = False
        self._offered = Capabilities()
        self._uris: set[str] = set()
        self._streams: dict[RequestId, wire.SubscriptionFilter] = {}
        self._listening: dict[str, dict[RequestId, None]] = {}  # by URI: the streams that are notified
        self._streamed = 0
        self._wrong: list[_Kind] = []
        self._lock = Lock()  # notifications come from another thread than the one that reads

    def open_session(self, offered: Capabilities) -> None:
        """
        Open a session, or open it anew. The client is not ready yet.
        """
        with self._lock:
            self.session = False
            self._offered = offered
            self._uris.clear()

    @property
    def uris(self) -> Collection[str]:
        """
        The resources that the session or a stream is subscribed to.
        """
        with self._lock:
            return self._uris.union(self._listening)

    def subscribe(self, uri: str) -> None:
        """
        Subscribe the session to a resource.

        Raises:
            InvalidParams: If the URI is too long.

            TooManyRequests: If there are too many subscriptions.
        """
        with self._lock:
            if uri not in self._uris:
                self._check_room((uri,))
                self._uris.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """End the session's subscription to a resource."""
        with self._lock:
            self._uris.discard(uri)

    def listen(
        self, request_id: RequestId, wanted: "wire.SubscriptionFilter", offered: Capabilities
    ) -> bytes:
        """
        Open a stream, and return its acknowledgement, which has to be sent before any notification.

        What is *wanted* and not *offered* is left out.

        Raises:
            InvalidParams: If a URI is too long.

            TooManyRequests: If there are too many subscriptions.
        """
        accepted = _accepted(wanted, offered)
        with self._lock:
            self._forget(request_id)
            self._check_room(_uris(accepted))
            self._streams[request_id] = accepted
            self._streamed += len(_uris(accepted))
            for uri in _uris(accepted):
                self._listening.setdefault(uri, {})[request_id] = None
        params = wire.ChangeParams(notifications=accepted, meta=wire.NotificationMeta(request_id))
        line = encode_notification(_ACKNOWLEDGED, params)
        return line + self._list_changes(self._wrong, in_session=False, streams=[request_id])

    def cancel(self, request_id: RequestId) -> None:
        """Close a stream that its client has ended."""
        with self._lock:
            self._forget(request_id)

    def _check_room(self, uris: Collection[str]) -> None:
        """Raises InvalidParams or TooManyRequests."""
        if any(len(uri) > MAX_CHARACTERS for uri in uris):
            msg = f"the URI of a resource to subscribe to has at most {MAX_CHARACTERS:,} characters"
            raise InvalidParams(msg)
        if self._streamed + len(self._uris) + len(uris) > MAX_SUBSCRIPTIONS:
            many = f"{MAX_SUBSCRIPTIONS:,} subscriptions to resources"
            msg = f"there would be more than {many}: end some of them first"
            raise TooManyRequests(msg)

    def _forget(self, request_id: RequestId) -> None:
        if (wanted := self._streams.pop(request_id, None)) is None:
            return
        self._streamed -= len(_uris(wanted))
        for uri in _uris(wanted):
            streams = self._listening.get(uri, {})
            streams.pop(request_id, None)
            if not streams:
                self._listening.pop(uri, None)

    def __contains__(self, request_id: object) -> bool:
        """Whether the stream that the request with this id opened is still open."""
        return request_id in self._streams

    def correct(self, lists: Collection[str]) -> bytes:
        """
        Return the notifications that *lists*, by their methods, were wrong when they were sent.

        A session or a stream that is opened later is notified, too: its client may have a wrong list.
        """
        with self._lock:
            self._wrong = _kinds_of(lists)
        return self._list_changes(self._wrong, in_session=self.session, streams=list(self._streams))

    def ready(self) -> bytes:
        """
        Note that the client of the session is ready; return the notifications that it missed.
        """
        was, self.session = self.session, True
        return b"" if was else self._list_changes(self._wrong, in_session=True, streams=[])

    def changed(self, lists: Collection[str]) -> bytes:
        """
        Return the notifications that *lists*, by their methods, have changed.
        """
        with self._lock:
            streams = list(self._streams)
        return self._list_changes(_kinds_of(lists), in_session=self.session, streams=streams)

    def updated(self, uri: str) -> bytes:
        """
        Return the notifications that the contents of a resource have changed.
        """
        with self._lock:
            streams = list(self._listening.get(uri, ()))
            in_session = self.session and uri in self._uris
        return _notifications(_UPDATED, streams, in_session=in_session, uri=uri)

    def end(self, results: ResultEncoder) -> bytes:
        """
        Close every stream from this side, and return the lines that tell the client.
        """
        with self._lock:
            ended = list(self._streams)
            self._streams.clear()
            self._listening.clear()
            self._streamed = 0
        return b"".join(_end_stream(request_id, results) for request_id in ended)

    def _list_changes(self, kinds: Iterable[_Kind], *, in_session: bool, streams: list[RequestId]) -> bytes:
        """The notifications of changes, for the session and for those of *streams* that want them."""
        lines = b""
        for kind in kinds:
            listening = [key for key in streams if getattr(self._streams.get(key), kind.wanted, None) is True]
            told = in_session and kind.is_offered(self._offered)
            lines += _notifications(kind.notification, listening, in_session=told)
        return lines


def _kinds_of(lists: Collection[str]) -> list[_Kind]:
    return [kind for kind in _KINDS if not set(kind.lists).isdisjoint(lists)]


def _uris(wanted: "wire.SubscriptionFilter") -> Collection[str]:
    return wanted.resource_subscriptions or ()


def _accepted(wanted: "wire.SubscriptionFilter", offered: Capabilities) -> "wire.SubscriptionFilter":
    return wire.SubscriptionFilter(
        (offered.changes and wanted.prompts_list_changed is True) or UNSET,
        (offered.changes and wanted.resources_list_changed is True) or UNSET,
        (wanted.resource_subscriptions if offered.changes else UNSET) or UNSET,
        (offered.changes and bool(offered.tools) and wanted.tools_list_changed is True) or UNSET,
    )


def _notifications(
    method: str, streams: list[RequestId], *, in_session: bool, uri: str | UnsetType = UNSET
) -> bytes:
    notifications = [wire.ChangeParams(uri)] if in_session else []
    notifications += [wire.ChangeParams(uri, meta=wire.NotificationMeta(stream)) for stream in streams]
    return b"".join(encode_notification(method, params) for params in notifications)


def _end_stream(request_id: RequestId, results: ResultEncoder) -> bytes:
    # One page of the specification asks for the result of the request, another for a cancellation. Clients
    # take a result for an end and a cancellation for a loss: the result first makes the other harmless.
    cancelled = encode_notification("notifications/cancelled", wire.CancelledParams(request_id))
    return encode_result(request_id, results.encode_end(request_id)).line + cancelled
