"""One catalog as it is served, with everything that was encoded from it."""

import time
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.tools import Tools
from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, PageKey, ServerInfo, ToolMode
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import LISTS, digest_of_lines, lists_equal, pages_of
from promptkit.protocol.revisions import REVISIONS, Revision

if TYPE_CHECKING:
    from promptkit.protocol.pagination import Pages

#: How many replies of prompts with `cache` are kept, and how large they and their keys may be together.
CACHED: Final = 256
CACHED_BYTES: Final = 16 * 1024 * 1024

#: How many views are kept. Each may hold the pages of all lists, and is made again when it is needed.
MOST_VIEWS: Final = 32

_NEWEST: Final = list(REVISIONS.values())[-1]


class Snapshot:
    """
    One catalog as it is served. When another replaces it, everything that was kept goes with it.

    Args:
        catalog:
            What is served.

        identity:
            The server's name and version.

        page_size:
            How many items a page of a list holds.

        changes:
            Whether another catalog may replace it.

        tools:
            Whether its prompts are offered as tools.

        before:
            The snapshot that it replaces: items that both list are not encoded again.

    Attributes:
        replies:
            Replies of prompts with `cache`.

        slow:
            The methods and prompts, or resources, whose code was slow the last time it ran.

        capabilities:
            What a server of this catalog declares that it can do.

        lowerings:
            What encodes for each revision.

        page_size:
            How many items a page of a list holds.
    """

    def __init__(  # noqa: PLR0913 (a list depends on that much)
        self,
        catalog: Catalog,
        identity: ServerInfo,
        page_size: int,
        *,
        changes: bool,
        tools: ToolMode = False,
        before: "Snapshot | None" = None,
    ) -> None:
        self.catalog = catalog
        self.replies = ReplyCache()
        self.slow: set[tuple[str, str | None]] = set()
        self.capabilities = Capabilities(changes, tools)
        self.lowerings = {revision: lowering_for(revision, identity) for revision in REVISIONS.values()}
        self._identity = identity
        self.page_size = page_size
        self._pages: dict[tuple[str, Revision], Pages] = {}
        self._whole: Snapshot | None = None  # of a view: the snapshot that has all
        if before is not None:
            for lowering in self.lowerings.values():
                lowering.clear_text_cache()
            for (method, revision), pages in list(before._pages.items()):  # noqa: SLF001 (it is of this class)
                self._pages[method, revision] = self._encode(method, revision, (before.catalog, pages))

    def replaced_by(self, catalog: Catalog, before: "Snapshot | None" = None) -> "Snapshot":
        """Return a snapshot of another catalog that is served in the same way."""
        offered = self.capabilities
        return Snapshot(
            catalog,
            self._identity,
            self.page_size,
            changes=offered.changes,
            tools=offered.tools,
            before=before,
        )

    def page(self, method: str, revision: Revision, cursor: str | UnsetType = UNSET) -> bytes:
        """
        Return the result of a method that lists something.

        Raises:
            InvalidParams: If *cursor* does not belong to this list.
        """
        return self._listed(method, revision).page(cursor)

    def changed_lists(self, other: "Snapshot") -> set[str]:
        """Return the methods that list something else here than in *other*."""
        newest, tools = self.lowerings[_NEWEST], self.capabilities.tools
        return {
            method
            for method in LISTS
            if not lists_equal(method, self.catalog, other.catalog, newest, tools=tools)
        }

    def changed_resources(self, other: "Snapshot") -> Callable[[str], bool]:
        """
        Return a function that says whether the resource at a URI was loaded anew since *other*.

        Of a URI that only a template may match, it says so if any template was.
        """
        new, old = self.catalog.find_fixed, other.catalog.find_fixed
        templates, before = (
            [id(one) for one in of.resources if one.is_template] for of in (self.catalog, other.catalog)
        )
        return lambda uri: (new(uri) is not old(uri)) or (new(uri) is None and templates != before)

    def pages(self) -> Iterator[tuple[PageKey, bytes]]:
        """Return every page of every list, for every revision."""
        for method in LISTS:
            for revision in REVISIONS.values():
                # Not kept, as nobody may ever ask for them.
                listed = self._pages.get((method, revision)) or self._encode(method, revision)
                yield from (((method, revision, cursor), listed.page(cursor)) for cursor in listed.cursors)

    @cached_property
    def requirements(self) -> frozenset[frozenset[str]]:
        """The sets of scopes that its prompts and resources need; none if all see the same."""
        return self.catalog.requirements

    def view(self, scopes: frozenset[str]) -> "Snapshot":
        """Return what callers with *scopes* see of it: as if there were nothing else."""
        if not self.requirements:
            return self
        # Who meets the same requirements sees the same. A token may have any other scopes besides.
        return self._view(frozenset(needed for needed in self.requirements if needed <= scopes))

    @cached_property
    def _view(self) -> "Callable[[frozenset[frozenset[str]]], Snapshot]":
        return lru_cache(MOST_VIEWS)(self._make_view)

    def _make_view(self, met: frozenset[frozenset[str]]) -> "Snapshot":
        if met == self.requirements:
            return self
        view = self.replaced_by(self.catalog.visible_to(frozenset().union(*met)))
        # What is kept of a prompt is the same for all who see it.
        view.replies, view.slow, view._whole = self.replies, self.slow, self  # noqa: SLF001 (it is of this class)
        return view

    @cached_property
    def tools(self) -> "Tools":
        """What models may call."""
        return Tools(self.catalog, search=self.capabilities.tools == "search")

    @cached_property
    def digest(self) -> str:
        """What servers of the same catalog have in common: a digest of all that they list, and to whom."""
        listed = [self._listed(method, _NEWEST) for method in LISTS]
        lines = (pages.page(cursor) for pages in listed for cursor in pages.cursors)
        needed = (encode([item.name, sorted(item.scopes)]) for item in self.catalog.scoped)
        return digest_of_lines(chain(lines, needed)).hex()

    def _listed(self, method: str, revision: Revision) -> "Pages":
        if (pages := self._pages.get((method, revision))) is None:
            whole = self._whole  # of which each item is encoded once for all views
            known = None if whole is None else (whole.catalog, whole._listed(method, revision))  # noqa: SLF001
            pages = self._pages[method, revision] = self._encode(method, revision, known)
        return pages

    def _encode(
        self, method: str, revision: Revision, before: "tuple[Catalog, Pages] | None" = None
    ) -> "Pages":

        lowering, offered = self.lowerings[revision], self.capabilities
        return pages_of(method, self.catalog, lowering, self.page_size, offered=offered, before=before)


class ReplyCache:
    """Results of prompts with `cache`, by what was asked. The oldest is dropped first."""

    def __init__(self) -> None:
        self._results: dict[Any, tuple[float, bytes]] = {}
        self._size = 0
        self._lock = Lock()  # replies may come from several threads

    def key(self, prompt: CompiledPrompt, request: Request, given: Any) -> Any:
        """
        Return the key of a reply; None if it must not be kept.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching#cache-key
        """
        params: wire.GetPromptParams = request.params
        # One that repeats an earlier request has what a person has entered.
        is_retry = params.input_responses is not UNSET or params.request_state is not UNSET
        if prompt.cache is None or prompt.context is not None or is_retry:
            return None
        return request.method, prompt.name, request.revision.date, encode(sorted((given or {}).items()))

    def get(self, key: Any) -> bytes | None:
        """Return the result under *key*, if it is fresh."""
        expires, result = self._results.get(key, (0.0, b""))
        return result if time.monotonic() < expires else None

    def put(self, key: Any, result: bytes, seconds: float) -> None:
        """Keep *result* under *key*, unless it is so large that it would displace most others."""
        size = _size(key, result)
        with self._lock:
            self._drop(key)
            if size > CACHED_BYTES // 4:
                return
            self._results[key] = (time.monotonic() + seconds, result)
            self._size += size
            while len(self._results) > CACHED or self._size > CACHED_BYTES:
                self._drop(next(iter(self._results)))

    def _drop(self, key: Any) -> None:
        if (dropped := self._results.pop(key, None)) is not None:
            self._size -= _size(key, dropped[1])


def _size(key: Any, result: bytes) -> int:
    *_, given = key
    return len(given) + len(result)
