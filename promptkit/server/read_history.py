"""What a client has read of resources, so that it is notified only of those that have changed."""

from collections import OrderedDict
from threading import Lock
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.errors.interruptions import call_interruptible
from promptkit.language.documents import EmbeddedResource
from promptkit.server.scheduling.workers import Abandoned

__all__ = ["ReadHistories", "ReadHistory"]

#: How many resources are remembered, and how long the URI of one may be. The others count as changed
#: whenever the recipes change.
_MAX_RESOURCES: Final = 1024
_MAX_URI_CHARACTERS: Final = 2048

#: For how many sets of scopes there is a history. Without one, all resources count as changed, too.
_MAX_HISTORIES: Final = 32


class ReadHistory:
    """What one client has read last of each resource."""

    def __init__(self) -> None:
        self._digests: OrderedDict[str, int] = OrderedDict()

    def note(self, content: EmbeddedResource) -> None:
        """Remember *content*, which the client is sent."""
        if len(content.uri) > _MAX_URI_CHARACTERS:
            return
        self._digests[content.uri] = _digest(content)
        self._digests.move_to_end(content.uri)
        while len(self._digests) > _MAX_RESOURCES:
            self._digests.popitem(last=False)

    def __contains__(self, uri: object) -> bool:
        return uri in self._digests

    def is_stale(self, uri: str, catalog: Catalog) -> bool:
        """Whether the client would read something else now; True if that cannot be known."""
        digest = self._digests.get(uri)
        if digest is None:
            return True
        try:
            return digest != _digest(call_interruptible(catalog.read, uri))
        except Abandoned:  # it took too long: the client was told already
            raise
        except BaseException:  # noqa: BLE001 (authors raise anything: a client that reads it again sees it)
            return True


class ReadHistories:
    """What clients have read. Those with the same scopes see the same; the others must not notice it."""

    def __init__(self) -> None:
        self._by_scopes: OrderedDict[frozenset[str] | None, ReadHistory] = OrderedDict()
        self._lock = Lock()  # replies may come from several threads

    def of(self, scopes: frozenset[str] | None) -> ReadHistory:
        """Return what clients with *scopes* have read; None for those who were not asked who they are."""
        with self._lock:
            history = self._by_scopes.setdefault(scopes, ReadHistory())
            self._by_scopes.move_to_end(scopes)
            if len(self._by_scopes) > _MAX_HISTORIES:
                self._by_scopes.popitem(last=False)
            return history


def _digest(content: EmbeddedResource) -> int:
    return hash((content.mime_type, content.text, content.blob))
