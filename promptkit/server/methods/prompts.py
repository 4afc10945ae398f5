"""``prompts/get``: a prompt is rendered, or the client is asked for what is missing."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.errors.interruptions import call_interruptible
from promptkit.language.messages import Workflow
from promptkit.protocol.jsonrpc import encode
from promptkit.protocol.limits import Limits
from promptkit.protocol.lowering import Lowering
from promptkit.protocol.revisions import Revision
from promptkit.server.calls import NESTED_REFUSALS, Calls, call_author, nested_refusal
from promptkit.server.exchange import Exchange

if TYPE_CHECKING:
    from promptkit.server.elicitation.elicitation import Elicitation, Question

__all__ = ["PromptMethods"]


class PromptMethods:
    """
    Answers ``prompts/get``.

    Args:
        calls:
            Calls authors' functions.

        elicitation:
            Returns what asks the client for missing arguments. It is made when it is needed first.

        lowerings:
            What writes results, by revision.

        send:
            Takes whole lines to be sent, such as reports of progress.

        limits:
            How much a client may send.
    """

    #: Encodes what a prompt rendered to as the result of the method.
    _encode: Callable[[Lowering, CompiledPrompt, Workflow | str], bytes] = staticmethod(Lowering.result)

    def __init__(
        self,
        calls: Calls,
        elicitation: "Callable[[], Elicitation]",
        lowerings: dict[Revision, Lowering],
        send: Callable[[bytes], None],
        limits: Limits,
    ) -> None:
        self._calls = calls
        self._elicitation = elicitation
        self._lowerings = lowerings
        self._send = send
        self._limits = limits

    def get(self, exchange: Exchange) -> bytes | None:
        """Return the result; None if it comes later. What the request is about may be known already."""
        request = exchange.request
        params = request.params
        prompt = exchange.about
        if prompt is None:
            prompt = exchange.about = exchange.snapshot.catalog[params.name]
        if params.request_state is UNSET and params.input_responses is UNSET:
            if request.large:
                prompt.arguments.check_values(params.arguments or {}, self._limits.values)
            return self._render(exchange, prompt, params.arguments)
        # A modern client sends its request once more, with what the person has entered.
        given, asked = self._elicitation().arguments(request, prompt)
        return self._render(exchange, prompt, self._checked(prompt, given), asked)

    def resume(self, question: "Question", answer: Any, exchange: Exchange) -> bytes | None:
        """Return the result, now that a client with a session has answered *question*."""
        given = self._checked(question.prompt, question.answered(answer))
        return self._render(exchange, question.prompt, given, question.asked + 1)

    def _checked(self, prompt: CompiledPrompt, given: dict[str, Any] | None) -> dict[str, Any] | None:
        """Check the sizes of arguments that do not all come from one request."""
        from promptkit.protocol.limit_checks import check_arguments  # most prompts never ask

        check_arguments({name: Raw(encode(value)) for name, value in (given or {}).items()}, self._limits)
        prompt.arguments.check_values(given or {}, self._limits.values)
        return given

    def _render(
        self, exchange: Exchange, prompt: CompiledPrompt, given: dict[str, Any] | None, asked: int = 0
    ) -> bytes | None:
        """Render *prompt*, or ask for what is missing. *asked* is how often that was done before."""
        replies = exchange.snapshot.replies
        key = None if prompt.cache is None else replies.key(prompt, exchange.request, given)
        if key is not None and (result := replies.get(key)) is not None:
            return result
        arguments = prompt.arguments
        try:
            values = _read_hidden(arguments, given) if arguments.secret else arguments.read(given)
        except ArgumentErrors as errors:
            return self._ask(exchange, prompt, given or {}, errors, asked)
        if prompt.context is not None:
            from promptkit.server.context import context_of  # most prompts take no context

            values[prompt.context] = context_of(exchange.request, exchange.request.sender(self._send))
        if prompt.renderer.is_async or not self._calls.runs_here(exchange, prompt.timeout):
            self._render_elsewhere(exchange, prompt, key, values)
            return None
        try:
            said = call_interruptible(prompt.renderer.render_sync, values)
        except NESTED_REFUSALS as error:
            raise nested_refusal() from error
        return self._result(exchange, prompt, key, said)

    def _render_elsewhere(
        self, exchange: Exchange, prompt: CompiledPrompt, key: Any, values: dict[str, Any]
    ) -> None:
        renderer = prompt.renderer

        def result(rendered: Callable[[], Workflow | str]) -> bytes:
            return self._result(exchange, prompt, key, call_author(rendered))

        if renderer.is_async:
            self._calls.call_on_loop(exchange, renderer.render_async(**values), result)
        else:
            self._calls.call_on_thread(exchange, lambda: result(partial(renderer.render_sync, values)))

    def _result(self, exchange: Exchange, prompt: CompiledPrompt, key: Any, said: Workflow | str) -> bytes:
        result = self._encode(self._lowerings[exchange.request.revision], prompt, said)
        if key is not None:
            exchange.snapshot.replies.put(key, result, prompt.cache or 0)
        return result

    def _ask(
        self,
        exchange: Exchange,
        prompt: CompiledPrompt,
        given: dict[str, Any],
        errors: ArgumentErrors,
        asked: int,
    ) -> bytes | None:
        """Ask for what is missing: with the result in the modern era, else with a request."""
        request = exchange.request
        if not prompt.elicit or not request.revision.elicitation:
            raise errors
        from promptkit.server.elicitation.elicitation import Question  # most prompts never ask

        question = Question(exchange, prompt, given, errors, asked)
        elicitation = self._elicitation()
        params = elicitation.params(question)
        if request.revision.stateless:
            result = elicitation.input_required(question, params)
            return self._lowerings[request.revision].results.encode_question(result)
        elicitation.ask(question, params)
        return None


def _read_hidden(arguments: Arguments, given: dict[str, Any] | None) -> dict[str, Any]:
    """Read arguments of which some are secret, and hide those in what is printed from now on."""
    from promptkit.server.lookup import hide  # few prompts take secrets

    hide(arguments, given)
    values = arguments.read(given)
    hide(arguments, values, read=True)
    return values
