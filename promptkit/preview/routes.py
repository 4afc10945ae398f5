"""The routes of the preview, and the pages of everything but prompts."""

import json
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from promptkit.catalog.cases import sendable
from promptkit.loader.targets import Targets, targets_of
from promptkit.preview.access import PageGuard
from promptkit.preview.changes import Comparison
from promptkit.preview.conversation import Conversation
from promptkit.preview.live import Live
from promptkit.preview.media import MediaStore, number_in
from promptkit.preview.prompt_pages import PANELS, SHOW_ALL, Endpoints, PromptPages
from promptkit.preview.rendering import body_of, read, unless_gone
from promptkit.preview.templating import FOLDER, SHORT, environment, search_path

#: Maximum number of lines in the palette.
_MAX_PALETTE_LINES: Final = 30


def application(  # noqa: PLR0913 (each is an option of dev)
    live: Live,
    target: Targets,
    token: str,
    hosts: Iterable[str],
    *,
    comparison: Comparison | None = None,
    editor: str = "",
) -> ASGIApp:
    """
    Return the application that shows the content of *live*.

    Args:
        live:
            The served catalogs.

        target:
            The target as the pages show it.

        token:
            The token that a browser must present in its first URL.

        hosts:
            The allowed hosts, each with its port.

        comparison:
            Provides the texts of the last commit; None to disable the comparison.

        editor:
            The URL scheme that opens a location in an editor; ``""`` for no such links.
    """
    environment(editor)  # loaded before the first request
    targets, media, prompt = targets_of(target), MediaStore(), "/prompts/{name:path}"
    pages = _CatalogPages(live, targets, media, editor)
    prompts = PromptPages(live, targets, media, editor, comparison)
    routes = Starlette(
        routes=[
            Route("/", pages.show_gallery),
            Route("/gallery", pages.search),
            Route("/palette", pages.search_all),
            Route("/events", pages.send_events),
            Route("/resources", pages.show_resource),
            Route("/media/{digest}", pages.send_medium),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route(f"{prompt}/render", prompts.render, methods=["POST"]),
            Route(f"{prompt}/complete/{{argument}}", prompts.complete, methods=["POST"]),
            Route(f"{prompt}/tabs/{{tab}}", prompts.show_tab, methods=["POST"]),
            Route(prompt, prompts.show_prompt),
        ],
        exception_handlers={HTTPException: pages.explain, ClientDisconnect: _ignore_disconnect},
    )
    return PageGuard(routes, " ".join(targets), token, hosts)


async def _ignore_disconnect(_request: Request, _error: Exception) -> Response:
    """Return a response that no client receives: the request was superseded."""
    return Response(status_code=499)


class _CatalogPages(Endpoints):
    """Handles the requests for all pages except those of prompts."""

    async def show_gallery(self, request: Request) -> Response:
        return self._draw(request, "gallery.html", typed=request.query_params.get("q", ""))

    async def search(self, request: Request) -> Response:
        """Return only the parts of a page that a search or a reload changes."""
        typed, current = (request.query_params.get(name) for name in ("q", "current"))
        response = self._draw(request, "listed.html", typed=typed or "", current=current)
        if current is None:  # so that the back button returns to the search
            response.headers["HX-Replace-Url"] = search_path(typed or "")
        return response

    async def search_all(self, request: Request) -> Response:
        """Return the lines of the palette: prompts, their cases, skills and tabs."""
        typed, version = request.query_params.get("q", ""), self._version(request)
        entries = list(islice(version.places(typed), _MAX_PALETTE_LINES))
        has_tabs = request.query_params.get("of") == "prompt"
        tabs = {"conversation": "Conversation", **PANELS} if has_tabs else {}
        skills = version.skills(typed)[: _MAX_PALETTE_LINES - len(entries)]
        return self._draw(request, "palette.html", found=entries, skills=skills, tabs=tabs, typed=typed)

    async def show_resource(self, request: Request) -> Response:
        """Show a resource: its content, or its description if it is a template."""
        version, uri = self._version(request), request.query_params.get("uri", "")
        catalog = version.catalog
        reading = await unless_gone(request, read(version.calls, catalog, uri))
        resource = reading.resource
        skill = catalog.find_skill_with(uri) if resource and resource.is_fixed else None
        conversation, document = Conversation(self._media, reading.redacted), None
        if reading.document is not None:
            max_length = None if SHOW_ALL in request.query_params else SHORT
            body = reading.document if skill is None else body_of(skill, reading.document)
            document = await to_thread(conversation.document, body, max_length)
        return self._draw(
            request,
            "resource.html",
            uri=uri,
            reading=reading,
            document=document,
            skill=skill,
            examples=resource.example_uris if resource else (),
            cases=[(case, sent) for case, sent in sendable(resource.saved())] if resource else [],
            faults=version.faults_beside(resource.location) if resource else [],
        )

    async def send_events(self, request: Request) -> Response:
        """Stream an event to a page for each reload after the version that it shows."""
        seen = request.headers.get("last-event-id") or request.query_params.get("version", "")
        number = number_in(seen) if seen else self._live.newest.number

        async def events() -> AsyncIterator[str]:
            yield "retry: 1000\n\n"
            async for version in self._live.versions(number):
                if version is None:
                    yield ": still here\n\n"
                    continue
                data = {"version": version.number, "said": str(version)}
                yield f"id: {version.number}\nevent: reload\ndata: {json.dumps(data)}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def send_medium(self, request: Request) -> Response:
        return self._media.response(request.path_params["digest"])

    async def explain(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for these)
        if request.url.path.startswith("/static/"):  # static files are public
            return Response(status_code=error.status_code)
        # For a partial update, replace only that part of the page.
        template = "gone.html" if "hx-request" in request.headers else "error.html"
        response = self._draw(request, template, error.status_code, reason=error.detail)
        response.headers.update(error.headers or {})
        return response
