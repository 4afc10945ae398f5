"""Dispatch: each request finds what answers it, and leaves as a reply, now or later."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs

from promptkit.catalog import Catalog, CompiledPrompt, CompiledResource
from promptkit.completion import Completer, Completion
from promptkit.context import Context
from promptkit.errors import ArgumentErrors, UnknownResource
from promptkit.messages import Workflow
from promptkit.protocol import wire
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Request, Response
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    InvalidRequest,
    ResourceNotFound,
    encode_error,
)
from promptkit.protocol.lowering import Lowering, lowering_for
from promptkit.protocol.pages import PAGE_SIZE
from promptkit.protocol.results import Identity
from promptkit.protocol.revisions import MODERN
from promptkit.server.contexts import context_of
from promptkit.server.elicitation import Elicitation, Question
from promptkit.server.in_flight import InFlight
from promptkit.server.readings import Readings
from promptkit.server.replies import authors_code, reply_to
from promptkit.server.snapshot import Snapshot
from promptkit.version import VERSION

__all__ = ["Server"]

#: What a server says of itself unless somebody says otherwise.
PROMPTKIT: Final = Identity("promptkit", VERSION)


@attrs.frozen
class _Rendering:
    """
    One request for a prompt, while it is worked on.
    """

    request: Request
    prompt: CompiledPrompt
    snapshot: Snapshot
    context: Context | None
    key: Any

    def result(self, lowering: Lowering, rendered: Callable[[], Workflow]) -> bytes:
        """
        Return the result, once *rendered* has returned or raised.
        """
        try:
            with authors_code():
                workflow = rendered()
        finally:
            self.end()
        result = lowering.result(self.prompt, workflow)
        if self.key is not None:
            self.snapshot.replies.put(self.key, result, self.prompt.cache or 0)
        return result

    def end(self) -> None:
        """
        Say nothing more about it.
        """
        if self.context is not None:
            self.context.progress.end()


class Server:
    """
    Answers one client from a catalog.

    Args:
        catalog:
            What is served.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        identity:
            What the server says of itself.

        page_size:
            How many items a page of a list holds.

        changes:
            Whether `replace` may be called; if so, clients are told that lists may change.
    """

    def __init__(
        self,
        catalog: Catalog,
        send: Callable[[bytes], None],
        *,
        identity: Identity = PROMPTKIT,
        page_size: int = PAGE_SIZE,
        changes: bool = False,
    ) -> None:
        self._send = send
        self._identity = identity
        self._page_size = page_size
        self._snapshot = Snapshot(catalog, self._identity, page_size, changes=changes)
        self._connection = Connection(self._identity, self._snapshot.capabilities)
        self._elicitation = Elicitation(self._connection)
        self._in_flight = InFlight(send)
        self._readings = Readings()
        self._work: dict[str, Callable[[Request, Any], bytes | None]] = {
            "prompts/list": self._list,
            "prompts/get": self._get,
            "completion/complete": self._complete,
            "resources/list": self._list,
            "resources/templates/list": self._list,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
        }

    @property
    def catalog(self) -> Catalog:
        """
        What is served.
        """
        return self._snapshot.catalog

    def receive_data(self, data: bytes) -> None:
        """
        Take bytes as they arrive, and send what they are answered with.

        Args:
            data:
                Any number of bytes, cut anywhere; ``b""`` says that the stream has ended.

        Raises:
            Exception: Whatever *send* raises.
        """
        replies = []
        for event in self._connection.receive_data(data):
            if isinstance(event, bytes):
                replies.append(event)
            elif isinstance(event, Request):
                if (reply := self._serve(event)) is not None:
                    replies.append(event.answer(reply))
            elif isinstance(event, Response):
                replies.append(self._resume(event))
            else:
                self._in_flight.cancel(event.request_id)
        if replies:
            self._send(b"".join(replies))

    def replace(self, catalog: Catalog) -> None:
        """
        Serve another catalog from now on, and tell the client what has changed for it.

        Requests that are being answered are answered from the catalog that they found.

        Args:
            catalog:
                What is served.
        """
        old = self._snapshot
        new = Snapshot(catalog, self._identity, self._page_size, changes=True)
        self._snapshot = new
        self._connection.capabilities = new.capabilities
        subscriptions = self._connection.subscriptions
        lines = []
        if new.differs(old, "prompts/list"):
            lines.append(subscriptions.prompts_changed())
        if new.differs(old, "resources/list") or new.differs(old, "resources/templates/list"):
            lines.append(subscriptions.resources_changed())
        stale = [uri for uri in sorted(subscriptions.uris) if self._readings.is_stale(uri, catalog)]
        lines += map(subscriptions.updated, stale)
        if told := b"".join(lines):
            self._send(told)

    def close(self, grace: float) -> None:
        """
        Say goodbye, and let the prompts that still run finish.

        Args:
            grace:
                How long they are waited for at most, in seconds.
        """
        (revision,) = MODERN.values()
        lowering = lowering_for(revision, self._identity)
        lines = [self._connection.subscriptions.end(lowering.results)]
        lines += [self._resume(response) for response in self._elicitation.unanswered()]
        if told := b"".join(lines):
            self._send(told)
        self._in_flight.close(grace)

    def _serve(self, request: Request) -> bytes | None:
        """
        Return the reply to *request*, or None if it will be sent later.
        """
        if request.id in self._in_flight:
            refused = InvalidRequest(f"id {request.id!r} is in use by a request that still runs")
            return encode_error(request.id, refused)
        return reply_to(request, lambda: self._work[request.method](request, request.params))

    def _lowering(self, request: Request) -> Lowering:
        """
        Return what writes results as the client understands them.
        """
        return lowering_for(request.revision, self._identity)

    def _list(self, request: Request, params: wire.PageParams) -> bytes:
        """
        Return one page of a list.
        """
        return self._snapshot.page(request.method, request.revision, params.cursor)

    def _get(self, request: Request, params: wire.GetPromptParams) -> bytes | None:
        """
        Return a rendered prompt, or what has to be asked first.
        """
        snapshot = self._snapshot
        prompt = snapshot.catalog[params.name]
        given = self._elicitation.arguments(request, prompt)
        return self._render(request, snapshot, prompt, given)

    def _render(
        self, request: Request, snapshot: Snapshot, prompt: CompiledPrompt, given: dict[str, Any] | None
    ) -> bytes | None:
        """
        Return *prompt*, rendered for what is *given*, or what has to be asked first.
        """
        key = snapshot.replies.key(prompt, request, given)
        if key is not None and (result := snapshot.replies.get(key)) is not None:
            return result
        context = None if prompt.context is None else context_of(request, self._send)
        rendering = _Rendering(request, prompt, snapshot, context, key)
        try:
            values = prompt.bind(given, rendering.context)
        except ArgumentErrors as errors:
            return self._ask(rendering, given, errors)
        finish = partial(rendering.result, self._lowering(request))
        if not prompt.renderer.is_async and prompt.timeout is None:
            return finish(lambda: prompt.renderer.render(**values))
        from promptkit.server.background import render_within  # most servers never need a loop

        work = render_within(prompt.renderer, values, prompt.timeout)
        self._in_flight.start(request, work, finish, rendering.end)
        return None

    def _ask(
        self, rendering: _Rendering, given: dict[str, Any] | None, errors: ArgumentErrors
    ) -> bytes | None:
        """
        Ask for what is missing; return what a client of the modern era is told instead.
        """
        request, prompt = rendering.request, rendering.prompt
        params = self._elicitation.question(request, prompt, errors)
        if request.revision.stateless:
            result = self._elicitation.input_required(request, params)
            return self._lowering(request).results.encode_question(result)
        question = Question(request, rendering.snapshot, prompt, given or {}, errors)
        question_id, line = self._elicitation.ask(question, params)

        self._in_flight.hold(request, lambda: self._send(self._elicitation.withdraw(question_id)))
        self._send(line)
        return None

    def _resume(self, response: Response) -> bytes:
        """
        Go on with the request for which something was asked; return what is sent now.
        """
        question = self._elicitation.answered(response)
        request = question.request
        self._in_flight.release(request)

        def work() -> bytes | None:
            given = question.answered(response.result)
            return self._render(request, question.snapshot, question.prompt, given)

        reply = reply_to(request, work)
        return b"" if reply is None else request.answer(reply)

    def _complete(self, request: Request, params: wire.CompleteParams) -> bytes | None:
        """
        Return what to offer for an argument of a prompt, or a variable of a template.
        """
        completer = _completer(self.catalog, params)
        lowering, typed = self._lowering(request), params.argument.value
        chosen = params.context.arguments if params.context else {}
        if completer is None:
            return lowering.completion(Completion())

        def finish(completed: Callable[[], Completion]) -> bytes:
            with authors_code():
                return lowering.completion(completed())

        if not completer.is_async:
            return finish(lambda: completer.complete(typed, chosen))
        self._in_flight.start(request, completer.complete_async(typed, chosen), finish)
        return None

    def _read(self, request: Request, params: wire.ResourceParams) -> bytes:
        """
        Return what a resource holds.
        """
        resource, values = _found(self.catalog, request, params)
        with authors_code():
            content = resource.content(params.uri, values)
        self._readings.note(content)
        return self._lowering(request).contents(content)

    def _subscribe(self, request: Request, params: wire.ResourceParams) -> bytes:
        """
        Tell the session of updates of a resource from now on.
        """
        _found(self.catalog, request, params)
        self._connection.subscriptions.subscribe(params.uri)
        return b"{}"

    def _unsubscribe(self, _request: Request, params: wire.ResourceParams) -> bytes:
        """
        Tell the session no longer.
        """
        self._connection.subscriptions.unsubscribe(params.uri)
        return b"{}"

    def _listen(self, request: Request, params: wire.ListenParams) -> None:
        """
        Tell the client of changes until it, or the server, ends the request.
        """
        subscriptions = self._connection.subscriptions
        self._in_flight.hold(request, lambda: subscriptions.cancel(request.id))
        self._send(subscriptions.listen(request.id, params.notifications, self._connection.capabilities))


def _completer(catalog: Catalog, params: wire.CompleteParams) -> Completer | None:
    """
    Return what completes what is being typed; None if nothing does.

    Raises:
        UnknownPrompt: If there is no such prompt.

        InvalidParams: If there is no such resource.

        ArgumentErrors: If the prompt, or the template, has no such argument.
    """
    ref = params.ref
    if isinstance(ref, wire.PromptReference):
        return catalog[ref.name].arguments.completer(params.argument.name)
    try:
        resource = catalog.template(ref.uri)
    except UnknownResource as error:
        raise InvalidParams(str(error), error.as_data()) from None
    return resource.arguments.completer(params.argument.name) if resource.is_template else None


def _found(
    catalog: Catalog, request: Request, params: wire.ResourceParams
) -> tuple[CompiledResource, dict[str, Any]]:
    """
    Return the resource of a URI, and the values of its variables.

    Raises:
        ResourceNotFound: If there is none, and the revision has a code for that.

        InvalidParams: If there is none, and it has not.

        ArgumentErrors: If a variable does not fit.
    """
    try:
        resource, variables = catalog.resource(params.uri)
    except UnknownResource as error:
        kind = ResourceNotFound if request.revision.resource_not_found else InvalidParams
        raise kind(str(error), error.as_data()) from None
    return resource, resource.bind(variables)
