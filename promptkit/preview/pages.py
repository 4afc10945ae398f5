"""What the pages have in common: one gallery for each request, how they are drawn, and who waits for them."""

from asyncio import FIRST_COMPLETED, create_task, wait
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse

from promptkit.preview.gallery import Gallery
from promptkit.preview.live import Live
from promptkit.preview.media import MediaStore
from promptkit.preview.templating import environment, page

__all__ = ["SHOW_ALL", "PageWriter", "unless_gone"]

T = TypeVar("T")

#: What asks for one turn whole; no argument has a name like this.
SHOW_ALL: Final = "show-all"


class PageWriter:
    """
    Writes pages of the newest catalog.

    Args:
        live:
            Has the newest catalog.

        target:
            How the pages call it.

    Attributes:
        media:
            What they show that browsers fetch.
    """

    def __init__(self, live: Live, target: str) -> None:
        self.target = target
        self.media = MediaStore()
        self._live = live
        self._newest = Gallery(live.newest)
        environment()  # read before somebody waits for it

    def gallery(self, request: Request) -> Gallery:
        """Return what a request is answered with, whatever is saved meanwhile."""
        if not hasattr(request.state, "gallery"):
            newest = self._live.newest
            if self._newest.version is not newest:
                self._newest = Gallery(newest)
            request.state.gallery = self._newest
        gallery: Gallery = request.state.gallery
        return gallery

    def draw(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page, or a part of one."""
        gallery = self.gallery(request)
        known = {"gallery": gallery, "target": self.target, "version": gallery.version.number}
        return HTMLResponse(page(template, **known, **values), status)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """
    Return what *work* returns, or cancel it when its page no longer waits for it.

    Raises:
        ClientDisconnect: If it does not.
    """
    task, gone = create_task(work), create_task(_gone(request))
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
