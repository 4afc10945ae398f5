"""The base class of all pages, and the page of a prompt: its form, conversation, cases and other tabs."""

import asyncio
from asyncio import CancelledError, to_thread
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

import attrs
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from promptkit.catalog.cases import Case, is_refused, sendable
from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import UnknownPromptError
from promptkit.loader.targets import target_of
from promptkit.preview.changes import SINCE, Comparison, Comparisons
from promptkit.preview.conversation import ALL_TURNS, Conversation, TurnView
from promptkit.preview.forms import Submission, fields_of, query_of, submission_of
from promptkit.preview.live import CatalogVersion, Live
from promptkit.preview.media import MediaStore, Uploads, form_of, number_in
from promptkit.preview.rendering import LimitedCalls, Rendering, failure, render, unless_gone
from promptkit.preview.tabs import TABS, TabContent, content_of
from promptkit.preview.templating import page, prompt_path
from promptkit.server.direct_calls import CallTimeoutError, time_limit


@attrs.frozen
class CaseView:
    """
    A case and its outcome.

    Args:
        case:
            The case.

        rendering:
            Its outcome.

        fault:
            How the outcome differs from the expected one; None if it does not.

        refusal:
            The message of the expected error; None if there is none.

        turns:
            The turns of the conversation.
    """

    case: Case
    rendering: Rendering
    fault: str | None
    refusal: str | None
    turns: Sequence[TurnView]


def opening(prompt: CompiledPrompt, name: str | None = None) -> Mapping[str, str]:
    """
    Return the initial values of a prompt's form: an input from its author, if there is one.

    Args:
        prompt:
            The prompt.

        name:
            The name of a case; None for the first case that must succeed, or the first example.
    """
    saved = sendable(prompt.saved())
    if name is not None:
        return next((sent for case, sent in saved if case.name == name), {})
    if not prompt.sample:  # nothing is rendered before the user requests it
        return {}
    successful = (sent for case, sent in saved if case.refusal is None)
    return next(chain(successful, filter(None, prompt.arguments.example_texts)), {})


async def views_of(calls: LimitedCalls, prompt: CompiledPrompt, media: MediaStore) -> list[CaseView]:
    """
    Render the cases of a prompt.

    Args:
        calls:
            Calls authors' functions.

        prompt:
            The prompt.

        media:
            Stores media until browsers request them.
    """
    views = []
    for case, sent in sendable(prompt.saved()):
        rendering = await render(calls, prompt, sent, is_asked=True)
        workflow, raised, redacted = rendering.workflow, rendering.raised, rendering.redacted
        fault = case.mismatch(raised or workflow)
        refusal = redacted(str(raised)) if case.refusal is not None and is_refused(raised) else None
        conversation = Conversation(media, redacted)
        turns = await to_thread(conversation.turns, workflow) if workflow is not None else []
        views.append(CaseView(case, rendering, fault and redacted(fault), refusal, turns))
    return views


#: Form parameters: show one turn in full, render the prompt's defaults, open a tab, use the values of a case.
#: No argument can have these names.
SHOW_ALL: Final = "show-all"
_RENDER: Final = "render-it"
_TAB: Final = "open-tab"
_CASE: Final = "use-case"

#: The tab that is initially open.
_FIRST_TAB: Final = "conversation"

#: The labels of the tabs other than the conversation, by their name in URLs.
PANELS: Final = {"cases": "Cases", "changes": "Changes", **TABS}

#: Time in seconds that a page waits for its prompt. Slower renderings are shown when they are complete.
_PAGE_WAITS_S: Final = 0.2

#: Time in seconds within which the page must request a slow rendering.
_REQUESTED_WITHIN_S: Final = 10.0

#: Identifies a rendering: the version, the prompt, and the sent values.
_RenderingKey: TypeAlias = tuple[int, str, frozenset[tuple[str, str]]]


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


class PromptPages(Endpoints):
    """
    Handles the requests for the pages of prompts.

    Args:
        live, targets, media, editor:
            See `Endpoints`.

        comparison:
            Provides the texts of the last commit; None to disable the comparison.
    """

    def __init__(
        self,
        live: Live,
        targets: Sequence[str],
        media: MediaStore,
        editor: str,
        comparison: Comparison | None,
    ) -> None:
        super().__init__(live, targets, media, editor)
        self._comparisons = Comparisons(comparison)
        self._uploads = Uploads()
        self._slow: dict[_RenderingKey, asyncio.Task[Rendering]] = {}

    async def show_prompt(self, request: Request) -> Response:
        """Show the whole page. A slow rendering continues, and is shown when the page requests it."""
        prompt, query = self._prompt(request), request.query_params
        submission, tab = self._initial_submission(prompt, query), query.get(_TAB, "")
        version = self._version(request)
        task = asyncio.create_task(self._render_submission(version, prompt, submission))
        done, _ = await asyncio.wait([task], timeout=_PAGE_WAITS_S)
        if not done:
            self._store_slow(_slow_key(version, prompt, submission), task)
        rendering = task.result() if done else Rendering(prompt, submission.given, is_pending=True)
        parts = await self._parts(request, rendering, submission, query)
        tab = tab if tab in PANELS else _FIRST_TAB
        return self._draw(request, "prompt.html", panels=PANELS, tab=tab, **parts)

    async def render(self, request: Request) -> Response:
        """Update the page of a prompt after a change of its form."""
        prompt, version = self._prompt(request), self._version(request)
        async with form_of(request) as form:
            submission = submission_of(prompt.arguments, _argument_values(form), self._uploads)
            work: Awaitable[Rendering] | None = self._slow.pop(_slow_key(version, prompt, submission), None)
            if work is None:
                work = self._render_submission(version, prompt, submission, is_asked=_RENDER in form)
            rendering = await unless_gone(request, work)
            parts = await self._parts(request, rendering, submission, form)
        response = self._draw(request, "rendered.html", **parts)
        query = query_of(prompt.arguments, rendering.given)
        response.headers["HX-Replace-Url"] = prompt_path(prompt.name, query)
        return response

    async def complete(self, request: Request) -> Response:
        """Return the suggestions for an argument while users type."""
        version, prompt = self._version(request), self._prompt(request)
        argument = request.path_params["argument"]
        async with form_of(request) as form:
            chosen = dict(submission_of(prompt.arguments, _argument_values(form), self._uploads).given)
        typed = chosen.pop(argument, "")
        complete = partial(version.catalog.complete, prompt.name, argument, typed, chosen)
        completion, failed = Completion(), ""
        try:
            call = version.calls.call((prompt.name, argument), complete, time_limit())
            completion = await unless_gone(request, call)
        except (CancelledError, ClientDisconnect):
            raise
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            message = failure(f"completing {argument!r}", error)
            failed = Redactor.of(prompt.arguments, chosen).redacted(message)
        return self._draw(request, "completions.html", completion=completion, failed=failed)

    async def show_tab(self, request: Request) -> Response:
        """Show a tab other than the conversation."""
        prompt, tab = self._prompt(request), request.path_params["tab"]
        if tab not in PANELS:
            raise HTTPException(404, f"There is no tab {tab!r}.")
        async with form_of(request) as form:
            submission = submission_of(prompt.arguments, _argument_values(form), self._uploads)
        draw = {"cases": self._draw_cases, "changes": self._draw_changes}.get(tab, self._draw_content)
        return await draw(request, prompt, submission)

    async def _draw_cases(self, request: Request, prompt: CompiledPrompt, _form: Submission) -> Response:
        views = await unless_gone(request, views_of(self._version(request).calls, prompt, self._media))
        return self._draw(request, "cases.html", prompt=prompt, views=views)

    async def _draw_changes(self, request: Request, prompt: CompiledPrompt, form: Submission) -> Response:
        choice = request.query_params.get("choice", "")
        pending = self._comparisons.changes(self._version(request), prompt, form, choice)
        changes = await unless_gone(request, pending)
        return self._draw(request, "changes.html", prompt=prompt, changes=changes, choices=SINCE)

    async def _draw_content(self, request: Request, prompt: CompiledPrompt, form: Submission) -> Response:
        version, tab = self._version(request), request.path_params["tab"]
        rendering = await unless_gone(request, self._render_submission(version, prompt, form))
        target = target_of(prompt.location.file, self._targets)
        build = partial(content_of, tab, rendering, target, request.query_params.get("choice", ""))
        try:
            call = version.calls.call((prompt.name, tab), build, time_limit(prompt))
            content = await unless_gone(request, call)
        except CallTimeoutError as error:
            content = TabContent(tab, notes=(f"prompt {prompt.name!r} {error}",))
        return self._draw(request, "tab.html", prompt=prompt, content=content, media=self._media)

    def _initial_submission(self, prompt: CompiledPrompt, query: QueryParams) -> Submission:
        """Return the initial values of a form: the values in the URL, otherwise an input from the author."""
        case, values = query.get(_CASE), _argument_values(query)
        if case is None and values:
            return submission_of(prompt.arguments, values, self._uploads)
        return Submission(opening(prompt, case))

    async def _render_submission(
        self,
        version: CatalogVersion,
        prompt: CompiledPrompt,
        submission: Submission,
        *,
        is_asked: bool = False,
    ) -> Rendering:
        """Render the submitted values of a form."""
        rendering = await render(version.calls, prompt, submission.given, is_asked=is_asked)
        if submission.faults:
            invalid = {fault.argument for fault in submission.faults}
            other_errors = [error for error in rendering.faults if error.argument not in invalid]
            rendering = Rendering(prompt, submission.given, faults=(*submission.faults, *other_errors))
        return attrs.evolve(rendering, uploads=submission.uploads)

    def _store_slow(self, key: _RenderingKey, task: asyncio.Task[Rendering]) -> None:
        """Store a rendering that the page will request soon, and cancel it if it does not."""
        self._slow[key] = task

        def end() -> None:
            if self._slow.pop(key, None) is task:
                task.cancel()

        asyncio.get_running_loop().call_later(_REQUESTED_WITHIN_S, end)

    async def _parts(
        self,
        request: Request,
        rendering: Rendering,
        submission: Submission,
        form: FormData | QueryParams,
    ) -> Mapping[str, Any]:
        """Return the parts of a prompt's page."""
        prompt, workflow = rendering.prompt, rendering.workflow
        conversation, full_turn = Conversation(self._media, rendering.redacted), number_in(form.get(SHOW_ALL))
        # On threads, because these take a while for long texts.
        fields = await to_thread(fields_of, prompt.arguments, submission, self._uploads, rendering.faults)
        return {
            "prompt": prompt,
            "faults": self._version(request).faults_beside(prompt.location),
            "rendering": rendering,
            "fields": fields,
            "turns": await to_thread(conversation.turns, workflow, full_turn) if workflow is not None else [],
            "all_turns": ALL_TURNS,
            "cases": [(case, sent == rendering.given) for case, sent in sendable(prompt.saved())],
        }

    def _prompt(self, request: Request) -> CompiledPrompt:
        name = request.path_params["name"]
        try:
            return self._version(request).catalog[name]
        except UnknownPromptError as error:
            raise HTTPException(404, f"This prompt no longer exists: {error}.") from None


def _slow_key(version: CatalogVersion, prompt: CompiledPrompt, form: Submission) -> _RenderingKey:
    return version.number, prompt.name, frozenset(form.given.items())


def _argument_values(form: FormData | QueryParams) -> FormData:
    """Return the argument values of a form or a link."""
    reserved = (SHOW_ALL, _RENDER, _TAB, _CASE)
    return FormData([pair for pair in form.multi_items() if pair[0] not in reserved])
