"""Serving while recipes are still being imported, each when it is needed."""

from collections.abc import Callable, Container, Mapping
from functools import partial
from threading import Thread
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.compiler.lazy_import import LazyImport
from promptkit.protocol.jsonrpc import InternalError
from promptkit.server import Server
from promptkit.server.snapshot import Snapshot
from promptkit.transports.early import HOLD_AFTER_END_S, EarlyServer, import_progress

__all__ = ["LazyServing"]

_REFUSED: Final = "the recipes cannot be served: standard error says why"


class LazyServing:
    """
    Imports recipes on a thread of its own, in the order in which they are needed.

    Args:
        target:
            What the command line names.

        names:
            By the path of each recipe file within the folder: the names of its prompts.

        early:
            What has answered the client so far, and knows the lists.

        page_size:
            How many items a page of a list holds.

        scopes:
            What the client may do.

    Attributes:
        snapshot:
            What is served until all is imported.
    """

    def __init__(
        self,
        target: str,
        names: Mapping[str, Container[str]],
        early: EarlyServer,
        page_size: int,
        scopes: frozenset[str],
    ) -> None:
        self._import = LazyImport(target, names)
        for name in early.held_prompts():
            self._import.expect(name)
        self._thread: Thread | None = None
        self._error: BaseException | None = None
        self._handed_over = early.over
        connection = early.connection
        self.snapshot = Snapshot(
            self._import.catalog.visible_to(scopes),
            connection.server_info,
            page_size,
            changes=connection.capabilities.changes,
            capabilities=connection.capabilities,
            known_page=early.page,
        )
        self.snapshot.importing = partial(import_progress, target)

    def start(
        self,
        load: Callable[..., Catalog],
        server: Server,
        imported: Callable[[Catalog], Any],
        failed: Callable[[], Any],
    ) -> None:
        """
        Begin to import. Returns at once.

        Args:
            load:
                Loads all recipes, given what imports them.

            server:
                What serves the snapshot, and then all of them.

            imported:
                Called with the whole catalog, once it is served.

            failed:
                Called if the recipes cannot be imported at all.

        Raises:
            RuntimeError: If there can be no more threads.
        """

        def run() -> None:
            try:
                catalog = load(self._import.load)
            except BaseException as error:  # noqa: BLE001 (`finish` raises it)
                self._error = error
                self._import.end(InternalError(_REFUSED))
                failed()
            else:
                server.complete(catalog)
                self._import.end(catalog)
                self._handed_over.wait()  # until then, clients are still sent the lists that were kept
                imported(catalog)

        self._thread = Thread(target=run, name="promptkit-import", daemon=True)
        self._thread.start()

    def hold(self, grace: float) -> None:
        """
        Wait for what requests still need, now that the client has closed the input.

        Args:
            grace:
                For how long, in seconds. At least five.
        """
        self._import.wait_for_waiting(max(grace, HOLD_AFTER_END_S))

    def finish(self, seconds: float) -> None:
        """
        Wait until all is imported, for *seconds* at most.

        Raises:
            BaseException: What has kept the recipes from being imported.
        """
        if self._thread is not None:
            self._thread.join(seconds)
        if self._error is not None:
            raise self._error
