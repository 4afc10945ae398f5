"""The pages of the preview, and where they are."""

import json
import re
from asyncio import FIRST_COMPLETED, CancelledError, create_task, to_thread, wait
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
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
from promptkit.catalog.examples import example_arguments, example_uris
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import UnknownPrompt
from promptkit.preview import forms
from promptkit.preview.conversation import ALL_TURNS, document_of, turns_of
from promptkit.preview.guard import Guard
from promptkit.preview.links import query_of
from promptkit.preview.live import Live
from promptkit.preview.media import Media
from promptkit.preview.rendering import Rendering, read, render, said
from promptkit.preview.shown import Newest, Shown
from promptkit.preview.tabs import TABS, content_of
from promptkit.preview.tabs.content import TabContent
from promptkit.preview.templating import FOLDER, page, prompt_path
from promptkit.preview.uploads import FORM_LIMITS, Uploads, sized
from promptkit.server.author_calls import HangsError, time_limit

__all__ = ["Preview", "application"]

T = TypeVar("T")

#: A longer address holds no arguments: neither servers nor people take it.
_LONGEST_ADDRESS: Final = 6000

#: What asks for one turn whole; no argument has a name like this.
_SHOW_ALL: Final = "show-all"


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
    return Guard(sized(Preview(live, target).routed()), target, token, hosts)


class Preview:
    """
    Answers the requests of the pages.

    Args:
        live:
            What is shown, and who is told when it changes.

        target:
            How the pages call it.
    """

    def __init__(self, live: Live, target: str) -> None:
        self._live = live
        self._target = target
        self._media = Media()
        self._uploads = Uploads()
        self._newest = Newest(live)

    def routed(self) -> Starlette:
        """Return the pages by their addresses."""
        prompt = "/prompts/{name:path}"
        return Starlette(
            routes=[
                Route("/", self._show_gallery),
                Route("/gallery", self._list),
                Route("/events", self._send_events),
                Route("/resources", self._show_resource),
                Route("/media/{digest}", self._send_medium),
                Mount("/static", StaticFiles(directory=FOLDER / "static")),
                Route(f"{prompt}/render", self._render, methods=["POST"]),
                Route(f"{prompt}/complete/{{argument}}", self._complete, methods=["POST"]),
                Route(f"{prompt}/tabs/{{tab}}", self._show_tab, methods=["POST"]),
                Route(prompt, self._show_prompt),
            ],
            exception_handlers={HTTPException: self._explain, ClientDisconnect: _nothing},
        )

    def _shown(self, request: Request) -> Shown:
        """What this request is answered with, whatever is saved meanwhile."""
        if not hasattr(request.state, "shown"):
            request.state.shown = self._newest()
        shown: Shown = request.state.shown
        return shown

    def _page(self, template: str, shown: Shown, status: int = 200, **values: Any) -> HTMLResponse:
        known = {"gallery": shown.gallery, "target": self._target, "version": shown.version}
        return HTMLResponse(page(template, **known, **values), status)

    async def _show_gallery(self, request: Request) -> Response:
        return self._page("gallery.html", self._shown(request), typed=request.query_params.get("q", ""))

    async def _list(self, request: Request) -> Response:
        """Only what a search or a reload changes of a page."""
        query = request.query_params
        shown = self._shown(request)
        return self._page("listed.html", shown, typed=query.get("q", ""), current=query.get("current"))

    async def _show_prompt(self, request: Request) -> Response:
        shown = self._shown(request)
        submitted = await self._submitted(request, self._prompt(request), request.query_params)
        whole = _number(request.query_params.get(_SHOW_ALL))
        parts = await to_thread(self._parts, shown, submitted, whole)
        return self._page("prompt.html", shown, tabs=TABS, **parts)

    async def _render(self, request: Request) -> Response:
        """What a form changes of the page of its prompt."""
        shown = self._shown(request)
        try:
            prompt = self._prompt(request)
        except HTTPException as gone:
            return self._page("gone.html", shown, state="The prompt is gone", reason=gone.detail)
        async with request.form(**FORM_LIMITS) as form:
            submitted = await self._submitted(request, prompt, form)
            whole = _number(form.get(_SHOW_ALL))
        parts = await to_thread(self._parts, shown, submitted, whole)
        response = self._page("rendered.html", shown, **parts)
        response.headers["HX-Replace-Url"] = _address(submitted.rendering)
        return response

    async def _complete(self, request: Request) -> Response:
        """What is offered for an argument while people type it."""
        shown, prompt = self._shown(request), self._prompt(request)
        argument = request.path_params["argument"]
        async with request.form(**FORM_LIMITS) as form:
            chosen = dict(forms.submission_of(prompt.arguments, form, self._uploads).given)
        typed = chosen.pop(argument, "")
        complete = partial(shown.catalog.complete, prompt.name, argument, typed, chosen)
        offered, failed = Completion(), ""
        try:
            called = shown.calls.call((prompt.name, argument), complete, time_limit())
            offered = await _unless_gone(request, called)
        except (CancelledError, ClientDisconnect):
            raise
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            failed = Redactor.of(prompt.arguments, chosen).redacted(said(f"completing {argument!r}", error))
        return self._page("completions.html", shown, completion=offered, failed=failed)

    async def _show_tab(self, request: Request) -> Response:
        """What else there is to see of a rendering."""
        shown, prompt, tab = self._shown(request), self._prompt(request), request.path_params["tab"]
        if tab not in TABS:
            raise HTTPException(404, f"There is no tab {tab!r}.")
        async with request.form(**FORM_LIMITS) as form:
            submitted = await self._submitted(request, prompt, form)
        choice = request.query_params.get("choice", "")
        made = partial(content_of, tab, submitted.rendering, self._target, choice)
        try:
            called = shown.calls.call((prompt.name, tab), made, time_limit(prompt))
            content = await _unless_gone(request, called)
        except HangsError as error:
            content = TabContent(tab, notes=(f"prompt {prompt.name!r} {error}",))
        return self._page("tab.html", shown, prompt=prompt, content=content, media=self._media)

    async def _submitted(
        self, request: Request, prompt: CompiledPrompt, form: FormData | QueryParams
    ) -> "_Submitted":
        own = FormData([pair for pair in form.multi_items() if pair[0] != _SHOW_ALL])
        submission = forms.submission_of(prompt.arguments, own, self._uploads)
        shown = self._shown(request)
        rendered = render(shown.calls, shown.catalog, prompt, submission.given)
        rendering = await _unless_gone(request, rendered)
        if submission.faults:
            refused = {fault.argument for fault in submission.faults}
            others = [one for one in rendering.faults if one.argument not in refused]
            faults = (*submission.faults, *others)
            rendering = attrs.evolve(rendering, workflow=None, error=None, question=None, faults=faults)
        return _Submitted(attrs.evolve(rendering, uploads=submission.uploads), submission)

    def _parts(self, shown: Shown, submitted: "_Submitted", whole: int) -> Mapping[str, Any]:
        """What the page of a prompt is made of. It takes a while for a text that is long."""
        rendering = submitted.rendering
        prompt, workflow = rendering.prompt, rendering.workflow
        turns = [] if workflow is None else turns_of(workflow, self._media, rendering.redacted, whole)
        return {
            "rendering": rendering,
            "prompt": prompt,
            "fields": forms.fields_of(
                prompt.arguments, submitted.submission, self._uploads, rendering.faults
            ),
            "turns": turns,
            "all_turns": ALL_TURNS,
            "faults": shown.gallery.faults_beside(prompt.location),
            "example": None if rendering.given else _example(prompt),
        }

    def _prompt(self, request: Request) -> CompiledPrompt:
        name = request.path_params["name"]
        try:
            return self._shown(request).catalog[name]
        except UnknownPrompt as error:
            raise HTTPException(404, f"There is no prompt of this name now: {error}.") from None

    async def _show_resource(self, request: Request) -> Response:
        """A resource, read if it has this URI, and described if it is a template."""
        shown, uri = self._shown(request), request.query_params.get("uri", "")
        reading = await _unless_gone(request, read(shown.calls, shown.catalog, uri))
        is_whole = _SHOW_ALL in request.query_params
        document = None
        if reading.document is not None:
            show = partial(document_of, media=self._media, redacted=reading.redacted, is_whole=is_whole)
            document = await to_thread(show, reading.document)
        resource = reading.resource
        return self._page(
            "resource.html",
            shown,
            uri=uri,
            reading=reading,
            document=document,
            examples=example_uris(resource) if resource else (),
            faults=shown.gallery.faults_beside(resource.location) if resource else [],
        )

    async def _send_events(self, request: Request) -> Response:
        """Tell a page of each reload, from the version on that it shows."""
        seen = request.headers.get("last-event-id") or request.query_params.get("version", "")
        version = _number(seen) if seen else self._shown(request).version

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
        return self._media.response(request.path_params["digest"])

    async def _explain(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for these)
        shown = self._shown(request)
        if "hx-request" in request.headers:  # a part of a page waits for it
            response = self._page(
                "gone.html", shown, error.status_code, state="Not shown", reason=error.detail
            )
        else:
            faults = [fault for fault in shown.gallery.faults if fault.is_error]
            response = self._page("error.html", shown, error.status_code, reason=error.detail, faults=faults)
        response.headers.update(error.headers or {})
        return response


@attrs.frozen
class _Submitted:
    """What a form has sent, and that rendered."""

    rendering: Rendering
    submission: forms.Submission


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what *work* returns, or cancel it when its page no longer waits for it."""
    task, gone = create_task(work), create_task(_gone(request))
    try:
        await wait((task, gone), return_when=FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


def _number(text: object) -> int:
    """The number that a form or an address has sent; 0 if it is none."""
    return int(text) if isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,9}", text) else 0


async def _nothing(_request: Request, _error: Exception) -> Response:
    """The response to a page that waits for none: it was superseded while it was sent, or made."""
    return Response(status_code=499)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _example(prompt: CompiledPrompt) -> str | None:
    """The page with the author's first example; None if there is none."""
    queries = (query_of(prompt.arguments, one) for one in example_arguments(prompt.arguments) if one)
    return next((prompt_path(prompt.name, query) for query in queries if query), None)


def _address(rendering: Rendering) -> str:
    """Where the same page is shown again."""
    arguments = rendering.prompt.arguments
    address = prompt_path(rendering.prompt.name, query_of(arguments, rendering.given))
    return address if len(address) <= _LONGEST_ADDRESS else prompt_path(rendering.prompt.name)
