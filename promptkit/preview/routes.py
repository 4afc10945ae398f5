"""The routes of the preview, and all pages except the prompt pages."""

import json
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from promptkit.catalog.cases import iterate_sendable
from promptkit.loader.targets import Targets, targets_of
from promptkit.preview.access import PageGuard
from promptkit.preview.conversation import ConversationBuilder
from promptkit.preview.live import LiveCatalog
from promptkit.preview.media import MediaStore, parse_number
from promptkit.preview.prompt_pages import SHOW_ALL, Endpoints, PromptPages
from promptkit.preview.rendering import cancel_on_disconnect, read_resource, strip_frontmatter
from promptkit.preview.rendering_changes import CaseComparer, Comparisons
from promptkit.preview.templating import FOLDER, SHORT, environment, search_path


def create_application(  # noqa: PLR0913 (each is an option of dev)
    live: LiveCatalog,
    target: Targets,
    token: str,
    hosts: Iterable[str],
    *,
    comparison: CaseComparer | None = None,
    editor: str = "",
) -> ASGIApp:
    """
    Create the application that shows the content of *live*.

    Args:
        live:
            The served catalog in its newest version.

        target:
            The target, which the pages show.

        token:
            The token that a browser must present in its first URL.

        hosts:
            The allowed hosts, each with its port.

        comparison:
            Provides the text of cases at the last commit, or None to disable the comparison.

        editor:
            The URL scheme that opens a location in an editor, or ``""`` to omit such links.
    """
    environment(editor)  # load the templates before the first request
    targets, media, prompt = targets_of(target), MediaStore(), "/prompts/{name:path}"
    pages = _CatalogPages(live, targets, media, editor)
    prompts = PromptPages(live, targets, media, editor, Comparisons(comparison))
    routes = Starlette(
        routes=[
            Route("/", pages.show_gallery),
            Route("/gallery", pages.search),
            Route("/events", pages.send_events),
            Route("/resources", pages.show_resource),
            Route("/media/{digest}", pages.send_media),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route(f"{prompt}/render", prompts.render, methods=["POST"]),
            Route(f"{prompt}/complete/{{argument}}", prompts.complete, methods=["POST"]),
            Route(f"{prompt}/saved-cases", prompts.save_case, methods=["POST"]),
            Route(f"{prompt}/tabs/{{tab}}", prompts.show_tab, methods=["POST"]),
            Route(prompt, prompts.show_prompt),
        ],
        exception_handlers={HTTPException: pages.show_error, ClientDisconnect: _ignore_disconnect},
    )
    return PageGuard(routes, " ".join(targets), token, hosts)


async def _ignore_disconnect(_request: Request, _error: Exception) -> Response:
    """Return a response that no client receives, because the page has already sent a newer request."""
    return Response(status_code=499)


class _CatalogPages(Endpoints):
    """Handles the requests for all pages except the prompt pages."""

    async def show_gallery(self, request: Request) -> Response:
        query, identity = request.query_params.get("q", ""), self._live.identity
        return self._render_page(request, "gallery.html", query=query, identity=identity)

    async def search(self, request: Request) -> Response:
        """Return the parts of a page that change with a search or a reload."""
        query, current = (request.query_params.get(name) for name in ("q", "current"))
        response = self._render_page(request, "search_results.html", query=query or "", current=current)
        if current is None:  # the back button then returns to the search
            response.headers["HX-Replace-Url"] = search_path(query or "")
        return response

    async def show_resource(self, request: Request) -> Response:
        """Show the content of a resource or, for a template, only its description."""
        version, uri = self._get_version(request), request.query_params.get("uri", "")
        catalog = version.catalog
        reading = await cancel_on_disconnect(request, read_resource(version.calls, catalog, uri))
        resource = reading.resource
        skill = catalog.find_skill_containing(uri) if resource and resource.is_fixed else None
        builder, document = ConversationBuilder(self._media, reading.redact), None
        if reading.document is not None:
            max_length = None if SHOW_ALL in request.query_params else SHORT
            body = reading.document if skill is None else strip_frontmatter(skill, reading.document)
            document = await to_thread(builder.build_document, body, max_length)
        return self._render_page(
            request,
            "resource.html",
            uri=uri,
            reading=reading,
            document=document,
            skill=skill,
            examples=resource.example_uris if resource else (),
            cases=[(case, case_uri) for case, case_uri in iterate_sendable(resource.saved())]
            if resource
            else [],
            file_diagnostics=version.diagnostics_in_file(resource.location) if resource else [],
        )

    async def send_events(self, request: Request) -> Response:
        """Stream an event for each reload since the version that the page shows."""
        seen = request.headers.get("last-event-id") or request.query_params.get("version", "")
        number = parse_number(seen) if seen else self._live.newest.number

        async def events() -> AsyncIterator[str]:
            yield "retry: 1000\n\n"
            async for version in self._live.versions(number):
                if version is None:
                    yield ": keep-alive\n\n"
                    continue
                data = {"version": version.number, "message": str(version)}
                yield f"id: {version.number}\nevent: reload\ndata: {json.dumps(data)}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def send_media(self, request: Request) -> Response:
        return self._media.build_response(request.path_params["digest"])

    async def show_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 (it is registered only for this type)
        if request.url.path.startswith("/static/"):  # static files are public
            return Response(status_code=error.status_code)
        # For a partial update, show the error in the page.
        template = "partial_error.html" if "hx-request" in request.headers else "error.html"
        response = self._render_page(request, template, error.status_code, reason=error.detail)
        response.headers.update(error.headers or {})
        return response
