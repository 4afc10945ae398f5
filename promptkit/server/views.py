"""Views: what callers see of a snapshot, each by their own scopes."""

from threading import Lock
from typing import TYPE_CHECKING, Final

from promptkit.catalog.catalog import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from promptkit.server.snapshot import Snapshot

__all__ = ["MOST_VIEWS", "Views"]

#: How many views are kept. Each may hold the pages of all lists, and is made again when it is needed.
MOST_VIEWS: Final = 32

#: Of how many sets of scopes the view is known. A token may have any scopes, most of which nothing needs.
_MOST_SETS: Final = 1024


class Views:
    """
    The views of one snapshot. A view has what its callers may see, and knows nothing of the rest.

    Args:
        whole:
            The snapshot.

        requirements:
            What its prompts and resources need.

        make:
            Makes a view of some of its catalog.
    """

    def __init__(
        self,
        whole: "Snapshot",
        requirements: frozenset[frozenset[str]],
        make: "Callable[[Catalog], Snapshot]",
    ) -> None:
        self._whole = whole
        self._requirements = requirements
        self._make = make
        # By what of the requirements is met: whoever meets the same sees the same.
        self._made: dict[frozenset[frozenset[str]], Snapshot] = {}
        self._known: dict[frozenset[str], Snapshot] = {}
        self._lock = Lock()

    def of(self, scopes: frozenset[str]) -> "Snapshot":
        """
        Return the view of callers with *scopes*.
        """
        view = self._known.get(scopes)
        return self._find(scopes) if view is None else view

    def _find(self, scopes: frozenset[str]) -> "Snapshot":
        met = frozenset(needed for needed in self._requirements if needed <= scopes)
        with self._lock:
            view = self._made.pop(met, None)
            if view is None:
                view = self._view(met, scopes)
            self._made[met] = view
            self._known[scopes] = view
            if len(self._known) > _MOST_SETS:
                del self._known[next(iter(self._known))]
            if len(self._made) > MOST_VIEWS:
                self._forget(self._made.pop(next(iter(self._made))))
        return view

    def _view(self, met: frozenset[frozenset[str]], scopes: frozenset[str]) -> "Snapshot":
        if met == self._requirements:
            return self._whole
        return self._make(self._whole.catalog.visible_to(scopes))

    def _forget(self, view: "Snapshot") -> None:
        for scopes in [scopes for scopes, known in self._known.items() if known is view]:
            del self._known[scopes]
