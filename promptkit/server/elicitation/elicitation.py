"""
Elicitation: the person at the client is asked for required arguments that are missing.

A client with a session is sent a request, and answers it. A client of the modern era gets a
result that says what to ask for, and sends its own request once more, with the answers. See
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.protocol import wire
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import InvalidParams, MissingCapability, RequestId
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.snapshot import Snapshot

if TYPE_CHECKING:
    from promptkit.protocol.request_state import Seal

__all__ = ["Elicitation", "Question"]

#: How long an answer is waited for, in seconds: people think, and a state lasts as long.
_PATIENCE: Final = 900.0

_METHOD: Final = "elicitation/create"

#: How often a person is asked for one request: once more if something is left out.
_MOST_QUESTIONS: Final = 2

#: How a state says how often that was.
_COUNTS: Final = frozenset(str(asked + 1) for asked in range(_MOST_QUESTIONS))

#: What the one thing that a modern client is asked for is called.
_KEY: Final = "arguments"


class Question(Struct, frozen=True):
    """
    What is asked because a request lacks arguments.

    Args:
        request:
            The request.

        snapshot:
            What it is answered from.

        prompt:
            The prompt that it asks for.

        given:
            The arguments that it has.

        errors:
            What is wrong with them. The request is answered so if nothing else is learnt.

        asked:
            How many questions were asked for the request before.
    """

    request: Request
    snapshot: Snapshot
    prompt: CompiledPrompt
    given: Mapping[str, Any]
    errors: ArgumentErrors
    asked: int = 0

    def answered(self, result: Any) -> dict[str, Any]:
        """
        Return the arguments with what the person has entered.

        Args:
            result:
                The result of an ``elicitation/create`` request; None if there is none.

        Raises:
            ArgumentErrors: If the person would not say.

            InvalidParams: If *result* is no such result.
        """
        return _answered(self.prompt, self.given, self.errors, result)


class Elicitation:
    """
    Asks one client, in both eras.

    Args:
        connection:
            The client.

        in_flight:
            Its requests that are answered later.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        patience:
            How long an answer is waited for, in seconds.
    """

    def __init__(
        self,
        connection: Connection,
        in_flight: InFlight,
        send: Callable[[bytes], None],
        patience: float = _PATIENCE,
    ) -> None:
        self._connection = connection
        self._in_flight = in_flight
        self._send = send
        self._patience = patience
        self._open: dict[RequestId, tuple[Question, Job]] = {}
        # Held while a question is asked or taken back, as a request may be over at any moment: it is not
        # asked then, or taken back after it was asked. A client in this process may answer at once.
        self._asking = RLock()
        self._made_seal: Seal | None = None

    def arguments(self, request: Request, prompt: CompiledPrompt) -> tuple[dict[str, Any] | None, int]:
        """
        Return the arguments of a further request for *prompt*, and how many questions were asked for it.

        They are those that it bears, with what the person has entered since.

        Raises:
            InvalidParams: If it bears a state that is not from here, or answers without one.

            ArgumentErrors: If the person would not say what is missing.
        """
        params: wire.GetPromptParams = request.params
        answers, state = params.input_responses, params.request_state
        if not request.revision.stateless:
            return params.arguments, 0
        if state is UNSET:
            if not prompt.elicit:
                return params.arguments, 0
            msg = "inputResponses came without requestState: send back the one that asked for them"
            raise InvalidParams(msg)
        asked, token = _counted(state)
        self._seal.check(token, request.method, _sealed(params, asked))
        errors = _errors(prompt, params.arguments)
        if errors is None or not answers or _KEY not in answers:
            return params.arguments, asked
        return _answered(prompt, params.arguments or {}, errors, answers[_KEY]), asked

    def params(self, question: Question) -> dict[str, Any]:
        """
        Return the params of the ``elicitation/create`` request that asks *question*.

        Raises:
            ArgumentErrors: What is wrong, if the prompt, or the client, does not ask, or has asked
                often enough.

            MissingCapability: If the client asked before, and does not any more.
        """
        request, prompt, errors = question.request, question.prompt, question.errors
        if not prompt.elicit or not request.revision.elicitation or question.asked >= _MOST_QUESTIONS:
            raise errors
        from promptkit.server.elicitation import forms  # most prompts never ask

        if not forms.askable(prompt, errors):
            raise errors
        if not self._can_ask(request):
            if request.params.request_state is UNSET or not request.revision.stateless:
                raise errors
            msg = "the rest has to be asked for, and the request does not declare elicitation any more"
            raise MissingCapability(msg, {"requiredCapabilities": {"elicitation": {"form": {}}}})
        if request.revision.stateless:
            # Half an answer is not kept: the next retry bears only the answers to this question.
            errors = _errors(prompt, request.params.arguments) or errors
        wanted = forms.askable(prompt, errors)
        modes = request.revision.elicitation_modes
        again = question.asked > 0
        return forms.elicitation(prompt, wanted, modes=modes, multi_select=modes, again=again)

    def input_required(self, question: Question, params: dict[str, Any]) -> wire.InputRequiredResult:
        """
        Return the result that has a modern client ask *question* and come back.

        Args:
            question:
                What is asked.

            params:
                What `params` returned for it.
        """
        request, asked = question.request, question.asked + 1
        state = f"{asked}.{self._seal.seal(request.method, _sealed(request.params, asked))}"
        return wire.InputRequiredResult({_KEY: {"method": _METHOD, "params": params}}, state)

    def ask(self, question: Question, params: dict[str, Any]) -> None:
        """
        Ask a client that has a session.

        The request is in flight until the client answers or cancels it, or takes too long.

        Args:
            question:
                What is asked.

            params:
                What `params` returned for it.

        See Also:
            https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#timeouts
        """
        self._in_flight.check_room()
        question_id, line = self._connection.ask(_METHOD, params)
        request = question.request
        deadline = time.monotonic() + self._patience
        withdraw = partial(self._withdraw, question_id)
        job = Job(request, withdraw, refusal=question.errors, deadline=deadline, works=False)
        with self._asking:
            self._in_flight.hold(job)
            if request.settled:
                return
            self._open[question_id] = question, job
            self._connection.expect(question_id)  # not before: a client may answer what it was not asked yet
            self._send(line)

    def answered(self, question_id: RequestId) -> Question | None:
        """
        Return a question that its client has answered; None if it is open no longer.

        Whoever gets it has to answer its request: nobody else does.
        """
        question, job = self._open.pop(question_id, (None, None))
        return question if job is not None and self._in_flight.release(job) else None

    def _withdraw(self, question_id: RequestId) -> None:
        """
        Take a question back: its request is answered already, or never will be.
        """
        with self._asking:
            if self._open.pop(question_id, None):
                self._send(self._connection.withdraw(question_id))

    def _can_ask(self, request: Request) -> bool:
        """
        Return whether the client shows forms; one that says nothing more of elicitation does.

        With a session, it also has to have said that it is ready.
        """
        declared = request.capabilities.get("elicitation")
        ready = request.revision.stateless or self._connection.subscriptions.session
        return ready and isinstance(declared, dict) and (not declared or "form" in declared)

    @property
    def _seal(self) -> "Seal":
        if self._made_seal is None:
            from promptkit.protocol.request_state import Seal

            self._made_seal = Seal()
        return self._made_seal


def _errors(prompt: CompiledPrompt, given: Mapping[str, Any] | None) -> ArgumentErrors | None:
    """
    Return what is wrong with the arguments that a request has; None if nothing is.
    """
    try:
        prompt.arguments.read(given)
    except ArgumentErrors as errors:
        return errors.with_traceback(None)  # it leads to the frame of whoever keeps them
    return None


def _answered(
    prompt: CompiledPrompt, given: Mapping[str, Any], errors: ArgumentErrors, result: Any
) -> dict[str, Any]:
    """
    Return the arguments with what a person has entered for those that were missing.

    Raises:
        ArgumentErrors: *errors*, if the person would not say, or was not asked.

        InvalidParams: If *result* does not fit.
    """
    from promptkit.server.elicitation import forms

    names = {argument.name for argument in forms.askable(prompt, errors)}
    entered = None if result is None else forms.answers(result, names)
    if entered is None:
        raise errors
    return {**given, **entered}


def _counted(state: str) -> tuple[int, str]:
    """
    Return how many questions a state says were asked, and the token in it, which says whether that is so.
    """
    asked, _, token = state.partition(".")
    return (int(asked), token) if asked in _COUNTS else (0, state)


def _sealed(params: wire.GetPromptParams, asked: int) -> dict[str, Any]:
    """
    Return what of a request has to be the same when it comes back.
    """
    return {"name": params.name, "arguments": params.arguments or {}, "asked": asked}
