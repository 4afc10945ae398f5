"""Observation: what recipes read while they are imported, besides what they import."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from promptkit.compiled.inputs import ABSENT, Inputs, content_of, current_folder, names_in, stamp_of, value_of

__all__ = ["Observation", "observe"]

#: Events of the interpreter that say: this depends on something that is not looked at again.
_ELSEWHERE: Final = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "sqlite3.connect",
        "subprocess.Popen",
    }
)

_WRITING: Final = os.O_WRONLY | os.O_RDWR

#: How exactly file systems tell when a file was written, in nanoseconds.
_GRAIN: Final = 20_000_000


#: What is larger, in bytes, is not read again to see whether it is the same.
_LARGE: Final = 1 << 20


class Observation:
    """
    What recipes have read while they were imported.

    Args:
        folder:
            The absolute path of the folder of the recipes.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        self._here = current_folder()
        self._variables: set[str] = set()
        self._looks_through_variables = False
        self._is_relative = False
        self._opened: set[str] = set()
        self._names = {folder: names_in(folder)}
        self._elsewhere = False
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

    def note(self, event: str, args: tuple[Any, ...]) -> None:
        """
        Note an event of the interpreter, if it says that something is read.

        See Also:
            https://docs.python.org/3/library/audit_events.html
        """
        if event == "open":
            self._note_open(*args)
        elif event in ("os.listdir", "os.scandir"):
            self._note_listing(args[0])
        elif event in _ELSEWHERE:
            self._elsewhere = True

    def inputs(self) -> Inputs | None:
        """
        Return what was read, as it is now; None if that may not be what was read.
        """
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        modules = {file for file in files if isinstance(file, str)}
        own = {file for file in modules if self._is_within(file)}
        read = {path for path in self._opened - modules if not path.endswith(".pyc")}
        large = {path for path in read if (stamp_of(path) or (0, 0))[1] > _LARGE}
        stamped, contents = modules - own | large, own | read - large
        names = {path: names_in(path) for path in sorted(self._names)}
        if self._elsewhere or names != self._names or any(map(self._is_new, contents | stamped)):
            return None
        key = os.urandom(16)
        # What is installed later, in place of a module that was missing, shows in these folders.
        stamped.update(folder for folder in self._path if folder.startswith((sys.prefix, sys.base_prefix)))
        all_names = repr(sorted(self._environment)) if self._looks_through_variables else None
        return Inputs(
            contents={path: content_of(path) for path in sorted(contents)},
            names=names,
            stamps={path: stamp_of(path) for path in sorted(stamped)},
            variables={name: value_of(self._environment.get(name), key) for name in sorted(self._variables)},
            all_variables=value_of(all_names, key),
            path=value_of(repr(self._path), key),
            here=value_of(self._here if self._is_relative else None, key),
            key=key,
        )

    def _note_open(self, path: object, mode: str | None, flags: int) -> None:
        """
        Note that a file is opened, if that is to read it.
        """
        writes = flags & _WRITING if mode is None else not {"w", "a", "x", "+"}.isdisjoint(mode)
        if isinstance(path, str | bytes) and not writes:
            self._opened.add(self._absolute(path))

    def _note_listing(self, path: object) -> None:
        """
        Note that a folder is looked through, unless it is one in which imports look for modules.
        """
        if not isinstance(path, str | bytes | None):
            return
        folder = self._absolute(path or ".")
        imported = folder in sys.path_importer_cache and not self._is_within(folder)
        if not imported and folder not in self._names:
            self._names[folder] = ABSENT  # to look through it is such an event, too
            self._names[folder] = names_in(folder)

    def _absolute(self, path: str | bytes) -> str:
        """
        Return *path* as it is wherever the current folder is, and note if that matters.
        """
        text = os.fsdecode(path)
        self._is_relative = self._is_relative or not os.path.isabs(text)
        return os.path.abspath(text)

    def _is_within(self, path: str) -> bool:
        return path.startswith(self._folder + os.sep)

    def _is_new(self, path: str) -> bool:
        """
        Return whether a file may have been written since the import began.
        """
        try:
            found = os.stat(path)
        except OSError:
            return False
        return max(found.st_mtime_ns, found.st_ctime_ns) > self._begun - _GRAIN


_hooked = False
_current: Observation | None = None


@contextmanager
def observe(folder: str) -> Iterator[Observation]:
    """
    Observe what is read within the ``with`` block, by whatever thread.

    Args:
        folder:
            The absolute path of the folder of the recipes.
    """
    global _hooked, _current  # noqa: PLW0603 (the interpreter has one set of hooks, which stay)
    observation = Observation(folder)
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked = True
    _current = observation
    try:
        with _noted_environment(observation):
            yield observation
    finally:
        _current = None


@contextmanager
def _noted_environment(observation: Observation) -> Iterator[None]:
    """
    Note which variables are read, by name or all of them.
    """
    mappings: list[Any] = [os.environ]
    if os.supports_bytes_environ:
        mappings.append(os.environb)
    plain = [(mapping.encodekey, mapping.decodekey) for mapping in mappings]

    def noting(encode: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def encode_noted(name: Any) -> Any:
            observation.note_variable(os.fsdecode(name))
            return encode(name)

        return encode_noted

    def noting_all(decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def decode_noted(name: Any) -> Any:
            observation.note_variables()
            return decode(name)

        return decode_noted

    for mapping, (encode, decode) in zip(mappings, plain, strict=True):
        mapping.encodekey, mapping.decodekey = noting(encode), noting_all(decode)
    try:
        yield
    finally:
        for mapping, (encode, decode) in zip(mappings, plain, strict=True):
            mapping.encodekey, mapping.decodekey = encode, decode


def _hear(event: str, args: tuple[Any, ...]) -> None:
    """
    Pass on what the interpreter does to whoever observes it.
    """
    if _current is not None:
        _current.note(event, args)
