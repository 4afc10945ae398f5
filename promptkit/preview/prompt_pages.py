"""The base class of all pages, and the page of a prompt: its form, conversation, cases and other tabs."""

import asyncio
from asyncio import CancelledError, to_thread
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from promptkit.catalog.cases import Case, is_refused, iterate_sendable
from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import UnknownPromptError
from promptkit.loader.targets import target_of
from promptkit.preview.conversation import ConversationBuilder, TurnView
from promptkit.preview.forms import Submission, build_fields, build_query, read_submission
from promptkit.preview.live import CatalogVersion, LiveCatalog
from promptkit.preview.media import MediaStore, UploadStore, open_form, parse_number
from promptkit.preview.python_source import CaseNotSavedError, save_case
from promptkit.preview.rendering import (
    LimitedCalls,
    Rendering,
    cancel_on_disconnect,
    describe_failure,
    render,
)
from promptkit.preview.rendering_changes import BASE_LABELS, Comparisons
from promptkit.preview.tabs import TABS, TabContent, build_tab
from promptkit.preview.templating import prompt_path, render_template
from promptkit.server.timeouts import CallTimeoutError, time_limit


@attrs.frozen
class CaseView:
    """
    A case and its outcome.

    Args:
        case:
            The case.

        rendering:
            The rendering of the case, which is its outcome.

        mismatch:
            How the outcome differs from the expected outcome, or None if it does not.

        expected_error:
            The message of the error that occurred as expected, or None if there is no such error.

        turns:
            The turns of the conversation.
    """

    case: Case
    rendering: Rendering
    mismatch: str | None
    expected_error: str | None
    turns: Sequence[TurnView]


def choose_initial_values(prompt: CompiledPrompt, name: str | None = None) -> Mapping[str, str]:
    """
    Return the initial values of a prompt's form, from a case or an example if there is one.

    Args:
        prompt:
            The prompt.

        name:
            The name of a case. None selects the first case without an expected error, or the first example.
    """
    saved = iterate_sendable(prompt.saved())
    if name is not None:
        return next((values for case, values in saved if case.name == name), {})
    if not prompt.sample:  # render nothing until the user requests it
        return {}
    successful = (values for case, values in saved if case.refusal is None)
    return next(chain(successful, filter(None, prompt.arguments.example_texts)), {})


async def render_cases(calls: LimitedCalls, prompt: CompiledPrompt, media: MediaStore) -> list[CaseView]:
    """
    Render the cases of a prompt.

    Args:
        calls:
            Runs the calls to authors' functions.

        prompt:
            The prompt.

        media:
            Stores media until browsers request them.
    """
    views = []
    for case, values in iterate_sendable(prompt.saved()):
        rendering = await render(calls, prompt, values, is_requested=True)
        workflow, exception, redact = rendering.workflow, rendering.exception, rendering.redact
        mismatch = case.mismatch(exception or workflow)
        is_expected = case.refusal is not None and is_refused(exception)
        expected_error = redact(str(exception)) if is_expected else None
        builder = ConversationBuilder(media, redact)
        turns = await to_thread(builder.build_turns, workflow) if workflow is not None else []
        views.append(CaseView(case, rendering, mismatch and redact(mismatch), expected_error, turns))
    return views


#: Form parameters for actions: show one turn in full, render a prompt with its defaults, open a tab, use the
#: values of a case, and name a new case. Arguments cannot have these names.
SHOW_ALL: Final = "show-all"
_RENDER: Final = "render-now"
_TAB: Final = "open-tab"
_CASE: Final = "use-case"
_CASE_NAME: Final = "case-name"

#: The tab that is initially open.
_FIRST_TAB: Final = "conversation"

#: The labels of the tabs other than the conversation, keyed by their names in URLs.
PANELS: Final = {"cases": "Cases", "changes": "Changes", **TABS}

#: Maximum time that a page waits for its prompt, in seconds. A slower rendering is shown once it is complete.
_PAGE_TIMEOUT_S: Final = 0.2

#: Time within which the page must request a slow rendering, in seconds.
_REQUESTED_WITHIN_S: Final = 10.0

#: The key of a rendering: its version, its prompt, and its values.
_RenderingKey: TypeAlias = tuple[int, str, frozenset[tuple[str, str]]]


@attrs.frozen
class Endpoints:
    """
    The base class of objects that handle the requests for some pages.

    Args:
        live:
            The served catalog in its newest version.

        targets:
            The targets, which the pages show.

        media:
            Stores media until browsers request them.

        editor:
            The URL scheme that opens a location in an editor, or ``""`` to omit such links.
    """

    _live: LiveCatalog
    _targets: Sequence[str]
    _media: MediaStore
    _editor: str

    def _get_version(self, request: Request) -> CatalogVersion:
        """Return the catalog version for a request, which stays the same until the response is sent."""
        if not hasattr(request.state, "version"):
            request.state.version = self._live.newest
        version: CatalogVersion = request.state.version
        return version

    def _render_page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a page or a part of a page."""
        common = {"version": self._get_version(request), "target": " ".join(self._targets), "status": status}
        return HTMLResponse(render_template(template, self._editor, **common, **values), status)


@attrs.frozen
class PromptPages(Endpoints):
    """
    Handles the requests for prompt pages.

    Args:
        live, targets, media, editor:
            See `Endpoints`.

        comparisons:
            Compares the text of cases with their text in an earlier version.
    """

    _comparisons: Comparisons
    _uploads: UploadStore = attrs.field(factory=UploadStore, init=False)
    _pending: dict[_RenderingKey, asyncio.Task[Rendering]] = attrs.field(factory=dict, init=False)

    async def show_prompt(self, request: Request) -> Response:
        """Show a prompt's page. A slow rendering continues in the background; the page requests it later."""
        prompt, query = self._find_prompt(request), request.query_params
        submission, tab = self._initial_submission(prompt, query), query.get(_TAB, "")
        version = self._get_version(request)
        task = asyncio.create_task(self._render_submission(version, prompt, submission))
        done, _ = await asyncio.wait([task], timeout=_PAGE_TIMEOUT_S)
        if not done:
            self._store_pending_rendering(_rendering_key(version, prompt, submission), task)
        rendering = task.result() if done else Rendering(prompt, submission.values, is_pending=True)
        context = await self._build_context(request, rendering, submission, query)
        tab = tab if tab in PANELS else _FIRST_TAB
        return self._render_page(request, "prompt.html", panels=PANELS, tab=tab, **context)

    async def render(self, request: Request) -> Response:
        """Update the page of a prompt after a change in its form."""
        prompt, version = self._find_prompt(request), self._get_version(request)
        async with open_form(request) as form:
            submission = read_submission(prompt.arguments, _argument_values(form), self._uploads)
            key = _rendering_key(version, prompt, submission)
            pending: Awaitable[Rendering] | None = self._pending.pop(key, None)
            if pending is None:
                pending = self._render_submission(version, prompt, submission, is_requested=_RENDER in form)
            rendering = await cancel_on_disconnect(request, pending)
            context = await self._build_context(request, rendering, submission, form)
        response = self._render_page(request, "prompt_update.html", **context)
        query = build_query(prompt.arguments, rendering.values)
        response.headers["HX-Replace-Url"] = prompt_path(prompt.name, query)
        return response

    async def complete(self, request: Request) -> Response:
        """Return suggestions for an argument while the user types."""
        version, prompt = self._get_version(request), self._find_prompt(request)
        argument = request.path_params["argument"]
        async with open_form(request) as form:
            values = dict(read_submission(prompt.arguments, _argument_values(form), self._uploads).values)
        typed = values.pop(argument, "")
        complete = partial(version.catalog.complete, prompt.name, argument, typed, values)
        completion, error_message = Completion(), ""
        try:
            call = version.calls.call((prompt.name, argument), complete, time_limit())
            completion = await cancel_on_disconnect(request, call)
        except (CancelledError, ClientDisconnect):
            raise
        except BaseException as error:  # noqa: BLE001 (authors' code can raise anything)
            message = describe_failure(f"completing {argument!r}", error)
            error_message = Redactor.of(prompt.arguments, values).redacted(message)
        return self._render_page(request, "completions.html", completion=completion, error=error_message)

    async def save_case(self, request: Request) -> Response:
        """Save the values of the form as a case in the prompt's file, whose change reloads the page."""
        prompt, version = self._find_prompt(request), self._get_version(request)
        async with open_form(request) as form:
            name = str(form.get(_CASE_NAME, ""))
            submission = read_submission(prompt.arguments, _argument_values(form), self._uploads)
        rendering = await cancel_on_disconnect(request, self._render_submission(version, prompt, submission))
        try:
            await to_thread(save_case, rendering, name)
        except CaseNotSavedError as error:
            return PlainTextResponse(f"Not saved: {error}.")
        return PlainTextResponse(f"Saved in {Path(prompt.location.file).name}.")

    async def show_tab(self, request: Request) -> Response:
        """Show a tab other than the conversation."""
        prompt, tab = self._find_prompt(request), request.path_params["tab"]
        if tab not in PANELS:
            raise HTTPException(404, f"Unknown tab {tab!r}.")
        async with open_form(request) as form:
            submission = read_submission(prompt.arguments, _argument_values(form), self._uploads)
        show = {"cases": self._show_cases, "changes": self._show_changes}.get(tab, self._show_content)
        return await show(request, prompt, submission)

    async def _show_cases(self, request: Request, prompt: CompiledPrompt, _form: Submission) -> Response:
        pending = render_cases(self._get_version(request).calls, prompt, self._media)
        views = await cancel_on_disconnect(request, pending)
        return self._render_page(request, "cases.html", prompt=prompt, views=views)

    async def _show_changes(self, request: Request, prompt: CompiledPrompt, form: Submission) -> Response:
        choice = request.query_params.get("choice", "")
        pending = self._comparisons.find_changes(self._get_version(request), prompt, form, choice)
        changes = await cancel_on_disconnect(request, pending)
        return self._render_page(request, "changes.html", prompt=prompt, changes=changes, bases=BASE_LABELS)

    async def _show_content(self, request: Request, prompt: CompiledPrompt, form: Submission) -> Response:
        version, tab = self._get_version(request), request.path_params["tab"]
        rendering = await cancel_on_disconnect(request, self._render_submission(version, prompt, form))
        target = target_of(prompt.location.file, self._targets)
        choice, identity = request.query_params.get("choice", ""), self._live.identity
        build = partial(build_tab, tab, rendering, target, choice, identity=identity)
        try:
            call = version.calls.call((prompt.name, tab), build, time_limit(prompt))
            content = await cancel_on_disconnect(request, call)
        except CallTimeoutError as error:
            content = TabContent(tab, notes=(f"Prompt {prompt.name!r} {error}.",))
        return self._render_page(request, "tab.html", prompt=prompt, content=content, media=self._media)

    def _initial_submission(self, prompt: CompiledPrompt, query: QueryParams) -> Submission:
        """Return the initial values of a form: from the URL or, if it has none, from a case or an example."""
        case, values = query.get(_CASE), _argument_values(query)
        if case is None and values:
            return read_submission(prompt.arguments, values, self._uploads)
        return Submission(choose_initial_values(prompt, case))

    async def _render_submission(
        self,
        version: CatalogVersion,
        prompt: CompiledPrompt,
        submission: Submission,
        *,
        is_requested: bool = False,
    ) -> Rendering:
        """Render the submitted values of a form."""
        rendering = await render(version.calls, prompt, submission.values, is_requested=is_requested)
        if submission.errors:
            invalid = {error.argument for error in submission.errors}
            other_errors = [error for error in rendering.argument_errors if error.argument not in invalid]
            errors = (*submission.errors, *other_errors)
            rendering = Rendering(prompt, submission.values, argument_errors=errors)
        return attrs.evolve(rendering, uploads=submission.uploads)

    def _store_pending_rendering(self, key: _RenderingKey, task: asyncio.Task[Rendering]) -> None:
        """Store a slow rendering until the page requests it, and cancel it if no request arrives in time."""
        self._pending[key] = task

        def expire() -> None:
            if self._pending.pop(key, None) is task:
                task.cancel()

        asyncio.get_running_loop().call_later(_REQUESTED_WITHIN_S, expire)

    async def _build_context(
        self,
        request: Request,
        rendering: Rendering,
        submission: Submission,
        form: FormData | QueryParams,
    ) -> Mapping[str, Any]:
        """Return the values for the templates of a prompt's page."""
        prompt, workflow = rendering.prompt, rendering.workflow
        builder = ConversationBuilder(self._media, rendering.redact)
        full_turn, turns = parse_number(form.get(SHOW_ALL)), list[TurnView]()
        # Use threads, because this takes a while for long text.
        fields = await to_thread(
            build_fields, prompt.arguments, submission, self._uploads, rendering.argument_errors
        )
        if workflow is not None:
            turns = await to_thread(builder.build_turns, workflow, full_turn)
        return {
            "prompt": prompt,
            "file_diagnostics": self._get_version(request).diagnostics_in_file(prompt.location),
            "rendering": rendering,
            "fields": fields,
            "turns": turns,
            "cases": [
                # The submitted values can differ from those in the chosen case, because the form omits
                # secrets.
                (case, case.name == form.get(_CASE) or values == rendering.values)
                for case, values in iterate_sendable(prompt.saved())
            ],
        }

    def _find_prompt(self, request: Request) -> CompiledPrompt:
        name = request.path_params["name"]
        try:
            return self._get_version(request).catalog[name]
        except UnknownPromptError as error:
            message = str(error)
            raise HTTPException(404, message[:1].upper() + message[1:]) from None


def _rendering_key(version: CatalogVersion, prompt: CompiledPrompt, form: Submission) -> _RenderingKey:
    return version.number, prompt.name, frozenset(form.values.items())


def _argument_values(form: FormData | QueryParams) -> FormData:
    """Return the argument values in a form or a link, without the parameters for actions."""
    reserved = (SHOW_ALL, _RENDER, _TAB, _CASE, _CASE_NAME)
    return FormData([pair for pair in form.multi_items() if pair[0] not in reserved])
