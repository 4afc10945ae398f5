"""Writes compiled sets: the pages of all lists, and an index of them."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec import Raw, Struct

from promptkit.errors.regular_files import replace_regular_file
from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.digests import digest
from promptkit.transports.startup_cache.fingerprints import Inputs
from promptkit.transports.startup_cache.store import (
    CONFIRMED,
    MADE_BY,
    MAGIC,
    MAX_INDEX_BYTES,
    Index,
    Page,
)

__all__ = ["Contents", "write_set"]


class Contents(Struct):
    """
    What a set holds.

    Args:
        inputs:
            What the pages were made from.

        capabilities:
            What a server of them declares.

        pages:
            Each page, and its key before it.

        names:
            The names of the prompts that each recipe file declares.

        purpose:
            What else the pages depend on, if the name of the file does not say so.

        words:
            What the shell completes, encoded.
    """

    inputs: Inputs
    capabilities: Capabilities
    pages: Iterable[tuple[str, bytes]]
    names: Mapping[str, Sequence[str]] = MappingProxyType({})
    purpose: str = ""
    words: bytes = b""


def write_set(path: str, contents: Contents, mode: int = 0o600) -> None:
    """
    Write a set, all at once, whoever else reads or writes the file.

    Args:
        path:
            The file.

        contents:
            What it will hold.

        mode:
            Who may read it.

    Raises:
        OSError: If the file cannot be written.

        ValueError: If the index would be too long, or the path cannot be written as text.
    """
    index, body = _packed(contents)
    if len(index) > MAX_INDEX_BYTES:
        msg = f"its index would have {len(index):,} bytes: at most {MAX_INDEX_BYTES:,} are read"
        raise ValueError(msg)
    head = MAGIC + CONFIRMED + len(index).to_bytes(8, "big") + digest(index)
    replace_regular_file(path, head, index, *body, mode=mode)


def _packed(contents: Contents) -> tuple[bytes, list[bytes]]:
    """The index and the pages. Pages that are equal are kept once: most revisions have the same."""
    places: dict[bytes, Page] = {}
    found: dict[str, Page] = {}
    body: list[bytes] = []
    size = 0
    for name, page in contents.pages:
        key = digest(page)
        if key not in places:
            places[key] = size, len(page), key
            body.append(page)
            size += len(page)
        found[name] = places[key]
    body.append(contents.words)
    index = Index(
        MADE_BY,
        contents.inputs,
        contents.capabilities,
        found,
        names=Raw(msgspec.msgpack.encode(dict(contents.names))),
        purpose=contents.purpose,
        words=(size, len(contents.words), digest(contents.words)),
    )
    return msgspec.msgpack.encode(index), body
