"""ReadHistory: what a client has read, so that it is told of an update only where there is one."""

from collections import OrderedDict
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.language.content import EmbeddedResource
from promptkit.server.scheduling.workers import Abandoned

__all__ = ["ReadHistory"]

#: How many resources are remembered, and how long the URI of one may be, in characters. Of what
#: was forgotten every update is told.
_REMEMBERED: Final = 1024
_LONGEST: Final = 2048


class ReadHistory:
    """
    What one client has read last of each resource.
    """

    def __init__(self) -> None:
        self._read: OrderedDict[str, int] = OrderedDict()

    def note(self, content: EmbeddedResource) -> None:
        """
        Remember *content*, which the client is sent.
        """
        if len(content.uri) > _LONGEST:
            return
        self._read[content.uri] = _digest(content)
        self._read.move_to_end(content.uri)
        while len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)

    def __contains__(self, uri: object) -> bool:
        """
        Return whether it is remembered what the client has read there.
        """
        return uri in self._read

    def is_stale(self, uri: str, catalog: Catalog) -> bool:
        """
        Return whether the client would read something else now, as far as that can be known.
        """
        read = self._read.get(uri)
        if read is None:
            return True
        try:
            return read != _digest(catalog.read(uri))
        except Abandoned:  # nobody wants to know any more
            raise
        except BaseException:  # noqa: BLE001 (authors raise anything: whoever reads it again is told)
            return True


def _digest(content: EmbeddedResource) -> int:
    return hash((content.mime_type, content.text, content.blob))
