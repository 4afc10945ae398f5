"""Updates: which resources hold something else than a client has read, found out beside its requests."""

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
    Reads resources anew, on one thread, and tells of those that are stale.

    Args:
        read_history:
            What the client has read.

        executor:
            Where authors' code runs.

        seconds:
            How long all of them may take. Of what is not read by then an update is told: it may
            be one.

        tell:
            Called with resources that are stale.
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
        Tell of those of *uris* that hold something else in *catalog*. Returns at once.

        What is not found out yet about the catalog before is given up.
        """
        with self._lock:
            self._catalog, self._left = catalog, deque(uris)
            self._deadline = time.monotonic() + self._seconds
            untold = [] if not self._left or self._has_reader() else self._give_up()
        self._tell_of(untold)

    def look(self, now: float) -> None:
        """
        Tell of what takes too long to be read at *now*, by `time.monotonic`.
        """
        with self._lock:
            if self._reader is None or self._stuck or now < self._deadline:
                return
            self._stuck = True
            untold, reader = self._give_up(), self._reader
        reader.abandon()
        self._tell_of(untold)

    def _has_reader(self) -> bool:
        """
        Return whether a thread reads what is left; one is started unless there is one, stuck or not.
        """
        if self._reader is None:
            try:
                self._reader = self._executor.start(self._read, self._end)
            except (RuntimeError, TooManyRequests):
                return False
        return not self._stuck

    def _read(self) -> None:
        while (found := self._next()) is not None:
            uri, catalog = found
            stale = self._read_history.is_stale(uri, catalog)
            with self._lock:
                told = [uri] if self._left and self._left[0] == uri and self._catalog is catalog else []
                if told:
                    self._left.popleft()
            self._tell_of(told if stale else [])

    def _next(self) -> tuple[str, Catalog] | None:
        """
        Return what is to be read next, and of which catalog; None if there is nothing left.
        """
        with self._lock:
            if self._left:
                return self._left[0], self._catalog
            self._reader = None
            return None

    def _end(self) -> None:
        """
        Note that the reader has come to its end, by itself or not.
        """
        with self._lock:
            untold: list[str] = []
            if self._reader is not None and self._reader.is_current:
                self._reader, self._stuck, untold = None, False, self._give_up()
        self._tell_of(untold)

    def _give_up(self) -> list[str]:
        """
        Return what is left, which nobody reads.
        """
        left = list(self._left)
        self._left.clear()
        return left

    def _tell_of(self, uris: list[str]) -> None:
        if uris:
            self._tell(uris)
