"""A catalog as it is served while its recipes are still being imported."""

from collections.abc import Callable

from msgspec import UNSET, UnsetType

from promptkit.catalog.lazy_catalog import LazyCatalog
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.revisions import Revision
from promptkit.server.snapshot import Snapshot

__all__ = ["LazySnapshot"]


class LazySnapshot(Snapshot):
    """
    A catalog that is not whole yet. Lists are answered with pages that were made before.

    Args:
        catalog:
            What is served.

        identity:
            The server's name and version.

        page_size:
            How many items a page of a list holds.

        capabilities:
            What the server has declared.

        known_page:
            Returns the page of a method, a revision and a cursor that was made before; None if it takes
            the whole catalog to tell.
    """

    def __init__(
        self,
        catalog: LazyCatalog,
        identity: ServerInfo,
        page_size: int,
        capabilities: Capabilities,
        known_page: Callable[[str, Revision, str | UnsetType], bytes | None],
    ) -> None:
        changes = capabilities.changes
        super().__init__(catalog, identity, page_size, changes=changes, capabilities=capabilities)
        self._known_page = known_page

    def page(self, method: str, revision: Revision, cursor: str | UnsetType = UNSET) -> bytes:
        """
        Return the result of a method that lists something.

        Raises:
            InvalidParams: If *cursor* does not belong to this list.
        """
        page = self._known_page(method, revision, cursor)
        return super().page(method, revision, cursor) if page is None else page
