"""
Elicitation: asks the person at the client for required arguments that are missing.

A client with a session gets a request, and answers it. A modern client gets a result that says
what to ask for, and repeats its own request with the answers. See
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import Any, Final

from msgspec import UNSET, Struct

from promptkit.catalog.arguments import Argument
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import ArgumentsError
from promptkit.protocol import wire
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import MissingCapability, RequestId
from promptkit.protocol.key_ring import RequestStateSigner
from promptkit.server import elicitation_forms
from promptkit.server.dispatch import Dispatcher
from promptkit.server.pending import PendingRequest

#: How long to wait for an answer: people need time to think. A `requestState` is valid for as long.
_ANSWER_WITHIN_S: Final = 900.0

_METHOD: Final = "elicitation/create"

#: How often a person is asked for one request: once more if the first answer is incomplete.
_MAX_QUESTIONS: Final = 2

#: How a `requestState` begins: with the number of questions asked so far.
_COUNTS: Final = frozenset(str(asked + 1) for asked in range(_MAX_QUESTIONS))

#: The key of the only question in an `InputRequiredResult`.
_KEY: Final = "arguments"


class Question(Struct, frozen=True):
    """
    A question to a person about arguments that a request lacks.

    Args:
        pending:
            The request.

        prompt:
            The prompt that is requested.

        given:
            The arguments that the client sent.

        errors:
            What is wrong with these arguments; also the reply if the person does not help.

        asked:
            How many questions were asked for the request so far.
    """

    pending: PendingRequest
    prompt: CompiledPrompt
    given: Mapping[str, Any]
    errors: ArgumentsError
    asked: int = 0

    def answered(self, result: Any) -> dict[str, Any]:
        """
        Return the arguments with what the person has entered.

        Args:
            result:
                The result of an ``elicitation/create`` request; None if it was an error.

        Raises:
            ArgumentsError: If the person declined.

            InvalidParams: If *result* is malformed.
        """
        names = {argument.name for argument in askable(self.prompt, self.errors)}
        entered = None if result is None else elicitation_forms.answers(result, names)
        if entered is None:
            raise self.errors
        return {**self.given, **entered}


class Elicitation:
    """
    Asks one client, with a session or without.

    Args:
        connection:
            The client.

        dispatcher:
            Holds a request while its question is open.

        send:
            Sends whole lines. It may be called from several threads.

        answer_within:
            How long to wait for an answer, in seconds.

        signer:
            Signs each ``requestState``; by default one whose key nobody else has.
    """

    def __init__(
        self,
        connection: Connection,
        dispatcher: Dispatcher,
        send: Callable[[bytes], None],
        answer_within: float = _ANSWER_WITHIN_S,
        signer: "RequestStateSigner | None" = None,
    ) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._send = send
        self._answer_within = answer_within
        self._open: dict[RequestId, Question] = {}
        # Held while a question is sent or withdrawn. The request may be answered otherwise at any moment:
        # then the question is either never sent, or sent first and withdrawn after. Reentrant, as a client
        # in this process may answer at once.
        self._asking = RLock()
        self._made_signer = signer

    def arguments(self, pending: PendingRequest, prompt: CompiledPrompt) -> tuple[dict[str, Any] | None, int]:
        """
        Return the arguments of a repeated request, and how many questions were asked for it.

        Without a ``requestState``, or with one that has expired, nothing was asked: its answers do not count.

        Raises:
            InvalidParams: If its ``requestState`` was not issued by this server for this request.

            ArgumentsError: If the person declined.
        """
        request = pending.request
        params: wire.GetPromptParams = request.params
        answers, state = params.input_responses, params.request_state
        if state is UNSET or not request.revision.stateless:
            return params.arguments, 0
        asked, token = _counted(state)
        if not self._signer.is_fresh(token, request.method, _signed(request, asked)):
            return params.arguments, 0
        errors = _errors(prompt, params.arguments)
        if errors is None or not answers or _KEY not in answers:
            return params.arguments, asked
        return Question(pending, prompt, params.arguments or {}, errors).answered(answers[_KEY]), asked

    def params(self, question: Question) -> dict[str, Any]:
        """
        Return the params of the ``elicitation/create`` request that asks *question*.

        Raises:
            ArgumentsError: If the person cannot be asked, or was asked often enough.

            MissingCapability: If the client declared elicitation before, but no longer does.
        """
        request, prompt, errors = question.pending.request, question.prompt, question.errors
        if question.asked >= _MAX_QUESTIONS:
            raise errors
        if not askable(prompt, errors):
            raise errors
        if not self._can_ask(request):
            if request.params.request_state is UNSET or not request.revision.stateless:
                raise errors
            msg = "arguments are still missing, but the request no longer declares elicitation"
            raise MissingCapability(msg, {"requiredCapabilities": {"elicitation": {"form": {}}}})
        if request.revision.stateless:
            # The next retry carries only the answers to this question, so ask for all that is missing.
            errors = _errors(prompt, request.params.arguments) or errors
        wanted = askable(prompt, errors)
        modes = request.revision.elicitation_modes
        return elicitation_forms.elicitation(prompt, wanted, modes=modes, again=question.asked > 0)

    def input_required(self, question: Question, params: dict[str, Any]) -> wire.InputRequiredResult:
        """
        Return the result that makes a modern client ask *question* and repeat its request.

        Args:
            question:
                What is asked.

            params:
                What `params` returned for it.
        """
        request, asked = question.pending.request, question.asked + 1
        state = f"{asked}.{self._signer.sign(request.method, _signed(request, asked))}"
        requests = {_KEY: {"method": _METHOD, "params": params}}
        return wire.InputRequiredResult(requests, state, result_type="input_required")

    def ask(self, question: Question, params: dict[str, Any]) -> None:
        """
        Ask a client that has a session. The request is held open until the client answers.

        Args:
            question:
                What is asked.

            params:
                What `params` returned for it.

        See Also:
            https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#timeouts
        """
        self._dispatcher.check_held()
        question_id, line = self._connection.ask(_METHOD, params)
        deadline = time.monotonic() + self._answer_within
        withdraw = partial(self._withdraw, question_id)
        with self._asking:
            if not self._dispatcher.hold(question.pending, withdraw, lambda: question.errors, deadline):
                return  # its deadline has passed, or its client has cancelled it
            self._open[question_id] = question
            self._connection.expect(question_id)  # not earlier: a client may guess the id and answer too soon
            self._send(line)

    def answered(self, question_id: RequestId) -> Question | None:
        """
        Return the question that the client has answered; None if it is no longer open.

        The caller must then answer the request: nothing else will.
        """
        question = self._open.pop(question_id, None)
        return question if question is not None and self._dispatcher.release(question.pending) else None

    def _withdraw(self, question_id: RequestId) -> None:
        with self._asking:
            if self._open.pop(question_id, None):
                self._send(self._connection.withdraw(question_id))

    def _can_ask(self, request: Request) -> bool:
        """Whether the client can show forms: declaring elicitation without details implies it."""
        declared = request.capabilities.get("elicitation")
        ready = request.revision.stateless or self._connection.subscriptions.session
        return ready and isinstance(declared, dict) and (not declared or "form" in declared)

    @property
    def _signer(self) -> "RequestStateSigner":
        with self._asking:  # two signers would refuse each other's states
            if self._made_signer is None:
                self._made_signer = RequestStateSigner()
            return self._made_signer


def _errors(prompt: CompiledPrompt, given: Mapping[str, Any] | None) -> ArgumentsError | None:
    try:
        prompt.arguments.read(given)
    except ArgumentsError as errors:
        return errors.with_traceback(None)  # a traceback would keep the caller's frame alive
    return None


def _counted(state: str) -> tuple[int, str]:
    """Split a `requestState` into how many questions were asked, and the token that proves it."""
    asked, _, token = state.partition(".")
    return (int(asked), token) if asked in _COUNTS else (0, state)


def _signed(request: Request, asked: int) -> dict[str, Any]:
    """The parts of a request that must be the same when it is repeated, and who sends it."""
    params, principal = request.params, request.principal
    sender = {} if principal is None else {"sender": principal.identity}
    return {"name": params.name, "arguments": params.arguments or {}, "asked": asked, **sender}


def askable(prompt: CompiledPrompt, errors: ArgumentsError) -> tuple[Argument, ...]:
    """
    Return the arguments to ask for, in the order of the signature.

    Empty unless the prompt asks, and every fault is a missing argument that is not a secret: no form
    may ask for secrets.

    Args:
        prompt:
            The prompt that was asked for.

        errors:
            What is wrong with its arguments.
    """
    # A fault without `got` is a missing argument, or a secret; one with a path lies inside of a value.
    missing = {fault.argument for fault in errors.errors if fault.got is None and not fault.path}
    if not prompt.elicit or len(missing) < len(errors.errors):
        return ()
    wanted = tuple(argument for argument in prompt.arguments.ordered if argument.name in missing)
    if len(wanted) < len(missing) or any(argument.arg.secret for argument in wanted):
        return ()
    return wanted
