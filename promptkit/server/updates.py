"""What clients have read of resources, and which of these have changed since."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import groupby
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.errors.interruptions import Abandoned, call_interruptible
from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.server.notifier import Audience
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.workers import WorkerThread
from promptkit.server.snapshot import Snapshot

if TYPE_CHECKING:  # most recipes have none
    from promptkit.language.documents import EmbeddedResource

__all__ = ["ReadHistory", "Reread", "Updates", "announce", "notify_of", "read_histories"]

#: How many resources are remembered, and how long the URI of one may be. The others count as changed
#: whenever the recipes change.
_MAX_RESOURCES: Final = 1024
_MAX_URI_CHARACTERS: Final = 2048

#: For how many sets of scopes there is a history. Without one, all resources count as changed, too.
_MAX_HISTORIES: Final = 32


class ReadHistory:
    """What one client has read last of each resource."""

    def __init__(self) -> None:
        self._digests: OrderedDict[str, int] = OrderedDict()

    def note(self, content: "EmbeddedResource") -> None:
        """Remember *content*, which the client is sent."""
        if len(content.uri) > _MAX_URI_CHARACTERS:
            return
        self._digests[content.uri] = _digest(content)
        self._digests.move_to_end(content.uri)
        while len(self._digests) > _MAX_RESOURCES:
            self._digests.popitem(last=False)

    def __contains__(self, uri: object) -> bool:
        return uri in self._digests

    def is_stale(self, uri: str, catalog: Catalog) -> bool:
        """Whether the client would read something else now; True if that cannot be known."""
        digest = self._digests.get(uri)
        if digest is None:
            return True
        try:
            return digest != _digest(call_interruptible(catalog.read, uri))
        except Abandoned:  # it took too long: the client was notified already
            raise
        except BaseException:  # noqa: BLE001 (authors raise anything: a client that reads it again sees it)
            return True


def read_histories() -> Callable[[frozenset[str] | None], ReadHistory]:
    """
    Return what finds what clients with some scopes have read; None stands for those who were not asked.

    Those with the same scopes see the same; the others must not notice it.
    """
    return lru_cache(_MAX_HISTORIES)(lambda _scopes: ReadHistory())


class Reread(Struct, frozen=True, eq=False):
    """
    A resource that has to be read again, to know whether it has changed.

    Args:
        uri:
            Its URI.

        catalog:
            What it is read from: all that the clients to be notified may see.

        read_history:
            What these have read.

        tell:
            Called with the URIs of resources that are stale.
    """

    uri: str
    catalog: Catalog
    read_history: ReadHistory
    tell: Callable[[list[str]], None]

    @property
    def is_stale(self) -> bool:
        """Whether it has changed. It reads the resource."""
        return self.read_history.is_stale(self.uri, self.catalog)


class Updates:
    """
    Rereads resources on one thread, and reports those that are stale.

    Args:
        executor:
            Runs the thread, because reading a resource runs authors' code.

        seconds:
            How long all reads may take. Resources that are not read by then count as stale.
    """

    def __init__(self, executor: Executor, seconds: float) -> None:
        self._executor = executor
        self._seconds = seconds
        self._left: deque[Reread] = deque()
        self._deadline = 0.0
        self._reader: WorkerThread | None = None
        self._stuck = False
        self._lock = Lock()

    def find(self, rereads: Iterable[Reread]) -> None:
        """
        Report what has changed. Returns at once.

        Resources that were to be read before, and are still unread, are dropped.
        """
        with self._lock:
            self._left = deque(rereads)
            self._deadline = time.monotonic() + self._seconds
            if self._left and self._reader is None:
                with suppress(RuntimeError, TooManyRequests):
                    self._reader = self._executor.run_unanswered(self._read, self._end)
            unread = self._take_left() if self._reader is None or self._stuck else []
        notify_of(unread)

    def look(self, now: float) -> None:
        """After the deadline, report what was not read in time. *now* is by `time.monotonic`."""
        with self._lock:
            if self._reader is None or self._stuck or now < self._deadline:
                return
            self._stuck = True
            unread, reader = self._take_left(), self._reader
        reader.abandon()
        notify_of(unread)

    def _read(self) -> None:
        while (found := self._next()) is not None:
            is_stale = found.is_stale
            with self._lock:
                # The catalog may have been replaced meanwhile, or this thread abandoned.
                due = [found] if self._left and self._left[0] is found else []
                if due:
                    self._left.popleft()
            notify_of(due if is_stale else [])

    def _next(self) -> Reread | None:
        with self._lock:
            if self._left:
                return self._left[0]
            self._reader, self._stuck = None, False
            return None

    def _end(self) -> None:
        """Called when the reader has ended, for any reason; reports what it left unread."""
        with self._lock:
            unread: list[Reread] = []
            if self._reader is not None and self._reader.is_current:
                self._reader, self._stuck, unread = None, False, self._take_left()
        notify_of(unread)

    def _take_left(self) -> list[Reread]:
        left = list(self._left)
        self._left.clear()
        return left


def announce(
    audiences: Iterable[Audience],
    views: Callable[[frozenset[str] | None], tuple[Snapshot, Snapshot]],
    histories: Callable[[frozenset[str] | None], ReadHistory],
) -> list[Reread]:
    """
    Tell clients of what has changed for them. Return what has to be read again to know.

    Args:
        audiences:
            The clients.

        views:
            Returns what clients with some scopes see now, and what they saw before.

        histories:
            What they have read. All else may have changed.
    """
    changed_lists = cache(Snapshot.changed_lists)  # clients with other scopes often see the same
    rereads: list[Reread] = []
    for audience in audiences:
        seen, before = views(audience.scopes)
        history, uris = histories(audience.scopes), sorted(audience.uris)
        audience.tell(changed_lists(seen, before), [uri for uri in uris if uri not in history])
        tell = partial(audience.tell, ())
        rereads += [Reread(uri, seen.catalog, history, tell) for uri in uris if uri in history]
    return rereads


def notify_of(stale: Iterable[Reread]) -> None:
    """Tell clients of resources that have changed."""
    for tell, found in groupby(stale, attrgetter("tell")):
        tell([one.uri for one in found])


def _digest(content: "EmbeddedResource") -> int:
    return hash((content.mime_type, content.text, content.blob))
