"""Import times: a slow import is reported on standard error, with its file and line."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Event, Thread, get_ident, main_thread
from typing import Final

from promptkit.errors.diagnostics import printable
from promptkit.errors.stacks import authors_line
from promptkit.standard_error import say

__all__ = ["ImportClock"]

#: The import of a file is slow, and is reported, after this many seconds.
_REPORT_AFTER_S: Final = 5.0

#: Interval in seconds between two looks at an import on the main thread.
_LOOK_EVERY_S: Final = 1.0


class ImportClock:
    """
    Times the import of each file on one thread, and reports a slow one once.

    Another thread has to call `look` from time to time. If the main thread imports, a daemon thread does so.
    """

    def __init__(self) -> None:
        self._thread: int | None = None
        self._current: tuple[Path | None, float] = None, 0.0
        self._report_after = inf

    def current(self) -> tuple[Path | None, float]:
        """Return the file that is being imported, None if it is not known, and for how many seconds."""
        file, since = self._current
        return file, time.monotonic() - since

    @property
    def is_slow(self) -> bool:
        """Whether the import of the current file takes long."""
        return self._thread is not None and self.current()[1] >= _REPORT_AFTER_S

    def look(self, consequence: str = "") -> None:
        """Report the current file if its import takes long, unless it was reported. Add the *consequence*."""
        file, seconds = self.current()
        if self._thread is None or seconds < self._report_after:
            return
        self._report_after = inf
        subject = "the recipes have" if file is None else f"{printable(str(file))} has"
        line = authors_line(self._thread)
        place = "" if line is None else f", now at {line}"
        say(f"{subject} been importing for {seconds:.0f} s{place}{consequence}")

    def begin(self, file: Path | None) -> None:
        """Note that the import of *file* begins; None for no file."""
        self._current, self._report_after = (file, time.monotonic()), _REPORT_AFTER_S

    @contextmanager
    def runs(self) -> Iterator[Callable[[Path | None], None]]:
        """
        Time what this thread imports within the ``with`` block.

        Yields:
            A function to call with each file before it is imported.
        """
        self.begin(None)
        self._thread, is_main = get_ident(), get_ident() == main_thread().ident
        ended = Event()
        reporter = Thread(target=self._look_until, args=(ended,), name="promptkit-clock", daemon=True)
        if is_main:
            reporter.start()
        try:
            yield self.begin
        finally:
            self._thread = None
            ended.set()
            if is_main:
                reporter.join()  # a process that forks next must not have other threads

    def _look_until(self, ended: Event) -> None:
        while not ended.wait(_LOOK_EVERY_S):
            self.look()
