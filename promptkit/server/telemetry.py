"""
Telemetry: reports a span and a duration for each request, through the OpenTelemetry API.

If the process has set up an SDK, it exports both. Names follow OpenTelemetry's conventions for MCP.

See https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/.
"""

import time
from collections.abc import Callable
from typing import Final

from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.server.lookup import find_target, method_or_fallback
from promptkit.version import VERSION

#: OpenTelemetry's names for the transports.
PIPE: Final = "pipe"
TCP: Final = "tcp"

#: The histogram bounds that the conventions recommend, in seconds.
_BOUNDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

#: OpenTelemetry's value for unknown methods, whose number is unbounded.
_OTHER: Final = "_OTHER"

#: The maximum length of a request id in a span, in characters.
_MAX_ID: Final = 64

#: The error type of each outcome that is neither a success nor a protocol error.
_FAILURES: Final = {"failed": "tool_error", "cancelled": "cancelled", "unanswered": "cancelled"}

_CONTEXT: Final = ("traceparent", "tracestate", "baggage")

#: The timeout of the final export, in milliseconds.
_FLUSH_MS: Final = 2000


class Telemetry:
    """
    An observer that reports a span and a duration for each request to OpenTelemetry.

    The client can name the parent span in ``_meta``. A span contains neither argument values nor error
    messages, which may quote them. For the same reason, URIs expanded from templates are omitted.

    Args:
        transport:
            The transport over which requests arrive: `PIPE` or `TCP`.
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
        self._transport = {"network.transport": transport}
        if transport == TCP:
            self._transport["network.protocol.name"] = "http"

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], None]:
        """Start the span of a request. Return a function that takes the reply and ends the span."""
        started, method = time.perf_counter(), method_or_fallback(request, _OTHER)
        attributes = {
            "mcp.method.name": method,
            "mcp.protocol.version": request.revision.date,
            **self._transport,
        }
        request_id = {"jsonrpc.request.id": str(request.id)[:_MAX_ID]}
        span = self._tracer.start_span(
            method, propagate.extract(_trace_context(request)), SpanKind.SERVER, {**attributes, **request_id}
        )

        def end(reply: Reply) -> None:
            # Only look it up now, because the recipes may have been imported since the request arrived.
            name, target_attributes, extra = _describe(request, catalog())
            span.update_name(name)
            span.set_attributes({**target_attributes, **extra})
            self._end(span, started, attributes | target_attributes, reply)

        return end

    def close(self) -> None:
        """Flush the exporters."""
        for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
            flush = getattr(provider, "force_flush", None)  # only an SDK's provider has this method
            if flush is not None:
                flush(_FLUSH_MS)

    def _end(self, span: Span, started: float, attributes: dict[str, str], reply: Reply) -> None:
        if reply.code is not None:
            attributes |= {"error.type": str(reply.code), "rpc.response.status_code": str(reply.code)}
        elif reply.outcome in _FAILURES:
            attributes["error.type"] = _FAILURES[reply.outcome]
        if "error.type" in attributes:
            span.set_attributes(attributes)
            span.set_status(Status(StatusCode.ERROR))
        self._durations.record(time.perf_counter() - started, attributes, trace.set_span_in_context(span))
        span.end()


def has_sdk() -> bool:
    """Return whether the process has set up an SDK. If it has not, nothing is exported."""
    return hasattr(trace.get_tracer_provider(), "force_flush")


def _describe(request: Request, catalog: Catalog) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the span's name, the attributes of its target, and the attributes that only the span has."""
    method = method_or_fallback(request, _OTHER)
    target = find_target(request, catalog)
    if target is None or target.name is None:
        return method, {}, {}
    if target.kind == "prompt":
        kind = "tool" if method == "tools/call" else "prompt"
        return f"{method} {target.name}", {f"gen_ai.{kind}.name": target.name}, {}
    return method, {}, {"mcp.resource.uri": target.name} if target.name == target.identifier else {}


def _trace_context(request: Request) -> dict[str, str]:
    """Return the trace context that the client has sent."""
    meta = getattr(request.params, "meta", None)
    values = {name: getattr(meta, name, None) for name in _CONTEXT}
    return {name: value for name, value in values.items() if isinstance(value, str)}
