"""What the pages of all kinds have in common: the version that they show, and how they are drawn."""

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
    Answers the requests of some pages.

    Args:
        live:
            Has what is shown.

        targets:
            How the pages call it.

        media:
            Keeps what browsers will ask for.

        editor:
            The scheme of the URLs that open a place in an editor; ``""`` for no such links.
    """

    def __init__(self, live: Live, targets: Sequence[str], media: MediaStore, editor: str) -> None:
        self._live = live
        self._targets = targets
        self._media = media
        self._editor = editor

    def _version(self, request: Request) -> CatalogVersion:
        """What a request is answered with, whatever is saved meanwhile."""
        if not hasattr(request.state, "version"):
            request.state.version = self._live.newest
        version: CatalogVersion = request.state.version
        return version

    def _draw(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page, or a part of one."""
        known = {"version": self._version(request), "target": " ".join(self._targets), "status": status}
        return HTMLResponse(page(template, self._editor, **known, **values), status)


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Return what *work* returns, or cancel it, and raise ClientDisconnect, when its page is gone."""
    task, gone = ensure_future(work), create_task(_gone(request))
    try:
        await wait((task, gone), return_when=FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
