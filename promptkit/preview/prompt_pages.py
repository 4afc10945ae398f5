"""The pages of a prompt: its form, what it says for it, and what else there is to see of that."""

from asyncio import CancelledError, to_thread
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from promptkit.catalog.completion import Completion
from promptkit.catalog.examples import example_arguments
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import UnknownPrompt
from promptkit.preview import forms
from promptkit.preview.conversation import ALL_TURNS, turns_of
from promptkit.preview.links import query_of
from promptkit.preview.pages import SHOW_ALL, Pages, number_in, unless_gone
from promptkit.preview.rendering import Rendering, render, said
from promptkit.preview.tabs import TABS, content_of
from promptkit.preview.tabs.content import TabContent
from promptkit.preview.templating import prompt_path
from promptkit.preview.uploads import FORM_LIMITS, Uploads
from promptkit.server.author_calls import HangsError, time_limit

__all__ = ["PromptPages"]

#: A longer address holds no arguments: neither servers nor people take it.
_LONGEST_ADDRESS: Final = 6000


class PromptPages:
    """
    Answers what the form of a prompt asks for.

    Args:
        pages:
            Draws the pages.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._uploads = Uploads()

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The pages by their addresses."""
        prompt = "/prompts/{name:path}"
        return (
            Route(f"{prompt}/render", self._render, methods=["POST"]),
            Route(f"{prompt}/complete/{{argument}}", self._complete, methods=["POST"]),
            Route(f"{prompt}/tabs/{{tab}}", self._show_tab, methods=["POST"]),
            Route(prompt, self._show),
        )

    async def _show(self, request: Request) -> Response:
        parts = await self._parts(request, self._prompt(request), request.query_params)
        return self._pages.draw(request, "prompt.html", tabs=TABS, **parts)

    async def _render(self, request: Request) -> Response:
        """What a form changes of the page of its prompt."""
        try:
            prompt = self._prompt(request)
        except HTTPException as gone:
            return self._pages.draw(request, "gone.html", state="The prompt is gone", reason=gone.detail)
        async with request.form(**FORM_LIMITS) as form:
            parts = await self._parts(request, prompt, form)
        response = self._pages.draw(request, "rendered.html", **parts)
        response.headers["HX-Replace-Url"] = _address(parts["rendering"])
        return response

    async def _complete(self, request: Request) -> Response:
        """What is offered for an argument while people type it."""
        shown, prompt = self._pages.shown(request), self._prompt(request)
        argument = request.path_params["argument"]
        async with request.form(**FORM_LIMITS) as form:
            chosen = dict(forms.submission_of(prompt.arguments, form, self._uploads).given)
        typed = chosen.pop(argument, "")
        complete = partial(shown.catalog.complete, prompt.name, argument, typed, chosen)
        offered, failed = Completion(), ""
        try:
            called = shown.calls.call((prompt.name, argument), complete, time_limit())
            offered = await unless_gone(request, called)
        except (CancelledError, ClientDisconnect):
            raise
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            failed = Redactor.of(prompt.arguments, chosen).redacted(said(f"completing {argument!r}", error))
        return self._pages.draw(request, "completions.html", completion=offered, failed=failed)

    async def _show_tab(self, request: Request) -> Response:
        """What else there is to see of a rendering."""
        shown, prompt, tab = self._pages.shown(request), self._prompt(request), request.path_params["tab"]
        if tab not in TABS:
            raise HTTPException(404, f"There is no tab {tab!r}.")
        async with request.form(**FORM_LIMITS) as form:
            submitted = await self._submitted(request, prompt, form)
        choice = request.query_params.get("choice", "")
        made = partial(content_of, tab, submitted.rendering, self._pages.target, choice)
        try:
            called = shown.calls.call((prompt.name, tab), made, time_limit(prompt))
            content = await unless_gone(request, called)
        except HangsError as error:
            content = TabContent(tab, notes=(f"prompt {prompt.name!r} {error}",))
        return self._pages.draw(request, "tab.html", prompt=prompt, content=content, media=self._pages.media)

    async def _submitted(
        self, request: Request, prompt: CompiledPrompt, form: FormData | QueryParams
    ) -> "_Submitted":
        own = FormData([pair for pair in form.multi_items() if pair[0] != SHOW_ALL])
        submission = forms.submission_of(prompt.arguments, own, self._uploads)
        shown = self._pages.shown(request)
        rendered = render(shown.calls, shown.catalog, prompt, submission.given)
        rendering = await unless_gone(request, rendered)
        if submission.faults:
            refused = {fault.argument for fault in submission.faults}
            others = [one for one in rendering.faults if one.argument not in refused]
            faults = (*submission.faults, *others)
            rendering = attrs.evolve(rendering, workflow=None, error=None, question=None, faults=faults)
        return _Submitted(attrs.evolve(rendering, uploads=submission.uploads), submission)

    async def _parts(
        self, request: Request, prompt: CompiledPrompt, form: FormData | QueryParams
    ) -> Mapping[str, Any]:
        """What the page of a prompt is made of."""
        submitted = await self._submitted(request, prompt, form)
        faults = self._pages.shown(request).gallery.faults_beside(prompt.location)
        # On a thread, as it takes a while for a text that is long.
        drawn = await to_thread(self._drawn, submitted, number_in(form.get(SHOW_ALL)))
        return {"prompt": prompt, "faults": faults, **drawn}

    def _drawn(self, submitted: "_Submitted", whole: int) -> Mapping[str, Any]:
        rendering = submitted.rendering
        prompt, workflow = rendering.prompt, rendering.workflow
        turns = [] if workflow is None else turns_of(workflow, self._pages.media, rendering.redacted, whole)
        return {
            "rendering": rendering,
            "fields": forms.fields_of(
                prompt.arguments, submitted.submission, self._uploads, rendering.faults
            ),
            "turns": turns,
            "all_turns": ALL_TURNS,
            "example": None if rendering.given else _example(prompt),
        }

    def _prompt(self, request: Request) -> CompiledPrompt:
        name = request.path_params["name"]
        try:
            return self._pages.shown(request).catalog[name]
        except UnknownPrompt as error:
            raise HTTPException(404, f"There is no prompt of this name now: {error}.") from None


@attrs.frozen
class _Submitted:
    """What a form has sent, and that rendered."""

    rendering: Rendering
    submission: forms.Submission


def _example(prompt: CompiledPrompt) -> str | None:
    """The page with the author's first example; None if there is none."""
    queries = (query_of(prompt.arguments, one) for one in example_arguments(prompt.arguments) if one)
    return next((prompt_path(prompt.name, query) for query in queries if query), None)


def _address(rendering: Rendering) -> str:
    """Where the same page is shown again."""
    arguments = rendering.prompt.arguments
    address = prompt_path(rendering.prompt.name, query_of(arguments, rendering.given))
    return address if len(address) <= _LONGEST_ADDRESS else prompt_path(rendering.prompt.name)
