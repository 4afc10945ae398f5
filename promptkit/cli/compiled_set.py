"""The compiled set in the life of one server: read at the start, confirmed and written behind it."""

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

from promptkit.compiled.early import EarlyServer
from promptkit.compiled.listings import key_of
from promptkit.compiled.store import Store
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import Limits
from promptkit.protocol.results import Identity
from promptkit.targets import place_of

if TYPE_CHECKING:
    from promptkit.catalog import Catalog
    from promptkit.compiled.observation import Observation
    from promptkit.server import Server
    from promptkit.transports.stdio import Wire

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
        self._early: EarlyServer | None = None
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
        return None if place is None else cls(Store(*place, *purpose))

    def answer(
        self,
        identity: Identity,
        limits: Limits,
        wire: "Wire",
        done: Callable[[], object],
    ) -> EarlyServer | None:
        """
        Answer a client from the set, if that is possible, until the recipes are imported.

        Args:
            identity:
                What the server says of itself.

            limits:
                How much a client may ask for.

            wire:
                The client.

            done:
                Called if it wants nothing more before that.
        """
        if self._found is None:
            return None
        if not self._found.index.pages:
            self._found.close()
            return None
        self._early = EarlyServer(self._found, identity, limits, wire.write)
        self._early.read_from(wire.read, done)
        return self._early

    def load(self, load: "Callable[[], Catalog]") -> "Catalog":
        """
        Return what *load* returns; note what it reads, if a set is to be written.
        """
        if self._found is not None:
            return load()
        from promptkit.compiled.observation import observe

        with observe(self._store.folder) as self._observation:
            return load()

    def give_up(self) -> None:
        """
        Keep nothing, and leave no request open: these recipes cannot be served.
        """
        self._store.discard()
        if self._early is not None:
            self._early.refuse(InternalError("the recipes cannot be served: standard error says why"))

    def settle(self, server: "Server", *, healthy: bool) -> None:
        """
        Find out whether what was told is true, and keep what is, on a thread. Returns at once.

        Args:
            server:
                What answers now.

            healthy:
                Whether the recipes are without a fault.
        """
        writer = Thread(target=self._settle, args=(server, healthy), name="promptkit-set", daemon=True)
        writer.start()
        self._writer = writer  # not before: a thread that has not started cannot be waited for

    def finish(self, seconds: float) -> None:
        """
        Wait until what is being written is written.

        Args:
            seconds:
                How long to wait at most.
        """
        if self._writer is not None:
            self._writer.join(seconds)

    def _settle(self, server: "Server", healthy: bool) -> None:  # noqa: FBT001 (a thread's target)
        """
        Do what `settle` says.
        """
        found, self._found = self._found, None
        if found is not None:
            confirmed = self._early is None or server.confirm(self._early.told)
            if not confirmed or server.capabilities != found.index.capabilities:
                # It depends on more than is known: of these inputs nothing is told early again.
                self._store.write(found.index.inputs, server.capabilities, ())
        elif healthy and self._observation is not None and (inputs := self._observation.inputs()):
            pages = (
                (key_of(method, revision.date, cursor), result)
                for (method, revision, cursor), result in server.pages()
            )
            self._store.write(inputs, server.capabilities, pages)
        self._early = self._observation = None
