"""``completion/complete``: completions for arguments of prompts and variables of URI templates."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from promptkit.catalog.completion import Completion
from promptkit.errors.exceptions import UnknownResourceError, shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.server.dispatch import Dispatcher
from promptkit.server.lookup import chosen_arguments, hide_secrets
from promptkit.server.pending import PendingRequest
from promptkit.server.request_limits import TokenBuckets
from promptkit.server.user_code import call_author

if TYPE_CHECKING:  # not every client completes values
    from promptkit.catalog.completion import Completer


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
        text, context = params.argument.value, params.context.arguments if params.context else {}

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
        hide_secrets(arguments, chosen_arguments(params))
    return arguments.completer(params.argument.name)
