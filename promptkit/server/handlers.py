"""The table of methods: what answers each request of one client."""

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from promptkit.protocol.limits import Limits
from promptkit.server.completion import CompletionMethod
from promptkit.server.exchange import Exchange
from promptkit.server.prompts import PromptMethods
from promptkit.server.rate_limit import TokenBuckets
from promptkit.server.resources import ResourceMethods
from promptkit.server.scheduling.executor import Executor

__all__ = ["Handler", "handlers_of"]

#: Takes a request; returns the result as JSON, or None if it comes later.
Handler: TypeAlias = Callable[[Exchange], bytes | None]


def handlers_of(
    executor: Executor, prompts: PromptMethods, resources: ResourceMethods, limits: Limits
) -> dict[str, Handler]:
    """
    Return what answers each method.

    Args:
        executor:
            Calls authors' functions.

        prompts:
            Answers for single prompts.

        resources:
            Answers for single resources, and opens streams.

        limits:
            How often something is answered.
    """
    handlers: dict[str, Handler] = {
        "prompts/get": prompts.get,
        "prompts/list": _list,
        "resources/list": _list,
        "resources/templates/list": _list,
        "tools/list": _list,
        "tools/call": prompts.call,
        "completion/complete": CompletionMethod(executor, limits.completions).complete,
        "resources/read": resources.read,
        "resources/subscribe": resources.subscribe,
        "resources/unsubscribe": resources.unsubscribe,
        "subscriptions/listen": resources.listen,
    }
    if limits.rate == inf:
        return handlers
    buckets = TokenBuckets(limits.rate, "requests")

    def limited(exchange: Exchange) -> bytes | None:
        buckets.take(exchange.request.subject)
        return handlers[exchange.request.method](exchange)

    return dict.fromkeys(handlers, limited)


def _list(exchange: Exchange) -> bytes:
    request = exchange.request
    return exchange.snapshot.page(request.method, request.revision, request.params.cursor)
