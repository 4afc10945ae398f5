"""
The start-up cache: lists kept on disk, which clients are sent before any recipe is imported.

They lie where Python keeps the bytecode of the recipes. Anyone who can write there can already run any code
through the bytecode, so they add no risk. Where Python keeps no bytecode, they lie in the user's own folder
for caches.
"""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from promptkit.protocol.digests import digest
from promptkit.standard_error import say
from promptkit.transports.import_inputs import ImportReads, Purpose, StaleSet, noted_reads
from promptkit.transports.kept_lists import MADE_BY, Index, KeptLists, ShellWords, write_set

if TYPE_CHECKING:
    from promptkit.catalog.catalog import Catalog
    from promptkit.server.snapshot import Snapshot

__all__ = ["StartupCache"]


class StartupCache:
    """
    The kept lists of one target. They are sent at once, and written anew if they turn out to be wrong.

    Args:
        file:
            Where they are kept.

        purpose:
            What they are for.

        is_built:
            Whether they were built for deployment. Then the file is never written to.

    Attributes:
        found:
            What can be sent now; None if nothing can.

    Raises:
        StaleSet: If they were built, and cannot be used.
    """

    def __init__(self, file: str, purpose: Purpose, *, is_built: bool = False) -> None:
        self.found: KeptLists | None = None
        self._file = file
        self._purpose = purpose
        self._is_built = is_built
        self._reads: ImportReads | None = None
        try:
            self.found = KeptLists.open(file, purpose, is_built=is_built)
        except StaleSet:
            if is_built:
                raise

    @classmethod
    def of(cls, purpose: Purpose) -> "StartupCache | None":
        """
        Return the cache of a folder or a file; None for a module.
        """
        if not purpose.folder:
            return None
        # The name depends on the folder's path, because a copied folder may hold the file of the original.
        name = digest(repr(purpose).encode(errors="surrogateescape"))[:6].hex()
        optimized = f".opt-{sys.flags.optimize}" if sys.flags.optimize else ""
        file = f"promptkit-{name}.{sys.implementation.cache_tag}{optimized}.compiled"
        return cls(os.path.join(_cache_folder(purpose.folder), file), purpose)

    def names(self) -> Mapping[str, Sequence[str]] | None:
        """
        Return the names of the prompts of each recipe file; None if they are not known.
        """
        return self.found.index.names or None if self.found else None

    def load(self, load: "Callable[..., Catalog]", *how: Any) -> "Catalog":
        """
        Call *load*, and note what it reads.

        Args:
            load:
                What loads the recipes. It is also given the stamps of files that were looked at a moment ago.

            *how:
                Its other arguments.
        """
        seen = self.found.seen if self.found else {}
        with noted_reads(self._purpose.folder) as self._reads:
            return load(*how, seen=seen)

    def verify_and_save(
        self,
        snapshot: "Snapshot",
        correct: Callable[[Collection[str]], object],
        catalog: "Catalog",
        names: Callable[[], Mapping[str, Sequence[str]]] | None,
    ) -> None:
        """
        Compare the lists with those of the recipes, and save these if they differ.

        Args:
            snapshot:
                What is served of the recipes.

            correct:
                Called with the methods of the lists that were wrong.

            catalog:
                All that was loaded, also what the client does not see.

            names:
                Returns the names of the prompts of each recipe file; None if a recipe has a fault, as
                such recipes are not kept.
        """
        found, self.found = self.found, None
        if found is not None:
            wrong = found.wrong_lists(snapshot.pages())
            if not wrong and not self._is_built:
                found.confirm()
            found.close()
            if not wrong:
                return
            correct(wrong)
        if self._is_built:
            what = f"{self._file!r} was wrong, and clients are corrected at every start"
            say(f"{what}: run promptkit build again")
        elif names is None or not self._save(snapshot, catalog, names()):
            self.discard()

    def discard(self) -> None:
        """
        Remove lists that were wrong, or those of recipes that cannot be served. Built ones stay.
        """
        if not self._is_built:
            with suppress(OSError, ValueError):
                os.unlink(self._file)

    def _save(self, snapshot: "Snapshot", catalog: "Catalog", names: Mapping[str, Sequence[str]]) -> bool:
        """Replace the file; return whether that was possible, and the recipes have not changed meanwhile."""
        with suppress(OSError, ValueError):  # a path may hold bytes that are not text
            os.makedirs(os.path.dirname(self._file), exist_ok=True)
            if self._reads is not None and (inputs := self._reads.inputs()) is not None:
                index = Index(MADE_BY, self._purpose, inputs, snapshot.capabilities, names)
                write_set(self._file, index, snapshot.pages(), ShellWords.of(catalog))
                return True
        return False


def _cache_folder(folder: str) -> str:
    # As in `importlib.util.cache_from_source`, which is slow to import.
    place = os.path.join(folder, "__pycache__")
    if sys.pycache_prefix is not None:
        place = os.path.join(sys.pycache_prefix, os.path.splitdrive(folder)[1].lstrip("\\/"))
    if not sys.dont_write_bytecode and _is_writable(place):
        return place
    from platformdirs import user_cache_dir  # hardly ever needed

    try:
        return user_cache_dir("promptkit", appauthor=False)
    except RuntimeError:  # the user has no home
        return os.devnull  # where nothing is kept


def _is_writable(folder: str) -> bool:
    """Whether a folder can be written, or made."""
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)
