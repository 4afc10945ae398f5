"""``prompts/get`` and ``tools/call``: a prompt is rendered, or the client is asked for what is missing."""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.tools import GET
from promptkit.errors.exceptions import ArgumentsError, UnknownPromptError, UnknownToolError
from promptkit.language.context import Context, Progress
from promptkit.language.messages import Workflow
from promptkit.protocol import wire
from promptkit.protocol.decoding import check_arguments
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode, encode_notification
from promptkit.protocol.limits import Limits
from promptkit.server.dispatch import Dispatcher
from promptkit.server.elicitation import Elicitation, Question
from promptkit.server.lookup import read_hidden
from promptkit.server.pending import PendingRequest
from promptkit.server.request_limits import REPORTS_PER_S, TokenBucket
from promptkit.server.user_code import call_author


class PromptMethods:
    """
    Answers ``prompts/get`` and ``tools/call``.

    Args:
        dispatcher:
            Runs authors' functions.

        elicitation:
            Asks the client for missing arguments.

        send:
            Takes whole lines to be sent, such as reports of progress.

        limits:
            How much a client may send.
    """

    def __init__(
        self, dispatcher: Dispatcher, elicitation: Elicitation, send: Callable[[bytes], None], limits: Limits
    ) -> None:
        self._dispatcher = dispatcher
        self._elicitation = elicitation
        self._send = send
        self._limits = limits

    def get(self, pending: PendingRequest) -> bytes | None:
        """Return the result; None if it comes later. What the request is about may be known already."""
        request = pending.request
        params = request.params
        prompt = pending.about
        if prompt is None:
            prompt = pending.about = pending.snapshot.catalog[params.name]
        if params.request_state is UNSET and params.input_responses is UNSET:
            if request.large:
                prompt.arguments.check_values(params.arguments or {}, self._limits.values)
            return self._render(pending, prompt, params.arguments)
        # A modern client sends its request once more, with what the person has entered.
        given, asked = self._elicitation.arguments(pending, prompt)
        return self._render(pending, prompt, self._checked(prompt, given), asked)

    def call(self, pending: PendingRequest) -> bytes | None:
        """Return the result of ``tools/call``; None if it comes later."""
        tools = pending.snapshot.tools
        pending.about = tools[pending.request.params.name]
        if tools.is_search and pending.about.name == GET:
            self._unwrap(pending)
        return self.get(pending)

    def _unwrap(self, pending: PendingRequest) -> None:
        """From now on, a call of the tool that gets a prompt is one of that prompt."""
        request = pending.request
        params = request.params
        arguments = pending.about.arguments
        if request.large:
            arguments.check_values(params.arguments or {}, self._limits.values)
        given = arguments.read(params.arguments)
        try:
            pending.about = pending.snapshot.tools.prompt(given["name"])
        except UnknownToolError as error:
            raise UnknownPromptError(error.name, error.nearest) from None
        params.name, params.arguments = given["name"], given.get("arguments")

    def resume(self, question: Question, answer: Any, pending: PendingRequest) -> bytes | None:
        """Return the result, now that a client with a session has answered *question*."""
        given = self._checked(question.prompt, question.answered(answer))
        return self._render(pending, question.prompt, given, question.asked + 1)

    def _checked(self, prompt: CompiledPrompt, given: dict[str, Any] | None) -> dict[str, Any] | None:
        """Check the sizes of arguments that do not all come from one request."""
        check_arguments({name: Raw(encode(value)) for name, value in (given or {}).items()}, self._limits)
        prompt.arguments.check_values(given or {}, self._limits.values)
        return given

    def _render(
        self, pending: PendingRequest, prompt: CompiledPrompt, given: dict[str, Any] | None, asked: int = 0
    ) -> bytes | None:
        """Render *prompt*, or ask for what is missing. *asked* is how often that was done before."""
        key = None
        if prompt.cache is not None:
            replies = pending.snapshot.replies
            key = replies.key(prompt, pending.request, given)
            if key is not None and (result := replies.get(key)) is not None:
                return result
        arguments = prompt.arguments
        try:
            read = arguments.read
            values = read_hidden(arguments, given, read) if arguments.secret else read(given)
        except ArgumentsError as errors:
            return self._ask(Question(pending, prompt, given or {}, errors, asked))
        if prompt.context is not None:
            values[prompt.context] = _context(pending.request, pending.request.sender(self._send))
        renderer, most = prompt.renderer, self._limits.reply
        if prompt.timeout is not None:
            self._dispatcher.set_limit(pending, prompt.timeout)
        if renderer.is_async:
            self._dispatcher.call_on_loop(
                pending,
                renderer.render_awaited(values, most=most),
                lambda ended: _result(pending, key, lambda *_: ended(), values, most),
            )
            return None
        return self._dispatcher.call(
            pending, partial(_result, pending, key, renderer.render_sync, values, most)
        )

    def _ask(self, question: Question) -> bytes | None:
        """Ask for what is missing: with the result in the modern era, else with a request."""
        pending, revision = question.pending, question.pending.request.revision
        if not question.prompt.elicit or not revision.elicitation:
            raise question.errors
        params = self._elicitation.params(question)
        if revision.stateless:
            pending.asks = True
            result = self._elicitation.input_required(question, params)
            return pending.snapshot.lowerings[revision].results.encode(result)
        self._elicitation.ask(question, params)
        return None


def _result(
    pending: PendingRequest,
    key: Any,
    render: Callable[[dict[str, Any], int], Workflow | str],
    values: dict[str, Any],
    most: int,
) -> bytes:
    rendered = call_author(render, values, most)
    request, prompt = pending.request, pending.about
    lowering = pending.snapshot.lowerings[request.revision]
    is_call = request.method == "tools/call"
    result = lowering.tool_result(rendered) if is_call else lowering.result(prompt, rendered)
    if key is not None:
        pending.snapshot.replies.put(key, result, prompt.cache or 0)
    return result


def _context(request: Request, send: Callable[[bytes], None]) -> "Context":
    """What a prompt may know of the request that it answers; *send* takes whole lines."""
    client = request.client
    progress = Progress(_progress_sender(request, send))
    request.when_answered(lambda _: progress.end())
    return Context(
        client_name=client.name if client else "",
        client_version=client.version if client else "",
        revision=request.revision.date,
        request_id=request.id,
        capabilities=request.capabilities,
        progress=progress,
    )


def _progress_sender(
    request: Request, send: Callable[[bytes], None]
) -> Callable[[float, float | None, str | None], None] | None:
    """What sends reports of progress; None if the client does not want them."""
    meta = request.params.meta
    if not meta or meta.progress_token is UNSET:
        return None
    has_messages = request.revision.progress_messages
    bucket = TokenBucket(REPORTS_PER_S, "reports of progress")

    def report(progress: float, total: float | None, message: str | None) -> None:
        if not bucket.allows():
            return
        params = wire.ProgressParams(
            meta.progress_token,
            progress,
            UNSET if total is None else total,
            UNSET if message is None or not has_messages else message,
        )
        send(encode_notification("notifications/progress", params))

    return report
