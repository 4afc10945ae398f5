"""What is loaded to stay: garbage collections need not look at it."""

import gc
from collections.abc import Callable
from typing import Final

from promptkit.catalog.catalog import Catalog

__all__ = ["SettledCatalog"]

#: So many prompts have to be replaced before what became of the old ones is looked at; more where there are
#: more prompts, as looking takes longer then.
_LEAST_REPLACED: Final = 1000


class SettledCatalog:
    """
    Keeps what was loaded out of garbage collections. With thousands of prompts, each would stop all threads.

    What is kept out is not collected either. So once much of it was replaced, all is looked at.

    Args:
        current:
            Returns what is served.
    """

    def __init__(self, current: Callable[[], Catalog]) -> None:
        self._current = current
        self._catalog = current()
        self._replaced = 0
        gc.freeze()

    def look(self) -> None:
        """Collect what is left of prompts that are served no more, if they were many."""
        before, self._catalog = self._catalog, self._current()
        if before is self._catalog:
            return
        kept = set(map(id, self._catalog.prompts))
        self._replaced += sum(id(prompt) not in kept for prompt in before.prompts)
        if self._replaced >= max(_LEAST_REPLACED, len(before) // 4):
            self._replaced = 0
            del before, kept
            gc.unfreeze()
            gc.collect()
            gc.freeze()
