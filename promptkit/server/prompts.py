"""``prompts/get`` and ``tools/call``: renders a prompt, or asks the client for missing arguments."""

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
from promptkit.server.lookup import call_author, read_hiding_secrets
from promptkit.server.pending import PendingRequest
from promptkit.server.request_limits import REPORTS_PER_S, TokenBucket


class PromptMethods:
    """
    The handlers of ``prompts/get`` and ``tools/call``.

    Args:
        dispatcher:
            The dispatcher, which runs authors' functions.

        elicitation:
            The elicitation, which asks the client for missing arguments.

        send:
            A function that sends whole lines, such as progress notifications.

        limits:
            The limits on requests and replies.
    """

    def __init__(
        self, dispatcher: Dispatcher, elicitation: Elicitation, send: Callable[[bytes], None], limits: Limits
    ) -> None:
        self._dispatcher = dispatcher
        self._elicitation = elicitation
        self._send = send
        self._limits = limits

    def get(self, pending: PendingRequest) -> bytes | None:
        """Return the result of ``prompts/get``, or None if the reply is sent later."""
        request = pending.request
        params = request.params
        prompt = pending.about
        if prompt is None:
            prompt = pending.about = pending.snapshot.catalog[params.name]
        if params.request_state is None and params.input_responses is None:
            if request.large:
                prompt.arguments.check_values(params.arguments or {}, self._limits.values)
            return self._render(pending, prompt, params.arguments)
        # A modern client repeats its request with the values that the user has entered.
        supplied, count = self._elicitation.arguments(pending, prompt)
        return self._render(pending, prompt, self._check_arguments(prompt, supplied), count)

    def list(self, pending: PendingRequest) -> bytes:
        """Return the result of ``prompts/list``, in which forms can replace required arguments."""
        request = pending.request
        forms = self._elicitation.needs_forms(request)
        return pending.snapshot.page(request.method, request.revision, request.params.cursor, forms=forms)

    def call(self, pending: PendingRequest) -> bytes | None:
        """Return the result of ``tools/call``, or None if the reply is sent later."""
        tools = pending.snapshot.tools
        pending.about = tools[pending.request.params.name]
        if tools.is_search and pending.about.name == GET:
            self._resolve_tool(pending)
        return self.get(pending)

    def _resolve_tool(self, pending: PendingRequest) -> None:
        """Turn a call of the tool that renders prompts by name into a call of that prompt."""
        request = pending.request
        params = request.params
        arguments = pending.about.arguments
        if request.large:
            arguments.check_values(params.arguments or {}, self._limits.values)
        supplied = arguments.read(params.arguments)
        try:
            pending.about = pending.snapshot.tools.prompt(supplied["name"])
        except UnknownToolError as error:
            raise UnknownPromptError(error.name, error.nearest) from None
        params.name, params.arguments = supplied["name"], supplied.get("arguments")

    def resume(self, question: Question, answer: Any, pending: PendingRequest) -> bytes | None:
        """Return the result after a client with a session has answered *question*."""
        supplied = self._check_arguments(question.prompt, question.merge_answer(answer))
        return self._render(pending, question.prompt, supplied, question.count + 1)

    def _check_arguments(
        self, prompt: CompiledPrompt, supplied: dict[str, Any] | None
    ) -> dict[str, Any] | None:
        """Check the sizes of arguments that come from several messages, and return the arguments."""
        check_arguments({name: Raw(encode(value)) for name, value in (supplied or {}).items()}, self._limits)
        prompt.arguments.check_values(supplied or {}, self._limits.values)
        return supplied

    def _render(
        self, pending: PendingRequest, prompt: CompiledPrompt, supplied: dict[str, Any] | None, count: int = 0
    ) -> bytes | None:
        """Render *prompt*, or ask for missing arguments, after *count* earlier questions."""
        key = None
        if prompt.cache is not None:
            replies = pending.snapshot.replies
            key = replies.key(prompt, pending.request, supplied)
            if key is not None and (result := replies.get(key)) is not None:
                return result
        arguments = prompt.arguments
        try:
            values = read_hiding_secrets(arguments, supplied, arguments.read)
        except ArgumentsError as errors:
            return self._ask(Question(pending, prompt, supplied or {}, errors, count))
        if prompt.context is not None:
            values[prompt.context] = _context(pending.request, pending.request.sender(self._send))
        renderer, limit = prompt.renderer, self._limits.reply
        if prompt.timeout is not None:
            self._dispatcher.set_limit(pending, prompt.timeout)
        if renderer.is_async:
            self._dispatcher.call_on_loop(
                pending,
                renderer.render_awaited(values, limit=limit),
                lambda get_result: _result(pending, key, lambda *_: get_result(), values, limit),
            )
            return None
        return self._dispatcher.call(
            pending, partial(_result, pending, key, renderer.render_sync, values, limit)
        )

    def _ask(self, question: Question) -> bytes | None:
        """Ask for missing arguments: with a result in the modern era, otherwise with a request."""
        pending, revision = question.pending, question.pending.request.revision
        is_call, elicit = pending.request.method == "tools/call", question.prompt.elicit
        if elicit is False or (is_call and elicit is None) or not revision.elicitation:
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
    limit: int,
) -> bytes:
    rendered = call_author(render, values, limit)
    request, prompt = pending.request, pending.about
    lowering = pending.snapshot.lowerings[request.revision]
    is_call = request.method == "tools/call"
    result = lowering.tool_result(rendered) if is_call else lowering.result(prompt, rendered)
    if key is not None:
        pending.snapshot.replies.put(key, result, prompt.cache or 0)
    return result


def _context(request: Request, send: Callable[[bytes], None]) -> "Context":
    """Return the context of a prompt for *request*; *send* sends whole lines."""
    client = request.client
    progress = Progress(_progress_sender(request, send))
    request.when_answered(lambda _: progress.end())
    return Context(
        client_name=client.name if client else "",
        client_version=client.version or "" if client else "",
        revision=request.revision.date,
        request_id=request.id,
        capabilities=request.capabilities,
        progress=progress,
    )


def _progress_sender(
    request: Request, send: Callable[[bytes], None]
) -> Callable[[float, float | None, str | None], None] | None:
    """Return a function that sends progress notifications, or None if the client did not request them."""
    meta = request.params.meta
    if not meta or meta.progress_token is None:
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
