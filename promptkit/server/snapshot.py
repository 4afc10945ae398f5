"""The state from which a catalog is served, and caches of everything that has been encoded from it."""

import time
from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import chain
from threading import Lock
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.skill_access import with_skill_prompts
from promptkit.catalog.tools import Tools
from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import LISTS, Pages, digest_of_lines, paginate
from promptkit.protocol.revisions import REVISIONS, Revision

#: The limits of the reply cache: the number of entries, and the total size of keys and replies, in bytes.
MAX_CACHED: Final = 256
MAX_CACHED_BYTES: Final = 16 * 1024 * 1024

#: The maximum number of cached views, each of which may contain the pages of all lists.
MAX_VIEWS: Final = 32

_NEWEST: Final = list(REVISIONS.values())[-1]


class Snapshot:
    """
    The state from which one catalog is served.

    All caches belong to a snapshot, so replacing the snapshot invalidates them.

    Args:
        catalog:
            The catalog to serve.

        identity:
            The server's name and version.

        page_size:
            The number of items per page of a list.

        capabilities:
            The capabilities that the server declares.

    Attributes:
        replies:
            The cached replies for prompts that set `cache`, and for constant resources.

        slow:
            The keys of prompts and resources whose code was slow the last time the leader ran it.

        lowerings:
            The encoders of catalog items and results, keyed by protocol revision.

        requirements:
            The sets of scopes that prompts and resources require; empty if all callers see the same prompts
            and resources.
    """

    def __init__(
        self, catalog: Catalog, identity: ServerInfo, page_size: int, capabilities: Capabilities
    ) -> None:
        has_skill_prompts = "prompts" in capabilities.skills_as and catalog.skills
        self.catalog = with_skill_prompts(catalog) if has_skill_prompts else catalog
        self.requirements = self.catalog.requirements
        self.replies = ReplyCache()
        self.slow: set[tuple[str, str | None]] = set()
        self.capabilities = capabilities
        self.lowerings = {revision: lowering_for(revision, identity) for revision in REVISIONS.values()}
        self._identity = identity
        self.page_size = page_size
        self._pages: dict[tuple[str, Revision, bool], Pages] = {}
        self._view = lru_cache(MAX_VIEWS)(self._create_view)

    def with_catalog(self, catalog: Catalog) -> "Snapshot":
        """Return a snapshot of another catalog with the same settings."""
        return Snapshot(catalog, self._identity, self.page_size, self.capabilities)

    def pages(self, method: str, revision: Revision, *, forms: bool = False) -> Pages:
        """
        Return the pages of a list, which are encoded when they are first requested.

        With *forms*, arguments that a form can ask for are listed as optional.
        """
        if (pages := self._pages.get((method, revision, forms))) is None:
            lowering = lowering_for(revision, self._identity, forms=forms)
            pages = paginate(method, self.catalog, lowering, self.page_size, offered=self.capabilities)
            self._pages[method, revision, forms] = pages
        return pages

    def changed_lists(self, other: "Snapshot") -> set[str]:
        """Return the methods whose lists differ from those of *other*."""
        return {
            method
            for method in LISTS
            if self.pages(method, _NEWEST).items != other.pages(method, _NEWEST).items
        }

    def changed_resources(self, other: "Snapshot") -> Callable[[str], bool]:
        """
        Return a predicate that tells whether the resource at a URI has been reloaded since *other*.

        A URI that only templates can match counts as changed if any template has been loaded again.
        """
        new, old = self.catalog.find_fixed_resource, other.catalog.find_fixed_resource
        templates, before = (
            [id(resource) for resource in catalog.resources if resource.is_template]
            for catalog in (self.catalog, other.catalog)
        )
        return lambda uri: (new(uri) is not old(uri)) or (new(uri) is None and templates != before)

    def view(self, scopes: frozenset[str]) -> "Snapshot":
        """Return the snapshot for callers with *scopes*. It contains only what these callers can see."""
        if not self.requirements:
            return self
        # Callers that meet the same requirements share a view. Their tokens may also have other scopes.
        return self._view(frozenset(required for required in self.requirements if required <= scopes))

    def _create_view(self, met_requirements: frozenset[frozenset[str]]) -> "Snapshot":
        if met_requirements == self.requirements:
            return self
        view = self.with_catalog(self.catalog.visible_to(frozenset().union(*met_requirements)))
        # Cached replies do not depend on the caller, so views share them.
        view.replies, view.slow = self.replies, self.slow
        return view

    @cached_property
    def tools(self) -> Tools:
        """The tools that models can call."""
        return self.capabilities.tools_for(self.catalog)

    @cached_property
    def digest(self) -> str:
        """A digest of all lists and required scopes, which is equal for servers with the same catalog."""
        lists = [self.pages(method, _NEWEST) for method in LISTS]
        lines = (pages.page(cursor) for pages in lists for cursor in pages.cursors)
        scopes = (encode([item.name, sorted(item.scopes)]) for item in self.catalog.scoped)
        return digest_of_lines(chain(lines, scopes)).hex()


class ReplyCache:
    """
    A cache of results, for prompts that set `cache` and for constant resources.

    The oldest entry is evicted first.
    """

    def __init__(self) -> None:
        self._results: dict[Any, tuple[float, bytes]] = {}
        self._size = 0
        self._lock = Lock()  # replies may come from several threads

    def key(self, prompt: CompiledPrompt, request: Request, arguments: Any) -> Any:
        """
        Return the key under which a reply is cached, or None if it must not be cached.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching#cache-key
        """
        params: wire.GetPromptParams = request.params
        # A repeated request contains values that the user has entered.
        is_retry = params.input_responses is not None or params.request_state is not None
        if prompt.cache is None or prompt.context is not None or is_retry:
            return None
        return request.method, prompt.name, request.revision.date, encode(sorted((arguments or {}).items()))

    def get(self, key: Any) -> bytes | None:
        """Return the result that is cached under *key*; None if there is none, or if it has expired."""
        expires, result = self._results.get(key, (0.0, b""))
        return result if time.monotonic() < expires else None

    def put(self, key: Any, result: bytes, seconds: float) -> None:
        """Cache *result* under *key*, for this number of seconds."""
        with self._lock:
            self._drop(key)
            self._results[key] = (time.monotonic() + seconds, result)
            self._size += _size(key, result)
            while len(self._results) > MAX_CACHED or self._size > MAX_CACHED_BYTES:
                self._drop(next(iter(self._results)))

    def _drop(self, key: Any) -> None:
        if (entry := self._results.pop(key, None)) is not None:
            self._size -= _size(key, entry[1])


def _size(key: Any, result: bytes) -> int:
    *_, arguments = key
    return len(arguments) + len(result)
