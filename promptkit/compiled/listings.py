"""Listings: everything that clients are told of recipes before they ask for one, as bytes."""

import os
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from promptkit.compiled.inputs import Inputs
from promptkit.digests import digest
from promptkit.protocol.results import Capabilities

__all__ = ["Index", "Listings", "Page", "key_of"]


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
    """

    def __init__(self, index: Index, descriptor: int, start: int) -> None:
        self.index = index
        self._descriptor = descriptor
        self._start = start

    def page(self, method: str, revision: str, cursor: str | UnsetType = UNSET) -> bytes | None:
        """
        Return the result of a method that lists something; None if it is not here, or damaged.
        """
        if (page := self.index.pages.get(key_of(method, revision, cursor))) is None:
            return None
        offset, size, expected = page
        try:
            os.lseek(self._descriptor, self._start + offset, os.SEEK_SET)
            found = os.read(self._descriptor, size)
        except OSError:
            return None
        return found if digest(found) == expected else None

    def close(self) -> None:
        """
        Close the file.
        """
        os.close(self._descriptor)
