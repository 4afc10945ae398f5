"""
What lists depend on: how recipes are served, and the files that their import has read, as they were.

An audit hook of the interpreter says which files were opened, and which folders were listed. What is read in
other ways, such as the time or the environment, is not known.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from msgspec import Struct

import promptkit
from promptkit.compiler.loading.targets import Targets, package_of, place_of, project_root, targets_of
from promptkit.files.regular import Stamp, file_stamp, read_regular_file
from promptkit.protocol.capabilities import ToolMode
from promptkit.protocol.digests import digest
from promptkit.version import VERSION

__all__ = ["FileReads", "Purpose", "ReadFiles", "StaleSet", "noted_reads"]

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
    """Kept lists cannot be used, or made, as the recipes have changed meanwhile; its text says why."""


class Purpose(Struct, frozen=True, array_like=True):
    """
    What lists depend on besides the files that the recipes read.

    Args:
        folders:
            The folders of the recipes, without links; none if one is a module, which may come from anywhere.

        recipes:
            What is served of each, and where it lies in a package and in a project.

        options:
            How it is served, as options of the command line; None for any.
    """

    folders: tuple[str, ...]
    recipes: str
    options: str | None

    @classmethod
    def of(
        cls,
        target: Targets,
        name: str | None,
        page_size: int,
        tools: ToolMode,
        scopes: Collection[str] | None,
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
        targets = targets_of(target)
        places = [place for place in map(place_of, targets) if place is not None]
        if len(places) < len(targets):
            return cls((), repr(targets), None)
        offered = {False: "", True: " --tools", "search": " --tools-search"}[tools]
        seen = f" --scopes {' '.join(sorted(scopes))!r}" if scopes else ""
        options = None if name is None else f"--name {name!r} --page-size {page_size}{offered}{seen}"
        recipes = [(attribute, package_of(folder), project_root(folder)) for folder, attribute in places]
        return cls(tuple(folder for folder, _ in places), repr(recipes), options)

    @property
    def anywhere(self) -> "Purpose | None":
        """The same for one whole folder wherever it lies; None if this is for something else."""
        is_whole = len(self.folders) == 1 and self.recipes.startswith("[('', ")
        return Purpose((f"promptkit {VERSION}",), "", self.options) if is_whole else None


class ReadFiles(Struct, frozen=True, array_like=True):
    """
    The files that recipes were made from, as they were then.

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

    def changes(
        self, seen: dict[str, Stamp | None], *, are_copied: bool = False, folder: str = ""
    ) -> Iterator[str]:
        """
        Yield in words what has changed.

        Args:
            seen:
                Is filled with the stamps that are looked at.

            are_copied:
                Whether the files may have been copied, which changes their stamps. Then the copy stands for
                what is installed.

            folder:
                What relative paths, which `below` has made, begin from.
        """
        if self.path not in (b"", _digest_of(sys.path)):
            yield "sys.path has changed"
        for known, look in ((self.read, _held_in), (self.searched, _modules_in)):
            for relative, (stamp, held) in known.items():
                path = os.path.join(folder, relative)
                now = seen[path] = file_stamp(path)
                if now != stamp and not (are_copied if held is None else look(path) == held):
                    yield f"{path} has changed"

    def below(self, folder: str) -> "ReadFiles":
        """
        Return what was read below a folder, by paths from there: it holds wherever the folder is copied to.
        """
        within = os.path.join(folder, "")
        read = {
            path.removeprefix(within).replace(os.sep, "/"): (None, held)
            for path, (_, held) in self.read.items()
            if path.startswith(within)
        }
        return ReadFiles(read)

    def split(self, folders: Collection[str]) -> tuple["ReadFiles", "ReadFiles"]:
        """
        Return what was read outside of some folders, and within.
        """
        above = tuple(os.path.join(folder, "") for folder in folders)
        within = {path: state for path, state in self.read.items() if f"{path}{os.sep}".startswith(above)}
        outside = {path: state for path, state in self.read.items() if path not in within}
        return ReadFiles(outside, self.searched, self.path), ReadFiles(within, {}, self.path)


class FileReads:
    """
    The paths that are read while recipes are imported.

    Args:
        folders:
            The folders of the recipes.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._within = tuple(os.path.join(folder, "") for folder in folders)
        self._paths: dict[str, None] = {}
        self._began = time.time_ns()
        self._path = _digest_of(sys.path)

    def note(self, event: str, args: tuple[Any, ...]) -> None:
        """
        Note what an audit event says.

        See Also:
            https://docs.python.org/3/library/audit_events.html
        """
        if event == "import":
            path = args[1]  # the file of a module in another language
        elif event in _READING and not (event == "open" and args[2] & _WRITING):
            path = args[0] or "."
        else:
            return
        if isinstance(path, str | bytes | os.PathLike):
            with suppress(OSError):  # the current folder is gone
                self._paths[os.path.abspath(os.fsdecode(path))] = None

    def files(self) -> ReadFiles:
        """
        Return what was read, as it is now.

        Raises:
            StaleSet: If a recipe may have changed since it was read.
        """
        paths = dict.fromkeys(map(_source_of, self._paths))
        read = {path: _state_of(path, _held_in) for path in paths if not path.startswith(_SYSTEM)}
        if new := next((path for path, (stamp, _) in read.items() if self._is_new(path, stamp)), None):
            msg = f"{new} was written while the recipes were imported, or its time is in the future"
            raise StaleSet(msg)
        folders = dict.fromkeys(map(os.path.abspath, list(sys.path_importer_cache)))
        return ReadFiles(read, {path: _state_of(path, _modules_in) for path in folders}, self._path)

    def _is_new(self, path: str, stamp: Stamp | None) -> bool:
        """Whether a file of the recipes' folders may have been written since the import began."""
        if stamp is None or max(stamp[0], stamp[3]) < self._began - _PRECISION_NS:
            return False
        return path.startswith(self._within) and not os.path.isdir(path)


@contextmanager
def noted_reads(*folders: str) -> Iterator[FileReads]:
    """
    Note what is read within the ``with`` block, by any thread.

    Args:
        *folders:
            The absolute paths of the folders of the recipes.
    """
    reads = FileReads(folders)
    listening = [reads.note]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        for note in listening:
            if event != "os.listdir" or not _is_importing():
                note(event, args)

    sys.addaudithook(hook)  # it cannot be removed
    try:
        yield reads
    finally:
        listening.clear()


def _is_importing() -> bool:
    """Whether Python itself, and no recipe, lists a folder, in which it searches for modules."""
    return sys._getframe(2).f_code.co_filename.startswith("<frozen importlib")  # noqa: SLF001 (who calls the hook)


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
