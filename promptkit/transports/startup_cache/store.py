"""
The file of the start-up cache: the pages of all lists, kept where Python keeps the bytecode of the recipes.

Anyone who can write there can already run any code through the bytecode, so the file adds no risk. It is
trusted only if it belongs to its reader or to root, and nobody else may write to it. Where Python keeps no
bytecode, the file lies in the user's own folder for caches.
"""

import os
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.errors.regular_files import Stamp
from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.digests import digest
from promptkit.transports.startup_cache.fingerprints import Inputs
from promptkit.version import VERSION

__all__ = [
    "CONFIRMED",
    "FLAGS",
    "MADE_BY",
    "MAGIC",
    "MAX_INDEX_BYTES",
    "MAX_PAGE_BYTES",
    "UNREADABLE",
    "WITHDRAWN",
    "Index",
    "Listings",
    "Page",
    "Store",
    "is_trusted",
    "key_of",
    "read_index",
]

MAGIC: Final = b"promptkit compiled set 2\n"

#: The mark after the magic. Pages are withdrawn while they have been sent but not verified.
CONFIRMED: Final = b"\0"
WITHDRAWN: Final = b"\1"

#: What precedes the index: the magic, the mark, and the length and the digest of the index.
_HEAD_BYTES: Final = len(MAGIC) + len(CONFIRMED) + 8 + 16

#: The longest page, unless a server has another limit.
MAX_PAGE_BYTES: Final = 64 * 1024 * 1024

#: The longest index. That of 10,000 prompts in 2,000 files takes a tenth of this.
MAX_INDEX_BYTES: Final = 8 * 1024 * 1024

#: An older file is not used.
_MAX_AGE_S: Final = 24 * 60 * 60

MADE_BY: Final = (
    f"promptkit {VERSION}, msgspec {msgspec.__version__}, Python {sys.version} on {sys.platform}, "
    f"optimized {sys.flags.optimize}, UTF-8 {sys.flags.utf8_mode}"
)

#: Do not follow links, and do not wait for pipes.
FLAGS: Final = sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "CLOEXEC", "BINARY"))

#: What reading a hostile file may raise. The server must start all the same.
UNREADABLE: Final = (OSError, ValueError, OverflowError, MemoryError, RecursionError, msgspec.MsgspecError)

#: Who may own the file. On systems without user ids, such as Windows, the owner is always 0.
_TRUSTED: Final = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}

#: Where a page begins, how long it is, and its digest.
Page: TypeAlias = tuple[int, int, bytes]


def key_of(method: str, revision: str, cursor: str | UnsetType) -> str:
    """
    Return the name of a page in the index.
    """
    return f"{method} {revision} {'' if cursor is UNSET else cursor}"


class Index(Struct, frozen=True, array_like=True):
    """
    The index at the beginning of the file.

    Args:
        version:
            The versions of the software that wrote the file.

        pages:
            The pages by `key_of`; empty if they turned out to depend on more than the inputs.

        names:
            The names of the prompts that each recipe file declares, by its path. It is decoded when
            it is needed, as the first list does not need it.

        purpose:
            What else the pages depend on, if the name of the file does not say so.

        words:
            Where `promptkit.transports.startup_cache.shell_words.ShellWords` lie behind the pages; nowhere
            if they are empty.
    """

    version: str
    inputs: Inputs
    capabilities: Capabilities
    pages: Mapping[str, Page]
    names: Raw = Raw(b"\x80")
    purpose: str = ""
    words: Page = (0, 0, b"")

    def names_by_file(self) -> dict[str, list[str]]:
        """
        Return the names of the prompts that each recipe file declares.

        Raises:
            MsgspecError: If they cannot be decoded.
        """
        return msgspec.msgpack.decode(self.names, type=dict[str, list[str]])


class Listings:
    """
    The pages of all lists, read from the file when they are asked for.

    Args:
        descriptor:
            The open file, which `close` closes.

        start:
            Where in the file the first page begins.

        seen:
            The stamps of the recipes and what they read, if they were looked at.
    """

    def __init__(
        self,
        index: Index,
        descriptor: int,
        start: int,
        seen: Mapping[str, Stamp | None] = MappingProxyType({}),
    ) -> None:
        self.index = index
        self.seen = seen
        self._descriptor = descriptor
        self._start = start

    def page(
        self, method: str, revision: str, cursor: str | UnsetType = UNSET, longest: int = MAX_PAGE_BYTES
    ) -> bytes | None:
        """
        Return a page of a list; None if it is missing, damaged, or longer than *longest*.
        """
        page = self.index.pages.get(key_of(method, revision, cursor))
        return None if page is None else self._read(page, longest)

    def words(self) -> bytes | None:
        """
        Return what the shell completes, encoded; None if it is missing or damaged.
        """
        return self._read(self.index.words, MAX_PAGE_BYTES)

    def _read(self, page: Page, longest: int) -> bytes | None:
        offset, size, expected = page
        if not 0 <= size <= longest:
            return None
        try:
            found = _read_at(self._descriptor, self._start + offset, size)
        except (OSError, OverflowError):
            return None
        return found if digest(found) == expected else None

    def withdraw(self) -> bool:
        """
        Mark the pages as unverified, and return whether that was possible.

        No other process sends them until `confirm` is called, even if this process crashes.
        """
        return self._write_mark(WITHDRAWN)

    def confirm(self) -> None:
        """Mark the pages as verified."""
        self._write_mark(CONFIRMED)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _write_mark(self, mark: bytes) -> bool:
        try:
            os.lseek(self._descriptor, len(MAGIC), os.SEEK_SET)
            return os.write(self._descriptor, mark) == len(mark)
        except OSError:
            return False


class Store:
    """
    Reads and writes the file for one folder of recipes.

    Args:
        folder:
            An absolute path without links.

        *purpose:
            What else the pages depend on: the target, and how it is served.
    """

    def __init__(self, folder: str, *purpose: object) -> None:
        self.folder = folder
        # The name depends on the folder's path, because a copied folder may contain the file of the original.
        name = digest(repr((folder, *purpose)).encode(errors="surrogateescape"))[:6].hex()
        optimized = f".opt-{sys.flags.optimize}" if sys.flags.optimize else ""
        file = f"promptkit-{name}.{sys.implementation.cache_tag}{optimized}.compiled"
        self.file = os.path.join(_cache_folder(folder), file)

    def read(self) -> Listings | None:
        """
        Open the file, if it can be trusted and is up to date. The caller closes it.

        The file must be writable, so that its pages can be withdrawn.
        """
        try:
            descriptor = os.open(self.file, os.O_RDWR | FLAGS)
        except (OSError, ValueError):
            return None
        try:
            found = _read_current_index(descriptor)
        except UNREADABLE:
            found = None
        if found is None:
            os.close(descriptor)
            return None
        index, start, seen = found
        return Listings(index, descriptor, start, seen)

    def write(
        self,
        inputs: Inputs,
        capabilities: Capabilities,
        pages: Iterable[tuple[str, bytes]],
        names: Mapping[str, Sequence[str]] = MappingProxyType({}),
        words: bytes = b"",
    ) -> None:
        """
        Replace the file atomically, even while others read or write it. *pages* are pairs of key and page.

        Does nothing if the file cannot be written.
        """
        from promptkit.transports.startup_cache.set_writer import Contents, write_set  # after the first list

        with suppress(OSError, ValueError):  # the path may hold bytes that are not text
            os.makedirs(os.path.dirname(self.file), exist_ok=True)
            write_set(self.file, Contents(inputs, capabilities, pages, names, words=words))

    def retract(self, index: Index) -> None:
        """Note that the pages were wrong: of these inputs nothing is sent early again."""
        self.write(index.inputs, index.capabilities, ())

    def discard(self) -> None:
        """Remove the file."""
        with suppress(OSError, ValueError):
            os.unlink(self.file)


def _read_at(descriptor: int, place: int, size: int) -> bytes:
    if sys.platform != "win32":
        return os.pread(descriptor, size, place)  # several threads may read
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, size)


def _cache_folder(folder: str) -> str:
    place = _bytecode_folder(folder)
    if not sys.dont_write_bytecode and _is_writable(place):
        return place
    from platformdirs import user_cache_dir  # hardly ever needed

    try:
        return user_cache_dir("promptkit", appauthor=False)
    except RuntimeError:  # the user has no home
        return os.devnull  # where nothing is kept


def _is_writable(folder: str) -> bool:
    """Whether a folder can be written, or made."""
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)


def _bytecode_folder(folder: str) -> str:
    # As in `importlib.util.cache_from_source`, which is slow to import.
    if sys.pycache_prefix is None:
        return os.path.join(folder, "__pycache__")
    return os.path.join(sys.pycache_prefix, os.path.splitdrive(folder)[1].lstrip("\\/"))


def _read_current_index(descriptor: int) -> tuple[Index, int, Mapping[str, Stamp | None]] | None:
    """Return the index, where the pages begin, and stamps of files; None if the file must not be used."""
    status = os.fstat(descriptor)
    if not is_trusted(status) or not 0 <= time.time() - status.st_mtime < _MAX_AGE_S:
        return None
    index, start = read_index(descriptor)
    seen = index.inputs.stamps_if_current() if index.version == MADE_BY else None
    return None if seen is None else (index, start, seen)


def is_trusted(status: os.stat_result) -> bool:
    """Return whether a file is a plain one, and nobody but its reader and root may have written it."""
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and hasattr(os, "geteuid")
    return stat.S_ISREG(status.st_mode) and not shared and status.st_uid in _TRUSTED


def read_index(descriptor: int) -> tuple[Index, int]:
    """
    Return the index of a file, and where its pages begin.

    Raises:
        ValueError: If it is damaged, withdrawn or something else.

        OSError, MsgspecError: If it cannot be read.
    """
    head = os.read(descriptor, _HEAD_BYTES)
    size = int.from_bytes(head[-24:-16], "big")
    if not head.startswith(MAGIC + CONFIRMED) or size > MAX_INDEX_BYTES:
        raise ValueError
    data = os.read(descriptor, size)
    if digest(data) != head[-16:]:
        raise ValueError
    return msgspec.msgpack.decode(data, type=Index), _HEAD_BYTES + size
