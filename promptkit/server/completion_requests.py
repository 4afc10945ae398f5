"""``completion/complete``: what to offer for an argument of a prompt, or a variable of a URI template."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from promptkit.catalog.completion import Completion
from promptkit.errors.exceptions import UnknownResourceError, shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.server.dispatch import Dispatcher
from promptkit.server.lookup import chosen_arguments, hide
from promptkit.server.pending import PendingRequest
from promptkit.server.request_limits import TokenBuckets
from promptkit.server.user_code import call_author

if TYPE_CHECKING:  # not every client completes values
    from promptkit.catalog.completion import Completer


class CompletionMethod:
    """
    Answers ``completion/complete``.

    Args:
        dispatcher:
            Runs authors' functions.

        rate:
            How many requests a second of one subject are answered.
    """

    def __init__(self, dispatcher: Dispatcher, rate: float) -> None:
        self._dispatcher = dispatcher
        self._buckets = TokenBuckets(rate, "requests for completion")

    def complete(self, pending: PendingRequest) -> bytes | None:
        """Return the result; None if it comes later."""
        params: wire.CompleteParams = pending.request.params
        self._buckets.take(pending.request.subject)
        completer = _completer_of(pending)
        lowering = pending.snapshot.lowerings[pending.request.revision]
        if completer is None:
            return lowering.completion(Completion())
        typed, chosen = params.argument.value, params.context.arguments if params.context else {}

        def finish(completed: "Callable[[], Completion]") -> bytes:
            return lowering.completion(call_author(completed))

        self._dispatcher.check_room()
        if not completer.is_async:
            return self._dispatcher.call(pending, lambda: finish(lambda: completer.complete(typed, chosen)))
        self._dispatcher.call_on_loop(pending, completer.complete_async(typed, chosen), finish)
        return None


def _completer_of(pending: PendingRequest) -> "Completer | None":
    """What completes the argument that is being typed; None if nothing does."""
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
        hide(arguments, chosen_arguments(params))
    return arguments.completer(params.argument.name)
