"""``completion/complete``: what to offer for an argument of a prompt, or a variable of a URI template."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from promptkit.errors.exceptions import UnknownResource, shortened
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.server.exchange import Exchange
from promptkit.server.lookup import chosen_arguments, hide
from promptkit.server.rate_limit import TokenBuckets
from promptkit.server.scheduling.executor import Executor, call_author

if TYPE_CHECKING:  # not every client completes values
    from promptkit.catalog.completion import Completer, Completion

__all__ = ["CompletionMethod"]


class CompletionMethod:
    """
    Answers ``completion/complete``.

    Args:
        executor:
            Calls authors' functions.

        rate:
            How many requests a second of one subject are answered.
    """

    def __init__(self, executor: Executor, rate: float) -> None:
        self._executor = executor
        self._buckets = TokenBuckets(rate, "requests for completion")

    def complete(self, exchange: Exchange) -> bytes | None:
        """Return the result; None if it comes later."""
        params: wire.CompleteParams = exchange.request.params
        self._buckets.take(exchange.request.subject)
        completer = _completer_of(exchange)
        lowering = exchange.snapshot.lowerings[exchange.request.revision]
        if completer is None:
            from promptkit.catalog.completion import Completion

            return lowering.completion(Completion())
        typed, chosen = params.argument.value, params.context.arguments if params.context else {}

        def finish(completed: "Callable[[], Completion]") -> bytes:
            return lowering.completion(call_author(completed))

        if not completer.is_async:
            return self._executor.call(exchange, lambda: finish(lambda: completer.complete(typed, chosen)))
        self._executor.call_on_loop(exchange, completer.complete_async(typed, chosen), finish)
        return None


def _completer_of(exchange: Exchange) -> "Completer | None":
    """What completes the argument that is being typed; None if nothing does."""
    catalog, params = exchange.snapshot.catalog, exchange.request.params
    ref = params.ref
    if isinstance(ref, wire.PromptReference):
        prompt = exchange.about = catalog[ref.name]
        arguments = prompt.arguments
    else:
        try:
            resource = exchange.about = catalog.template(ref.uri)
        except UnknownResource as error:
            raise InvalidParams(str(error), {"uri": shortened(ref.uri)}) from None
        if not resource.is_template:
            return None
        arguments = resource.arguments
    if arguments.secret:
        hide(arguments, chosen_arguments(params))
    return arguments.completer(params.argument.name)
