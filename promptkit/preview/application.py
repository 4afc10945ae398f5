"""The application of the preview: all its pages, and where they are."""

import json
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from promptkit.catalog.examples import example_uris
from promptkit.preview.conversation import document_of
from promptkit.preview.guard import Guard
from promptkit.preview.live import Live
from promptkit.preview.pages import SHOW_ALL, Pages, number_in, unless_gone
from promptkit.preview.prompt_pages import PromptPages
from promptkit.preview.rendering import read
from promptkit.preview.templating import FOLDER
from promptkit.preview.uploads import sized

__all__ = ["application"]


def application(live: Live, target: str, token: str, hosts: Iterable[str]) -> ASGIApp:
    """
    Return the application that shows what *live* holds.

    Args:
        live:
            What is shown, and who is told when it changes.

        target:
            How the pages call it.

        token:
            What a browser has to show, once, in its first address.

        hosts:
            How the pages may be called, each with its port.
    """
    return Guard(sized(_Preview(live, target).routed()), target, token, hosts)


class _Preview:
    """Answers the requests of all pages but those of a prompt."""

    def __init__(self, live: Live, target: str) -> None:
        self._live = live
        self._pages = Pages(live, target)
        self._prompts = PromptPages(self._pages)

    def routed(self) -> Starlette:
        """Return the pages by their addresses."""
        return Starlette(
            routes=[
                Route("/", self._show_gallery),
                Route("/gallery", self._list),
                Route("/events", self._send_events),
                Route("/resources", self._show_resource),
                Route("/media/{digest}", self._send_medium),
                Mount("/static", StaticFiles(directory=FOLDER / "static")),
                *self._prompts.routes,
            ],
            exception_handlers={HTTPException: self._explain, ClientDisconnect: _nothing},
        )

    async def _show_gallery(self, request: Request) -> Response:
        return self._pages.draw(request, "gallery.html", typed=request.query_params.get("q", ""))

    async def _list(self, request: Request) -> Response:
        """Only what a search or a reload changes of a page."""
        query = request.query_params
        typed, current = query.get("q", ""), query.get("current")
        return self._pages.draw(request, "listed.html", typed=typed, current=current)

    async def _show_resource(self, request: Request) -> Response:
        """A resource, read if it has this URI, and described if it is a template."""
        shown, uri = self._pages.shown(request), request.query_params.get("uri", "")
        reading = await unless_gone(request, read(shown.calls, shown.catalog, uri))
        is_whole = SHOW_ALL in request.query_params
        document = None
        if reading.document is not None:
            show = partial(document_of, media=self._pages.media, redacted=reading.redacted, is_whole=is_whole)
            document = await to_thread(show, reading.document)
        resource = reading.resource
        return self._pages.draw(
            request,
            "resource.html",
            uri=uri,
            reading=reading,
            document=document,
            examples=example_uris(resource) if resource else (),
            faults=shown.gallery.faults_beside(resource.location) if resource else [],
        )

    async def _send_events(self, request: Request) -> Response:
        """Tell a page of each reload, from the version on that it shows."""
        seen = request.headers.get("last-event-id") or request.query_params.get("version", "")
        version = number_in(seen) if seen else self._pages.shown(request).version

        async def events() -> AsyncIterator[str]:
            yield "retry: 1000\n\n"
            async for change in self._live.changes(version):
                if change is None:
                    yield ": still here\n\n"
                else:
                    said = {"said": str(change), "failed": bool(change.broken)}
                    data = json.dumps({"version": change.version, **said})
                    yield f"id: {change.version}\nevent: reload\ndata: {data}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _send_medium(self, request: Request) -> Response:
        return self._pages.media.response(request.path_params["digest"])

    async def _explain(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for these)
        draw = partial(self._pages.draw, request, status=error.status_code, reason=error.detail)
        if "hx-request" in request.headers:  # a part of a page waits for it
            response = draw("gone.html", state="Not shown")
        else:
            faults = [fault for fault in self._pages.shown(request).gallery.faults if fault.is_error]
            response = draw("error.html", faults=faults)
        response.headers.update(error.headers or {})
        return response


async def _nothing(_request: Request, _error: Exception) -> Response:
    """The response to a page that waits for none: it was superseded while it was sent, or made."""
    return Response(status_code=499)
