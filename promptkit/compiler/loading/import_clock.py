"""Imports that take long: which file it is, for how long, and at which line, is said on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident, main_thread
from typing import TYPE_CHECKING, Final

from promptkit.errors.diagnostics import printable
from promptkit.errors.standard_error import say

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # `signal` itself makes enums of all constants first: a client waits for that

__all__ = ["ImportClock", "slow_import"]

#: After so many seconds an import is reported, and again each time that it has taken twice as long.
_REPORT_AFTER_S: Final = 5.0

#: How often the timer looks from then on, in seconds. No author's timer is like this.
_LOOK_EVERY_S: Final = 1.01


def slow_import(file: Path | None, seconds: float, thread: int | None) -> str:
    """
    Return in words for how long a file has been importing, and at which line that is.

    Args:
        file:
            The file; None if it is not known.

        seconds:
            For how long.

        thread:
            The number of the thread that imports it.
    """
    from promptkit.errors.stacks import authors_line  # most imports are quick

    line = authors_line(thread)
    subject = "the recipes have" if file is None else f"{printable(str(file))} has"
    return f"{subject} been importing for {seconds:.0f} s" + ("" if line is None else f", now at {line}")


class ImportClock:
    """
    Says what is being imported, once that has taken long. It has no thread: whoever has time looks at it.

    Where the main thread imports, nobody has. There a timer of the system's interrupts it, unless somebody
    else uses that timer. Windows has none.
    """

    def __init__(self) -> None:
        self._thread: int | None = None
        self._file: Path | None = None
        self._since = self._due = 0.0

    def look(self) -> None:
        """Say what has taken long by now, unless that was said."""
        thread, seconds = self._thread, time.monotonic() - self._since
        if thread is not None and seconds >= self._due:
            self._due = 2 * seconds
            say(slow_import(self._file, seconds, thread))

    @contextmanager
    def runs(self) -> Iterator[Callable[[Path], None]]:
        """
        Measure what this thread imports within the ``with`` block.

        Yields:
            What is to be called with each file before it is imported.
        """
        self._thread = get_ident()
        self._begin(None)
        try:
            with _timer(self.look):
                yield self._begin
        finally:
            self._thread = None

    def _begin(self, file: Path | None) -> None:
        if get_ident() == self._thread:  # others may import a file beside this one
            self._file, self._since, self._due = file, time.monotonic(), _REPORT_AFTER_S


@contextmanager
def _timer(look: Callable[[], None]) -> Iterator[None]:
    """Interrupt the main thread from time to time within the ``with`` block, to *look*."""
    if sys.platform == "win32" or get_ident() != main_thread().ident or not _is_free():
        yield
        return

    def interrupt(*_: object) -> None:
        with suppress(Exception):  # what it needs may be half imported: nothing is to be raised in a recipe
            look()

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, _REPORT_AFTER_S, _LOOK_EVERY_S)
    try:
        yield
    finally:  # what a recipe has set for itself meanwhile stays
        if round(signal.getitimer(signal.ITIMER_REAL)[1], 3) == _LOOK_EVERY_S:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.getsignal(signal.SIGALRM) is interrupt:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _is_free() -> bool:
    """Whether nobody uses the timer, or handles its signal."""
    if sys.platform == "win32":
        return False
    return signal.getsignal(signal.SIGALRM) is signal.SIG_DFL and not any(
        signal.getitimer(signal.ITIMER_REAL)
    )
