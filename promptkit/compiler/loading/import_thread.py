"""Imports recipes on a thread that can be interrupted or abandoned when an import hangs."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from types import FrameType
from typing import Generic, TypeAlias, TypeVar

from promptkit.compiler.loading.interpreter import exit_if_forked
from promptkit.compiler.loading.packages import abandon_imports
from promptkit.compiler.loading.watched_files import Stamp, stamp_of

__all__ = ["HangingFiles", "ImportHangs", "ImportThread"]

T = TypeVar("T")

#: The files in whose code an import hung, with their stamps then.
HangingFiles: TypeAlias = Mapping[str, Stamp | None]


class ImportHangs(BaseException):
    """Raised in a recipe whose import takes too long."""

    def __str__(self) -> str:
        return "the import did not end, and was given up; save the file to try again"


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
        import ctypes  # rarely needed

        with self._lock:
            if self._current == file and self.ident is not None:
                identifier = ctypes.c_ulong(self.ident)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(ImportHangs))
        until = time.monotonic() + seconds
        while not self._done.wait(seconds / 50) and time.monotonic() < until:
            if self.current()[0] != file:
                return True
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
