"""
The store: a compiled set in a file, where Python keeps the bytecode of the same recipes.

Who may write there may run any code as it is, by the way of bytecode, so that nothing is opened up
by it. The file is trusted if it is its reader's own, or root's, and nobody else may write to it.
"""

import os
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import cache_from_source
from typing import Final

import msgspec

from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.digests import digest
from promptkit.transports.startup_cache.fingerprints import Inputs
from promptkit.transports.startup_cache.listings import CONFIRMED, Index, Listings, Page
from promptkit.version import VERSION

__all__ = ["Store"]

_MAGIC: Final = b"promptkit compiled set\n"

#: What stands before the index: what the file is, whether it may be told, the length of the index, and
#: its digest.
_HEAD: Final = len(_MAGIC) + len(CONFIRMED) + 8 + 16

#: How long an index may be, in bytes: that of 10,000 prompts in 2,000 files has a tenth.
_LONGEST_INDEX: Final = 8 * 1024 * 1024

#: How long a set is used that nobody has confirmed, in seconds.
_LIFETIME: Final = 24 * 60 * 60

_MADE_BY: Final = (
    f"promptkit {VERSION}, msgspec {msgspec.__version__}, Python {sys.version} on {sys.platform}, "
    f"optimized {sys.flags.optimize}, UTF-8 {sys.flags.utf8_mode}"
)

#: No link is followed, and no pipe is waited for.
_FLAGS: Final = sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "CLOEXEC", "BINARY"))

#: What reading something hostile may raise. Whoever can write there can run code anyway; it is no reason
#: not to start.
_UNREADABLE: Final = (OSError, ValueError, OverflowError, MemoryError, RecursionError, msgspec.MsgspecError)

#: Who owns what others may be told: nobody in particular where the system knows no users.
_TRUSTED: Final = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}


class Store:
    """
    Keeps one compiled set.

    Args:
        folder:
            The folder of the recipes, an absolute path free of links.

        *purpose:
            What else the set depends on: the target, and how it is served.
    """

    def __init__(self, folder: str, *purpose: object) -> None:
        self.folder = folder
        # The folder itself is a part of that: a copy of it may bring the sets of the first along.
        name = digest(repr((folder, *purpose)).encode(errors="surrogateescape"))[:6].hex()
        self.file = cache_from_source(os.path.join(folder, f"promptkit-{name}.py")).removesuffix(".pyc")
        self.file += ".compiled"

    def read(self) -> Listings | None:
        """
        Return the set, if there is one that can be trusted and that nothing has made stale.

        A set that cannot be withdrawn, as it lies where nothing can be written, is none. The caller
        closes it.
        """
        try:
            descriptor = os.open(self.file, os.O_RDWR | _FLAGS)
        except (OSError, ValueError):
            return None
        try:
            found = _index(descriptor)
        except _UNREADABLE:
            found = None
        if found is None:
            os.close(descriptor)
            return None
        index, start = found
        return Listings(index, descriptor, start, len(_MAGIC))

    def write(self, inputs: Inputs, capabilities: Capabilities, pages: Iterable[tuple[str, bytes]]) -> None:
        """
        Keep a set, in place of the one before.

        It takes its place at once and whole, whoever else reads or writes. Where nothing can be
        written, or Python was told to write no bytecode, nothing is.

        Args:
            inputs:
                What it was made from.

            capabilities:
                What the server declares that it can do.

            pages:
                The pages of all lists, and before each what it is called.
        """
        if sys.dont_write_bytecode:
            return
        scratch = f"{self.file}.{os.getpid()}-{os.urandom(4).hex()}"
        with suppress(OSError, ValueError):  # a path may be of bytes that are no text
            index, body = _packed(inputs, capabilities, pages)
            if len(index) > _LONGEST_INDEX:
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
        """
        Keep no set any more.
        """
        with suppress(OSError, ValueError):
            os.unlink(self.file)


def _packed(
    inputs: Inputs, capabilities: Capabilities, pages: Iterable[tuple[str, bytes]]
) -> tuple[bytes, list[bytes]]:
    """
    Return the index of a set, and its pages one after the other, each once.
    """
    places: dict[bytes, Page] = {}
    found: dict[str, Page] = {}
    body: list[bytes] = []
    size = 0
    for name, page in pages:
        key = digest(page)
        if key not in places:  # revisions say mostly the same
            places[key] = size, len(page), key
            body.append(page)
            size += len(page)
        found[name] = places[key]
    return msgspec.msgpack.encode(Index(_MADE_BY, inputs, capabilities, found)), body


def _index(descriptor: int) -> tuple[Index, int] | None:
    """
    Return the index in an open file, and where the pages begin; None if it is not to be used.

    Raises:
        Exception: One of `_UNREADABLE`, if it cannot be read.
    """
    status = os.fstat(descriptor)
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and hasattr(os, "geteuid")
    if not stat.S_ISREG(status.st_mode) or shared or status.st_uid not in _TRUSTED:
        return None
    if not 0 <= time.time() - status.st_mtime < _LIFETIME:
        return None
    head = os.read(descriptor, _HEAD)
    size = int.from_bytes(head[-24:-16], "big")
    if not head.startswith(_MAGIC + CONFIRMED) or size > _LONGEST_INDEX:
        return None
    data = os.read(descriptor, size)
    if digest(data) != head[-16:]:
        return None
    index = msgspec.msgpack.decode(data, type=Index)
    return (index, _HEAD + size) if index.version == _MADE_BY and index.inputs.is_current else None
