"""Pagination of lists, with cursors that are valid for exactly one list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.tools import Tools
from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, ToolMode
from promptkit.protocol.jsonrpc import InvalidParams, encode
from promptkit.protocol.limits import PAGE_SIZE
from promptkit.protocol.lowering import Lowering

try:  # the C module loads quickly, while hashlib loads all of OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["digest", "digest_of_lines"]


def digest(data: bytes, *, key: bytes = b"") -> bytes:
    """
    Return the digest of *data*.

    With a secret *key* of up to 64 bytes, others cannot verify guesses at *data* by their digest.
    """
    return blake2b(data, digest_size=16, key=key).digest()


def digest_of_lines(lines: Iterable[bytes]) -> bytes:
    """Return the digest of *lines*, each followed by a newline, without joining them in memory."""
    digest_state = blake2b(digest_size=16)
    for line in lines:
        digest_state.update(line)
        digest_state.update(b"\n")
    return digest_state.digest()


class Pages:
    """
    The pages of one list, each encoded once.

    A cursor contains a digest of the list and an offset. It is rejected for other lists, and for the same
    list once it has changed.

    Args:
        items:
            The encoded items, in the order in which every client sees them.

        size:
            The number of items per page.

        encode_page:
            A function that encodes a result from encoded items and the cursor of the next page.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
    """

    def __init__(
        self,
        items: Sequence[Raw],
        size: int,
        encode_page: Callable[[list[Raw], str | UnsetType], bytes],
    ) -> None:
        self.items = items
        self._size = size
        self._encode_page = encode_page
        self._encoded: dict[int, bytes] = {}

    @property
    def cursors(self) -> Iterable[str | UnsetType]:
        """The cursors of all pages."""
        return self._starts

    def page(self, cursor: str | UnsetType = UNSET) -> bytes:
        """
        Return the page at *cursor*, encoded.

        Raises:
            InvalidParams: If *cursor* does not belong to this list.
        """
        start = self._starts.get(cursor)
        if start is None:
            msg = "unknown cursor: the list may have changed, so list again from the start"
            raise InvalidParams(msg)
        if start not in self._encoded:
            end = start + self._size
            following = next((cursor for cursor, offset in self._starts.items() if offset == end), UNSET)
            self._encoded[start] = self._encode_page(list(self.items[start:end]), following)
        return self._encoded[start]

    # Computed lazily: after a reload, most lists are not requested.
    @cached_property
    def _starts(self) -> Mapping[str | UnsetType, int]:
        """The offset of each page, by cursor."""
        starts = range(0, max(len(self.items), 1), self._size)
        list_digest = digest_of_lines(self.items)[:8].hex() if len(starts) > 1 else ""
        return {f"{list_digest}-{start}" if start else UNSET: start for start in starts}


class _List(Struct, frozen=True):
    items: Callable[[Catalog, ToolMode], Sequence[Any]]
    lower: Callable[[Lowering, Any], Any]
    result: Callable[[list[Raw], str | UnsetType], wire.Result]


def _tools(catalog: Catalog, mode: ToolMode) -> Sequence[CompiledPrompt]:
    if not mode:
        return ()

    return Tools(catalog, search=mode == "search").listed


#: The list of each method.
LISTS: Final = {
    "prompts/list": _List(lambda catalog, _: catalog.prompts, Lowering.prompt, wire.ListPromptsResult),
    "resources/list": _List(
        lambda catalog, _: [*(each for each in catalog.resources if not each.is_template), *catalog.skills],
        Lowering.resource,
        wire.ListResourcesResult,
    ),
    "resources/templates/list": _List(
        lambda catalog, _: [resource for resource in catalog.resources if resource.is_template],
        Lowering.template,
        wire.ListResourceTemplatesResult,
    ),
    "skills/list": _List(lambda catalog, _: catalog.skills, Lowering.skill, wire.ListSkillsResult),
    "tools/list": _List(_tools, Lowering.tool, wire.ListToolsResult),
}


def lists_equal(
    method: str, catalog: Catalog, other: Catalog, lowering: Lowering, *, tools: ToolMode = False
) -> bool:
    """Return whether a method lists the same for two catalogs. Items that they share are not compared."""
    listing = LISTS[method]
    items, other_items = listing.items(catalog, tools), listing.items(other, tools)
    return len(items) == len(other_items) and all(
        a is b or encode(listing.lower(lowering, a)) == encode(listing.lower(lowering, b))
        for a, b in zip(items, other_items, strict=True)
    )


def pages_of(  # noqa: PLR0913 (they are independent)
    method: str,
    catalog: Catalog,
    lowering: Lowering,
    size: int = PAGE_SIZE,
    *,
    offered: Capabilities = Capabilities(),  # noqa: B008 (it is immutable)
    before: tuple[Catalog, Pages] | None = None,
) -> Pages:
    """
    Return the pages of a list.

    Args:
        method:
            A method of `LISTS`.

        catalog:
            The served catalog.

        lowering:
            The encoder for the client's revision.

        size:
            The number of items per page.

        offered:
            The capabilities of the server.

        before:
            An earlier catalog and its pages for the same method. Items of both catalogs are not encoded
            again.
    """
    listing = LISTS[method]
    items = listing.items(catalog, offered.tools)
    encoded: dict[int, Raw] = {}
    if before is not None:
        earlier, pages = listing.items(before[0], offered.tools), before[1]
        encoded = dict(zip(map(id, earlier), pages.items, strict=True))
        if len(items) == len(earlier) and all(map(is_, items, earlier)):
            return pages
    entries = [encoded.get(id(item)) or Raw(encode(listing.lower(lowering, item))) for item in items]

    def encode_page(items: list[Raw], cursor: str | UnsetType) -> bytes:
        return lowering.results.encode_cacheable(listing.result(items, cursor), changes=offered.changes)

    return Pages(entries, size, encode_page)
