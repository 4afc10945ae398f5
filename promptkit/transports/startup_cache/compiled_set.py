"""The start-up cache of one server: read first, verified and saved once the recipes are imported."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from msgspec import MsgspecError

from promptkit.compiler.loading.targets import package_of, place_of, project_root
from promptkit.protocol.capabilities import Capabilities, ToolMode
from promptkit.protocol.digests import digest
from promptkit.protocol.methods import PageKey
from promptkit.transports.startup_cache.store import Listings, Page, Store, key_of

if TYPE_CHECKING:
    from promptkit.catalog.catalog import Catalog
    from promptkit.compiler.loading.watched_files import Stamps
    from promptkit.server import Server
    from promptkit.transports.startup_cache.tracing import ImportTrace

__all__ = ["CompiledSet"]


class CompiledSet:
    """
    The cached lists of the recipes at one target.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found = store.read()
        self._is_sent = False
        self._trace: ImportTrace | None = None
        self._loaded: Catalog | None = None
        self._writer: Thread | None = None

    @classmethod
    def of(
        cls, target: str, name: str, page_size: int, tools: ToolMode, scopes: Collection[str] | None = None
    ) -> "CompiledSet | None":
        """
        Return the cache of a target, or None for a module, which may come from anywhere.

        Args:
            target:
                What the command line names.

            name:
                The server's name.

            page_size:
                How many items a page of a list holds.

            tools:
                Whether prompts are offered as tools.

            scopes:
                What the client may do.
        """
        place = place_of(target)
        if place is None:
            return None
        # Lists also depend on the package that the folder is in, and on the project around it.
        options = name, page_size, tools, *sorted(scopes or ())
        return cls(Store(*place, package_of(place[0]), project_root(place[0]), *options))

    @property
    def found(self) -> Listings | None:
        """
        What is kept, for whoever only looks at it and closes it: it is not withdrawn.
        """
        return self._found

    def listings(self) -> Listings | None:
        """
        Return the pages that can be sent before the recipes are imported, if there are any.

        They are withdrawn until they are verified: no other process sends them if this one ends before that.
        """
        if self._found is None or not self._found.index.pages or not self._found.withdraw():
            return None
        self._is_sent = True
        return self._found

    def seen(self) -> "Stamps":
        """
        Return the stamps of the files that were looked at to find out whether all is as it was.
        """
        return {} if self._found is None else self._found.seen

    def names(self) -> dict[str, list[str]] | None:
        """
        Return the names of the prompts of each recipe file; None if nothing is sent early.
        """
        if self._found is None or not self._is_sent:
            return None
        try:
            return self._found.index.names_by_file() or None
        except MsgspecError:
            return None

    def load(self, load: "Callable[[], Catalog]") -> "Catalog":
        """
        Call *load*; trace what it reads if the cache has to be written.
        """
        if self._found is not None:
            return load()
        from promptkit.transports.startup_cache.tracing import trace_imports

        with trace_imports(self._store.folder) as self._trace:
            self._loaded = load()
        return self._loaded

    def discard(self) -> None:
        """
        Remove the cache of recipes that cannot be served.
        """
        self._store.discard()

    def verify_and_save(
        self,
        server: "Server",
        sent_pages: Mapping[PageKey, bytes],
        names: Callable[[], Mapping[str, Sequence[str]]] | None,
    ) -> None:
        """
        Verify the pages that were sent and save the cache, on a thread. Returns at once.

        Args:
            server:
                The server that has the recipes.

            sent_pages:
                The pages that its client was sent before.

            names:
                Returns the names of the prompts of each recipe file; None if a recipe has a fault, as
                such recipes are not saved.
        """
        # Taken now: a reload may replace the recipes while the thread runs.
        work = (server, server.pages(), server.capabilities, dict(sent_pages), names)
        writer = Thread(target=self._verify_and_save, args=work, name="promptkit-set", daemon=True)
        with suppress(RuntimeError):  # no more threads are possible: nothing is saved
            writer.start()
            self._writer = writer  # only a thread that was started can be joined

    def finish(self, seconds: float) -> None:
        """
        Wait until the cache is saved, for *seconds* at most.
        """
        if self._writer is not None:
            self._writer.join(seconds)

    def _verify_and_save(
        self,
        server: "Server",
        pages: Iterable[tuple[PageKey, bytes]],
        capabilities: Capabilities,
        sent_pages: Mapping[PageKey, bytes],
        names: Callable[[], Mapping[str, Sequence[str]]] | None,
    ) -> None:
        found, self._found = self._found, None
        trace, self._trace = self._trace, None
        loaded, self._loaded = self._loaded, None
        named = ((key_of(method, revision.date, cursor), page) for (method, revision, cursor), page in pages)
        if found is not None and found.index.pages:
            # Pages that were sent are compared byte by byte, all others by their digests.
            wrong = {key.partition(" ")[0] for key in _differing(found.index.pages, named)}
            if not server.confirm(sent_pages, wrong) or wrong or capabilities != found.index.capabilities:
                # They depend on more than these inputs, for which nothing is sent early again. If a file was
                # edited meanwhile, that is not known.
                if found.index.inputs.has_same_files:
                    self._store.retract(found.index)
            elif self._is_sent:
                found.confirm()
        elif names is not None and trace is not None and loaded is not None:
            with suppress(OSError):  # for instance, the current folder may be gone
                if (inputs := trace.inputs()) is not None:
                    from promptkit.transports.startup_cache.shell_words import encoded_words  # only to write

                    # The shell is the author's own: it completes what the client does not see, too.
                    self._store.write(inputs, capabilities, named, names(), encoded_words(loaded))
        if found is not None:
            found.close()


def _differing(known: Mapping[str, Page], pages: Iterable[tuple[str, bytes]]) -> set[str]:
    """The keys of all pages that are not the same in both, or only in one."""
    is_same = {key: key in known and known[key][2] == digest(page) for key, page in pages}
    return {key for key, same in is_same.items() if not same} | (known.keys() - is_same.keys())
