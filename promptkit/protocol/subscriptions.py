"""Subscriptions: what one client wants to hear of, in both eras, and how it is told."""

from collections.abc import Collection
from threading import Lock
from typing import Final

from msgspec import UNSET, UnsetType

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    RequestId,
    TooManyRequests,
    encode_notification,
    encode_result,
)
from promptkit.protocol.results import Capabilities, ResultEncoder

__all__ = ["Subscriptions"]

_PROMPTS: Final = "notifications/prompts/list_changed"
_RESOURCES: Final = "notifications/resources/list_changed"
_UPDATED: Final = "notifications/resources/updated"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

#: How many resources a client may ask for, in its session and all of its streams together, each
#: as often as it asks, and how long the URI of one may be, in characters.
MOST: Final = 10_000
LONGEST: Final = 2048


class Subscriptions:
    """
    What one client wants to hear of.

    A client with a session is told without asking that a list has changed, and asks for
    each resource. A client of the modern era opens streams, each with a filter; whatever
    goes to a stream bears the id of the request that opened it.

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
        self._listening: dict[str, dict[RequestId, None]] = {}  # to which streams an update is told
        self._streamed = 0
        self._wrong: frozenset[str] = frozenset()
        self._lock = Lock()  # changes are told by another thread than the one that reads

    def open_session(self, offered: Capabilities) -> None:
        """
        Begin a session, once more if there is one: the client is not ready yet.

        Args:
            offered:
                What it was told that it can hear of.
        """
        with self._lock:
            self.session = False
            self._offered = offered
            self._uris.clear()

    @property
    def uris(self) -> Collection[str]:
        """
        The resources of which an update is told to somebody.
        """
        with self._lock:
            return self._uris.union(self._listening)

    def subscribe(self, uri: str) -> None:
        """
        Tell the session of updates of one resource.

        Raises:
            InvalidParams: If its URI is too long.

            TooManyRequests: If there are as many as may be.
        """
        with self._lock:
            if uri not in self._uris:
                self._check_room((uri,))
                self._uris.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """
        Tell the session no longer.
        """
        with self._lock:
            self._uris.discard(uri)

    def listen(self, request_id: RequestId, wanted: wire.SubscriptionFilter, offered: Capabilities) -> bytes:
        """
        Open a stream; return what acknowledges it, which has to be sent first.

        Args:
            request_id:
                The id of the request that opens it.

            wanted:
                What the client asks to hear of.

            offered:
                What it can hear of; the rest is left out of the acknowledgement.

        Raises:
            InvalidParams: If the URI of a resource is too long, or the id, which every notification bears.

            TooManyRequests: If there are as many as may be.
        """
        if isinstance(request_id, str) and len(request_id) > LONGEST:
            msg = f"the id of a request that opens a stream has at most {LONGEST:,} characters"
            raise InvalidParams(msg)
        accepted = _narrowed(wanted, offered)
        with self._lock:
            self._check_room(_uris(accepted))
            self._forget(request_id)
            self._streams[request_id] = accepted
            self._streamed += len(_uris(accepted))
            for uri in _uris(accepted):
                self._listening.setdefault(uri, {})[request_id] = None
        params = wire.ChangeParams(notifications=accepted, meta=wire.NotificationMeta(request_id))
        told = encode_notification(_ACKNOWLEDGED, params)
        return told + self._told_wrong(bare=False, streams=[request_id]) if self._wrong else told

    def cancel(self, request_id: RequestId) -> None:
        """
        Close a stream that its client has ended. Nothing more is said about it.
        """
        with self._lock:
            self._forget(request_id)

    def _check_room(self, uris: Collection[str]) -> None:
        """
        Check that so many resources more may be told of.
        """
        if any(len(uri) > LONGEST for uri in uris):
            msg = f"the URI of a resource to hear of has at most {LONGEST:,} characters"
            raise InvalidParams(msg)
        if self._streamed + len(self._uris) + len(uris) > MOST:
            msg = f"there would be more than {MOST:,} subscriptions to resources: end some of them first"
            raise TooManyRequests(msg)

    def _forget(self, request_id: RequestId) -> None:
        """
        Forget a stream, if it is there.
        """
        if (wanted := self._streams.pop(request_id, None)) is None:
            return
        self._streamed -= len(_uris(wanted))
        for uri in _uris(wanted):
            streams = self._listening.get(uri, {})
            streams.pop(request_id, None)
            if not streams:
                self._listening.pop(uri, None)

    def __contains__(self, request_id: object) -> bool:
        """
        Return whether the request with this id has opened a stream that is still open.
        """
        return request_id in self._streams

    def correct(self, *, prompts: bool, resources: bool) -> bytes:
        """
        Return what tells that lists were wrong from the beginning; ``b""`` if nobody listens yet.

        Whoever begins to listen later is told then, as it may have been told the wrong list.
        """
        with self._lock:
            self._wrong = frozenset({_PROMPTS} if prompts else ()) | ({_RESOURCES} if resources else set())
        return self._told_wrong(bare=self.session, streams=list(self._streams))

    def ready(self) -> bytes:
        """
        Note that the client of a session is ready; return what it has to be told at once, if anything.
        """
        was, self.session = self.session, True
        return b"" if was or not self._wrong else self._told_wrong(bare=True, streams=[])

    def prompts_changed(self) -> bytes:
        """
        Return what tells that the list of prompts is another; ``b""`` if nobody wants to know.
        """
        return self._changed(_PROMPTS, "prompts_list_changed", bare=self.session)

    def resources_changed(self) -> bytes:
        """
        Return what tells that the list of resources is another; ``b""`` if nobody wants to know.
        """
        bare = self.session and self._offered.resources
        return self._changed(_RESOURCES, "resources_list_changed", bare=bare)

    def updated(self, uri: str) -> bytes:
        """
        Return what tells that a resource holds something else; ``b""`` if nobody wants to know.
        """
        with self._lock:
            streams = list(self._listening.get(uri, ()))
            bare = self.session and uri in self._uris
        return _told(_UPDATED, streams, bare=bare, uri=uri)

    def end(self, results: ResultEncoder) -> bytes:
        """
        Close every stream from this side; return what says so.

        The pages of the specification differ: one wants the result of the request, another a
        cancellation. Clients take the result for an end and a cancellation for a loss, so the
        result comes first, and the cancellation of what has ended already harms nobody.
        """
        with self._lock:
            ended = list(self._streams)
            self._streams.clear()
            self._listening.clear()
            self._streamed = 0
        return b"".join(_ending(request_id, results) for request_id in ended)

    def _told_wrong(self, *, bare: bool, streams: list[RequestId]) -> bytes:
        """
        Return what tells those who listen which lists were wrong.
        """
        told = b""
        for method, kind, offered in (
            (_PROMPTS, "prompts_list_changed", True),
            (_RESOURCES, "resources_list_changed", self._offered.resources),
        ):
            if method in self._wrong:
                listening = [key for key in streams if getattr(self._streams.get(key), kind, None) is True]
                told += _told(method, listening, bare=bare and offered)
        return told

    def _changed(self, method: str, kind: str, *, bare: bool) -> bytes:
        with self._lock:
            streams = [key for key, wanted in self._streams.items() if getattr(wanted, kind) is True]
        return _told(method, streams, bare=bare)


def _uris(wanted: wire.SubscriptionFilter) -> Collection[str]:
    """
    Return the resources that a stream is about.
    """
    return wanted.resource_subscriptions or ()


def _narrowed(wanted: wire.SubscriptionFilter, offered: Capabilities) -> wire.SubscriptionFilter:
    """
    Return what of *wanted* is *offered*.
    """
    return wire.SubscriptionFilter(
        (offered.changes and wanted.prompts_list_changed is True) or UNSET,
        (offered.changes and wanted.resources_list_changed is True) or UNSET,
        (wanted.resource_subscriptions if offered.changes else UNSET) or UNSET,
    )


def _told(method: str, streams: list[RequestId], *, bare: bool, uri: str | UnsetType = UNSET) -> bytes:
    """
    Return one notification for the session, if *bare*, and one for each of *streams*.
    """
    notifications = [wire.ChangeParams(uri)] if bare else []
    notifications += [wire.ChangeParams(uri, meta=wire.NotificationMeta(stream)) for stream in streams]
    return b"".join(encode_notification(method, params) for params in notifications)


def _ending(request_id: RequestId, results: ResultEncoder) -> bytes:
    """
    Return what ends the stream that *request_id* has opened.
    """
    cancelled = encode_notification("notifications/cancelled", wire.CancelledParams(request_id))
    return encode_result(request_id, results.encode_end(request_id)) + cancelled
