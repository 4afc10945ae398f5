"""
What lists depend on: what the import of the recipes has read, and how they are served.

An audit hook of the interpreter says which files were opened, and which folders were listed. What is read in
other ways, such as the time or the environment, is not known.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeAlias

from msgspec import Struct

import promptkit
from promptkit.compiler.loading.targets import package_of, place_of, project_root
from promptkit.errors.regular_files import Stamp, file_stamp, read_regular_file
from promptkit.protocol.capabilities import ToolMode
from promptkit.protocol.digests import digest

__all__ = ["ImportReads", "Inputs", "Purpose", "StaleSet", "noted_reads"]

#: The stamp of a file, or of a folder, and the digest of what it holds; None if that is not compared.
State: TypeAlias = tuple[Stamp | None, bytes | None]

#: Larger files, in bytes, are not read: their stamps are compared.
_MAX_READ_BYTES: Final = 1 << 20

#: How precise the timestamps of file systems are.
_PRECISION_NS: Final = 20_000_000

#: The events that name in their first argument a file that is opened, or a folder that is listed.
_READING: Final = frozenset({"open", "os.listdir", "os.scandir", "sqlite3.connect"})

#: The flags of files that are written, or made for a moment.
_WRITING: Final = (
    os.O_WRONLY | os.O_TRUNC | os.O_EXCL | (getattr(os, "O_TMPFILE", 0) & ~getattr(os, "O_DIRECTORY", 0))
)

#: The files of the system itself are made up as they are read.
_SYSTEM: Final = ("/dev/", "/proc/", "/sys/")

#: The suffixes of files that can be modules.
_MODULES: Final = (".py", ".pyc", ".pyd", ".pyw", ".so")

#: Where installed modules lie, and those of Python and promptkit.
_PACKAGES: Final = (f"{os.sep}site-packages", f"{os.sep}dist-packages")
_LIBRARIES: Final = tuple(os.path.join(os.path.dirname(str(one.__file__)), "") for one in (os, promptkit))


class StaleSet(Exception):
    """A set cannot be used, or the recipes have changed since it was written; its text says why."""


class Purpose(Struct, frozen=True, array_like=True):
    """
    What lists depend on besides what the recipes read.

    Args:
        folder:
            The folder of the recipes, without links; ``""`` for a module, which may come from anywhere.

        recipes:
            What is served of it, and where it lies in a package and in a project.

        options:
            How it is served, as options of the command line; None for any.
    """

    folder: str
    recipes: str
    options: str | None

    @classmethod
    def of(
        cls, target: str, name: str | None, page_size: int, tools: ToolMode, scopes: Collection[str] | None
    ) -> "Purpose":
        """
        Return the purpose of a server.

        Args:
            target:
                What the command line names.

            name:
                The server's name; None for a server with any name and other options.

            page_size:
                How many items a page of a list holds.

            tools:
                Whether prompts are offered as tools.

            scopes:
                What the client may do.
        """
        folder, attribute = place_of(target) or ("", target)
        offered = {False: "", True: " --tools", "search": " --tools-search"}[tools]
        seen = f" --scopes {' '.join(sorted(scopes))!r}" if scopes else ""
        options = None if name is None else f"--name {name!r} --page-size {page_size}{offered}{seen}"
        return cls(folder, repr((attribute, package_of(folder), project_root(folder))), options)


class Inputs(Struct, frozen=True, array_like=True):
    """
    What recipes were made from.

    Args:
        read:
            By path: each file that was opened, and each folder that was listed.

        searched:
            By path: each folder in which modules were looked for. Only the names of modules count.

        path:
            The digest of ``sys.path`` before the import.
    """

    read: Mapping[str, State] = {}
    searched: Mapping[str, State] = {}
    path: bytes = b""

    def changes(self, seen: dict[str, Stamp | None], *, are_copied: bool = False) -> Iterator[str]:
        """
        Yield in words what has changed.

        Args:
            seen:
                Is filled with the stamps that are looked at.

            are_copied:
                Whether the files may have been copied, which changes their stamps. Then whoever has copied
                them stands for what is installed.
        """
        if self.path != _digest_of(sys.path):
            yield "sys.path has changed"
        for known, look in ((self.read, _held_in), (self.searched, _modules_in)):
            for path, (stamp, held) in known.items():
                now = seen[path] = file_stamp(path)
                if now != stamp and not (are_copied if held is None else look(path) == held):
                    yield f"{path} has changed"


class ImportReads:
    """
    The paths that are read while recipes are imported.

    Args:
        folder:
            The folder of the recipes.

    Attributes:
        is_over:
            Whether nothing is noted any more.
    """

    def __init__(self, folder: str) -> None:
        self.is_over = False
        self._within = os.path.join(folder, "")
        self._paths: list[object] = []
        self._began = time.time_ns()
        self._path = _digest_of(sys.path)

    def note(self, event: str, args: tuple[Any, ...]) -> None:
        """
        Note what an audit event says. It is called for each event of the process.

        See Also:
            https://docs.python.org/3/library/audit_events.html
        """
        if self.is_over:  # when Python ends, what this module holds is gone
            return
        is_written = event == "open" and args[2] & _WRITING
        is_searched = event == "os.listdir" and _is_importing(sys._getframe(1))  # noqa: SLF001 (who calls it)
        if event == "import":
            self._paths.append(args[1])  # the file of a module in another language
        elif event in _READING and not is_written and not is_searched:
            self._paths.append(args[0] or ".")

    def inputs(self) -> Inputs | None:
        """
        Return what was read, as it is now; None if a recipe may have changed since it was read.
        """
        noted, self._paths = self._paths, []  # the hook keeps this object for ever
        named = (os.fsdecode(path) for path in noted if isinstance(path, str | bytes | os.PathLike))
        paths = dict.fromkeys(_source_of(os.path.abspath(path)) for path in named)
        read = {path: _state_of(path, _held_in) for path in paths if not path.startswith(_SYSTEM)}
        if any(self._is_new(path, stamp) for path, (stamp, _) in read.items()):
            return None
        folders = dict.fromkeys(map(os.path.abspath, list(sys.path_importer_cache)))
        return Inputs(read, {path: _state_of(path, _modules_in) for path in folders}, self._path)

    def _is_new(self, path: str, stamp: Stamp | None) -> bool:
        """Whether a file of the recipes' folder may have been written since the import began."""
        if stamp is None or max(stamp[0], stamp[3]) < self._began - _PRECISION_NS:
            return False
        return path.startswith(self._within) and not os.path.isdir(path)


@contextmanager
def noted_reads(folder: str) -> Iterator[ImportReads]:
    """
    Note what is read within the ``with`` block, by any thread.

    Args:
        folder:
            The absolute path of the folder of the recipes.
    """
    reads = ImportReads(folder)
    sys.addaudithook(reads.note)  # it cannot be removed
    try:
        yield reads
    finally:
        reads.is_over = True


def _is_importing(frame: FrameType) -> bool:
    """Whether Python itself lists a folder, in which it searches for modules."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _state_of(path: str, look: Callable[[str], bytes | None]) -> State:
    is_installed = os.path.join(path, "").startswith(_LIBRARIES) or any(part in path for part in _PACKAGES)
    return file_stamp(path), None if is_installed else look(path)


def _held_in(path: str) -> bytes | None:
    """The digest of what a file holds, or of the names in a folder; None if it cannot be read."""
    try:
        if os.path.isdir(path):
            return _digest_of(name for name in sorted(os.listdir(path)) if not name.endswith(".compiled"))
        return digest(read_regular_file(path, _MAX_READ_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError:
        return None


def _modules_in(path: str) -> bytes | None:
    """The digest of the names in a folder that can be modules, or of what an archive holds."""
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return _held_in(path)
    return _digest_of(name for name in names if name.endswith(_MODULES) or "." not in name)


def _digest_of(names: Iterable[str]) -> bytes:
    """The digest of names. Imports themselves make the folders of bytecode."""
    shown = "\0".join(name for name in names if name != "__pycache__")
    return digest(shown.encode(errors="surrogateescape"))


def _source_of(path: str) -> str:
    """The source of a file of bytecode, or any other file itself."""
    if not path.endswith(".pyc"):
        return path
    from importlib.util import source_from_cache  # slow to import, and not needed for the first list

    try:
        return source_from_cache(path)
    except ValueError:  # it has no source
        return path
