"""Inputs: what a compiled set was made from, and whether all of it is still the same."""

import os
import stat
import sys
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from promptkit.digests import digest

__all__ = [
    "ABSENT",
    "Inputs",
    "Stamp",
    "content_of",
    "current_folder",
    "names_in",
    "stamp_of",
    "value_of",
]

#: What tells one state of a file from another without reading it.
Stamp: TypeAlias = tuple[int, int, int]

#: The digest of what is not there.
ABSENT: Final = b""


class Inputs(Struct, frozen=True, array_like=True):
    """
    What recipes were made from, as it was when they were imported.

    Args:
        contents:
            By path: the digest of what is in a file. Recipes, and what they read.

        names:
            By path: the digest of the names in a folder.

        stamps:
            By path: when a module was written that is installed, and how large it is.

        variables:
            By name: the digest of a variable of the environment.

        all_variables:
            The digest of the names of all of them, if somebody looked through them.

        path:
            The digest of where Python looks for modules.

        here:
            The digest of the current folder, if a path was relative to it.

        key:
            Goes into the digests of the variables, which may be secrets.
    """

    contents: Mapping[str, bytes]
    names: Mapping[str, bytes]
    stamps: Mapping[str, Stamp | None]
    variables: Mapping[str, bytes]
    all_variables: bytes
    path: bytes
    here: bytes
    key: bytes

    @property
    def hold(self) -> bool:
        """
        Whether all is as it was.
        """
        environment = os.environ
        return (
            self.path in (ABSENT, value_of(repr(sys.path), self.key))
            and self.here in (ABSENT, value_of(current_folder(), self.key))
            and self.all_variables in (ABSENT, value_of(repr(sorted(environment)), self.key))
            and all(value_of(environment.get(name), self.key) == was for name, was in self.variables.items())
            and all(names_in(path) == was for path, was in self.names.items())
            and all(content_of(path) == was for path, was in self.contents.items())
            and all(stamp_of(path) == was for path, was in self.stamps.items())
        )


def content_of(path: str) -> bytes:
    """
    Return the digest of what is in a file, `ABSENT` if it is none that can be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return ABSENT
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ABSENT
        chunks = []
        while chunk := os.read(descriptor, 1 << 20):
            chunks.append(chunk)
    except OSError:
        return ABSENT
    finally:
        os.close(descriptor)
    return digest(b"".join(chunks))


def names_in(path: str) -> bytes:
    """
    Return the digest of what a folder shows, `ABSENT` if it cannot be read.

    Hidden files do not count, and neither does the folder in which Python keeps bytecode.
    """
    try:
        found = os.listdir(path)
    except OSError:
        return ABSENT
    shown = sorted(name for name in found if not name.startswith(".") and name != "__pycache__")
    return digest("\0".join(shown).encode(errors="surrogateescape"))


def stamp_of(path: str) -> Stamp | None:
    """
    Return when a file was written, its size and its number; None if it is not there.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def current_folder() -> str | None:
    """
    Return the current folder; None if it is not there any more.
    """
    try:
        return os.getcwd()
    except OSError:
        return None


def value_of(value: str | None, key: bytes) -> bytes:
    """
    Return the digest of a value, the one of a variable for instance; `ABSENT` if there is none.
    """
    return ABSENT if value is None else digest(value.encode(errors="surrogateescape"), key=key)
