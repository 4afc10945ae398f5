"""Finds resources that have changed since a client read them, on a thread of its own."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import groupby
from operator import attrgetter
from threading import Lock

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.server.notifier import Audience
from promptkit.server.read_history import ReadHistories, ReadHistory
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.workers import Worker
from promptkit.server.snapshot import Snapshot

__all__ = ["Reread", "Updates", "announce", "tell_of"]


class Reread(Struct, frozen=True, eq=False):
    """
    A resource that has to be read again, to know whether it has changed.

    Args:
        uri:
            Its URI.

        catalog:
            What it is read from: all that those may see who are told.

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
        self._reader: Worker | None = None
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
            unread = [] if not self._left or self._has_reader() else self._take_left()
        tell_of(unread)

    def look(self, now: float) -> None:
        """After the deadline, report what was not read in time. *now* is by `time.monotonic`."""
        with self._lock:
            if self._reader is None or self._stuck or now < self._deadline:
                return
            self._stuck = True
            unread, reader = self._take_left(), self._reader
        reader.abandon()
        tell_of(unread)

    def _has_reader(self) -> bool:
        """Start a reader unless there is one; return whether one is running and not stuck."""
        if self._reader is None:
            try:
                self._reader = self._executor.run_unanswered(self._read, self._end)
            except (RuntimeError, TooManyRequests):
                return False
        return not self._stuck

    def _read(self) -> None:
        while (found := self._next()) is not None:
            is_stale = found.is_stale
            with self._lock:
                # The catalog may have been replaced meanwhile, or this thread abandoned.
                due = [found] if self._left and self._left[0] is found else []
                if due:
                    self._left.popleft()
            tell_of(due if is_stale else [])

    def _next(self) -> Reread | None:
        with self._lock:
            if self._left:
                return self._left[0]
            self._reader = None
            return None

    def _end(self) -> None:
        """Called when the reader has ended, for any reason; reports what it left unread."""
        with self._lock:
            unread: list[Reread] = []
            if self._reader is not None and self._reader.is_current:
                self._reader, self._stuck, unread = None, False, self._take_left()
        tell_of(unread)

    def _take_left(self) -> list[Reread]:
        left = list(self._left)
        self._left.clear()
        return left


def announce(
    audiences: Iterable[Audience],
    views: Callable[[frozenset[str] | None], tuple[Snapshot, Snapshot]],
    histories: ReadHistories,
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
        history, uris = histories.of(audience.scopes), sorted(audience.uris)
        audience.tell(changed_lists(seen, before), [uri for uri in uris if uri not in history])
        tell = partial(audience.tell, ())
        rereads += [Reread(uri, seen.catalog, history, tell) for uri in uris if uri in history]
    return rereads


def tell_of(stale: Iterable[Reread]) -> None:
    """Tell clients of resources that have changed."""
    for tell, found in groupby(stale, attrgetter("tell")):
        tell([one.uri for one in found])
