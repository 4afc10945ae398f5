"""The licences of a project: the files that the patterns in ``license-files`` match."""

import stat
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from glob import has_magic
from typing import Final

from promptkit.cli.packages.project import PackageError
from promptkit.declarations.skill_files import is_left_out
from promptkit.files.folder import Folder, check_plain

__all__ = ["find_licenses"]

#: How many files and folders are compared with patterns.
_MAX_ENTRIES: Final = 100_000


def find_licenses(folder: Folder, patterns: Iterable[str]) -> list[str]:
    """
    Return the paths of the files that patterns match, in order.

    Args:
        folder:
            The project's folder. Links to folders are not followed.

        patterns:
            Paths within it, with ``*``, ``?``, ``[...]`` and ``**``. These match no hidden names.

    Raises:
        PackageError: If a pattern is absolute, leads upwards, or is compared with too many files.

        OSError: If a folder cannot be read.
    """
    project = _Project(folder)
    return sorted({path for pattern in patterns for path in project.files(pattern)})


class _Project:
    """The files of a project, each of which is looked at a limited number of times."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._left = _MAX_ENTRIES

    def files(self, pattern: str) -> Iterator[str]:
        """Yield the paths of the files and links that a pattern matches."""
        try:
            check_plain(pattern)
        except OSError:
            msg = f"[project] license-files: {pattern!r} is not a plain path within the project"
            raise PackageError(msg) from None
        *above, name = pattern.split("/")
        if name == "**":
            above, name = [*above, "**"], "*"
        folders = {""}
        for part in above:
            folders = {path for folder in folders for path in self._folders(folder, part)}
        for folder in folders:
            yield from (path for path, is_folder in self._matches(folder, name) if not is_folder)

    def _folders(self, folder: str, part: str) -> Iterator[str]:
        if part == "**":
            waiting = [folder]
            while waiting:
                yield (path := waiting.pop())
                waiting += self._folders(path, "*")
        elif not has_magic(part):
            yield f"{folder}/{part}".removeprefix("/")
        else:
            yield from (path for path, is_folder in self._matches(folder, part) if is_folder)

    def _matches(self, folder: str, part: str) -> Iterator[tuple[str, bool]]:
        """Yield the entries of a folder whose names match, and whether each is a folder."""
        try:
            entries = self._folder.entries(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._left -= len(entries) + folder.count("/")  # each folder above it is opened again
        if self._left < 0:
            msg = f"[project] license-files match among more than {_MAX_ENTRIES:,} files: name the files"
            raise PackageError(msg)
        for name, status in entries:
            if name == part or (fnmatchcase(name, part) and not is_left_out(name)):
                yield f"{folder}/{name}".removeprefix("/"), stat.S_ISDIR(status.st_mode)
