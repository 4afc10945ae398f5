"""What a request is answered with: one catalog, from its beginning to its end."""

import attrs

from promptkit.catalog.catalog import Catalog
from promptkit.preview.calls import Calls
from promptkit.preview.gallery import Gallery
from promptkit.preview.live import Live, Published

__all__ = ["Newest", "Shown"]


@attrs.frozen
class Shown:
    """
    A catalog as the pages list it, and what runs for them.

    Args:
        published:
            The catalog, with its version.

        gallery:
            How it is listed.

        calls:
            What hung in an older catalog holds up nothing of this one.
    """

    published: Published
    gallery: Gallery
    calls: Calls = attrs.field(factory=Calls)

    @property
    def catalog(self) -> Catalog:
        """What is shown."""
        return self.published.catalog

    @property
    def version(self) -> int:
        """The version that a page of it carries: the page is told of every later one."""
        return self.published.change.version


class Newest:
    """
    Makes what is shown of the newest catalog, once for each.

    Args:
        live:
            Has the newest catalog.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._shown = Shown(live.newest, Gallery(live.newest.catalog))
        self._shown.gallery.cards()  # written before somebody waits for it

    def __call__(self) -> Shown:
        """Return what a request that begins now is answered with."""
        published = self._live.newest
        if self._shown.published is not published:
            self._shown = Shown(published, self._shown.gallery.of(published.catalog))
        return self._shown
