"""Imports on a thread of their own, so that a recipe whose import hangs can be given up."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from types import FrameType
from typing import Generic, TypeAlias, TypeVar

from promptkit.compiler.loading.interpreter import end_child
from promptkit.compiler.loading.packages import give_up_imports
from promptkit.compiler.loading.watched_files import Stamp, stamp_of

__all__ = ["Hanging", "ImportHangs", "ImportThread"]

T = TypeVar("T")

#: The files in whose code the import of a recipe hung, as they were then.
Hanging: TypeAlias = Mapping[str, Stamp | None]


class ImportHangs(BaseException):
    """
    Raised in a recipe whose import is not waited for any longer.
    """

    def __str__(self) -> str:
        return "the import did not end, and was given up; save the file to try again"


class ImportThread(Thread, Generic[T]):
    """
    A thread that imports recipes, one file after the other.

    Args:
        work:
            Imports them, and calls what it is given with each file before it is imported.

        hanging:
            The files that are known to hang, which are not tried again before they have changed.
    """

    def __init__(self, work: Callable[[Callable[[Path], None]], T], hanging: Mapping[Path, Hanging]) -> None:
        super().__init__(name="promptkit-import", daemon=True)
        self._work = work
        self._hanging = hanging
        self._lock = Lock()
        self._over = Event()
        self._given_up = False
        self._current: Path | None = None
        self._since = time.monotonic()
        self._result: T | None = None
        self._error: BaseException | None = None
        self.took: dict[Path, float] = {}

    def run(self) -> None:
        """
        Import the recipes. The thread does nothing else.
        """
        process = os.getpid()
        try:
            self._result = self._work(self._begin)
        except BaseException as error:  # noqa: BLE001 (whatever it is, `result` raises it for whoever waits)
            self._error = error
        finally:
            end_child(process)
            with self._lock:
                self._end_current()
            self._over.set()

    def wait(self, seconds: float) -> bool:
        """
        Wait for the end at most so long, and return whether it has come.
        """
        return self._over.wait(seconds) or not self.is_alive()

    def result(self) -> T:
        """
        Return what the work has returned, once it is over.

        Raises:
            BaseException: What the work has raised.
        """
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # it is what the work has returned

    def current(self) -> tuple[Path | None, float]:
        """
        Return the file that is being imported, and for how many seconds.
        """
        with self._lock:
            return self._current, time.monotonic() - self._since

    def involved(self, file: Path) -> set[str]:
        """
        Return the files whose code runs now, *file* among them.
        """
        frame: FrameType | None = sys._current_frames().get(self.ident or 0)  # noqa: SLF001 (documented)
        files = {str(file)}
        while frame is not None:
            files.add(frame.f_code.co_filename)
            frame = frame.f_back
        return files

    def leave(self, file: Path, patience: float) -> bool:
        """
        Stop importing *file*, and go on with the next one if that is possible.

        Args:
            file:
                What `current` has returned.

            patience:
                How many seconds that may take. Python code is left at once, but not what waits
                for the outside world, or runs in another language.

        Returns:
            Whether it goes on. If not it was given up, and its work is to be done by another.
        """
        import ctypes  # hardly ever needed

        with self._lock:
            if self._current == file and self.ident is not None:
                identifier = ctypes.c_ulong(self.ident)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(ImportHangs))
        until = time.monotonic() + patience
        while not self._over.wait(patience / 50) and time.monotonic() < until:
            if self.current()[0] != file:
                return True
        with self._lock:
            if self._current != file or self._over.is_set():
                return True
            self._given_up = True
        give_up_imports(self.ident or 0)
        return False

    def _begin(self, file: Path) -> None:
        """
        Note that *file* is next. Raises ImportHangs if it must not be tried.
        """
        with self._lock:
            self._end_current()
            if self._given_up or self._is_hanging(file):
                raise ImportHangs
            self._current, self._since = file, time.monotonic()

    def _end_current(self) -> None:
        if self._current is not None:
            self.took[self._current] = time.monotonic() - self._since
        self._current = None

    def _is_hanging(self, file: Path) -> bool:
        """
        Return whether *file* is known to hang, and nothing of what hung has changed since.
        """
        hanging = self._hanging.get(file)
        return hanging is not None and all(stamp_of(path) == stamp for path, stamp in hanging.items())
