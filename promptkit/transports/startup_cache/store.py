"""
The file of the start-up cache: the pages of all lists, kept where Python keeps the bytecode of the recipes.

Anyone who can write there can already run any code through the bytecode, so the file adds no risk. It is
trusted only if it belongs to its reader or to root, and nobody else may write to it.
"""

import os
import stat
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.digests import digest
from promptkit.transports.startup_cache.fingerprints import Inputs
from promptkit.version import VERSION

__all__ = ["CONFIRMED", "MAX_PAGE_BYTES", "WITHDRAWN", "Index", "Listings", "Page", "Store", "key_of"]

_MAGIC: Final = b"promptkit compiled set\n"

#: The mark after the magic. Pages are withdrawn while they have been sent but not verified.
CONFIRMED: Final = b"\0"
WITHDRAWN: Final = b"\1"

#: What precedes the index: the magic, the mark, and the length and the digest of the index.
_HEAD_BYTES: Final = len(_MAGIC) + len(CONFIRMED) + 8 + 16

#: The longest page, unless a server has another limit.
MAX_PAGE_BYTES: Final = 64 * 1024 * 1024

#: The longest index. That of 10,000 prompts in 2,000 files takes a tenth of this.
_MAX_INDEX_BYTES: Final = 8 * 1024 * 1024

#: An older file is not used.
_MAX_AGE_S: Final = 24 * 60 * 60

_MADE_BY: Final = (
    f"promptkit {VERSION}, msgspec {msgspec.__version__}, Python {sys.version} on {sys.platform}, "
    f"optimized {sys.flags.optimize}, UTF-8 {sys.flags.utf8_mode}"
)

#: Do not follow links, and do not wait for pipes.
_FLAGS: Final = sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "CLOEXEC", "BINARY"))

#: What reading a hostile file may raise. The server must start all the same.
_UNREADABLE: Final = (OSError, ValueError, OverflowError, MemoryError, RecursionError, msgspec.MsgspecError)

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
    """

    version: str
    inputs: Inputs
    capabilities: Capabilities
    pages: Mapping[str, Page]


class Listings:
    """
    The pages of all lists, read from the file when they are asked for.

    Args:
        descriptor:
            The open file, which `close` closes.

        start:
            Where in the file the first page begins.
    """

    def __init__(self, index: Index, descriptor: int, start: int) -> None:
        self.index = index
        self._descriptor = descriptor
        self._start = start

    def page(
        self, method: str, revision: str, cursor: str | UnsetType = UNSET, longest: int = MAX_PAGE_BYTES
    ) -> bytes | None:
        """
        Return a page of a list; None if it is missing, damaged, or longer than *longest*.
        """
        if (page := self.index.pages.get(key_of(method, revision, cursor))) is None:
            return None
        offset, size, expected = page
        if not 0 <= size <= longest:
            return None
        try:
            os.lseek(self._descriptor, self._start + offset, os.SEEK_SET)
            found = os.read(self._descriptor, size)
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
            os.lseek(self._descriptor, len(_MAGIC), os.SEEK_SET)
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
        self.file = os.path.join(_bytecode_folder(folder), file)

    def read(self) -> Listings | None:
        """
        Open the file, if it can be trusted and is up to date. The caller closes it.

        The file must be writable, so that its pages can be withdrawn.
        """
        try:
            descriptor = os.open(self.file, os.O_RDWR | _FLAGS)
        except (OSError, ValueError):
            return None
        try:
            found = _read_index(descriptor)
        except _UNREADABLE:
            found = None
        if found is None:
            os.close(descriptor)
            return None
        index, start = found
        return Listings(index, descriptor, start)

    def write(self, inputs: Inputs, capabilities: Capabilities, pages: Iterable[tuple[str, bytes]]) -> None:
        """
        Replace the file atomically, even while others read or write it. *pages* are pairs of key and page.

        Does nothing if the file cannot be written, or if Python was told to write no bytecode.
        """
        if sys.dont_write_bytecode:
            return
        scratch = f"{self.file}.{os.getpid()}-{os.urandom(4).hex()}"
        with suppress(OSError, ValueError):  # the path may hold bytes that are not text
            index, body = _packed(inputs, capabilities, pages)
            if len(index) > _MAX_INDEX_BYTES:
                return
            head = _MAGIC + CONFIRMED + len(index).to_bytes(8, "big") + digest(index)
            os.makedirs(os.path.dirname(self.file), exist_ok=True)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
                with open(os.open(scratch, flags, 0o600), "wb") as file:
                    file.write(b"".join((head, index, *body)))
                os.replace(scratch, self.file)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(scratch)
                raise

    def discard(self) -> None:
        """Remove the file."""
        with suppress(OSError, ValueError):
            os.unlink(self.file)


def _bytecode_folder(folder: str) -> str:
    # As in `importlib.util.cache_from_source`, which is slow to import.
    if sys.pycache_prefix is None:
        return os.path.join(folder, "__pycache__")
    return os.path.join(sys.pycache_prefix, os.path.splitdrive(folder)[1].lstrip("\\/"))


def _packed(
    inputs: Inputs, capabilities: Capabilities, pages: Iterable[tuple[str, bytes]]
) -> tuple[bytes, list[bytes]]:
    """Return the index and the pages. Equal pages are stored once: most revisions have the same."""
    places: dict[bytes, Page] = {}
    found: dict[str, Page] = {}
    body: list[bytes] = []
    size = 0
    for name, page in pages:
        key = digest(page)
        if key not in places:
            places[key] = size, len(page), key
            body.append(page)
            size += len(page)
        found[name] = places[key]
    return msgspec.msgpack.encode(Index(_MADE_BY, inputs, capabilities, found)), body


def _read_index(descriptor: int) -> tuple[Index, int] | None:
    """Return the index, and where the pages begin; None if the file must not be used."""
    status = os.fstat(descriptor)
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and hasattr(os, "geteuid")
    if not stat.S_ISREG(status.st_mode) or shared or status.st_uid not in _TRUSTED:
        return None
    if not 0 <= time.time() - status.st_mtime < _MAX_AGE_S:
        return None
    head = os.read(descriptor, _HEAD_BYTES)
    size = int.from_bytes(head[-24:-16], "big")
    if not head.startswith(_MAGIC + CONFIRMED) or size > _MAX_INDEX_BYTES:
        return None
    data = os.read(descriptor, size)
    if digest(data) != head[-16:]:
        return None
    index = msgspec.msgpack.decode(data, type=Index)
    return (index, _HEAD_BYTES + size) if index.version == _MADE_BY and index.inputs.is_current else None
