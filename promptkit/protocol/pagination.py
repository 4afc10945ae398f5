"""Pagination of lists, with cursors that are valid for exactly one list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Raw, Struct

from promptkit.catalog.catalog import Catalog
from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.jsonrpc import InvalidParams, encode
from promptkit.protocol.lowering import Lowering

#: The number of entries on one page of a list. It is large because many frameworks only read the first page.
PAGE_SIZE: Final = 1000


def digest_of_lines(lines: Iterable[bytes]) -> bytes:
    """Return the digest of *lines*, each followed by a newline, without joining them in memory."""
    from hashlib import blake2b  # loads OpenSSL, and most lists have a single page

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
            A function that encodes a page from its encoded items and the cursor of the next page, if any.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
    """

    def __init__(
        self,
        items: Sequence[Raw],
        size: int,
        encode_page: Callable[[list[Raw], str | None], bytes],
    ) -> None:
        self.items = items
        self._size = size
        self._encode_page = encode_page
        self._encoded: dict[int, bytes] = {}

    @property
    def cursors(self) -> Iterable[str | None]:
        """The cursors of all pages; the cursor of the first page is None."""
        return self._starts

    def page(self, cursor: str | None = None) -> bytes:
        """
        Return the encoded page at *cursor*.

        Raises:
            InvalidParams: If *cursor* does not belong to this list.
        """
        start = self._starts.get(cursor)
        if start is None:
            msg = "unknown cursor: the list may have changed, so request it again from the first page"
            raise InvalidParams(msg)
        if start not in self._encoded:
            end = start + self._size
            starts = self._starts.items()
            following = next((cursor for cursor, offset in starts if cursor and offset == end), None)
            self._encoded[start] = self._encode_page(list(self.items[start:end]), following)
        return self._encoded[start]

    # Computed lazily: after a reload, most lists are not requested.
    @cached_property
    def _starts(self) -> Mapping[str | None, int]:
        """The offset of each page, keyed by the page's cursor."""
        starts = range(0, max(len(self.items), 1), self._size)
        list_digest = digest_of_lines(self.items)[:8].hex() if len(starts) > 1 else ""
        return {f"{list_digest}-{start}" if start else None: start for start in starts}


class _List(Struct, frozen=True):
    items: Callable[[Catalog, Capabilities], Sequence[Any]]
    lower: Callable[[Lowering, Any], Any]
    result: Callable[[list[Raw], str | None], wire.Result]


#: The list that each method returns.
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
    "skills/list": _List(
        lambda catalog, _: [skill for skill in catalog.skills if skill.is_listed],
        Lowering.skill,
        wire.ListSkillsResult,
    ),
    "tools/list": _List(
        lambda catalog, offered: offered.tools_for(catalog).listed,
        Lowering.tool,
        wire.ListToolsResult,
    ),
}


def paginate(
    method: str,
    catalog: Catalog,
    lowering: Lowering,
    size: int = PAGE_SIZE,
    *,
    offered: Capabilities = Capabilities(),  # noqa: B008 (it is immutable)
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
            The capabilities that the server declares.
    """
    listing = LISTS[method]
    items = [Raw(encode(listing.lower(lowering, item))) for item in listing.items(catalog, offered)]

    def encode_page(items: list[Raw], cursor: str | None) -> bytes:
        return lowering.results.encode_cacheable(listing.result(items, cursor), can_change=offered.changes)

    return Pages(items, size, encode_page)
