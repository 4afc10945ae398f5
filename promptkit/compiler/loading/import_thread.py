"""Imports recipes on a thread that can be interrupted or abandoned when an import hangs."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from types import FrameType
from typing import Final, Generic, TypeAlias, TypeVar

from promptkit.compiler.loading.import_clock import slow_import
from promptkit.compiler.loading.packages import abandon_imports
from promptkit.compiler.loading.targets import Targets, place_of, targets_of
from promptkit.errors.interruptions import interrupt
from promptkit.errors.standard_error import say
from promptkit.files.regular import Stamps, file_stamp

__all__ = ["ImportHangs", "Importer", "import_progress"]

T = TypeVar("T")

#: Imports recipes. It calls its argument with each file before it imports it.
Work: TypeAlias = Callable[[Callable[[Path], None]], T]

#: How often it is checked how long an import has taken.
_CHECK_EVERY_S: Final = 0.25

#: After so many seconds, a slow import is reported, and given up as soon as any file is edited; after
#: so many it is given up in any case.
_REPORT_AFTER_S: Final = 5.0
_GIVE_UP_AFTER_S: Final = 60.0

#: How long it may take that an interrupted import ends.
_INTERRUPT_S: Final = 1.0


class ImportHangs(BaseException):
    """Raised in a recipe whose import takes too long."""

    def __str__(self) -> str:
        return "the import did not end, and was given up; save the file to try again"


class Importer(Generic[T]):
    """
    Imports recipes again and again, and leaves out files whose import hangs.

    Args:
        work:
            Imports them.

        stop:
            Set when nobody waits for the imports any longer.
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
            ImportHangs: If nobody waits any longer.

            BaseException: Whatever the work raises.
        """
        while True:
            thread = ImportThread(self._work, self._hanging)
            thread.start()
            hanging = self._wait_for(thread, has_changed)
            if hanging is None:
                return thread.result()
            # It may have been fixed just now: what hung is the version from when the load began.
            running = thread.running_files(hanging)
            self._hanging[hanging] = {
                path: known[path] if path in known else file_stamp(path) for path in running
            }
            thread.abandon(_INTERRUPT_S)

    def _wait_for(self, thread: "ImportThread[T]", has_changed: Callable[[], bool]) -> Path | None:
        """Wait until *thread* is done; return the file whose import has to be given up instead."""
        reported: Path | None = None
        while not thread.done.wait(_CHECK_EVERY_S):
            if self._stop.is_set():
                raise ImportHangs
            file, seconds = thread.current()
            if file is None or seconds < _REPORT_AFTER_S:
                continue
            if file != reported:
                reported = file
                say(f"{slow_import(file, seconds, thread.ident)}; the previous recipes are still served")
            gives_up = seconds >= _GIVE_UP_AFTER_S or has_changed()
            if gives_up and thread.current()[0] == file:
                return file
        return None


class ImportThread(Thread, Generic[T]):
    """
    A thread that imports recipes, one file after the other.

    Args:
        work:
            Imports them.

        hanging:
            The files whose import is known to hang. They are not tried again until they change.
    """

    def __init__(self, work: Work[T], hanging: Mapping[Path, Stamps]) -> None:
        super().__init__(name="promptkit-import", daemon=True)
        self.done = Event()
        self._work = work
        self._hanging = hanging
        self._lock = Lock()
        self._abandoned = False
        self._current: Path | None = None
        self._since = time.monotonic()
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Import the recipes."""
        try:
            self._result = self._work(self._begin)
        except BaseException as error:  # noqa: BLE001 (`result` raises it)
            self._error = error
        self._current = None
        self.done.set()

    def result(self) -> T:
        """
        Return the result of the work, once it has ended.

        Raises:
            BaseException: Whatever the work raised.
        """
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it is what the work has returned

    def current(self) -> tuple[Path | None, float]:
        """Return the file that is being imported, and for how many seconds."""
        with self._lock:
            return self._current, time.monotonic() - self._since

    def running_files(self, file: Path) -> set[str]:
        """Return the files whose code runs now, *file* among them."""
        innermost = sys._current_frames().get(self.ident or 0)  # noqa: SLF001 (documented)
        return {str(file), *(frame.f_code.co_filename for frame in _frames(innermost))}

    def abandon(self, seconds: float) -> None:
        """
        Stop importing: another thread does the work anew, without the file that hangs.

        Args:
            seconds:
                How long to wait for the end. Python code is interrupted at once, but not a system call, or
                code in another language.
        """
        until, ident = time.monotonic() + seconds, self.ident or 0
        with self._lock:
            self._abandoned = True
        # Between the files that an import leads to, the thread is in no author's code for a moment.
        while not (interrupt(ident, ImportHangs) or self.done.wait(seconds / 50) or time.monotonic() > until):
            pass
        if not self.done.wait(max(0.0, until - time.monotonic())):
            abandon_imports(ident)

    def _begin(self, file: Path) -> None:
        """Called before each file. Raises ImportHangs if the file must not be tried."""
        with self._lock:
            self._current = None
            hanging = self._hanging.get(file)
            is_known = hanging is not None and all(file_stamp(one) == stamp for one, stamp in hanging.items())
            if self._abandoned or is_known:
                raise ImportHangs
            self._current, self._since = file, time.monotonic()


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
    for innermost in sys._current_frames().values():  # noqa: SLF001 (the only way)
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
