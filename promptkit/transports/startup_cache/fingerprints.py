"""Fingerprints of everything that recipes were made from, to find out whether all of it is still the same."""

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct, msgpack

from promptkit.errors.regular_files import Stamp, file_stamp
from promptkit.protocol.digests import digest

__all__ = [
    "ABSENT",
    "MAX_READ_BYTES",
    "Inputs",
    "current_folder",
    "file_digest",
    "folder_digest",
    "modules_digest",
    "stamps_digest",
    "value_digest",
]

#: Stands for the digest of what does not exist.
ABSENT: Final = b""

#: Larger files, in bytes, are not read: their stamps are compared.
MAX_READ_BYTES: Final = 1 << 20

#: How a file is opened: nothing may wait for the other end of a named pipe.
_READING: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)

#: How many bytes more than its size are asked of a file: those of /proc have the size 0, and some can be read
#: but once.
_SPARE_BYTES: Final = 4096

#: The suffixes of files that can be modules, or that keep a folder's files from being recipes.
_MODULES: Final = (".py", ".pyc", ".pyd", ".pyw", ".so", "SKILL.md", "pyvenv.cfg")

#: How long comparing may take: after that, importing the recipes is no slower.
_MAX_COMPARING_S: Final = 2.0


class Inputs(Struct, frozen=True, array_like=True):
    """
    What recipes were made from, when they were imported.

    Args:
        contents:
            By path: the digest of a file's contents, for recipes and what they read.

        names:
            By path: the digest of the names in a folder that was listed.

        modules:
            By path: the digest of the names in a folder that can be modules.

        stamps:
            By path: the stamp of a file that is installed or large.

        links:
            By path: the digest of the path after links were followed.

        variables:
            By name: the digest of an environment variable.

        all_variables:
            The digest of the names of all variables, if they were listed.

        path:
            The digest of ``sys.path``.

        here:
            The digest of the current folder, if a path was relative to it.

        key:
            The key of the digests of variables, which may be secrets.

        state:
            The digest of the stamps of all files in *contents*, which need not be read while it is the
            same; `ABSENT` if they have to be.
    """

    contents: Mapping[str, bytes] = {}
    names: Mapping[str, bytes] = {}
    modules: Mapping[str, bytes] = {}
    stamps: Mapping[str, Stamp | None] = {}
    links: Mapping[str, bytes] = {}
    variables: Mapping[str, bytes] = {}
    all_variables: bytes = ABSENT
    path: bytes = ABSENT
    here: bytes = ABSENT
    key: bytes = b""
    state: bytes = ABSENT

    @property
    def is_current(self) -> bool:
        """
        Whether nothing has changed. It is False if that takes too long to find out.
        """
        return self.stamps_if_current() is not None

    def stamps_if_current(self) -> dict[str, Stamp | None] | None:
        """
        Return the stamps of the files that were looked at; None unless all `is_current`.
        """
        ends = time.monotonic() + _MAX_COMPARING_S
        found: dict[str, Stamp | None] = {}
        # The cheap ones come first.
        compared = chain(self._compare_surroundings(), self._compare_files(found))
        return found if all(same and time.monotonic() < ends for same in compared) else None

    @property
    def has_same_files(self) -> bool:
        """
        Whether all files and folders are the same. Recipes may have changed the rest for their own process.
        """
        return all(self._compare_files({}))

    def _compare_surroundings(self) -> Iterator[bool]:
        environment = os.environ
        yield self.path in (ABSENT, value_digest(repr(sys.path), self.key))
        yield self.here in (ABSENT, value_digest(current_folder(), self.key))
        yield self.all_variables in (ABSENT, value_digest(repr(sorted(environment)), self.key))
        yield from (
            value_digest(environment.get(name), self.key) == was for name, was in self.variables.items()
        )

    def _compare_files(self, found: dict[str, Stamp | None]) -> Iterator[bool]:
        yield from (value_digest(os.path.realpath(path), self.key) == was for path, was in self.links.items())
        yield from (folder_digest(path) == was for path, was in self.names.items())
        yield from (modules_digest(path) == was for path, was in self.modules.items())
        yield from self._compare_contents(found)
        yield from (file_stamp(path) == was for path, was in self.stamps.items())

    def _compare_contents(self, found: dict[str, Stamp | None]) -> Iterator[bool]:
        """Compare the files that were read, and note their stamps in *found* if these were looked at."""
        if self.state != ABSENT:
            for path in self.contents:
                found[path] = file_stamp(path)
                yield True  # nothing is known yet, but how long it takes
            if stamps_digest(found.values()) == self.state:
                return
        yield from (file_digest(path) == was for path, was in self.contents.items())


def file_digest(path: str) -> bytes | None:
    """
    Return the digest of a file's contents.

    Returns:
        The digest; `ABSENT` if the file does not exist; None if it is not a regular file, cannot be read, or
        is large.
    """
    try:
        descriptor = os.open(path, _READING)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return None
    try:
        content = _content(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if content is None else digest(content)


def _content(descriptor: int) -> bytes | None:
    """What a file holds; None if it is not a regular file, or large. One read is enough of most."""
    found = os.fstat(descriptor)
    size = found.st_size
    if not stat.S_ISREG(found.st_mode) or size > MAX_READ_BYTES:
        return None
    content = chunk = os.read(descriptor, size + _SPARE_BYTES)
    while chunk and size != len(content) <= MAX_READ_BYTES:
        content += (chunk := os.read(descriptor, MAX_READ_BYTES + 1))
    return content if len(content) <= MAX_READ_BYTES else None


def folder_digest(path: str) -> bytes:
    """
    Return the digest of the names in a folder, without bytecode; `ABSENT` if it cannot be listed.
    """
    try:
        with os.scandir(path) as found:
            # Unsorted: recipes see this order.
            shown = [
                (e.name, e.is_dir(), e.is_file(), e.is_symlink()) for e in found if e.name != "__pycache__"
            ]
    except OSError:
        return ABSENT
    return digest(repr(shown).encode())


def modules_digest(path: str) -> bytes:
    """
    Return the digest of the names in a folder that can be modules; `ABSENT` if it cannot be listed.
    """
    try:
        found = os.listdir(path)
    except OSError:
        return ABSENT
    shown = sorted(name for name in found if name.endswith(_MODULES) or "." not in name)
    return digest(repr([name for name in shown if name != "__pycache__"]).encode())


def stamps_digest(stamps: Iterable[Stamp | None]) -> bytes:
    """
    Return the digest of the stamps of several files.
    """
    return digest(msgpack.encode(list(stamps)))


def current_folder() -> str | None:
    """
    Return the current folder; None if it was removed.
    """
    try:
        return os.getcwd()
    except OSError:
        return None


def value_digest(value: str | None, key: bytes) -> bytes:
    """
    Return the digest of a value, such as that of a variable; `ABSENT` for None.
    """
    return ABSENT if value is None else digest(value.encode(errors="surrogateescape"), key=key)
