"""Listings: everything that clients are told of recipes before they ask for one, as bytes."""

import os
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.digests import digest
from promptkit.transports.startup_cache.fingerprints import Inputs

__all__ = ["CONFIRMED", "LONGEST", "WITHDRAWN", "Index", "Listings", "Page", "key_of"]

#: Whether a set may be told: one that was told and not confirmed since is withdrawn.
CONFIRMED: Final = b"\0"
WITHDRAWN: Final = b"\1"

#: How long a page may be, in bytes, unless somebody says otherwise.
LONGEST: Final = 64 * 1024 * 1024


def key_of(method: str, revision: str, cursor: str | UnsetType) -> str:
    """
    Return what a page is called: by its method, the date of its revision, and its cursor.
    """
    return f"{method} {revision} {'' if cursor is UNSET else cursor}"


#: Where a page begins, how long it is, and its digest.
Page: TypeAlias = tuple[int, int, bytes]


class Index(Struct, frozen=True, array_like=True):
    """
    What a compiled set holds.

    Args:
        version:
            What made it.

        inputs:
            What it was made from.

        capabilities:
            What the server declares that it can do.

        pages:
            By `key_of`: the pages of all lists. There are none if they were found to depend on more
            than the inputs.
    """

    version: str
    inputs: Inputs
    capabilities: Capabilities
    pages: Mapping[str, Page]


class Listings:
    """
    The pages of all lists, in a file.

    Args:
        index:
            What the file holds.

        descriptor:
            The file, open. It is closed by `close`.

        start:
            Where in the file the first page begins.

        mark:
            Where in the file stands whether the set may be told.
    """

    def __init__(self, index: Index, descriptor: int, start: int, mark: int) -> None:
        self.index = index
        self._descriptor = descriptor
        self._start = start
        self._mark = mark

    def page(
        self, method: str, revision: str, cursor: str | UnsetType = UNSET, longest: int = LONGEST
    ) -> bytes | None:
        """
        Return the result of a method that lists something.

        Returns:
            The result; None if it is not here, damaged, or longer than *longest*.
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
        Have nobody else tell the set until it is confirmed; return whether that is possible.

        It stays withdrawn however this process ends.
        """
        return self._write_mark(WITHDRAWN)

    def confirm(self) -> None:
        """
        Let the set be told again.
        """
        self._write_mark(CONFIRMED)

    def close(self) -> None:
        """
        Close the file.
        """
        os.close(self._descriptor)

    def _write_mark(self, mark: bytes) -> bool:
        try:
            os.lseek(self._descriptor, self._mark, os.SEEK_SET)
            return os.write(self._descriptor, mark) == len(mark)
        except OSError:
            return False
