"""Serving while recipes are still being imported, each when it is needed."""

from collections.abc import Callable, Container, Mapping
from functools import partial
from threading import Thread
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.compiler.lazy_import import IMPORT_THREAD, LazyImport
from promptkit.compiler.loading.watched_files import Stamps
from promptkit.compiler.reloading import Reloader
from promptkit.protocol.jsonrpc import InternalError
from promptkit.server import Server
from promptkit.server.snapshot import Snapshot
from promptkit.transports.startup_cache.early import HOLD_AFTER_END_S, EarlyServer

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

        report:
            Reports the faults of a catalog.

    Attributes:
        snapshot:
            What is served until all is imported.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (one for each property of serving)
        self,
        target: str,
        names: Mapping[str, Container[str]],
        early: EarlyServer,
        page_size: int,
        scopes: frozenset[str],
        report: Callable[[Catalog], object],
    ) -> None:
        self._report = report
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
        self.snapshot.importing = partial(_import_progress, target)

    def start(
        self,
        reloader: Reloader,
        server: Server,
        seen: Stamps,
        imported: Callable[[Catalog], None],
        failed: Callable[[], None],
    ) -> None:
        """
        Begin to import. Returns at once.

        Args:
            reloader:
                What loads the recipes again later.

            server:
                What serves the snapshot.

            seen:
                Stamps of files that were looked at a moment ago.

            imported:
                Called with the whole catalog, once it is served.

            failed:
                Called if the recipes cannot be imported at all.

        Raises:
            RuntimeError: If there can be no more threads.
        """

        def run() -> None:
            try:
                catalog = reloader.load(self._import.load, seen)
            except BaseException as error:  # noqa: BLE001 (`finish` raises it)
                self._error = error
                self._import.end(InternalError(_REFUSED))
                failed()
            else:
                self._report(catalog)
                server.complete(catalog)
                self._import.end(catalog)
                self._handed_over.wait()  # until then, clients are still sent the lists that were kept
                imported(catalog)

        self._thread = Thread(target=run, name=IMPORT_THREAD, daemon=True)
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


def _import_progress(target: str) -> str:
    from promptkit.cli.import_progress import import_progress  # only where an import takes long

    return import_progress(target, IMPORT_THREAD)
