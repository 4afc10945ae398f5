"""
The handlers for the protocol's methods.

They list and render prompts, read resources and skills, complete arguments, and open streams.

See also https://modelcontextprotocol.io/extensions/skills.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from msgspec import Raw

from promptkit.catalog import redaction
from promptkit.catalog.completion import Completer, Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.tools import GET
from promptkit.catalog.uri_templates import normalize_uri
from promptkit.errors.exceptions import (
    ArgumentsError,
    UnknownPromptError,
    UnknownResourceError,
    UnknownToolError,
    shortened,
)
from promptkit.errors.suggestions import nearest
from promptkit.language.context import Context, Progress
from promptkit.language.messages import Workflow
from promptkit.protocol import wire
from promptkit.protocol.decoding import check_arguments
from promptkit.protocol.events import Request
from promptkit.protocol.http.messages import STREAM
from promptkit.protocol.jsonrpc import InvalidParams, ResourceNotFound, encode, encode_notification
from promptkit.protocol.limits import Limits
from promptkit.protocol.pagination import Pages
from promptkit.server.dispatch import Dispatcher, Handler
from promptkit.server.elicitation import Elicitation, Question
from promptkit.server.lookup import call_author, completion_arguments, read_and_redact_secrets
from promptkit.server.notifier import Notifier, ResourceWatch
from promptkit.server.pending import PendingRequest
from promptkit.server.rate_limits import REPORTS_PER_S, TokenBucket, TokenBuckets


class Methods:
    """
    The handlers for the protocol's methods.

    Args:
        dispatcher:
            Runs authors' functions, and keeps streams open.

        elicitation:
            Asks users for missing arguments.

        notifier:
            Notifies clients of changes.

        watch:
            Detects changes to subscribed resources.

        send:
            A function that sends whole lines, such as progress notifications.

        limits:
            The limits on requests and replies.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (they are independent)
        self,
        dispatcher: Dispatcher,
        elicitation: Elicitation,
        notifier: Notifier,
        watch: ResourceWatch,
        send: Callable[[bytes], None],
        limits: Limits,
    ) -> None:
        self._dispatcher = dispatcher
        self._elicitation = elicitation
        self._notifier = notifier
        self._watch = watch
        self._send = send
        self._limits = limits
        self._completions = TokenBuckets(limits.completions, "completion requests")

    def handlers(self) -> dict[str, Handler]:
        """Return the handler for each method. Handlers enforce the rate limit on requests."""
        handlers: dict[str, Handler] = {
            "prompts/get": self._get,
            "prompts/list": self._list,
            "resources/list": self._list,
            "resources/templates/list": self._list,
            "tools/list": self._list,
            "skills/list": self._list,
            "tools/call": self._call,
            "completion/complete": self._complete,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
            STREAM: self._stream,
            "skills/get": _get_skill,
            "resources/directory/read": _read_directory,
        }
        if self._limits.rate == inf:
            return handlers
        buckets = TokenBuckets(self._limits.rate, "requests")

        def run_within_limit(pending: PendingRequest) -> bytes | None:
            buckets.take(pending.request.subject)
            return handlers[pending.request.method](pending)

        return dict.fromkeys(handlers, run_within_limit)

    def _get(self, pending: PendingRequest) -> bytes | None:
        """Return the result of ``prompts/get``, or None if the reply is sent later."""
        request = pending.request
        params = request.params
        prompt = pending.item
        if prompt is None:
            prompt = pending.item = pending.snapshot.catalog[params.name]
        if params.request_state is None and params.input_responses is None:
            if request.large:
                prompt.arguments.check_values(params.arguments or {}, self._limits.values)
            return self._render(pending, prompt, params.arguments)
        # A modern client repeats its request with the values that the user has entered.
        supplied, count = self._elicitation.read_repeated_request(pending, prompt)
        return self._render(pending, prompt, self._check_arguments(prompt, supplied), count)

    def _list(self, pending: PendingRequest) -> bytes:
        """
        Return a page of a list. For some clients, arguments that a form can ask for are listed as optional.
        """
        request = pending.request
        forms = request.method == "prompts/list" and self._elicitation.needs_forms(request)
        pages = pending.snapshot.pages(request.method, request.revision, forms=forms)
        return pages.page(request.params.cursor)

    def _call(self, pending: PendingRequest) -> bytes | None:
        """Return the result of ``tools/call``, or None if the reply is sent later."""
        tools = pending.snapshot.tools
        pending.item = tools[pending.request.params.name]
        if tools.is_search_only and pending.item.name == GET:
            self._resolve_tool(pending)
        return self._get(pending)

    def _resolve_tool(self, pending: PendingRequest) -> None:
        """Turn a call to the tool that renders prompts by name into a call to the named prompt."""
        request = pending.request
        params = request.params
        arguments = pending.item.arguments
        if request.large:
            arguments.check_values(params.arguments or {}, self._limits.values)
        supplied = arguments.read(params.arguments)
        try:
            pending.item = pending.snapshot.tools.prompt(supplied["name"])
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
        """Return arguments that come from several messages, after checking their sizes."""
        check_arguments({name: Raw(encode(value)) for name, value in (supplied or {}).items()}, self._limits)
        prompt.arguments.check_values(supplied or {}, self._limits.values)
        return supplied

    def _render(
        self, pending: PendingRequest, prompt: CompiledPrompt, supplied: dict[str, Any] | None, count: int = 0
    ) -> bytes | None:
        """Render *prompt*, or ask for missing arguments. *count* questions have been asked so far."""
        if prompt.elicit == "always" and not count:
            question = self._elicitation.make_optional_arguments_question(pending, prompt, supplied)
            if question is not None:
                return self._ask(question)
        key = None
        if prompt.cache is not None:
            replies = pending.snapshot.replies
            key = replies.key(prompt, pending.request, supplied)
            if key is not None and (result := replies.get(key)) is not None:
                return result
        arguments = prompt.arguments
        try:
            values = read_and_redact_secrets(arguments, supplied, arguments.read)
        except ArgumentsError as errors:
            return self._ask(Question(pending, prompt, supplied or {}, errors, count))
        if prompt.context is not None:
            values[prompt.context] = _create_context(pending.request, pending.request.sender(self._send))
        renderer, limit = prompt.renderer, self._limits.reply
        if prompt.timeout is not None:
            self._dispatcher.set_time_limit(pending, prompt.timeout)
        if renderer.is_async:
            self._dispatcher.call_on_loop(
                pending,
                renderer.render_awaited(values, limit=limit),
                lambda get_result: _encode_rendering(pending, key, call_author(get_result)),
            )
            return None
        self._dispatcher.replace_leader_if_slow(pending)
        return _encode_rendering(pending, key, call_author(renderer.render_sync, values, limit))

    def _ask(self, question: Question) -> bytes | None:
        """Ask *question*. Return the result that contains it, or None if it was sent as a request."""
        pending = question.pending
        result = self._elicitation.ask(question)
        if result is None:
            return None
        pending.asks_for_input = True
        return pending.snapshot.lowerings[pending.request.revision].results.encode(result)

    def _read(self, pending: PendingRequest) -> bytes | None:
        """Return the result of ``resources/read``, or None if the reply is sent later."""
        params: wire.ResourceParams = pending.request.params
        resource, values = _find_resource(pending)
        if resource.is_fixed:
            return _read_constant(pending, resource)
        self._dispatcher.replace_leader_if_slow(pending)
        content = call_author(resource.content, params.uri, values)
        return pending.snapshot.lowerings[pending.request.revision].contents(content)

    def _subscribe(self, pending: PendingRequest) -> bytes:
        """Subscribe the session to a resource."""
        _find_resource(pending)
        self._notifier.change_subscription(pending.request, is_subscribed=True)
        self._watch.start()
        return b"{}"

    def _unsubscribe(self, pending: PendingRequest) -> bytes:
        """Unsubscribe the session from a resource."""
        self._notifier.change_subscription(pending.request, is_subscribed=False)
        return b"{}"

    def _listen(self, pending: PendingRequest) -> None:
        """Notify the client of changes until the client or the server closes the stream."""
        self._dispatcher.check_held_limit()
        if pending.request.params.notifications.resource_subscriptions:
            self._watch.start()
        self._notifier.listen(pending.request, partial(self._hold, pending))

    def _stream(self, pending: PendingRequest) -> None:
        """Notify a client with a session of changes until the client or the server closes the stream."""
        self._dispatcher.check_held_limit()
        replaced = self._notifier.stream(pending.request, partial(self._hold, pending))
        if replaced is not None:
            self._dispatcher.drop(replaced)

    def _hold(self, pending: PendingRequest) -> None:
        stop = partial(self._notifier.cancel, pending.request)
        if not self._dispatcher.hold(pending, stop):  # the client has disconnected in the meantime
            stop()

    def _complete(self, pending: PendingRequest) -> bytes | None:
        """Return the result of ``completion/complete``, or None if the reply is sent later."""
        params: wire.CompleteParams = pending.request.params
        self._completions.take(pending.request.subject)
        completer = _find_completer(pending)
        lowering = pending.snapshot.lowerings[pending.request.revision]
        if completer is None:
            return lowering.completion(Completion())
        text, context = params.argument.value, params.chosen

        def finish(get_completion: Callable[[], Completion]) -> bytes:
            return lowering.completion(call_author(get_completion))

        self._dispatcher.check_capacity()
        if not completer.is_async:
            self._dispatcher.replace_leader_if_slow(pending)
            return finish(lambda: completer.complete(text, context))
        self._dispatcher.call_on_loop(pending, completer.complete_async(text, context), finish)
        return None


def _encode_rendering(pending: PendingRequest, key: Any, rendered: Workflow | str) -> bytes:
    """Encode a rendered prompt as the result of its request. Cache it under *key*, unless *key* is None."""
    request, prompt = pending.request, pending.item
    lowering = pending.snapshot.lowerings[request.revision]
    is_call = request.method == "tools/call"
    result = lowering.tool_result(rendered) if is_call else lowering.result(prompt, rendered)
    if key is not None:
        pending.snapshot.replies.put(key, result, prompt.cache or 0)
    return result


def _create_context(request: Request, send: Callable[[bytes], None]) -> Context:
    """Return the context that a prompt gets for *request*. The function *send* sends whole lines."""
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
    bucket = TokenBucket(REPORTS_PER_S)

    def report(progress: float, total: float | None, message: str | None) -> None:
        if not bucket.try_take():
            return
        params = wire.ProgressParams(meta.progress_token, progress, total, message if has_messages else None)
        send(encode_notification("notifications/progress", params))

    return report


def _read_constant(pending: PendingRequest, resource: CompiledResource) -> bytes:
    """Return the result of reading a constant resource, from the cache if possible."""
    request, snapshot = pending.request, pending.snapshot
    # The key contains the resource's identity, because callers with other scopes may see a different
    # resource.
    key = request.method, resource.uri_template, id(resource), request.revision.date, b""
    if (result := snapshot.replies.get(key)) is None:
        content = resource.content(resource.uri_template, {})
        changes = snapshot.capabilities.changes
        result = snapshot.lowerings[request.revision].contents(content, can_change=changes)
        snapshot.replies.put(key, result, inf)
    return result


def _find_resource(pending: PendingRequest) -> tuple[CompiledResource, dict[str, Any]]:
    """Return the resource that a request names, and the values of the variables in its URI."""
    request = pending.request
    try:
        resource, variables = pending.snapshot.catalog.resource(request.params.uri)
    except UnknownResourceError as error:
        error_type = ResourceNotFound if request.revision.resource_not_found else InvalidParams
        raise error_type(str(error), {"uri": shortened(request.params.uri)}) from None
    pending.item = resource
    return resource, read_and_redact_secrets(resource.arguments, variables, resource.bind)


def _get_skill(pending: PendingRequest) -> bytes:
    """
    Return the result of ``skills/get``: the frontmatter of a skill, and the digests of its files.

    Raises:
        InvalidParams: If the skill does not exist.
    """
    snapshot, request = pending.snapshot, pending.request
    uri = request.params.uri
    if (skill := snapshot.catalog.find_skill(uri)) is None:
        near = nearest(uri, [skill.uri_template for skill in snapshot.catalog.skills])
        hint = f"; did you mean {near!r}?" if near else ""
        msg = f"there is no skill {shortened(uri)!r}{hint}"
        raise InvalidParams(msg, {"uri": shortened(uri)})
    lowering = snapshot.lowerings[request.revision]
    result = wire.GetSkillResult(skill=lowering.skill(skill))
    return lowering.results.encode_cacheable(result, can_change=snapshot.capabilities.changes)


def _read_directory(pending: PendingRequest) -> bytes:
    """
    Return one page of the files and folders that a folder in a skill contains.

    Raises:
        InvalidParams: If the folder does not exist, or if the cursor does not belong to it.
    """
    snapshot, request = pending.snapshot, pending.request
    params: wire.DirectoryParams = request.params
    folder = normalize_uri(params.uri)
    skill = snapshot.catalog.find_skill_containing(folder)
    if skill is None or folder not in skill.children:
        uri = shortened(params.uri)
        hint = ": remove the '/' at the end" if params.uri.endswith("/") else ""
        msg = f"no skill contains a folder {uri!r}{hint}"
        raise InvalidParams(msg, {"uri": uri})
    lowering = snapshot.lowerings[request.revision]
    entries = [Raw(encode(entry)) for entry in lowering.directory(skill, folder)]
    pages = Pages(
        entries,
        snapshot.page_size,
        lambda items, cursor: lowering.results.encode(wire.ListResourcesResult(items, cursor)),
    )
    return pages.page(params.cursor)


def _find_completer(pending: PendingRequest) -> Completer | None:
    """Return the completer for the requested argument, or None if the argument does not have one."""
    catalog, params = pending.snapshot.catalog, pending.request.params
    ref = params.ref
    if isinstance(ref, wire.PromptReference):
        prompt = pending.item = catalog[ref.name]
        arguments = prompt.arguments
    else:
        try:
            resource = pending.item = catalog.template(ref.uri)
        except UnknownResourceError as error:
            raise InvalidParams(str(error), {"uri": shortened(ref.uri)}) from None
        if not resource.is_template:
            return None
        arguments = resource.arguments
    if arguments.secret:
        redaction.hide(arguments, completion_arguments(params))
    return arguments.completer(params.argument.name)
