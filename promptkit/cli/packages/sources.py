"""
Reading the files of a package, and rejecting files that must not be published.

The files may come from a repository of another author: a link to a hidden file, or to a file outside of the
folder, would publish a private file of the user.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from promptkit.cli.packages.project import PackageError
from promptkit.compiler.configuration import Configuration
from promptkit.declarations.skill_files import is_left_out
from promptkit.errors.exceptions import shortened
from promptkit.files.folder import Folder

#: The options that name secret files, by device and inode, which also identify links and hard links.
SecretFiles: TypeAlias = Mapping[tuple[int, int], str]

#: The options of `serve` that name private files.
_SECRET_OPTIONS: Final = ("state-keys", "token-file", "audit")

#: Maximum size of a file on PyPI.
_MAX_BYTES: Final = 100 << 20

#: The only hidden folder that is published, because GitHub shows its readme.
_PUBLIC: Final = ".github"


class PackagedFile(Struct, frozen=True):
    """
    A file of a package.

    Args:
        data:
            Its content.

        is_executable:
            Whether its owner can execute it.
    """

    data: bytes
    is_executable: bool


class SourceReader:
    """
    Reads the files of one package, up to 100 MiB in total.

    Args:
        secrets:
            The files that must not be published.
    """

    def __init__(self, secrets: SecretFiles) -> None:
        self._secrets = secrets
        self._remaining = _MAX_BYTES

    def read(self, folder: Path, path: str) -> PackagedFile:
        """
        Return a file of a folder. Links are followed within the folder.

        Args:
            folder:
                The folder.

            path:
                The file's path below it.

        Raises:
            PackageError: If it cannot be read, leads out of the folder, is hidden, is not a regular file, is
                too large, or is secret.
        """
        source, modes = Folder(folder), list[int]()

        def check(status: os.stat_result) -> None:
            modes.append(status.st_mode)
            self._check_public(status, path, folder.name)

        try:
            within = source.resolve(path)
            _check_visible(path, within)
            data = source.read(within, self._remaining, check)
        except FileNotFoundError:
            msg = f"{shortened(path)!r} does not exist, or is a link that leads nowhere: remove it"
            raise PackageError(msg) from None
        except OSError as error:
            msg = f"{shortened(path)!r} cannot be packaged: {error.strerror}"
            raise PackageError(msg) from None
        self._remaining -= len(data)
        return PackagedFile(data, bool(modes[0] & stat.S_IXUSR))

    def _check_public(self, status: os.stat_result, path: str, folder: str) -> None:
        """Raise PackageError if a file is secret or too large."""
        if status.st_size > self._remaining:
            limit = f"{_MAX_BYTES >> 20} MiB"
            msg = f"{path!r} is too large: the files of a package have at most {limit} together"
            raise PackageError(msg)
        if (option := self._secrets.get((status.st_dev, status.st_ino))) is not None:
            msg = f"{path!r} is the file that [tool.promptkit.serve] names with {option}"
            msg += f", which others must not get: move it out of {folder!r}"
            raise PackageError(msg)
        if not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            msg = f"{path!r} can be read by its owner alone, as secrets are: move it out of {folder!r}"
            msg += ", or chmod go+r it if others may read it"
            raise PackageError(msg)


def find_secrets(configurations: Iterable[Configuration], folders: Iterable[Path]) -> SecretFiles:
    """
    Return the private files that ``[tool.promptkit.serve]`` names.

    Args:
        configurations:
            The configurations that name them.

        folders:
            The folders in which `serve` can be started, to resolve relative paths.
    """
    files = [
        (folder / path, option)
        for configuration in configurations
        for option in _SECRET_OPTIONS
        if isinstance(path := configuration.serve.get(option), str)
        for folder in folders
    ]
    return {identity: option for file, option in files if (identity := _identity(file)) is not None}


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except (OSError, ValueError):  # without a file, there is nothing to protect
        return None
    return status.st_dev, status.st_ino


def _check_visible(path: str, within: str) -> None:
    """Raise PackageError if a file is hidden, or links to a hidden one."""
    if any(is_left_out(part) and part != _PUBLIC for part in within.split("/")):
        subject = f"{path!r} leads to {within!r}" if path != within else repr(path)
        msg = f"{subject}, which is hidden, or a leftover of a program: put a copy in a visible place"
        raise PackageError(msg)
