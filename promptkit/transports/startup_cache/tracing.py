"""
Tracing: what recipes read while they are imported, besides modules.

Most of it is known from the interpreter's audit events. If one is neither harmless nor understood, the trace
is incomplete, and nothing is cached.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import source_from_cache
from types import FrameType, ModuleType
from typing import Any, Final

import promptkit
from promptkit.compiler.loading.recipe_files import FolderWalk
from promptkit.errors.regular_files import Stamp, file_stamp
from promptkit.transports.startup_cache.fingerprints import (
    ABSENT,
    MAX_READ_BYTES,
    Inputs,
    current_folder,
    file_digest,
    folder_digest,
    modules_digest,
    stamps_digest,
    value_digest,
)
from promptkit.transports.startup_cache.patches import noted_environment, noted_links

__all__ = ["ImportTrace", "trace_imports"]

#: Events that reveal nothing about the world outside.
_HARMLESS: Final = frozenset(
    """
    array.__new__ builtins.id code.__new__ compile exec function.__new__ glob.glob import marshal.dumps
    marshal.load marshal.loads object.__delattr__ object.__getattr__ object.__setattr__ os.putenv
    os.unsetenv os.walk pickle.find_class sys._getframe sys._getframemodulename time.sleep
    """.split()  # noqa: SIM905 (a list of words)
)

#: Variables that Python or C reads by itself: encodings, times and warnings depend on them.
_ALWAYS_READ: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONTZPATH", "PYTHONWARNINGS", "TZ")

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

#: How precise the timestamps of file systems are.
_TIMESTAMP_PRECISION_NS: Final = 20_000_000

#: How precise the coarsest are: FAT counts in steps of two seconds.
_COARSEST_TIMESTAMPS_NS: Final = 2_000_000_000

#: Whether every edit changes a file's stamp. On Windows, the ctime says when the file was created.
_EDITS_CHANGE_STAMPS: Final = sys.platform != "win32"

_WILDCARDS: Final = frozenset("*?[")

#: Functions whose results depend on the current folder.
_RELATIVE: Final = frozenset({"absolute", "abspath", "realpath", "relpath", "resolve"})

#: The suffixes of modules whose bytecode cannot be examined.
_NO_BYTECODE: Final = (".pyc", ".pyd", ".so")

#: What lists the folders in which there may be recipes.
_LOOKING_FOR_RECIPES: Final = FolderWalk.entries_of.__code__

#: Where installed modules lie. They are the same as long as their stamps are.
_INSTALLED: Final = ("site-packages", "dist-packages")
_LIBRARY: Final = os.path.dirname(os.path.abspath(os.__file__))
_OURS: Final = os.path.dirname(os.path.abspath(promptkit.__file__))


class ImportTrace:
    """
    What recipes read while they are imported.

    Args:
        folder:
            The absolute path of the folder of the recipes.

    Attributes:
        is_complete:
            Whether every event was either harmless or noted.
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
        self._walked = {folder: modules_digest(folder)}
        self._loaded = set(map(_file_of, list(sys.modules.values())))
        self.is_complete = True
        self._begun = time.time_ns()

    def note_variable(self, name: str) -> None:
        """Note that an environment variable was read."""
        self._variables.add(name)

    def note_variables(self) -> None:
        """Note that the names of all variables were listed."""
        self._looks_through_variables = True

    def note_link(self, path: str, real: str, frame: FrameType | None) -> None:
        """
        Note where a link leads, if a recipe asked.
        """
        if self._is_authors(frame):
            self._links[self._absolute(path)] = real

    def note(self, event: str, args: tuple[Any, ...], frame: FrameType | None) -> None:
        """
        Note what an audit event says was read. The *frame* is the one that caused the event.

        See Also:
            https://docs.python.org/3/library/audit_events.html
        """
        if event == "open":
            self._note_open(args[0], args[1], args[2], frame)
        elif frame is not None and frame.f_code is _LOOKING_FOR_RECIPES and event == "os.scandir":
            self._walked.setdefault(str(args[0]), modules_digest(str(args[0])))
        elif _is_importing(frame) or not self._is_authors(frame):
            return
        elif event == "_thread.start_new_thread" and _is_ours(frame):
            return  # it writes what is printed
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
        Fingerprint what was read; None if something is missing, or may have changed since.
        """
        if not self.is_complete or {path: modules_digest(path) for path in self._walked} != self._walked:
            return None
        names = {path: folder_digest(path) for path in sorted(self._names)}
        modules = set(filter(None, map(_file_of, list(sys.modules.values()))))
        files = self._opened | modules
        own = {path for path in files if self._is_own(path)}
        contents = {path: file_digest(path) for path in sorted(own | (self._opened - modules))}
        stamps = {
            path: file_stamp(path) for path in sorted(files - contents.keys()) if not _is_versioned(path)
        }
        unread = {path: file_stamp(path) for path, content in contents.items() if content is None}
        if not all(map(_is_large, unread, unread.values())):
            return None
        read = {path: content for path, content in contents.items() if content is not None}
        state = self._state_of(read)
        stamps |= unread
        if names != self._names or any(map(self._is_new, files)):
            return None
        if (used := self._names_used(own)) is None:
            return None
        # If a missing module is installed later, these folders change.
        folders = sorted({*self._walked, *map(os.path.abspath, list(sys.path_importer_cache))})
        # Some of them are archives.
        stamps.update((f, file_stamp(f)) for f in folders if not self._is_own(f) or os.path.isfile(f))
        key = os.urandom(16)
        all_names = repr(sorted(self._environment)) if self._looks_through_variables else None
        return Inputs(
            contents=read,
            names=names,
            modules={folder: modules_digest(folder) for folder in folders if folder not in stamps},
            stamps=stamps,
            links={path: value_digest(real, key) for path, real in sorted(self._links.items())},
            variables={
                name: value_digest(self._environment.get(name), key) for name in sorted(self._variables)
            },
            all_variables=value_digest(all_names, key),
            path=value_digest(repr(self._path), key),
            here=value_digest(self._here if self._is_relative or used & _RELATIVE else None, key),
            key=key,
            state=state,
        )

    def _note_open(self, path: object, mode: str | None, flags: int, frame: FrameType | None) -> None:
        writes = flags & _WRITING if mode is None else not {"w", "a", "x", "+"}.isdisjoint(mode)
        if not isinstance(path, str | bytes) or writes:
            # Importing writes bytecode.
            self.is_complete = self.is_complete and (_is_importing(frame) or not self._is_authors(frame))
        elif mode is None and not os.path.isabs(path):  # the event does not say in which folder
            # Modules of promptkit are noted as a whole.
            self.is_complete = self.is_complete and (_is_ours(frame) or not self._is_authors(frame))
        else:
            found = _source_of(self._absolute(os.fsdecode(path)))
            # What promptkit itself reads is not imported: it looks whether tests define prompts.
            if self._is_authors(frame) or (self._is_own(found) and _is_importing(frame)):
                self._opened.add(found)

    def _note_listing(self, path: object) -> None:
        if isinstance(path, str | bytes | None):
            self._note_names(self._absolute(os.fsdecode(path or ".")))
        else:
            self.is_complete = False

    def _note_names(self, folder: str) -> None:
        if folder not in self._names and os.path.basename(folder) != "__pycache__":
            self._names[folder] = ABSENT  # as the next line causes such an event itself
            self._names[folder] = folder_digest(folder)

    def _note_pattern(self, folder: str, pattern: str) -> None:
        parts = os.path.join(folder, pattern).split(os.sep)
        plain = next((n for n, part in enumerate(parts) if not _WILDCARDS.isdisjoint(part)), len(parts) - 1)
        if any(_WILDCARDS.isdisjoint(part) for part in parts[plain + 1 :]):
            self.is_complete = False  # `glob` only checks whether it exists in each folder, without an event
        place = self._absolute(os.sep.join(parts[:plain]) or ("." if parts[0] else os.sep))
        self._note_names(place)
        while self._names.get(place) == ABSENT and place != os.path.dirname(place):
            place = os.path.dirname(place)  # the folder may be created later
            self._note_names(place)

    def _absolute(self, path: str) -> str:
        """Make *path* absolute, and note if it depends on the current folder."""
        self._is_relative = self._is_relative or not os.path.isabs(path)
        return os.path.abspath(path)

    def _is_own(self, path: str) -> bool:
        """Whether a file is neither installed, nor part of Python or promptkit."""
        within = path == self._folder or path.startswith(self._folder + os.sep)
        rest = path.removeprefix(self._folder) if within else path
        if any(f"{os.sep}{name}" in rest for name in _INSTALLED):
            return False
        return within or not (path + os.sep).startswith((_LIBRARY + os.sep, _OURS + os.sep))

    def _is_authors(self, frame: FrameType | None) -> bool:
        """Whether a recipe caused an event, and not the import of an installed module."""
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith("<") and self._is_own(file):
                return frame.f_globals.get("__name__") != "__main__"  # a script that calls promptkit
            if frame.f_code.co_name == "<module>" and not file.startswith("<"):
                return False
            frame = frame.f_back
        return False

    def _names_used(self, own: set[str]) -> set[str] | None:
        """The names that recipes use; None if they may read something that cannot be traced."""
        from promptkit.transports.startup_cache.purity import names_used

        imported = own - self._loaded
        if any(path.endswith(_NO_BYTECODE) for path in imported):
            return None
        called = [key for key, module in list(sys.modules.items()) if _file_of(module) in own]
        try:
            return names_used([path for path in imported if path.endswith(".py")], called)
        except Exception:  # noqa: BLE001 (a file that was just imported may have changed in any way)
            return None

    def _state_of(self, paths: Iterable[str]) -> bytes:
        """The digest of the files' stamps; `ABSENT` if one may keep its stamp when it is edited."""
        found = [file_stamp(path) for path in paths]
        newest = max((max(stamp[0], stamp[3]) for stamp in found if stamp is not None), default=0)
        tells = _EDITS_CHANGE_STAMPS and newest < self._begun - _COARSEST_TIMESTAMPS_NS
        return stamps_digest(found) if tells else ABSENT

    def _is_new(self, path: str) -> bool:
        """Whether a file may have been written since the import began."""
        stamp = file_stamp(path)
        return (
            stamp is not None
            and max(stamp[0], stamp[3]) > self._begun - _TIMESTAMP_PRECISION_NS
            and path != os.devnull
        )


def _file_of(module: object) -> str:
    # What is not a plain module may run anything when it is asked for an attribute.
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return os.path.abspath(file) if isinstance(file, str) else ""


def _is_versioned(path: str) -> bool:
    """Whether a file is part of Python or promptkit, of which the set names the versions."""
    if any(f"{os.sep}{name}{os.sep}" in path.removeprefix(_LIBRARY) for name in _INSTALLED):
        return path.startswith(_OURS + os.sep)
    return path.startswith((_LIBRARY + os.sep, _OURS + os.sep))


def _is_large(path: str, stamp: Stamp | None) -> bool:
    """Whether a file was too large to be read. Else it is no regular file, or may not be read."""
    return path == os.devnull or (stamp is not None and stamp[1] > MAX_READ_BYTES)


def _is_importing(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def _is_ours(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith(_OURS + os.sep)


def _source_of(path: str) -> str:
    """The source of a file of bytecode, or any other file itself."""
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
    Trace what is read within the ``with`` block, by any thread.

    Args:
        folder:
            The absolute path of the folder of the recipes.
    """
    global _hooked, _current  # noqa: PLW0603 (audit hooks cannot be removed)
    trace = ImportTrace(folder)
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    _current = trace
    try:
        with noted_environment(trace), noted_links(trace):
            yield trace
    finally:
        _current = None


def _audit(event: str, args: tuple[Any, ...]) -> None:
    # In this order: when Python ends, it sets what a module holds to None, and still calls this.
    if (trace := _current) is not None and event not in _HARMLESS:
        try:
            trace.note(event, args, sys._getframe(1))  # noqa: SLF001 (the frame that caused the event)
        except Exception:  # noqa: BLE001 (it would surface in a recipe)
            trace.is_complete = False
