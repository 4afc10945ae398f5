"""Pages: lists in parts, with cursors that are valid for exactly one list."""

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

try:  # the C module alone loads at once, while hashlib brings in all of OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["digest", "digest_of_lines"]


def digest(data: bytes, *, key: bytes = b"") -> bytes:
    """
    Return the digest of *data*.

    With a secret *key* of up to 64 bytes, nobody else can compute the digest of what they guess.
    """
    return blake2b(data, digest_size=16, key=key).digest()


def digest_of_lines(lines: Iterable[bytes]) -> bytes:
    """
    Return the digest of *lines*, each with a line feed. They are never together in memory.
    """
    hashed = blake2b(digest_size=16)
    for line in lines:
        hashed.update(line)
        hashed.update(b"\n")
    return hashed.digest()


class Pages:
    """
    The pages of one list, each encoded once.

    A cursor names the list and a place in it. It is refused for other lists, and for this one after a change.

    Args:
        items:
            The items, encoded, in the order in which every client sees them.

        size:
            How many items a page holds.

        encode_page:
            Encodes the result from encoded items and the cursor of the next page.

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
            following = next((cursor for cursor, place in self._starts.items() if place == end), UNSET)
            self._encoded[start] = self._encode_page(list(self.items[start:end]), following)
        return self._encoded[start]

    # After a reload nobody asks for most of the lists, so a digest waits until somebody does.
    @cached_property
    def _starts(self) -> Mapping[str | UnsetType, int]:
        """Where each page starts, by its cursor."""
        starts = range(0, max(len(self.items), 1), self._size)
        of_all = digest_of_lines(self.items)[:8].hex() if len(starts) > 1 else ""
        return {f"{of_all}-{start}" if start else UNSET: start for start in starts}


class _Listed(Struct, frozen=True):
    items: Callable[[Catalog, ToolMode], Sequence[Any]]
    lower: Callable[[Lowering, Any], Any]
    result: Callable[[list[Raw], str | UnsetType], wire.Result]


def _tools(catalog: Catalog, mode: ToolMode) -> Sequence[CompiledPrompt]:
    if not mode:
        return ()

    return Tools(catalog, search=mode == "search").listed


#: What each method lists.
LISTS: Final = {
    "prompts/list": _Listed(lambda catalog, _: catalog.prompts, Lowering.prompt, wire.ListPromptsResult),
    "resources/list": _Listed(
        lambda catalog, _: [*(one for one in catalog.resources if not one.is_template), *catalog.skills],
        Lowering.resource,
        wire.ListResourcesResult,
    ),
    "resources/templates/list": _Listed(
        lambda catalog, _: [resource for resource in catalog.resources if resource.is_template],
        Lowering.template,
        wire.ListResourceTemplatesResult,
    ),
    "skills/list": _Listed(lambda catalog, _: catalog.skills, Lowering.skill, wire.ListSkillsResult),
    "tools/list": _Listed(_tools, Lowering.tool, wire.ListToolsResult),
}


def lists_the_same(
    method: str, catalog: Catalog, other: Catalog, lowering: Lowering, *, tools: ToolMode = False
) -> bool:
    """
    Return whether a method lists the same of two catalogs. Only items that they do not share are compared.
    """
    listed = LISTS[method]
    items, others = listed.items(catalog, tools), listed.items(other, tools)
    return len(items) == len(others) and all(
        item is one or encode(listed.lower(lowering, item)) == encode(listed.lower(lowering, one))
        for item, one in zip(items, others, strict=True)
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
    Return the pages of what *method*, one of `LISTS`, lists.

    Args:
        method:
            One of `LISTS`.

        catalog:
            The catalog that is served.

        lowering:
            Encodes for the client's revision.

        size:
            How many items a page holds.

        offered:
            Whether the list may change while the server runs, and prompts are offered as tools.

        before:
            An earlier catalog, and its pages for the same method: items of both are not encoded again.
    """
    listed = LISTS[method]
    found = listed.items(catalog, offered.tools)
    known: dict[int, Raw] = {}
    if before is not None:
        earlier, pages = listed.items(before[0], offered.tools), before[1]
        known = dict(zip(map(id, earlier), pages.items, strict=True))
        if len(found) == len(earlier) and all(map(is_, found, earlier)):
            return pages
    items = [known.get(id(item)) or Raw(encode(listed.lower(lowering, item))) for item in found]

    def encode_page(items: list[Raw], cursor: str | UnsetType) -> bytes:
        return lowering.results.encode_kept(listed.result(items, cursor), changes=offered.changes)

    return Pages(items, size, encode_page)
