"""Imports recipes on a thread that is abandoned if an import hangs."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Event, Lock, Thread, get_ident, main_thread
from types import FrameType
from typing import Final, Generic, TypeAlias, TypeVar

from promptkit.errors.diagnostics import printable
from promptkit.errors.tracebacks import authors_line, current_frames
from promptkit.files.reading import Stamps, file_stamp
from promptkit.loader.packages import abandon_imports
from promptkit.loader.targets import Targets, place_of, targets_of
from promptkit.standard_error import say

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


T = TypeVar("T")

#: Imports recipes. It calls its argument with each file before it imports it.
Work: TypeAlias = Callable[[Callable[[Path], None]], T]

#: Interval in seconds between two looks at an import.
_CHECK_EVERY_S: Final = 0.25

#: The import of a file hangs after this many seconds. A slow import hangs as soon as any file is edited.
_TIMEOUT_S: Final = 60.0


class ImportTimeoutError(Exception):
    """The import of a recipe takes too long."""

    def __str__(self) -> str:
        return "the import did not end, and was abandoned; save the file to try again"


class Importer(Generic[T]):
    """
    Imports recipes again and again, without the files whose import hangs.

    Args:
        work:
            Imports them.

        stop:
            Set when the imports are no longer needed.
    """

    def __init__(self, work: Work[T], stop: Event) -> None:
        self._work = work
        self._stop = stop
        # By file: the files in whose code its import hung, with their stamps then.
        self._hanging: dict[Path, Stamps] = {}

    def run(self, known: Stamps, has_changed: Callable[[], bool]) -> T:
        """
        Do the work on another thread.

        Args:
            known:
                The stamps of the files that are about to be imported.

            has_changed:
                Returns whether any file has been edited since.

        Raises:
            ImportTimeoutError: If the import of a file hangs, or the imports are no longer needed. That file
                is not imported until it changes.

            BaseException: Any exception that the work raises.
        """
        thread = ImportThread(self._work, self._hanging)
        thread.start()
        while not thread.done.wait(_CHECK_EVERY_S):
            if self._stop.is_set():
                raise ImportTimeoutError
            thread.clock.look("; the previous recipes are still served")
            file, seconds = thread.clock.current()
            if file is None or not (seconds >= _TIMEOUT_S or (thread.clock.is_slow and has_changed())):
                continue
            running = thread.running_files(file)
            if thread.abandon(file):
                # The file may have been fixed by now: what hung is the version from before the import.
                stamps = {path: known[path] if path in known else file_stamp(path) for path in running}
                self._hanging[file] = stamps
                raise ImportTimeoutError
        return thread.result()


class ImportThread(Thread, Generic[T]):
    """
    A thread that imports recipes, one file after the other.

    Args:
        work:
            Imports them.

        hanging:
            The files whose import is known to hang. They are not imported until they change.
    """

    def __init__(self, work: Work[T], hanging: Mapping[Path, Stamps]) -> None:
        super().__init__(name="promptkit-import", daemon=True)
        self.clock = ImportClock()
        self.done = Event()
        self._work = work
        self._hanging = hanging
        self._lock = Lock()
        self._is_abandoned = False
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Import the recipes."""
        try:
            with self.clock.runs():
                self._result = self._work(self._begin)
        except BaseException as error:  # noqa: BLE001 (`result` raises it)
            self._error = error
        self.done.set()

    def result(self) -> T:
        """
        Return the result of the work, once it has ended.

        Raises:
            BaseException: Any exception that the work raised.
        """
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it is what the work has returned

    def running_files(self, file: Path) -> set[str]:
        """Return the files whose code runs now, *file* among them."""
        innermost = current_frames().get(self.ident or 0)
        return {str(file), *(frame.f_code.co_filename for frame in _frames(innermost))}

    def abandon(self, file: Path) -> bool:
        """Abandon the thread if it still imports *file*, and return whether it does."""
        with self._lock:
            self._is_abandoned = self.clock.current()[0] == file
        if self._is_abandoned:
            abandon_imports(self.ident or 0)
        return self._is_abandoned

    def _begin(self, file: Path) -> None:
        """Note that the import of *file* begins. Raises ImportTimeoutError if it must not."""
        with self._lock:
            self.clock.begin(None)
            hanging = self._hanging.get(file)
            is_known = hanging is not None and all(file_stamp(one) == stamp for one, stamp in hanging.items())
            if self._is_abandoned or is_known:
                raise ImportTimeoutError
            self.clock.begin(file)


def import_progress(target: Targets) -> str:
    """
    Return which recipes are being imported, and at which lines the imports are, for an error message.

    Args:
        target:
            What the command line names.

    Returns:
        Words to follow others; ``""`` if no recipe is being imported.
    """
    folders = tuple(os.path.join(place[0], "") for place in map(place_of, targets_of(target)) if place)
    found = list[str]()
    for innermost in current_frames().values():
        own = [frame for frame in _frames(innermost) if frame.f_code.co_filename.startswith(folders)]
        if own and own[-1].f_code.co_name == "<module>":  # else a prompt is called
            file = own[-1].f_code.co_filename
            file = file.removeprefix(next(filter(file.startswith, folders)))
            found.append(f"{file} is at line {own[-1].f_lineno}")
    return f": {', '.join(found)}" if found else ""


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those around it, the outermost last."""
    while frame is not None:
        yield frame
        frame = frame.f_back
