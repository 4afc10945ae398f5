"""Times the import of recipes, and reloads recipes on a thread that is abandoned if an import hangs."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, get_ident
from types import FrameType
from typing import Final, Generic, TypeAlias, TypeVar

from promptkit.errors.diagnostics import printable
from promptkit.errors.tracebacks import authors_line, current_frames
from promptkit.files.reading import Stamps, file_stamp
from promptkit.loader.packages import abandon_imports
from promptkit.loader.targets import Targets, locate_target, targets_of
from promptkit.standard_error import say

#: The number of seconds after which an import is reported as slow.
_REPORT_AFTER_S: Final = 5.0

#: Interval in seconds between two checks for a slow import.
_POLL_EVERY_S: Final = 1.0


class ImportClock:
    """Times the import of each file on a thread, and reports each slow import only once."""

    def __init__(self) -> None:
        self.start(None)

    def start(self, file: Path | None) -> None:
        """Start timing the import of *file*; None means that the file is unknown."""
        self._current, self._is_reported = (file, time.monotonic()), False

    def current_import(self) -> tuple[Path | None, float]:
        """Return the file that is being imported (None if unknown), and how long its import has taken."""
        file, since = self._current
        return file, time.monotonic() - since

    def report_if_slow(self, thread: int | None, consequence: str = "") -> None:
        """
        Report the file that *thread* is importing if its import is slow and has not been reported yet.

        The *consequence* is appended to the report.
        """
        file, seconds = self.current_import()
        if self._is_reported or seconds < _REPORT_AFTER_S:
            return
        self._is_reported = True
        subject = "importing the recipes" if file is None else f"importing {printable(str(file))}"
        line = authors_line(thread)
        location = "" if line is None else f", now at {line}"
        say(f"{subject} has taken {seconds:.0f} s so far{location}{consequence}")


@contextmanager
def timed_imports() -> Iterator[Callable[[Path | None], None]]:
    """
    Report slow imports on this thread while the ``with`` block runs. Another thread writes the reports.

    Yields:
        A function to call with each file before it is imported.
    """
    clock, thread, ended = ImportClock(), get_ident(), Event()

    def poll_until_ended() -> None:
        while not ended.wait(_POLL_EVERY_S):
            clock.report_if_slow(thread)

    reporter = Thread(target=poll_until_ended, name="promptkit-clock", daemon=True)
    reporter.start()
    try:
        yield clock.start
    finally:
        ended.set()
        reporter.join()  # the process may fork next, and must then have no other threads


T = TypeVar("T")

#: A function that imports recipes, and calls its argument with each file before importing it.
Work: TypeAlias = Callable[[Callable[[Path], None]], T]

#: Interval in seconds between two checks of an import on another thread.
_CHECK_EVERY_S: Final = 0.25

#: Time limit for the import of a file, in seconds. A slow import times out as soon as any file is edited.
_TIMEOUT_S: Final = 60.0


class ImportTimeoutError(Exception):
    """An import of recipes that was abandoned: a file hangs, or the recipes are no longer needed."""

    def __str__(self) -> str:
        return "the import did not finish and was abandoned; save the file to try again"


class Importer(Generic[T]):
    """
    Imports the recipes for each reload, and skips files whose import hangs.

    Args:
        work:
            Imports the recipes.

        stop:
            Abandons the imports when set.
    """

    def __init__(self, work: Work[T], stop: Event) -> None:
        self._work = work
        self._stop = stop
        # For each hanging file, the stamps of the files whose code was running.
        self._hanging: dict[Path, Stamps] = {}

    def run(self, stamps_before: Stamps, has_changed: Callable[[], bool]) -> T:
        """
        Import the recipes on another thread, and return the result.

        Args:
            stamps_before:
                The stamps of the files, taken before the import.

            has_changed:
                Returns whether any file has been edited since these stamps were taken.

        Raises:
            ImportTimeoutError: If the import of a file hangs, or if the imports are no longer needed. A
                hanging file is not imported again until it changes.

            BaseException: Any exception that the work raises.
        """
        clock, lock, abandoned = ImportClock(), Lock(), Event()
        outcomes: SimpleQueue[T | BaseException] = SimpleQueue()

        def begin(file: Path) -> None:
            with lock:
                clock.start(None)
                if abandoned.is_set() or self._is_hanging(file):
                    raise ImportTimeoutError
                clock.start(file)

        def work() -> None:
            try:
                outcomes.put(self._work(begin))
            except BaseException as error:  # noqa: BLE001 (`run` raises it)
                outcomes.put(error)

        thread = Thread(target=work, name="promptkit-import", daemon=True)
        thread.start()
        while (outcome := _next_outcome(outcomes)) is None:
            if self._stop.is_set():
                raise ImportTimeoutError
            clock.report_if_slow(thread.ident, "; the previous recipes are still served")
            file, seconds = clock.current_import()
            if file is None or seconds < _REPORT_AFTER_S or not (seconds >= _TIMEOUT_S or has_changed()):
                continue
            frames = _frames(current_frames().get(thread.ident or 0))
            running = {str(file), *(frame.f_code.co_filename for frame in frames)}
            with lock:
                if clock.current_import()[0] != file:  # the import of the file has finished
                    continue
                abandoned.set()
            abandon_imports(thread.ident or 0)
            # The file may have been fixed by now. The version that hangs is the one from before the import.
            self._hanging[file] = {
                path: stamps_before[path] if path in stamps_before else file_stamp(path) for path in running
            }
            raise ImportTimeoutError
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _is_hanging(self, file: Path) -> bool:
        """
        Return whether importing a file would probably hang again.

        This is the case if the last import of the file hung, and none of the files whose code was running at
        the time has changed since.
        """
        stamps = self._hanging.get(file)
        return stamps is not None and all(file_stamp(path) == stamp for path, stamp in stamps.items())


def _next_outcome(outcomes: "SimpleQueue[T]") -> T | None:
    try:
        return outcomes.get(timeout=_CHECK_EVERY_S)
    except Empty:
        return None


def import_progress(target: Targets) -> str:
    """
    Return the recipes that are being imported, each with its current line, for an error message.

    Args:
        target:
            The target or targets on the command line.

    Returns:
        A suffix for a message; ``""`` if no recipe is being imported.
    """
    locations = filter(None, map(locate_target, targets_of(target)))
    folders = tuple(os.path.join(folder, "") for folder, _ in locations)
    imports = list[str]()
    for innermost in current_frames().values():
        own = [frame for frame in _frames(innermost) if frame.f_code.co_filename.startswith(folders)]
        if own and own[-1].f_code.co_name == "<module>":  # otherwise a prompt is running
            file = own[-1].f_code.co_filename
            file = file.removeprefix(next(filter(file.startswith, folders)))
            imports.append(f"{file} is at line {own[-1].f_lineno}")
    return f": {', '.join(imports)}" if imports else ""


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back
