"""Inputs: what a compiled set was made from, and whether all of it is still the same."""

import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from promptkit.protocol.digests import digest

__all__ = [
    "ABSENT",
    "LARGE",
    "Inputs",
    "Stamp",
    "content_of",
    "current_folder",
    "modules_in",
    "names_in",
    "stamp_of",
    "value_of",
]

#: What tells one state of a file from another without reading it. The last, when its content or anything
#: that is known of it was changed, cannot be set by whoever changes it.
Stamp: TypeAlias = tuple[int, int, int, int]

#: The digest of what is not there.
ABSENT: Final = b""

#: What is larger, in bytes, is not read to see whether it is the same.
LARGE: Final = 1 << 20

#: How the names of files end that Python, or a loader of its own making, takes for modules.
_MODULES: Final = (".py", ".pyc", ".pyd", ".pyw", ".so")

#: How long it may take to find out whether all is the same, in seconds: then importing is no slower.
_LONGEST_S: Final = 2.0


class Inputs(Struct, frozen=True, array_like=True):
    """
    What recipes were made from, as it was when they were imported.

    Args:
        contents:
            By path: the digest of what is in a file. Recipes, and what they read.

        names:
            By path: the digest of the names in a folder that was looked through.

        modules:
            By path: the digest of the names in a folder that can be those of modules.

        stamps:
            By path: when something that is installed, or large, was written, and how large it is.

        links:
            By path: the digest of where it leads when links are followed.

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

    @property
    def is_current(self) -> bool:
        """
        Whether all is as it was, as far as that can be found out in a moment.
        """
        ends = time.monotonic() + _LONGEST_S
        return all(same and time.monotonic() < ends for same in self._compared())

    def _compared(self) -> Iterator[bool]:
        """
        Compare one input after the other, the cheap ones first.
        """
        environment = os.environ
        yield self.path in (ABSENT, value_of(repr(sys.path), self.key))
        yield self.here in (ABSENT, value_of(current_folder(), self.key))
        yield self.all_variables in (ABSENT, value_of(repr(sorted(environment)), self.key))
        yield from (value_of(environment.get(name), self.key) == was for name, was in self.variables.items())
        yield from (value_of(os.path.realpath(path), self.key) == was for path, was in self.links.items())
        yield from (names_in(path) == was for path, was in self.names.items())
        yield from (modules_in(path) == was for path, was in self.modules.items())
        yield from (content_of(path) == was for path, was in self.contents.items())
        yield from (stamp_of(path) == was for path, was in self.stamps.items())


def content_of(path: str) -> bytes | None:
    """
    Return the digest of what is in a file.

    Returns:
        The digest; `ABSENT` if there is no such file; None if it cannot be told: it is no regular file, it
        may not be read, or it is large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = b""
        while len(content) <= LARGE and (chunk := os.read(descriptor, LARGE + 1)):
            content += chunk
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return digest(content) if len(content) <= LARGE else None


def names_in(path: str) -> bytes:
    """
    Return the digest of what is in a folder, `ABSENT` if it cannot be looked through.

    The folder in which Python keeps bytecode does not count.
    """
    try:
        with os.scandir(path) as found:
            # In the order in which everybody meets them.
            shown = [
                (e.name, e.is_dir(), e.is_file(), e.is_symlink()) for e in found if e.name != "__pycache__"
            ]
    except OSError:
        return ABSENT
    return digest(repr(shown).encode())


def modules_in(path: str) -> bytes:
    """
    Return the digest of the names of what can be a module in a folder, `ABSENT` if there is no folder.
    """
    try:
        found = os.listdir(path)
    except OSError:
        return ABSENT
    shown = sorted(name for name in found if name.endswith(_MODULES) or "." not in name)
    return digest(repr([name for name in shown if name != "__pycache__"]).encode())


def stamp_of(path: str) -> Stamp | None:
    """
    Return what tells one state of a file from another; None if it is not there.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


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
