"""
The handlers of the methods for resources, skills and completion.

`promptkit.server.prompts` has those for prompts and tools. See also
https://modelcontextprotocol.io/extensions/skills.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from promptkit.catalog import redaction
from promptkit.catalog.completion import Completion
from promptkit.catalog.uri_templates import normalized
from promptkit.errors.exceptions import UnknownResourceError, shortened
from promptkit.errors.suggestions import nearest
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams, ResourceNotFound, encode
from promptkit.protocol.pagination import Pages
from promptkit.server.dispatch import Dispatcher
from promptkit.server.lookup import call_author, chosen_arguments, read_hiding_secrets
from promptkit.server.notifier import Notifier
from promptkit.server.pending import PendingRequest
from promptkit.server.request_limits import TokenBuckets
from promptkit.server.resource_watch import ResourceWatch

if TYPE_CHECKING:  # most recipes have none
    from promptkit.catalog.completion import Completer
    from promptkit.catalog.resources import CompiledResource


class ResourceMethods:
    """
    The handlers of the per-resource methods, and of streams of notifications.

    Args:
        dispatcher:
            The dispatcher, which runs authors' functions, and keeps streams open.

        notifier:
            The notifier, which notifies clients of changes.

        watch:
            Detects changes to subscribed resources.
    """

    def __init__(self, dispatcher: Dispatcher, notifier: Notifier, watch: ResourceWatch) -> None:
        self._dispatcher = dispatcher
        self._notifier = notifier
        self._watch = watch

    def read(self, pending: PendingRequest) -> bytes | None:
        """Return the contents of a resource, or None if the reply is sent later."""
        params: wire.ResourceParams = pending.request.params
        resource, values = _find_resource(pending)
        if resource.is_fixed:
            return _read_constant(pending, resource)

        def work() -> bytes:
            content = call_author(resource.content, params.uri, values)
            return pending.snapshot.lowerings[pending.request.revision].contents(content)

        return self._dispatcher.call(pending, work)

    def subscribe(self, pending: PendingRequest) -> bytes:
        """Subscribe the session to a resource."""
        _find_resource(pending)
        self._notifier.subscribe(pending.request)
        self._watch.start()
        return b"{}"

    def unsubscribe(self, pending: PendingRequest) -> bytes:
        """Unsubscribe the session from a resource."""
        self._notifier.unsubscribe(pending.request)
        return b"{}"

    def listen(self, pending: PendingRequest) -> None:
        """Notify the client of changes until the client or the server ends the request."""
        self._dispatcher.check_held()
        if pending.request.params.notifications.resource_subscriptions:
            self._watch.start()
        self._notifier.listen(pending.request, partial(self._hold, pending))

    def stream(self, pending: PendingRequest) -> None:
        """Notify a client with a session of changes until the client or the server ends the request."""
        replaced = self._notifier.stream(pending.request, partial(self._hold, pending))
        if replaced is not None:
            self._dispatcher.drop(replaced)

    def _hold(self, pending: PendingRequest) -> None:
        stop = partial(self._notifier.cancel, pending.request)
        if not self._dispatcher.hold(pending, stop):  # the client has disconnected meanwhile
            stop()


def _read_constant(pending: PendingRequest, resource: "CompiledResource") -> bytes:
    """Return the result of reading a constant resource, from the cache if possible."""
    request, snapshot = pending.request, pending.snapshot
    # The key contains the resource's identity: callers with other scopes may see a different resource.
    key = request.method, resource.uri_template, id(resource), request.revision.date, b""
    if (result := snapshot.replies.get(key)) is None:
        content = resource.content(resource.uri_template, {})
        changes = snapshot.capabilities.changes
        result = snapshot.lowerings[request.revision].contents(content, changes=changes)
        snapshot.replies.put(key, result, inf)
    return result


def _find_resource(pending: PendingRequest) -> "tuple[CompiledResource, dict[str, Any]]":
    """Return the resource of a request, and the values of the variables in its URI."""
    request = pending.request
    try:
        resource, variables = pending.snapshot.catalog.resource(request.params.uri)
    except UnknownResourceError as error:
        error_type = ResourceNotFound if request.revision.resource_not_found else InvalidParams
        raise error_type(str(error), {"uri": shortened(request.params.uri)}) from None
    pending.about = resource
    return resource, read_hiding_secrets(resource.arguments, variables, resource.bind)


def get_skill(pending: PendingRequest) -> bytes:
    """
    Return a skill: its frontmatter, and the digests of its files.

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
    return lowering.results.encode_cacheable(result, changes=snapshot.capabilities.changes)


def read_directory(pending: PendingRequest) -> bytes:
    """
    Return a page of the contents of a folder of a skill.

    Raises:
        InvalidParams: If the folder does not exist, or the cursor does not belong to it.
    """
    snapshot, request = pending.snapshot, pending.request
    params: wire.DirectoryParams = request.params
    folder = normalized(params.uri)
    skill = snapshot.catalog.find_skill_with(folder)
    if skill is None or folder not in skill.children:
        uri = shortened(params.uri)
        msg = f"no skill has a folder {uri!r}: a folder's URI has no '/' at its end"
        raise InvalidParams(msg, {"uri": uri})
    lowering = snapshot.lowerings[request.revision]
    entries = [Raw(encode(entry)) for entry in lowering.directory(skill, folder)]
    pages = Pages(
        entries,
        snapshot.page_size,
        lambda items, cursor: lowering.results.encode(wire.ListResourcesResult(items, cursor)),
    )
    return pages.page(params.cursor)


class CompletionMethod:
    """
    The handler of ``completion/complete``.

    Args:
        dispatcher:
            The dispatcher, which runs authors' functions.

        rate:
            The number of requests per second that each client may send.
    """

    def __init__(self, dispatcher: Dispatcher, rate: float) -> None:
        self._dispatcher = dispatcher
        self._buckets = TokenBuckets(rate, "requests for completion")

    def complete(self, pending: PendingRequest) -> bytes | None:
        """Return the result, or None if the reply is sent later."""
        params: wire.CompleteParams = pending.request.params
        self._buckets.take(pending.request.subject)
        completer = _find_completer(pending)
        lowering = pending.snapshot.lowerings[pending.request.revision]
        if completer is None:
            return lowering.completion(Completion())
        text, context = params.argument.value, params.chosen

        def finish(get_completion: "Callable[[], Completion]") -> bytes:
            return lowering.completion(call_author(get_completion))

        self._dispatcher.check_capacity()
        if not completer.is_async:
            return self._dispatcher.call(pending, lambda: finish(lambda: completer.complete(text, context)))
        self._dispatcher.call_on_loop(pending, completer.complete_async(text, context), finish)
        return None


def _find_completer(pending: PendingRequest) -> "Completer | None":
    """Return the completer of the argument, or None if it has none."""
    catalog, params = pending.snapshot.catalog, pending.request.params
    ref = params.ref
    if isinstance(ref, wire.PromptReference):
        prompt = pending.about = catalog[ref.name]
        arguments = prompt.arguments
    else:
        try:
            resource = pending.about = catalog.template(ref.uri)
        except UnknownResourceError as error:
            raise InvalidParams(str(error), {"uri": shortened(ref.uri)}) from None
        if not resource.is_template:
            return None
        arguments = resource.arguments
    if arguments.secret:
        redaction.hide(arguments, chosen_arguments(params))
    return arguments.completer(params.argument.name)
