"""Handlers: what each method is answered with, from the catalog that is served."""

import time
from collections.abc import Callable, Coroutine
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar

from msgspec import UNSET, Raw

from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.language.messages import Workflow
from promptkit.protocol import wire
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Request, Response
from promptkit.protocol.jsonrpc import InternalError, encode
from promptkit.protocol.limits import Limits
from promptkit.protocol.lowering import Lowering, lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.protocol.sizes import check_given
from promptkit.server.context import context_of
from promptkit.server.elicitation.elicitation import Elicitation, Question
from promptkit.server.lookup import completer_of, hide, resource_of
from promptkit.server.rate_limit import TokenBucket
from promptkit.server.read_history import ReadHistory
from promptkit.server.replies import MISUSE, called, misused, reply_to
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.scheduling.workers import Worker
from promptkit.server.snapshot import Snapshot

__all__ = ["Handlers"]

T = TypeVar("T")

#: What takes less, in seconds, is tried on the reading thread again.
_QUICK: Final = 0.002


class Handlers:
    """
    Answers the requests of one client.

    Args:
        snapshot:
            What they are answered from. It may be replaced at any time.

        connection:
            The client.

        in_flight:
            Its requests that are answered later.

        executor:
            Where authors' code runs that is known to take its time.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        limits:
            How much is done at once, and how long it may take.

    Attributes:
        relieved:
            Whether a thread that is stuck in an author's code is relieved of reading.

        notify_lock:
            Held while the client is told of changes: nothing may come before the
            acknowledgement of a stream, or after its end.
    """

    def __init__(  # noqa: PLR0913 (these are what a request is answered with)
        self,
        snapshot: Snapshot,
        connection: Connection,
        *,
        in_flight: InFlight,
        executor: Executor,
        send: Callable[[bytes], None],
        limits: Limits,
    ) -> None:
        self.snapshot = snapshot
        self.relieved = False
        self.notify_lock = Lock()
        self.read_history = ReadHistory()
        self._connection = connection
        self._in_flight = in_flight
        self._executor = executor
        self._send = send
        self._limits = limits
        self._lowerings = {
            revision: lowering_for(revision, connection.identity) for revision in REVISIONS.values()
        }
        self._requests = TokenBucket(limits.rate, "requests")
        self._completions = TokenBucket(limits.completions, "requests for completion")
        self._elicitation = Elicitation(connection, in_flight, send)
        self._by_method: dict[str, Callable[[Request], bytes | None]] = {
            "prompts/list": self._list,
            "prompts/get": self._get,
            "completion/complete": self._complete,
            "resources/list": self._list,
            "resources/templates/list": self._list,
            "tools/list": self._list,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
        }

    def serve(self, request: Request) -> bytes | None:
        """
        Return the line that answers *request*, or None if it is answered later.
        """
        work = self._by_method[request.method] if self._requests.unlimited else self._counted
        return reply_to(request, work, self.snapshot.catalog, self._limits.reply)

    def _counted(self, request: Request) -> bytes | None:
        """
        Return the result of *request*, unless too much was asked for in too short a time.
        """
        self._requests.take()
        return self._by_method[request.method](request)

    def question(self, response: Response) -> Question | None:
        """
        Return what *response* answers; None if nobody waits for it any more.
        """
        return self._elicitation.answered(response.request_id)

    def resume(self, question: Question, answer: Any) -> bytes | None:
        """
        Return the line that answers the request for which *question* was asked, or None.
        """

        def work(request: Request) -> bytes | None:
            given = self._checked(question.prompt, question.answered(answer))
            return self._render(request, question.snapshot, question.prompt, given, question.asked + 1)

        return reply_to(question.request, work, question.snapshot.catalog, self._limits.reply)

    def detach(self, request: Request, worker: Worker) -> Job:
        """
        Make *request* one that is answered later, as *worker* is stuck in it.

        What it is about is not tried on a thread that reads again.
        """
        if (name := _name(request.about)) is not None:
            self.snapshot.slow.add((request.method, name))
        seconds, refusal = self._late(request)
        return self._executor.adopt(request, worker, seconds, refusal)

    def _late(self, request: Request) -> tuple[float, InternalError]:
        """
        Return how long a request may take, and what it is answered with if it takes longer.

        Whoever asks may hold up everybody: nothing is worked out here that depends on what the client sent.
        """
        about, seconds, shown = request.about, self._limits.seconds, request.method
        if isinstance(about, CompiledPrompt):
            shown = f"prompt {about.name!r}"
            if isinstance(request.params, wire.GetPromptParams):
                seconds = about.timeout or seconds
        elif about is not None:
            shown = f"resource {about.uri_template!r}"
        return seconds, InternalError(f"{shown} took longer than its {seconds:g} s")

    def _call(self, request: Request, work: Callable[[], bytes]) -> bytes | None:
        """
        Return what *work* returns, or None if it is done on a thread of its own.

        Args:
            request:
                What is answered.

            work:
                Calls the author's code that the request is about, and returns the result.
        """
        if self._is_quick(request):
            return work()
        self._later(request, work)
        return None

    def _is_quick(self, request: Request, timeout: float | None = None) -> bool:
        """
        Return whether what `_call` is asked for is done on this thread.

        Args:
            request:
                What is answered.

            timeout:
                How long its author lets it take, in seconds.

        Raises:
            TooManyRequests: If it is, and as much goes on beside it as may.
        """
        if request.held:  # reading its arguments took so long that another thread reads by now
            return True
        slow = self.snapshot.slow
        if (slow and (request.method, _name(request.about)) in slow) or (
            timeout is not None and not self.relieved
        ):
            return False
        if self._executor.full:
            self._executor.check_room()
        return True

    def _later(self, request: Request, work: Callable[[], bytes]) -> None:
        """
        Do what `_call` is asked for on a thread of its own.
        """
        slow = self.snapshot.slow

        def timed_work(_request: Request) -> bytes:
            begun = time.monotonic()
            result = work()
            if time.monotonic() - begun < _QUICK:  # it was the machine that was slow, or the first time
                slow.discard((request.method, _name(request.about)))
            return result

        reply = partial(reply_to, request, timed_work, self.snapshot.catalog, self._limits.reply)
        self._executor.run_function(request, lambda: reply() or b"", *self._late(request))

    def _lowering(self, request: Request) -> Lowering:
        """
        Return what writes results as the client understands them.
        """
        return self._lowerings[request.revision]

    def _list(self, request: Request) -> bytes:
        """
        Return one page of a list.
        """
        params: wire.PageParams = request.params
        return self.snapshot.page(request.method, request.revision, params.cursor)

    def _get(self, request: Request) -> bytes | None:
        """
        Return a rendered prompt, or what has to be asked first.
        """
        snapshot, params = self.snapshot, request.params
        prompt = request.about = snapshot.catalog[params.name]
        if params.request_state is UNSET and params.input_responses is UNSET:
            if request.large:
                prompt.arguments.check_values(params.arguments or {}, self._limits.values)
            return self._render(request, snapshot, prompt, params.arguments)
        given, asked = self._elicitation.arguments(request, prompt)  # it is asked for once more
        return self._render(request, snapshot, prompt, self._checked(prompt, given), asked)

    def _checked(self, prompt: CompiledPrompt, given: dict[str, Any] | None) -> dict[str, Any] | None:
        """
        Return what is *given*, with what a person has entered.

        Raises:
            InvalidParams: If it is too much, or too long.

            ArgumentErrors: If a text in it holds too many values.
        """
        check_given({name: Raw(encode(value)) for name, value in (given or {}).items()}, self._limits)
        prompt.arguments.check_values(given or {}, self._limits.values)
        return given

    def _render(
        self,
        request: Request,
        snapshot: Snapshot,
        prompt: CompiledPrompt,
        given: dict[str, Any] | None,
        asked: int = 0,
    ) -> bytes | None:
        """
        Return *prompt*, rendered for what is *given*, or what has to be asked, and was *asked* before.
        """
        key = None if prompt.cache is None else snapshot.replies.key(prompt, request, given)
        if key is not None and (result := snapshot.replies.get(key)) is not None:
            return result
        context = None if prompt.context is None else context_of(request, self._send)
        if prompt.arguments.secret:
            hide(prompt.arguments, given)
        try:
            values = prompt.bind(given, context)
        except ArgumentErrors as errors:
            return self._ask(Question(request, snapshot, prompt, given or {}, errors, asked))
        if prompt.arguments.secret:
            hide(prompt.arguments, values, read=True)
        if prompt.renderer.is_async or not self._is_quick(request, prompt.timeout):
            self._render_beside(request, snapshot, prompt, key, values)
            return None
        try:
            said = prompt.renderer.say(values)
        except MISUSE as error:
            raise misused() from error
        return self._result(request, snapshot, prompt, key, said)

    def _render_beside(
        self, request: Request, snapshot: Snapshot, prompt: CompiledPrompt, key: Any, values: dict[str, Any]
    ) -> None:
        """
        Render *prompt* on an event loop, or on a thread of its own.
        """
        renderer = prompt.renderer

        def result(rendered: Callable[[], Workflow | str]) -> bytes:
            return self._result(request, snapshot, prompt, key, called(rendered))

        if renderer.is_async:
            self._await(request, renderer.render_async(**values), result)
        else:
            self._later(request, lambda: result(partial(renderer.say, values)))

    def _result(
        self, request: Request, snapshot: Snapshot, prompt: CompiledPrompt, key: Any, said: Workflow | str
    ) -> bytes:
        """
        Return the result, which is what *prompt* has *said*, and keep it if it has a *key*.
        """
        result = self._lowerings[request.revision].result(prompt, said)
        if key is not None:
            snapshot.replies.put(key, result, prompt.cache or 0)
        return result

    def _await(
        self, request: Request, coroutine: Coroutine[Any, Any, T], result: Callable[[Callable[[], T]], bytes]
    ) -> None:
        """
        Answer *request* with the *result* of what *coroutine* returns, later.
        """
        catalog = self.snapshot.catalog

        def finish(returned: Callable[[], T]) -> bytes:
            return reply_to(request, lambda _: result(returned), catalog, self._limits.reply) or b""

        self._executor.run_coroutine(request, coroutine, finish, *self._late(request))

    def _ask(self, question: Question) -> bytes | None:
        """
        Ask for what is missing; return what a client of the modern era is told instead.
        """
        request = question.request
        params = self._elicitation.params(question)
        if request.revision.stateless:
            result = self._elicitation.input_required(question, params)
            return self._lowering(request).results.encode_question(result)
        self._elicitation.ask(question, params)
        return None

    def _complete(self, request: Request) -> bytes | None:
        """
        Return what to offer for an argument of a prompt, or a variable of a template.
        """
        params: wire.CompleteParams = request.params
        self._completions.take()
        completer = completer_of(self.snapshot.catalog, request, params)
        lowering, typed = self._lowering(request), params.argument.value
        chosen = params.context.arguments if params.context else {}
        if completer is None:
            return lowering.completion(Completion())

        def finish(completed: Callable[[], Completion]) -> bytes:
            return lowering.completion(called(completed))

        if not completer.is_async:
            return self._call(request, lambda: finish(lambda: completer.complete(typed, chosen)))
        self._await(request, completer.complete_async(typed, chosen), finish)
        return None

    def _read(self, request: Request) -> bytes | None:
        """
        Return what a resource holds.
        """
        params: wire.ResourceParams = request.params
        resource, values = resource_of(self.snapshot.catalog, request, params)

        def work() -> bytes:
            content = called(resource.content, params.uri, values)
            self.read_history.note(content)
            return self._lowering(request).contents(content)

        return self._call(request, work)

    def _subscribe(self, request: Request) -> bytes:
        """
        Tell the session of updates of a resource from now on.
        """
        params: wire.ResourceParams = request.params
        resource_of(self.snapshot.catalog, request, params)
        self._connection.subscriptions.subscribe(params.uri)
        return b"{}"

    def _unsubscribe(self, request: Request) -> bytes:
        """
        Tell the session no longer.
        """
        self._connection.subscriptions.unsubscribe(request.params.uri)
        return b"{}"

    def _listen(self, request: Request) -> None:
        """
        Tell the client of changes until it, or the server, ends the request.
        """
        self._in_flight.check_room()
        subscriptions, offered = self._connection.subscriptions, self._connection.capabilities
        with self.notify_lock:
            acknowledgement = subscriptions.listen(request.id, request.params.notifications, offered)
            self._in_flight.hold(Job(request, partial(subscriptions.cancel, request.id), works=False))
            self._send(acknowledgement)


def _name(about: CompiledPrompt | CompiledResource | None) -> str | None:
    """
    Return what its author calls what a request is about; None if that is not found yet.
    """
    if about is None:
        return None
    return about.name if isinstance(about, CompiledPrompt) else about.uri_template
