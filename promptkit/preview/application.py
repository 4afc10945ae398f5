"""The application of the preview: all its pages, and where they are."""

import json
from asyncio import CancelledError, to_thread
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any, Final

import attrs
from starlette.applications import Starlette
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import UnknownPrompt
from promptkit.preview.conversation import ALL_TURNS, Conversation
from promptkit.preview.forms import Submission, fields_of, query_of, submission_of
from promptkit.preview.guard import PageGuard
from promptkit.preview.live import Live
from promptkit.preview.pages import SHOW_ALL, PageWriter, unless_gone
from promptkit.preview.rendering import Rendering, failure, read, render
from promptkit.preview.tabs import TABS, TabContent, content_of
from promptkit.preview.templating import FOLDER, SHORT, prompt_path
from promptkit.preview.uploads import Uploads, form_of, number_in
from promptkit.server.author_calls import HangsError, time_limit

__all__ = ["application"]

#: A longer address holds no arguments: neither servers nor people take it.
_LONGEST_ADDRESS: Final = 6000


def application(live: Live, target: str, token: str, hosts: Iterable[str]) -> ASGIApp:
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
    pages = PageWriter(live, target)
    shared, prompts = _SharedPages(pages, live), _PromptPages(pages)
    prompt = "/prompts/{name:path}"
    routed = Starlette(
        routes=[
            Route("/", shared.show_gallery),
            Route("/gallery", shared.search),
            Route("/events", shared.send_events),
            Route("/resources", shared.show_resource),
            Route("/media/{digest}", shared.send_medium),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route(f"{prompt}/render", prompts.render, methods=["POST"]),
            Route(f"{prompt}/complete/{{argument}}", prompts.complete, methods=["POST"]),
            Route(f"{prompt}/tabs/{{tab}}", prompts.show_tab, methods=["POST"]),
            Route(prompt, prompts.show),
        ],
        exception_handlers={HTTPException: shared.explain, ClientDisconnect: _nothing},
    )
    return PageGuard(routed, target, token, hosts)


async def _nothing(_request: Request, _error: Exception) -> Response:
    """The response to a page that waits for none: it was superseded while it was sent, or made."""
    return Response(status_code=499)


class _SharedPages:
    """Answers the requests of all pages but those of a prompt."""

    def __init__(self, pages: PageWriter, live: Live) -> None:
        self._pages = pages
        self._live = live

    async def show_gallery(self, request: Request) -> Response:
        return self._pages.draw(request, "gallery.html", typed=request.query_params.get("q", ""))

    async def search(self, request: Request) -> Response:
        """Only what a search or a reload changes of a page."""
        query = request.query_params
        typed, current = query.get("q", ""), query.get("current")
        return self._pages.draw(request, "listed.html", typed=typed, current=current)

    async def show_resource(self, request: Request) -> Response:
        """A resource, read if it has this URI, and described if it is a template."""
        gallery, uri = self._pages.gallery(request), request.query_params.get("uri", "")
        reading = await unless_gone(request, read(gallery.calls, gallery.catalog, uri))
        conversation, document = Conversation(self._pages.media, reading.redacted), None
        if reading.document is not None:
            most = None if SHOW_ALL in request.query_params else SHORT
            document = await to_thread(conversation.document, reading.document, most)
        resource = reading.resource
        return self._pages.draw(
            request,
            "resource.html",
            uri=uri,
            reading=reading,
            document=document,
            examples=resource.example_uris if resource else (),
            faults=gallery.faults_beside(resource.location) if resource else [],
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
        return self._pages.media.response(request.path_params["digest"])

    async def explain(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for these)
        # Where a part of a page waits for it, that is answered.
        template = "gone.html" if "hx-request" in request.headers else "error.html"
        shown = {"state": "Not shown", "reason": error.detail}
        response = self._pages.draw(request, template, error.status_code, **shown)
        response.headers.update(error.headers or {})
        return response


class _PromptPages:
    """Answers what the form of a prompt asks for."""

    def __init__(self, pages: PageWriter) -> None:
        self._pages = pages
        self._uploads = Uploads()

    async def show(self, request: Request) -> Response:
        parts = await self._parts(request, self._prompt(request), request.query_params)
        return self._pages.draw(request, "prompt.html", tabs=TABS, **parts)

    async def render(self, request: Request) -> Response:
        """What a form changes of the page of its prompt."""
        try:
            prompt = self._prompt(request)
        except HTTPException as gone:
            return self._pages.draw(request, "gone.html", state="The prompt is gone", reason=gone.detail)
        async with form_of(request) as form:
            parts = await self._parts(request, prompt, form)
        response = self._pages.draw(request, "rendered.html", **parts)
        response.headers["HX-Replace-Url"] = _address(parts["rendering"])
        return response

    async def complete(self, request: Request) -> Response:
        """What is offered for an argument while people type it."""
        gallery, prompt = self._pages.gallery(request), self._prompt(request)
        argument = request.path_params["argument"]
        async with form_of(request) as form:
            chosen = dict(submission_of(prompt.arguments, form, self._uploads).given)
        typed = chosen.pop(argument, "")
        complete = partial(gallery.catalog.complete, prompt.name, argument, typed, chosen)
        offered, failed = Completion(), ""
        try:
            called = gallery.calls.call((prompt.name, argument), complete, time_limit())
            offered = await unless_gone(request, called)
        except (CancelledError, ClientDisconnect):
            raise
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            explained = failure(f"completing {argument!r}", error)
            failed = Redactor.of(prompt.arguments, chosen).redacted(explained)
        return self._pages.draw(request, "completions.html", completion=offered, failed=failed)

    async def show_tab(self, request: Request) -> Response:
        """What else there is to see of a rendering."""
        gallery, prompt, tab = self._pages.gallery(request), self._prompt(request), request.path_params["tab"]
        if tab not in TABS:
            raise HTTPException(404, f"There is no tab {tab!r}.")
        async with form_of(request) as form:
            rendering, _ = await self._submitted(request, prompt, form)
        choice = request.query_params.get("choice", "")
        made = partial(content_of, tab, rendering, self._pages.target, choice)
        try:
            called = gallery.calls.call((prompt.name, tab), made, time_limit(prompt))
            content = await unless_gone(request, called)
        except HangsError as error:
            content = TabContent(tab, notes=(f"prompt {prompt.name!r} {error}",))
        return self._pages.draw(request, "tab.html", prompt=prompt, content=content, media=self._pages.media)

    async def _submitted(
        self, request: Request, prompt: CompiledPrompt, form: FormData | QueryParams
    ) -> tuple[Rendering, Submission]:
        """What a form has sent, rendered."""
        own = FormData([pair for pair in form.multi_items() if pair[0] != SHOW_ALL])
        submission = submission_of(prompt.arguments, own, self._uploads)
        rendered = render(self._pages.gallery(request).calls, prompt, submission.given)
        rendering = await unless_gone(request, rendered)
        if submission.faults:
            refused = {fault.argument for fault in submission.faults}
            others = [one for one in rendering.faults if one.argument not in refused]
            faults = (*submission.faults, *others)
            rendering = attrs.evolve(rendering, workflow=None, error=None, question=None, faults=faults)
        return attrs.evolve(rendering, uploads=submission.uploads), submission

    async def _parts(
        self, request: Request, prompt: CompiledPrompt, form: FormData | QueryParams
    ) -> Mapping[str, Any]:
        """What the page of a prompt is made of."""
        rendering, submission = await self._submitted(request, prompt, form)
        conversation, workflow = Conversation(self._pages.media, rendering.redacted), rendering.workflow
        whole = number_in(form.get(SHOW_ALL))
        # On threads, as these take a while for a text that is long.
        fields = await to_thread(fields_of, prompt.arguments, submission, self._uploads, rendering.faults)
        return {
            "prompt": prompt,
            "faults": self._pages.gallery(request).faults_beside(prompt.location),
            "rendering": rendering,
            "fields": fields,
            "turns": await to_thread(conversation.turns, workflow, whole) if workflow is not None else [],
            "all_turns": ALL_TURNS,
            "example": None if rendering.given else _example(prompt),
        }

    def _prompt(self, request: Request) -> CompiledPrompt:
        name = request.path_params["name"]
        try:
            return self._pages.gallery(request).catalog[name]
        except UnknownPrompt as error:
            raise HTTPException(404, f"There is no prompt of this name now: {error}.") from None


def _example(prompt: CompiledPrompt) -> str | None:
    """The page with the author's first example; None if there is none."""
    queries = (query_of(prompt.arguments, one) for one in prompt.arguments.example_texts if one)
    return next((prompt_path(prompt.name, query) for query in queries if query), None)


def _address(rendering: Rendering) -> str:
    """Where the same page is shown again."""
    prompt = rendering.prompt
    address = prompt_path(prompt.name, query_of(prompt.arguments, rendering.given))
    return address if len(address) <= _LONGEST_ADDRESS else prompt_path(prompt.name)
