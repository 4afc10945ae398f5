"""The compiled set in the life of one server: read at the start, confirmed and written behind it."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from promptkit.compiler.loading.targets import package_of, place_of, project_root
from promptkit.protocol.digests import digest
from promptkit.protocol.methods import PageKey
from promptkit.protocol.results import Capabilities
from promptkit.transports.startup_cache.listings import Listings, Page, key_of
from promptkit.transports.startup_cache.store import Store

if TYPE_CHECKING:
    from promptkit.catalog.catalog import Catalog
    from promptkit.server import Server
    from promptkit.transports.startup_cache.tracing import Observation

__all__ = ["CompiledSet"]


class CompiledSet:
    """
    What is kept on disk of the recipes at a target.

    Args:
        store:
            Where it is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found = store.read()
        self._is_told = False
        self._observation: Observation | None = None
        self._writer: Thread | None = None

    @classmethod
    def of(cls, target: str, *purpose: object) -> "CompiledSet | None":
        """
        Return the set of a target; None for a module, which may come from anywhere.

        Args:
            target:
                What the command line names.

            *purpose:
                What else the set depends on.
        """
        place = place_of(target)
        if place is None:
            return None
        # The folders above say what is a package, and which project is around it.
        return cls(Store(*place, package_of(place[0]), project_root(place[0]), *purpose))

    @property
    def found(self) -> Listings | None:
        """
        What is kept, for whoever only looks at it and closes it: it is not withdrawn.
        """
        return self._found

    def listings(self) -> Listings | None:
        """
        Return what can be told before the recipes are imported, if anything can.

        From then on nobody else tells it, until it is confirmed: it is withdrawn if this process ends
        before that, however it ends.
        """
        if self._found is None or not self._found.index.pages or not self._found.withdraw():
            return None
        self._is_told = True
        return self._found

    def load(self, load: "Callable[[], Catalog]") -> "Catalog":
        """
        Return what *load* returns; note what it reads, if a set is to be written.
        """
        if self._found is not None:
            return load()
        from promptkit.transports.startup_cache.tracing import observe

        with observe(self._store.folder) as self._observation:
            return load()

    def give_up(self) -> None:
        """
        Keep nothing: these recipes cannot be served.
        """
        self._store.discard()

    def settle(self, server: "Server", told: Mapping[PageKey, bytes], *, healthy: bool) -> None:
        """
        Find out whether what was told is true, and keep what is, on a thread. Returns at once.

        Args:
            server:
                What answers now.

            told:
                What its client was told of lists before.

            healthy:
                Whether the recipes are without a fault.
        """
        # These are the pages of what was imported, and not of what takes its place meanwhile.
        work = (server, server.pages(), server.capabilities, told, healthy)
        writer = Thread(target=self._settle, args=work, name="promptkit-set", daemon=True)
        with suppress(RuntimeError):  # there can be no more threads: nothing is kept
            writer.start()
            self._writer = writer  # only one that is started can be waited for

    def finish(self, seconds: float) -> None:
        """
        Wait until what is being written is written.

        Args:
            seconds:
                How long to wait at most.
        """
        if self._writer is not None:
            self._writer.join(seconds)

    def _settle(
        self,
        server: "Server",
        pages: Iterable[tuple[PageKey, bytes]],
        capabilities: Capabilities,
        told: Mapping[PageKey, bytes],
        healthy: bool,  # noqa: FBT001 (a thread's target)
    ) -> None:
        """
        Do what `settle` says.
        """
        found, self._found = self._found, None
        observation, self._observation = self._observation, None
        named = ((key_of(method, revision.date, cursor), page) for (method, revision, cursor), page in pages)
        if found is not None and found.index.pages:
            # What was told is compared byte by byte, and all the rest by its digest.
            wrong = {key.partition(" ")[0] for key in _differing(found.index.pages, named)}
            if not server.confirm(told, wrong) or wrong or capabilities != found.index.capabilities:
                # It depends on more than is known: of these inputs nothing is told early again.
                self._store.write(found.index.inputs, capabilities, ())
            elif self._is_told:
                found.confirm()
        elif healthy and observation is not None:
            with suppress(OSError):  # the current folder may be gone, for instance
                if (inputs := observation.inputs()) is not None:
                    self._store.write(inputs, capabilities, named)
        if found is not None:
            found.close()


def _differing(known: Mapping[str, Page], pages: Iterable[tuple[str, bytes]]) -> set[str]:
    """
    Return the names of those of *pages*, and of what is *known* of them, that are not the same.
    """
    is_same = {key: key in known and known[key][2] == digest(page) for key, page in pages}
    return {key for key, same in is_same.items() if not same} | (known.keys() - is_same.keys())
