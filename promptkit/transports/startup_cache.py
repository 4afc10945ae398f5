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

from promptkit.errors.standard_error import say
from promptkit.files.regular import Stamp
from promptkit.protocol.digests import digest
from promptkit.transports.kept_lists import MADE_BY, KeptLists
from promptkit.transports.read_files import FileReads, Purpose, StaleSet, noted_reads

if TYPE_CHECKING:
    from promptkit.catalog.catalog import Catalog
    from promptkit.server.snapshot import Snapshot

__all__ = ["StartupCache", "carried_file"]


class StartupCache:
    """
    The kept lists of what is served. They are sent at once, and written anew if they turn out to be wrong.

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
        self._seen: dict[str, Stamp | None] = {}
        self._reads: FileReads | None = None
        try:
            self.found = KeptLists.read_from(file, purpose, self._seen, is_built=is_built)
        except StaleSet:
            self._seen.clear()  # the recipes may be imported much later
            if is_built:
                raise

    @classmethod
    def of(cls, purpose: Purpose) -> "StartupCache | None":
        """
        Return the cache of folders and files; None for modules.

        If nothing is kept, it begins with the lists that go along with a folder.
        """
        if not purpose.folders:
            return None
        # The name depends on the folders' paths, because a copied folder may hold the file of the original.
        name = digest(repr(purpose).encode(errors="surrogateescape"))[:6].hex()
        optimized = f".opt-{sys.flags.optimize}" if sys.flags.optimize else ""
        file = f"promptkit-{name}.{sys.implementation.cache_tag}{optimized}.compiled"
        cache = cls(os.path.join(_cache_folder(purpose.folders[0]), file), purpose)
        if cache.found is None and purpose.anywhere is not None:
            carried = carried_file(purpose.folders[0])
            try:
                cache.found = KeptLists.read_from(carried, purpose, cache._seen, is_built=True)
            except StaleSet:  # mostly there are none
                cache._seen.clear()
        return cache

    def load(self, load: "Callable[..., Catalog]", *how: Any) -> "Catalog":
        """
        Call *load*, and note what it reads.

        Args:
            load:
                What loads the recipes. It is also given the stamps of files that were looked at a moment ago.

            *how:
                Its other arguments.
        """
        with noted_reads(*self._purpose.folders) as self._reads:
            return load(*how, seen=self._seen)

    def verify_and_save(
        self,
        snapshot: "Snapshot",
        correct: Callable[[Collection[str]], object],
        catalog: "Catalog",
        names: Callable[[], Mapping[str, Sequence[str]]],
    ) -> None:
        """
        Compare the lists with those of the recipes, and save these if they differ.

        Args:
            snapshot:
                What is served of the recipes.

            correct:
                Called with the methods of the lists that were wrong.

            catalog:
                All that was loaded, also what the client does not see. If a recipe has a fault, nothing is
                kept.

            names:
                Returns the names of the prompts of each recipe file.
        """
        found, self.found = self.found, None
        wrong = set() if found is None else found.wrong_lists(snapshot.pages())
        if wrong:
            correct(wrong)
        elif found is not None and found.file == self._file:
            if not self._is_built:
                with suppress(OSError):  # the file was removed, or belongs to root
                    os.utime(self._file)  # it does not age
            return
        if self._is_built:
            what = f"{self._file!r} was wrong, and clients are corrected at every start"
            say(f"{what}: run promptkit build again")
        elif not catalog.healthy or not self._save(snapshot, catalog, names()):
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
        from promptkit.transports.shell_words import ShellWords  # not needed before the first list is sent

        reads, self._reads = self._reads, None
        with suppress(OSError, ValueError, StaleSet):  # a path may hold bytes that are not text
            os.makedirs(os.path.dirname(self._file), exist_ok=True)
            if reads is not None:
                kept = KeptLists(MADE_BY, self._purpose, reads.files(), snapshot.capabilities, names)
                kept.write_to(self._file, snapshot.pages(), ShellWords.of(catalog), catalog.skill_folders)
                return True
        return False


def carried_file(folder: str) -> str:
    """Return where the lists lie that go along with a folder of recipes, in a package."""
    return f"{folder}.lists"


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
