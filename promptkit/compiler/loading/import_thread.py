"""Imports recipes on a thread that can be interrupted or abandoned when an import hangs."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from types import FrameType
from typing import Final, Generic, TypeAlias, TypeVar

from promptkit.compiler.loading.interpreter import exit_if_forked
from promptkit.compiler.loading.packages import abandon_imports
from promptkit.compiler.loading.watched_files import Stamp, stamp_of
from promptkit.errors.diagnostics import printable
from promptkit.errors.interruptions import interrupt
from promptkit.standard_error import say

__all__ = ["ImportHangs", "Importer"]

T = TypeVar("T")

#: How often it is checked how long an import has taken.
_CHECK_EVERY_S: Final = 0.25

#: After so many seconds, a slow import is reported, and given up as soon as any file is edited; after
#: so many it is given up in any case.
_REPORT_AFTER_S: Final = 5.0
_GIVE_UP_AFTER_S: Final = 60.0

#: How long it may take that an interrupted import ends.
_INTERRUPT_S: Final = 1.0

#: The files in whose code an import hung, with their stamps then.
HangingFiles: TypeAlias = Mapping[str, Stamp | None]


class ImportHangs(BaseException):
    """Raised in a recipe whose import takes too long."""

    def __str__(self) -> str:
        return "the import did not end, and was given up; save the file to try again"


class Importer(Generic[T]):
    """
    Imports recipes again and again, and leaves out files whose import hangs.

    Args:
        work:
            Imports them. It calls its argument with each file before it imports it.

        stop:
            Set when nobody waits for the imports any longer.
    """

    def __init__(self, work: Callable[[Callable[[Path], None]], T], stop: Event) -> None:
        self._work = work
        self._stop = stop
        self._hanging: dict[Path, HangingFiles] = {}
        self._durations: dict[Path, float] = {}

    def run_here(self, work: Callable[[Callable[[Path], None]], T] | None = None) -> T:
        """
        Do the work on this thread, where Ctrl-C interrupts it.

        Args:
            work:
                Done in place of the usual work, with the same result.

        Raises:
            BaseException: Whatever the work raises.
        """
        thread = ImportThread(work or self._work, {})
        thread.run()
        self._durations |= thread.durations
        return thread.result()

    def run(self, known: Mapping[str, Stamp | None], has_changed: Callable[[], bool]) -> T:
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
        is_done = False
        while not is_done:
            thread = ImportThread(self._work, self._hanging)
            thread.start()
            is_done = self._wait_for(thread, known, has_changed)
        self._durations |= thread.durations
        return thread.result()

    def _wait_for(
        self, thread: "ImportThread[T]", known: Mapping[str, Stamp | None], has_changed: Callable[[], bool]
    ) -> bool:
        """Wait until *thread* is done. Return False if it had to be abandoned."""
        reported: Path | None = None
        while not thread.wait(_CHECK_EVERY_S):
            if self._stop.is_set():
                raise ImportHangs
            file, seconds = thread.current()
            if file is None or seconds < _REPORT_AFTER_S + 2 * self._durations.get(file, 0.0):
                continue
            if file != reported:
                reported, name = file, printable(str(file))
                say(f"{name} has been importing for {seconds:.0f} s; the previous recipes are still served")
            if seconds >= _GIVE_UP_AFTER_S or has_changed():
                # It may have been fixed just now: what hung is the version from when the load began.
                running = thread.running_files(file)
                self._hanging[file] = {
                    path: known[path] if path in known else stamp_of(path) for path in running
                }
                if not thread.interrupt(file, _INTERRUPT_S):
                    return False
                thread.durations.pop(file, None)  # a hang says nothing of how long the next import may take
        return True


class ImportThread(Thread, Generic[T]):
    """
    A thread that imports recipes, one file after the other.

    Args:
        work:
            Imports them. It calls its argument with each file before it imports it.

        hanging:
            The files whose import is known to hang. They are not tried again until they change.
    """

    def __init__(
        self, work: Callable[[Callable[[Path], None]], T], hanging: Mapping[Path, HangingFiles]
    ) -> None:
        super().__init__(name="promptkit-import", daemon=True)
        self._work = work
        self._hanging = hanging
        self._lock = Lock()
        self._done = Event()
        self._abandoned = False
        self._current: Path | None = None
        self._since = time.monotonic()
        self._result: T | None = None
        self._error: BaseException | None = None
        self.durations: dict[Path, float] = {}

    def run(self) -> None:
        """Import the recipes."""
        process = os.getpid()
        try:
            self._result = self._work(self._begin)
        except BaseException as error:  # noqa: BLE001 (`result` raises it)
            self._error = error
        finally:
            exit_if_forked(process)
            with self._lock:
                self._end_current()
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long, and return whether the work has ended."""
        return self._done.wait(seconds) or not self.is_alive()

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
        frame: FrameType | None = sys._current_frames().get(self.ident or 0)  # noqa: SLF001 (documented)
        files = {str(file)}
        while frame is not None:
            files.add(frame.f_code.co_filename)
            frame = frame.f_back
        return files

    def interrupt(self, file: Path, seconds: float) -> bool:
        """
        Stop importing *file*, and go on with the next one if possible.

        Args:
            file:
                What `current` returned.

            seconds:
                How long to wait for that. Python code is interrupted at once, but not a system call, or code
                in another language.

        Returns:
            Whether the thread goes on. If not, it was abandoned, and another has to do its work.
        """
        until, is_interrupted = time.monotonic() + seconds, False
        while not self._done.wait(seconds / 50) and time.monotonic() < until:
            with self._lock:
                if self._current != file:
                    return True
                # Between the files that this one imports, the thread is in no author's code for a moment.
                is_interrupted = is_interrupted or interrupt(self.ident or 0, ImportHangs)
        with self._lock:
            if self._current != file or self._done.is_set():
                return True
            self._abandoned = True
        abandon_imports(self.ident or 0)
        return False

    def _begin(self, file: Path) -> None:
        """Called before each file. Raises ImportHangs if the file must not be tried."""
        with self._lock:
            self._end_current()
            if self._abandoned or self._is_hanging(file):
                raise ImportHangs
            self._current, self._since = file, time.monotonic()

    def _end_current(self) -> None:
        if self._current is not None:
            self.durations[self._current] = time.monotonic() - self._since
        self._current = None

    def _is_hanging(self, file: Path) -> bool:
        hanging = self._hanging.get(file)
        return hanging is not None and all(stamp_of(path) == stamp for path, stamp in hanging.items())
