"""``completion/complete``: what to offer for an argument of a prompt, or a variable of a URI template."""

from collections.abc import Callable

from promptkit.catalog.completion import Completion
from promptkit.protocol import wire
from promptkit.protocol.lowering import Lowering
from promptkit.protocol.revisions import Revision
from promptkit.server.calls import Calls, call_author
from promptkit.server.exchange import Exchange
from promptkit.server.lookup import completer_of
from promptkit.server.rate_limit import TokenBuckets

__all__ = ["CompletionMethod"]


class CompletionMethod:
    """
    Answers ``completion/complete``.

    Args:
        calls:
            Calls authors' functions.

        lowerings:
            What writes results, by revision.

        rate:
            How many requests a second of one subject are answered.
    """

    def __init__(self, calls: Calls, lowerings: dict[Revision, Lowering], rate: float) -> None:
        self._calls = calls
        self._lowerings = lowerings
        self._buckets = TokenBuckets(rate, "requests for completion")

    def complete(self, exchange: Exchange) -> bytes | None:
        """Return the result; None if it comes later."""
        params: wire.CompleteParams = exchange.request.params
        self._buckets.take(exchange.request.subject)
        completer = completer_of(exchange)
        lowering = self._lowerings[exchange.request.revision]
        if completer is None:
            return lowering.completion(Completion())
        typed, chosen = params.argument.value, params.context.arguments if params.context else {}

        def finish(completed: Callable[[], Completion]) -> bytes:
            return lowering.completion(call_author(completed))

        if not completer.is_async:
            return self._calls.call(exchange, lambda: finish(lambda: completer.complete(typed, chosen)))
        self._calls.call_on_loop(exchange, completer.complete_async(typed, chosen), finish)
        return None
