"""The application of the preview: all its pages, and where they are."""

import json
from asyncio import FIRST_COMPLETED, CancelledError, create_task, to_thread, wait
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import attrs
from starlette.applications import Starlette
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.compiler.loading.targets import Targets, target_of, targets_of
from promptkit.errors.exceptions import UnknownPrompt
from promptkit.preview.conversation import ALL_TURNS, Conversation
from promptkit.preview.forms import Submission, fields_of, query_of, submission_of
from promptkit.preview.guard import PageGuard
from promptkit.preview.live import CatalogVersion, Live
from promptkit.preview.media import MediaStore
from promptkit.preview.rendering import Rendering, failure, read, render
from promptkit.preview.tabs import TABS, TabContent, content_of
from promptkit.preview.templating import FOLDER, SHORT, environment, page, prompt_path
from promptkit.preview.uploads import Uploads, form_of, number_in
from promptkit.server.direct_calls import HangsError, time_limit

__all__ = ["application"]

T = TypeVar("T")

#: What asks for one turn whole, or for the defaults of a prompt; no argument has a name like these.
_SHOW_ALL: Final = "show-all"
_RENDER: Final = "render-it"


def application(live: Live, target: Targets, token: str, hosts: Iterable[str]) -> ASGIApp:
    """
    Return the application that shows what *live* holds.

    Args:
        live:
            Has what is shown.

        target:
            How the pages call it.

        token:
            What a browser has to show, once, in its first address.

        hosts:
            How the pages may be called, each with its port.
    """
    environment()  # read before somebody waits for it
    targets = targets_of(target)
    pages, prompt = _Endpoints(live, targets), "/prompts/{name:path}"
    routed = Starlette(
        routes=[
            Route("/", pages.show_gallery),
            Route("/gallery", pages.search),
            Route("/events", pages.send_events),
            Route("/resources", pages.show_resource),
            Route("/media/{digest}", pages.send_medium),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route(f"{prompt}/render", pages.render, methods=["POST"]),
            Route(f"{prompt}/complete/{{argument}}", pages.complete, methods=["POST"]),
            Route(f"{prompt}/tabs/{{tab}}", pages.show_tab, methods=["POST"]),
            Route(prompt, pages.show_prompt),
        ],
        exception_handlers={HTTPException: pages.explain, ClientDisconnect: _nothing},
    )
    return PageGuard(routed, " ".join(targets), token, hosts)


async def _nothing(_request: Request, _error: Exception) -> Response:
    """The response to a page that waits for none: it was superseded while it was sent, or made."""
    return Response(status_code=499)


class _Endpoints:
    """Answers the requests of all pages."""

    def __init__(self, live: Live, targets: Sequence[str]) -> None:
        self._live = live
        self._targets = targets
        self._media = MediaStore()
        self._uploads = Uploads()

    async def show_gallery(self, request: Request) -> Response:
        return self._draw(request, "gallery.html", typed=request.query_params.get("q", ""))

    async def search(self, request: Request) -> Response:
        """Only what a search or a reload changes of a page."""
        query = request.query_params
        return self._draw(request, "listed.html", typed=query.get("q", ""), current=query.get("current"))

    async def show_resource(self, request: Request) -> Response:
        """A resource, read if it has this URI, and described if it is a template."""
        version, uri = self._version(request), request.query_params.get("uri", "")
        reading = await _unless_gone(request, read(version.calls, version.catalog, uri))
        conversation, document = Conversation(self._media, reading.redacted), None
        if reading.document is not None:
            most = None if _SHOW_ALL in request.query_params else SHORT
            document = await to_thread(conversation.document, reading.document, most)
        resource = reading.resource
        return self._draw(
            request,
            "resource.html",
            uri=uri,
            reading=reading,
            document=document,
            examples=resource.example_uris if resource else (),
            faults=version.faults_beside(resource.location) if resource else [],
        )

    async def send_events(self, request: Request) -> Response:
        """Tell a page of each reload, from the version on that it shows."""
        seen = request.headers.get("last-event-id") or request.query_params.get("version", "")
        number = number_in(seen) if seen else self._live.newest.number

        async def events() -> AsyncIterator[str]:
            yield "retry: 1000\n\n"
            async for version in self._live.versions(number):
                if version is None:
                    yield ": still here\n\n"
                    continue
                said = {"version": version.number, "said": str(version), "failed": bool(version.broken)}
                yield f"id: {version.number}\nevent: reload\ndata: {json.dumps(said)}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def send_medium(self, request: Request) -> Response:
        return self._media.response(request.path_params["digest"])

    async def explain(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for these)
        # Where a part of a page waits for it, that is answered.
        template = "gone.html" if "hx-request" in request.headers else "error.html"
        response = self._draw(request, template, error.status_code, reason=error.detail)
        response.headers.update(error.headers or {})
        return response

    async def show_prompt(self, request: Request) -> Response:
        parts = await self._parts(request, self._prompt(request), request.query_params)
        return self._draw(request, "prompt.html", tabs=TABS, **parts)

    async def render(self, request: Request) -> Response:
        """What a form changes of the page of its prompt."""
        prompt = self._prompt(request)
        async with form_of(request) as form:
            parts = await self._parts(request, prompt, form)
        response = self._draw(request, "rendered.html", **parts)
        query = query_of(prompt.arguments, parts["rendering"].given)
        response.headers["HX-Replace-Url"] = prompt_path(prompt.name, query)
        return response

    async def complete(self, request: Request) -> Response:
        """What is offered for an argument while people type it."""
        version, prompt = self._version(request), self._prompt(request)
        argument = request.path_params["argument"]
        async with form_of(request) as form:
            chosen = dict(submission_of(prompt.arguments, form, self._uploads).given)
        typed = chosen.pop(argument, "")
        complete = partial(version.catalog.complete, prompt.name, argument, typed, chosen)
        offered, failed = Completion(), ""
        try:
            called = version.calls.call((prompt.name, argument), complete, time_limit())
            offered = await _unless_gone(request, called)
        except (CancelledError, ClientDisconnect):
            raise
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            explained = failure(f"completing {argument!r}", error)
            failed = Redactor.of(prompt.arguments, chosen).redacted(explained)
        return self._draw(request, "completions.html", completion=offered, failed=failed)

    async def show_tab(self, request: Request) -> Response:
        """What else there is to see of a rendering."""
        version, prompt, tab = self._version(request), self._prompt(request), request.path_params["tab"]
        if tab not in TABS:
            raise HTTPException(404, f"There is no tab {tab!r}.")
        async with form_of(request) as form:
            rendering, _ = await self._submitted(request, prompt, form)
        choice = request.query_params.get("choice", "")
        target = target_of(prompt.location.file, self._targets)
        made = partial(content_of, tab, rendering, target, choice)
        try:
            called = version.calls.call((prompt.name, tab), made, time_limit(prompt))
            content = await _unless_gone(request, called)
        except HangsError as error:
            content = TabContent(tab, notes=(f"prompt {prompt.name!r} {error}",))
        return self._draw(request, "tab.html", prompt=prompt, content=content, media=self._media)

    async def _submitted(
        self, request: Request, prompt: CompiledPrompt, form: FormData | QueryParams
    ) -> tuple[Rendering, Submission]:
        """What a form has sent, rendered."""
        own = FormData([pair for pair in form.multi_items() if pair[0] not in (_SHOW_ALL, _RENDER)])
        submission = submission_of(prompt.arguments, own, self._uploads)
        calls, is_asked = self._version(request).calls, _RENDER in form
        rendered = render(calls, prompt, submission.given, is_asked=is_asked)
        rendering = await _unless_gone(request, rendered)
        if submission.faults:
            refused = {fault.argument for fault in submission.faults}
            others = [one for one in rendering.faults if one.argument not in refused]
            rendering = Rendering(prompt, submission.given, faults=(*submission.faults, *others))
        return attrs.evolve(rendering, uploads=submission.uploads), submission

    async def _parts(
        self, request: Request, prompt: CompiledPrompt, form: FormData | QueryParams
    ) -> Mapping[str, Any]:
        """What the page of a prompt is made of."""
        rendering, submission = await self._submitted(request, prompt, form)
        conversation, workflow = Conversation(self._media, rendering.redacted), rendering.workflow
        whole = number_in(form.get(_SHOW_ALL))
        # On threads, as these take a while for a text that is long.
        fields = await to_thread(fields_of, prompt.arguments, submission, self._uploads, rendering.faults)
        return {
            "prompt": prompt,
            "faults": self._version(request).faults_beside(prompt.location),
            "rendering": rendering,
            "fields": fields,
            "turns": await to_thread(conversation.turns, workflow, whole) if workflow is not None else [],
            "all_turns": ALL_TURNS,
            "example": None if rendering.given else _example(prompt),
        }

    def _prompt(self, request: Request) -> CompiledPrompt:
        name = request.path_params["name"]
        try:
            return self._version(request).catalog[name]
        except UnknownPrompt as error:
            raise HTTPException(404, f"There is no prompt of this name now: {error}.") from None

    def _version(self, request: Request) -> CatalogVersion:
        """What a request is answered with, whatever is saved meanwhile."""
        if not hasattr(request.state, "version"):
            request.state.version = self._live.newest
        version: CatalogVersion = request.state.version
        return version

    def _draw(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page, or a part of one."""
        known = {"version": self._version(request), "target": " ".join(self._targets), "status": status}
        return HTMLResponse(page(template, **known, **values), status)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what *work* returns, or cancel it, and raise ClientDisconnect, when its page is gone."""
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


def _example(prompt: CompiledPrompt) -> str | None:
    """The page with the author's first example; None if there is none."""
    queries = (query_of(prompt.arguments, one) for one in prompt.arguments.example_texts if one)
    return next((prompt_path(prompt.name, query) for query in queries if query), None)
