"""
Tracing: what recipes read while they are imported, besides what they import.

Whatever the interpreter tells of that is not known to be harmless, or to be looked at again, makes an
import one that cannot be repeated in thought.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import source_from_cache
from types import FrameType, ModuleType
from typing import Any, Final

import promptkit
from promptkit.transports.startup_cache.fingerprints import (
    ABSENT,
    LARGE,
    Inputs,
    content_of,
    current_folder,
    modules_in,
    names_in,
    stamp_of,
    value_of,
)
from promptkit.transports.startup_cache.patches import noted_environment, noted_links

__all__ = ["ImportTrace", "trace_imports"]

#: Events of the interpreter that say nothing of the world outside.
_HARMLESS: Final = frozenset(
    """
    array.__new__ builtins.id code.__new__ compile exec function.__new__ glob.glob import marshal.dumps
    marshal.load marshal.loads object.__delattr__ object.__getattr__ object.__setattr__ os.putenv
    os.unsetenv os.walk pickle.find_class sys._getframe sys._getframemodulename time.sleep
    """.split()  # noqa: SIM905 (a list of words)
)

#: Variables that Python, or C, reads by itself: files are decoded by them, and times and warnings go by them.
_ALWAYS_READ: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONTZPATH", "PYTHONWARNINGS", "TZ")

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

#: How exactly file systems tell when a file was written, in nanoseconds.
_GRAIN: Final = 20_000_000

_MAGIC: Final = frozenset("*?[")

#: Functions whose results depend on the current folder.
_RELATIVE: Final = frozenset({"absolute", "abspath", "realpath", "relpath", "resolve"})

#: How the names of modules end whose code cannot be looked at.
_NO_BYTECODE: Final = (".pyc", ".pyd", ".so")

#: Where modules lie that are installed: they stay as they are as long as their files do.
_INSTALLED: Final = ("site-packages", "dist-packages")
_LIBRARY: Final = os.path.dirname(os.path.abspath(os.__file__))
_OURS: Final = os.path.dirname(os.path.abspath(promptkit.__file__))


class ImportTrace:
    """
    What recipes have read while they were imported.

    Args:
        folder:
            The absolute path of the folder of the recipes.

    Attributes:
        is_complete:
            Whether nothing happened that is not known to be harmless, and is not looked at again.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        self._here = current_folder()
        self._variables = set(_ALWAYS_READ)
        self._looks_through_variables = False
        self._is_relative = False
        self._opened: set[str] = set()
        self._names: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._recipes = modules_in(folder)
        self._loaded = set(map(_file_of, list(sys.modules.values())))
        self.is_complete = True
        self._begun = time.time_ns()

    def note_variable(self, name: str) -> None:
        """
        Note that a variable of the environment was asked for.
        """
        self._variables.add(name)

    def note_variables(self) -> None:
        """
        Note that somebody looked through the names of all variables.
        """
        self._looks_through_variables = True

    def note_link(self, path: str, real: str, frame: FrameType | None) -> None:
        """
        Note where a path leads, if authors want to know.
        """
        if self._is_authors(frame):
            self._links[self._absolute(path)] = real

    def note(self, event: str, args: tuple[Any, ...], frame: FrameType | None) -> None:
        """
        Note an event of the interpreter, if it says that something is read.

        Args:
            event:
                Its name.

            args:
                What is told of it.

            frame:
                Whose doing it is.

        See Also:
            https://docs.python.org/3/library/audit_events.html
        """
        if event == "open":
            self._note_open(args[0], args[1], args[2], frame)
        elif _is_importing(frame) or not self._is_authors(frame):
            return
        elif event == "_thread.start_new_thread" and _is_ours(frame):
            return  # which writes what is printed
        elif event in ("os.listdir", "os.scandir"):
            self._note_listing(args[0])
        elif event in ("pathlib.Path.glob", "pathlib.Path.rglob"):
            self._note_pattern(str(args[0]), str(args[1]))
        elif event == "glob.glob/2" and args[3] is None:
            self._note_pattern(os.fsdecode(args[2] or ""), os.fsdecode(args[0]))
        else:
            self.is_complete = False

    def inputs(self) -> Inputs | None:
        """
        Return what was read, as it is now; None if that may not be what was read, or not be all.
        """
        if not self.is_complete or modules_in(self._folder) != self._recipes:
            return None
        names = {path: names_in(path) for path in sorted(self._names)}
        modules = set(filter(None, map(_file_of, list(sys.modules.values()))))
        files = self._opened | modules
        own = {path for path in files if self._is_own(path)}
        contents = {path: content_of(path) for path in sorted(own | (self._opened - modules))}
        stamps = {path: stamp_of(path) for path in sorted(files - contents.keys())}
        for path in [path for path, content in contents.items() if content is None]:
            del contents[path]
            stamps[path] = stamp = stamp_of(path)
            if (stamp is None or stamp[1] <= LARGE) and path != os.devnull:  # it is no file
                return None
        if names != self._names or any(map(self._is_new, (*contents, *stamps))):
            return None
        used = self._names_used(own)
        if used is None:
            return None
        # What is installed later, in place of a module that was missing, shows in these folders.
        folders = sorted({self._folder, *map(os.path.abspath, list(sys.path_importer_cache))})
        # An archive is one of them.
        stamps.update((f, stamp_of(f)) for f in folders if not self._is_own(f) or os.path.isfile(f))
        key = os.urandom(16)
        all_names = repr(sorted(self._environment)) if self._looks_through_variables else None
        return Inputs(
            contents={path: content for path, content in contents.items() if content is not None},
            names=names,
            modules={folder: modules_in(folder) for folder in folders if folder not in stamps},
            stamps=stamps,
            links={path: value_of(real, key) for path, real in sorted(self._links.items())},
            variables={name: value_of(self._environment.get(name), key) for name in sorted(self._variables)},
            all_variables=value_of(all_names, key),
            path=value_of(repr(self._path), key),
            here=value_of(self._here if self._is_relative or used & _RELATIVE else None, key),
            key=key,
        )

    def _note_open(self, path: object, mode: str | None, flags: int, frame: FrameType | None) -> None:
        """
        Note that a file is opened, if that is to read it.
        """
        writes = flags & _WRITING if mode is None else not {"w", "a", "x", "+"}.isdisjoint(mode)
        if not isinstance(path, str | bytes) or writes:
            # The interpreter writes bytecode.
            self.is_complete = self.is_complete and (_is_importing(frame) or not self._is_authors(frame))
        elif mode is None and not os.path.isabs(path):  # in a folder that is not told
            # What is ours is noted as a whole.
            self.is_complete = self.is_complete and (_is_ours(frame) or not self._is_authors(frame))
        else:
            found = _source_of(self._absolute(os.fsdecode(path)))
            if self._is_own(found) or self._is_authors(frame):
                self._opened.add(found)

    def _note_listing(self, path: object) -> None:
        """
        Note that a folder is looked through.
        """
        if isinstance(path, str | bytes | None):
            self._note_names(self._absolute(os.fsdecode(path or ".")))
        else:
            self.is_complete = False

    def _note_names(self, folder: str) -> None:
        """
        Note that the names in a folder matter.
        """
        if folder not in self._names and os.path.basename(folder) != "__pycache__":
            self._names[folder] = ABSENT  # to look through it is such an event, too
            self._names[folder] = names_in(folder)

    def _note_pattern(self, folder: str, pattern: str) -> None:
        """
        Note that files are looked for whose paths have a pattern.
        """
        parts = os.path.join(folder, pattern).split(os.sep)
        plain = next((n for n, part in enumerate(parts) if not _MAGIC.isdisjoint(part)), len(parts) - 1)
        if any(_MAGIC.isdisjoint(part) for part in parts[plain + 1 :]):
            self.is_complete = False  # it is only asked for, in each folder that is found
        place = self._absolute(os.sep.join(parts[:plain]) or ("." if parts[0] else os.sep))
        self._note_names(place)
        while self._names.get(place) == ABSENT and place != os.path.dirname(place):
            place = os.path.dirname(place)  # it may be made later
            self._note_names(place)

    def _absolute(self, path: str) -> str:
        """
        Return *path* as it is wherever the current folder is, and note if that matters.
        """
        self._is_relative = self._is_relative or not os.path.isabs(path)
        return os.path.abspath(path)

    def _is_own(self, path: str) -> bool:
        """
        Return whether something is the authors', and neither installed nor part of Python.
        """
        within = path == self._folder or path.startswith(self._folder + os.sep)
        rest = path.removeprefix(self._folder) if within else path
        if any(f"{os.sep}{name}" in rest for name in _INSTALLED):
            return False
        return within or not (path + os.sep).startswith((_LIBRARY + os.sep, _OURS + os.sep))

    def _is_authors(self, frame: FrameType | None) -> bool:
        """
        Return whether something happens as recipes want it, and not because something is installed.
        """
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith("<") and self._is_own(file):
                return frame.f_globals.get("__name__") != "__main__"  # a script that serves
            if frame.f_code.co_name == "<module>" and not file.startswith("<"):
                return False
            frame = frame.f_back
        return False

    def _names_used(self, own: set[str]) -> set[str] | None:
        """
        Return the names that recipes use; None if they may ask for something that nobody is told of.
        """
        from promptkit.transports.startup_cache.purity import names_used

        imported = own - self._loaded
        if any(path.endswith(_NO_BYTECODE) for path in imported):
            return None
        called = [key for key, module in list(sys.modules.items()) if _file_of(module) in own]
        try:
            return names_used([path for path in imported if path.endswith(".py")], called)
        except Exception:  # noqa: BLE001 (whatever is wrong with a file that has just been imported)
            return None

    def _is_new(self, path: str) -> bool:
        """
        Return whether a file may have been written since the import began.
        """
        stamp = stamp_of(path)
        return stamp is not None and max(stamp[0], stamp[3]) > self._begun - _GRAIN and path != os.devnull


def _file_of(module: object) -> str:
    """
    Return the file of a module, ``""`` if it has none.
    """
    # To ask what is no plain module may run anything.
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return os.path.abspath(file) if isinstance(file, str) else ""


def _is_importing(frame: FrameType | None) -> bool:
    """
    Return whether something is the doing of the import system itself, which looks for modules.
    """
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def _is_ours(frame: FrameType | None) -> bool:
    """
    Return whether something is the doing of promptkit's own code.
    """
    return frame is not None and frame.f_code.co_filename.startswith(_OURS + os.sep)


def _source_of(path: str) -> str:
    """
    Return the source of which a file is the bytecode; the file itself if it is none, or has no source.
    """
    if path.endswith(".pyc") and os.path.basename(os.path.dirname(path)) == "__pycache__":
        try:
            return source_from_cache(path)
        except ValueError:
            return path
    return path


_hooked = False
_current: ImportTrace | None = None


@contextmanager
def trace_imports(folder: str) -> Iterator[ImportTrace]:
    """
    Observe what is read within the ``with`` block, by whatever thread.

    Args:
        folder:
            The absolute path of the folder of the recipes.
    """
    global _hooked, _current  # noqa: PLW0603 (the interpreter has one set of hooks, which stay)
    trace = ImportTrace(folder)
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked = True
    _current = trace
    try:
        with noted_environment(trace), noted_links(trace):
            yield trace
    finally:
        _current = None


def _hear(event: str, args: tuple[Any, ...]) -> None:
    """
    Pass on what the interpreter does to whoever observes it.
    """
    if event not in _HARMLESS and (trace := _current) is not None:
        try:
            trace.note(event, args, sys._getframe(1))  # noqa: SLF001 (whose doing it is)
        except Exception:  # noqa: BLE001 (it would be raised by whatever a recipe calls)
            trace.is_complete = False
