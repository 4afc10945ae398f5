"""
Telemetry: a span and a measurement for each request, by the API of OpenTelemetry.

What becomes of them is up to the SDK that the process has set up. Names are those of its conventions for MCP.

See https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/.
"""

import time
from collections.abc import Callable
from typing import Final

import attrs
from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import TOOL_METHODS
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.server.lookup import target_of
from promptkit.server.observers import OpenRequests, known_method
from promptkit.version import VERSION

#: The transports, as OpenTelemetry calls them.
PIPE: Final = "pipe"
TCP: Final = "tcp"

#: The bounds that the conventions recommend, in seconds.
_BOUNDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

#: What OpenTelemetry writes in place of what clients make up, and of which there is no end.
_OTHER: Final = "_OTHER"

#: The longest id that is noted, in characters.
_LONGEST_ID: Final = 64

#: What OpenTelemetry calls an outcome that is no error of the protocol, and no success.
_FAILURES: Final = {"failed": "tool_error", "cancelled": "cancelled", "unanswered": "cancelled"}

_CONTEXT: Final = ("traceparent", "tracestate", "baggage")

#: How long it may take to hand over what is not exported yet at the end, in milliseconds.
_FLUSH_MS: Final = 2000


@attrs.frozen
class _OpenSpan:
    span: Span
    started: float
    attributes: dict[str, str]
    request: Request
    catalog: Callable[[], Catalog]


class Telemetry:
    """
    Tells OpenTelemetry of requests: a span for each, and how long it took.

    A span is the child of the one that the client names in ``_meta``. It holds no value of an argument, nor
    the text of an error, which may quote one. A URI that holds variables is left out for the same reason.

    Args:
        transport:
            `PIPE` or `TCP`.
    """

    def __init__(self, transport: str) -> None:
        self._tracer = trace.get_tracer("promptkit", VERSION)
        meter = metrics.get_meter("promptkit", VERSION)
        self._durations = meter.create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="Duration of requests, from arrival to reply.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._refusals = meter.create_counter(
            "promptkit.http.refusals",
            unit="{request}",
            description="HTTP requests that were refused before their body was parsed.",
        )
        self._transport = {"network.transport": transport}
        if transport == TCP:
            self._transport["network.protocol.name"] = "http"
        self._open_requests = OpenRequests(self._end)

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], None]:
        """
        Begin the span of a request.

        Args:
            request:
                What was asked.

            catalog:
                What it is answered from.

        Returns:
            A function to be called with the reply before that is sent. Only its first call counts.
        """
        method = known_method(request, _OTHER)
        attributes = {
            "mcp.method.name": method,
            "mcp.protocol.version": request.revision.date,
            **self._transport,
        }
        name, about, own = _describe(request, catalog())
        attributes |= about
        own["jsonrpc.request.id"] = str(request.id)[:_LONGEST_ID]
        span = self._tracer.start_span(
            name, propagate.extract(_carrier(request)), SpanKind.SERVER, {**attributes, **own}
        )
        return self._open_requests.add(_OpenSpan(span, time.perf_counter(), attributes, request, catalog))

    def refused(self, status: int) -> None:
        """Count an HTTP request that was refused with a status."""
        self._refusals.add(1, {"http.response.status_code": status})

    def close(self) -> None:
        """End the spans of requests that were never answered, and hand over what is not exported yet."""
        self._open_requests.end_all()
        for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
            flush = getattr(provider, "force_flush", None)  # only the SDK has it
            if flush is not None:
                flush(_FLUSH_MS)

    def _end(self, begun: _OpenSpan, reply: Reply) -> None:
        span, attributes = begun.span, begun.attributes
        # Once more, because the recipes may have been imported only now.
        name, about, own = _describe(begun.request, begun.catalog())
        attributes |= about
        span.update_name(name)
        span.set_attributes({**about, **own})
        if reply.code is not None:
            attributes |= {"error.type": str(reply.code), "rpc.response.status_code": str(reply.code)}
        elif reply.outcome in _FAILURES:
            attributes["error.type"] = _FAILURES[reply.outcome]
        if "error.type" in attributes:
            span.set_attributes(attributes)
            span.set_status(Status(StatusCode.ERROR))
        self._durations.record(
            time.perf_counter() - begun.started, attributes, trace.set_span_in_context(span)
        )
        span.end()


def is_recorded() -> bool:
    """Whether the process has set up an SDK: without one, nothing becomes of what is told."""
    return hasattr(trace.get_tracer_provider(), "force_flush")


def _describe(request: Request, catalog: Catalog) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the name of a span, what it is about, and what its measurement leaves out."""
    method = known_method(request, _OTHER)
    target = target_of(request, catalog)
    if target is None or target.name is None:
        return method, {}, {}
    if target.kind == "prompt":
        kind = "tool" if method in TOOL_METHODS else "prompt"
        return f"{method} {target.name}", {f"gen_ai.{kind}.name": target.name}, {}
    return method, {}, {"mcp.resource.uri": target.name} if target.name == target.asked else {}


def _carrier(request: Request) -> dict[str, str]:
    """The context of a trace that a client has sent along."""
    meta = getattr(request.params, "meta", None)
    found = {name: getattr(meta, name, None) for name in _CONTEXT}
    return {name: value for name, value in found.items() if isinstance(value, str)}
