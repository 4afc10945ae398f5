"""The base class of all pages: the version that they show, and how they are rendered."""

from asyncio import FIRST_COMPLETED, create_task, ensure_future, wait
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse

from promptkit.preview.live import CatalogVersion, Live
from promptkit.preview.media import MediaStore
from promptkit.preview.templating import page

T = TypeVar("T")


class Endpoints:
    """
    Handles the requests for some pages.

    Args:
        live:
            The served catalogs.

        targets:
            The targets as the pages show them.

        media:
            Stores media until browsers request them.

        editor:
            The URL scheme that opens a location in an editor; ``""`` for no such links.
    """

    def __init__(self, live: Live, targets: Sequence[str], media: MediaStore, editor: str) -> None:
        self._live = live
        self._targets = targets
        self._media = media
        self._editor = editor

    def _version(self, request: Request) -> CatalogVersion:
        """Return the catalog version of a request, which stays the same until its response."""
        if not hasattr(request.state, "version"):
            request.state.version = self._live.newest
        version: CatalogVersion = request.state.version
        return version

    def _draw(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a page, or a part of one."""
        common = {"version": self._version(request), "target": " ".join(self._targets), "status": status}
        return HTMLResponse(page(template, self._editor, **common, **values), status)


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Return the result of *work*; if the page disconnects, cancel it and raise ClientDisconnect."""
    task, disconnect = ensure_future(work), create_task(_wait_for_disconnect(request))
    try:
        await wait((task, disconnect), return_when=FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        disconnect.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
