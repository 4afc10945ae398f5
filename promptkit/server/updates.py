"""Finds resources that have changed since a client read them, on a thread of its own."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.server.read_history import ReadHistory
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.workers import Worker

__all__ = ["Updates"]


class Updates:
    """
    Rereads resources on one thread, and reports those that are stale.

    Args:
        read_history:
            What the client has read.

        executor:
            Runs the thread, because reading a resource runs authors' code.

        seconds:
            How long all reads may take. Resources that are not read by then count as stale.

        tell:
            Called with the URIs of resources that are stale.
    """

    def __init__(
        self, read_history: ReadHistory, executor: Executor, seconds: float, tell: Callable[[list[str]], None]
    ) -> None:
        self._read_history = read_history
        self._executor = executor
        self._seconds = seconds
        self._tell = tell
        self._catalog = Catalog()
        self._left: deque[str] = deque()
        self._deadline = 0.0
        self._reader: Worker | None = None
        self._stuck = False
        self._lock = Lock()

    def find(self, catalog: Catalog, uris: Iterable[str]) -> None:
        """
        Report those of *uris* whose content differs in *catalog*. Returns at once.

        Resources of the previous catalog that are still unread are dropped.
        """
        with self._lock:
            self._catalog, self._left = catalog, deque(uris)
            self._deadline = time.monotonic() + self._seconds
            unread = [] if not self._left or self._has_reader() else self._take_left()
        self._tell_of(unread)

    def look(self, now: float) -> None:
        """After the deadline, report what was not read in time. *now* is by `time.monotonic`."""
        with self._lock:
            if self._reader is None or self._stuck or now < self._deadline:
                return
            self._stuck = True
            unread, reader = self._take_left(), self._reader
        reader.abandon()
        self._tell_of(unread)

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
            uri, catalog = found
            stale = self._read_history.is_stale(uri, catalog)
            with self._lock:
                # The catalog may have been replaced meanwhile, or this thread abandoned.
                due = [uri] if self._left and self._left[0] == uri and self._catalog is catalog else []
                if due:
                    self._left.popleft()
            self._tell_of(due if stale else [])

    def _next(self) -> tuple[str, Catalog] | None:
        with self._lock:
            if self._left:
                return self._left[0], self._catalog
            self._reader = None
            return None

    def _end(self) -> None:
        """Called when the reader has ended, for any reason; reports what it left unread."""
        with self._lock:
            unread: list[str] = []
            if self._reader is not None and self._reader.is_current:
                self._reader, self._stuck, unread = None, False, self._take_left()
        self._tell_of(unread)

    def _take_left(self) -> list[str]:
        left = list(self._left)
        self._left.clear()
        return left

    def _tell_of(self, uris: list[str]) -> None:
        if uris:
            self._tell(uris)
