"""The page of a prompt: its form, what it says, its cases, and what else there is to see of it."""

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
from starlette.responses import Response

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
from promptkit.preview.page_base import Endpoints, unless_gone
from promptkit.preview.rendering import LimitedCalls, Rendering, failure, render
from promptkit.preview.tabs import TABS, TabContent, content_of
from promptkit.preview.templating import prompt_path
from promptkit.server.user_code import CallTimeoutError, time_limit


@attrs.frozen
class CaseView:
    """
    A case, and what came of it.

    Args:
        case:
            The case.

        rendering:
            What came of it.

        fault:
            What its author does not expect; None if it is as expected.

        refusal:
            The words in which it is refused, as it has to be; None if it is not.

        turns:
            What the prompt says.
    """

    case: Case
    rendering: Rendering
    fault: str | None
    refusal: str | None
    turns: Sequence[TurnView]


def opening(prompt: CompiledPrompt, name: str | None = None) -> Mapping[str, str]:
    """
    Return what the form of a prompt holds when it is opened: an input of its author, if there is one.

    Args:
        prompt:
            The prompt.

        name:
            The name of a case; None for the first that is rendered, or the first example.
    """
    saved = sendable(prompt.saved())
    if name is not None:
        return next((sent for case, sent in saved if case.name == name), {})
    if not prompt.sample:  # nothing is rendered before somebody asks for it
        return {}
    rendered = (sent for case, sent in saved if case.refusal is None)
    return next(chain(rendered, filter(None, prompt.arguments.example_texts)), {})


async def views_of(calls: LimitedCalls, prompt: CompiledPrompt, media: MediaStore) -> list[CaseView]:
    """
    Render a prompt for its cases.

    Args:
        calls:
            Calls authors' functions.

        prompt:
            The prompt.

        media:
            Keeps what browsers will ask for.
    """
    views = []
    for case, sent in sendable(prompt.saved()):
        rendering = await render(calls, prompt, sent, is_asked=True)
        workflow, raised, redacted = rendering.workflow, rendering.raised, rendering.redacted
        fault = case.fault(raised or workflow)
        refusal = redacted(str(raised)) if case.refusal is not None and is_refused(raised) else None
        conversation = Conversation(media, redacted)
        turns = await to_thread(conversation.turns, workflow) if workflow is not None else []
        views.append(CaseView(case, rendering, fault and redacted(fault), refusal, turns))
    return views


#: What asks for one turn whole, for the defaults of a prompt, for a tab, or for the values of a case. No
#: argument has a name like these.
SHOW_ALL: Final = "show-all"
_RENDER: Final = "render-it"
_TAB: Final = "open-tab"
_CASE: Final = "use-case"

#: The tab that is open at first.
_FIRST_TAB: Final = "conversation"

#: The labels of the tabs that show something else than the conversation, by the name in their addresses.
PANELS: Final = {"cases": "Cases", "changes": "Changes", **TABS}

#: How long a page waits for its prompt, in seconds. One that takes longer is shown when it is there.
_AT_ONCE_S: Final = 0.2

#: How long it is kept for the page to ask for it.
_ASKED_WITHIN_S: Final = 10.0

#: What is rendered: the version, the prompt, and what is sent.
_Slow: TypeAlias = tuple[int, str, frozenset[tuple[str, str]]]


class PromptPages(Endpoints):
    """
    Answers the requests of the pages of prompts.

    Args:
        live, targets, media, editor:
            As for `Endpoints`.

        comparison:
            Knows what cases said at the last commit; None if nothing is known of it.
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
        self._slow: dict[_Slow, asyncio.Task[Rendering]] = {}

    async def show_prompt(self, request: Request) -> Response:
        """The whole page. A prompt that takes a while is rendered on, and shown once the page asks for it."""
        prompt, query = self._prompt(request), request.query_params
        submission, tab = self._opened(prompt, query), query.get(_TAB, "")
        version = self._version(request)
        task = asyncio.create_task(self._rendered(version, prompt, submission))
        done, _ = await asyncio.wait([task], timeout=_AT_ONCE_S)
        if not done:
            self._keep_slow(_slow_key(version, prompt, submission), task)
        rendering = task.result() if done else Rendering(prompt, submission.given, is_pending=True)
        parts = await self._parts(request, rendering, submission, query)
        tab = tab if tab in PANELS else _FIRST_TAB
        return self._draw(request, "prompt.html", panels=PANELS, tab=tab, **parts)

    async def render(self, request: Request) -> Response:
        """What a form changes of the page of its prompt."""
        prompt, version = self._prompt(request), self._version(request)
        async with form_of(request) as form:
            submission = submission_of(prompt.arguments, _own(form), self._uploads)
            work: Awaitable[Rendering] | None = self._slow.pop(_slow_key(version, prompt, submission), None)
            if work is None:
                work = self._rendered(version, prompt, submission, is_asked=_RENDER in form)
            rendering = await unless_gone(request, work)
            parts = await self._parts(request, rendering, submission, form)
        response = self._draw(request, "rendered.html", **parts)
        query = query_of(prompt.arguments, rendering.given)
        response.headers["HX-Replace-Url"] = prompt_path(prompt.name, query)
        return response

    async def complete(self, request: Request) -> Response:
        """What is offered for an argument while people type it."""
        version, prompt = self._version(request), self._prompt(request)
        argument = request.path_params["argument"]
        async with form_of(request) as form:
            chosen = dict(submission_of(prompt.arguments, _own(form), self._uploads).given)
        typed = chosen.pop(argument, "")
        complete = partial(version.catalog.complete, prompt.name, argument, typed, chosen)
        offered, failed = Completion(), ""
        try:
            called = version.calls.call((prompt.name, argument), complete, time_limit())
            offered = await unless_gone(request, called)
        except (CancelledError, ClientDisconnect):
            raise
        except BaseException as error:  # noqa: BLE001 (authors raise anything)
            explained = failure(f"completing {argument!r}", error)
            failed = Redactor.of(prompt.arguments, chosen).redacted(explained)
        return self._draw(request, "completions.html", completion=offered, failed=failed)

    async def show_tab(self, request: Request) -> Response:
        """What else there is to see of a prompt."""
        prompt, tab = self._prompt(request), request.path_params["tab"]
        if tab not in PANELS:
            raise HTTPException(404, f"There is no tab {tab!r}.")
        async with form_of(request) as form:
            submission = submission_of(prompt.arguments, _own(form), self._uploads)
        draw = {"cases": self._draw_cases, "changes": self._draw_changes}.get(tab, self._draw_content)
        return await draw(request, prompt, submission)

    async def _draw_cases(self, request: Request, prompt: CompiledPrompt, _form: Submission) -> Response:
        views = await unless_gone(request, views_of(self._version(request).calls, prompt, self._media))
        return self._draw(request, "cases.html", prompt=prompt, views=views)

    async def _draw_changes(self, request: Request, prompt: CompiledPrompt, form: Submission) -> Response:
        choice = request.query_params.get("choice", "")
        found = self._comparisons.changes(self._version(request), prompt, form, choice)
        changes = await unless_gone(request, found)
        return self._draw(request, "changes.html", prompt=prompt, changes=changes, choices=SINCE)

    async def _draw_content(self, request: Request, prompt: CompiledPrompt, form: Submission) -> Response:
        version, tab = self._version(request), request.path_params["tab"]
        rendering = await unless_gone(request, self._rendered(version, prompt, form))
        target = target_of(prompt.location.file, self._targets)
        made = partial(content_of, tab, rendering, target, request.query_params.get("choice", ""))
        try:
            called = version.calls.call((prompt.name, tab), made, time_limit(prompt))
            content = await unless_gone(request, called)
        except CallTimeoutError as error:
            content = TabContent(tab, notes=(f"prompt {prompt.name!r} {error}",))
        return self._draw(request, "tab.html", prompt=prompt, content=content, media=self._media)

    def _opened(self, prompt: CompiledPrompt, query: QueryParams) -> Submission:
        """What the form of a page holds at first: what its address says, else an input of the author."""
        case, own = query.get(_CASE), _own(query)
        if case is None and own:
            return submission_of(prompt.arguments, own, self._uploads)
        return Submission(opening(prompt, case))

    async def _rendered(
        self,
        version: CatalogVersion,
        prompt: CompiledPrompt,
        submission: Submission,
        *,
        is_asked: bool = False,
    ) -> Rendering:
        """What a form has sent, rendered."""
        rendering = await render(version.calls, prompt, submission.given, is_asked=is_asked)
        if submission.faults:
            refused = {fault.argument for fault in submission.faults}
            others = [one for one in rendering.faults if one.argument not in refused]
            rendering = Rendering(prompt, submission.given, faults=(*submission.faults, *others))
        return attrs.evolve(rendering, uploads=submission.uploads)

    def _keep_slow(self, key: _Slow, task: asyncio.Task[Rendering]) -> None:
        """Keep what a page will ask for in a moment, and end it if it does not."""
        self._slow[key] = task

        def end() -> None:
            if self._slow.pop(key, None) is task:
                task.cancel()

        asyncio.get_running_loop().call_later(_ASKED_WITHIN_S, end)

    async def _parts(
        self,
        request: Request,
        rendering: Rendering,
        submission: Submission,
        form: FormData | QueryParams,
    ) -> Mapping[str, Any]:
        """What the page of a prompt is made of."""
        prompt, workflow = rendering.prompt, rendering.workflow
        conversation, whole = Conversation(self._media, rendering.redacted), number_in(form.get(SHOW_ALL))
        # On threads, as these take a while for a text that is long.
        fields = await to_thread(fields_of, prompt.arguments, submission, self._uploads, rendering.faults)
        return {
            "prompt": prompt,
            "faults": self._version(request).faults_beside(prompt.location),
            "rendering": rendering,
            "fields": fields,
            "turns": await to_thread(conversation.turns, workflow, whole) if workflow is not None else [],
            "all_turns": ALL_TURNS,
            "cases": [(case, sent == rendering.given) for case, sent in sendable(prompt.saved())],
        }

    def _prompt(self, request: Request) -> CompiledPrompt:
        name = request.path_params["name"]
        try:
            return self._version(request).catalog[name]
        except UnknownPromptError as error:
            raise HTTPException(404, f"There is no prompt of this name now: {error}.") from None


def _slow_key(version: CatalogVersion, prompt: CompiledPrompt, form: Submission) -> _Slow:
    return version.number, prompt.name, frozenset(form.given.items())


def _own(form: FormData | QueryParams) -> FormData:
    """What a form, or a link, says of arguments."""
    others = (SHOW_ALL, _RENDER, _TAB, _CASE)
    return FormData([pair for pair in form.multi_items() if pair[0] not in others])
