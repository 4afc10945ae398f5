"""OpenTelemetry spans and metrics of requests, as the SDK receives them."""

import json
import os
import subprocess
import sys
from typing import Annotated

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from promptkit import Arg, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.errors.distribution import install_command
from promptkit.loader.recipes import Recipes
from promptkit.server.telemetry import PIPE, TCP, Telemetry
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import Settings
from tests.posting import PLAIN, answer_to, modern_headers
from tests.transports.http.conftest import GREET, ServerProcess
from tests.wire import MODERN, Client, modern

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@prompt
def review(diff: str, token: Annotated[str, Arg(secret=True)] = "") -> str:
    """Review a change."""
    return f"Review {diff}"


@prompt
def broken() -> str:
    """Fail."""
    raise LookupError("a secret of the author")


@resource("docs://readme")
def readme() -> str:
    """Return the readme."""
    return "text"


@resource("docs://{page}")
def page(page: str) -> str:
    """Read a page."""
    return page


CATALOG = compile(Recipes(prompts=(review, broken), resources=(readme, page)))


@pytest.fixture(scope="module")
def sdk():
    """Return the SDK with in-memory exporters; a process can set it up only once."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return spans, reader


@pytest.fixture
def spans(sdk):
    """Return a function that returns the spans that ended during the test."""
    sdk[0].clear()
    return sdk[0].get_finished_spans


@pytest.fixture
def points(sdk):
    """Return a function that returns the data points of a metric."""

    def find_points(name):
        data = sdk[1].get_metrics_data()
        scopes = [scope for metrics in data.resource_metrics for scope in metrics.scope_metrics]
        return [p for scope in scopes for m in scope.metrics if m.name == name for p in m.data.data_points]

    return find_points


@pytest.fixture
def client(sdk):
    """Return a client of a server with OpenTelemetry."""
    return Client(CATALOG, MODERN, observers=[Telemetry(PIPE)])


class TestSpans:
    def test_request(self, client, spans):
        """A span has the name and the attributes of the semantic conventions for MCP."""
        client.get("review", diff="x")
        (span,) = spans()

        assert (span.name, span.kind) == ("prompts/get review", SpanKind.SERVER)
        assert dict(span.attributes) == {
            "mcp.method.name": "prompts/get",
            "mcp.protocol.version": MODERN,
            "network.transport": "pipe",
            "gen_ai.prompt.name": "review",
            "jsonrpc.request.id": "1",
        }
        assert span.status.status_code is StatusCode.UNSET

    def test_tool_call(self, sdk, spans):
        """The span names the tool; a result that is an error marks the span without its text."""
        client = Client(CATALOG, MODERN, observers=[Telemetry(PIPE)], tools=True)
        client.ask("tools/call", {"name": "review", "arguments": {"diff": "x"}})
        client.ask("tools/call", {"name": "review", "arguments": {}})
        called, failed = spans()

        assert called.name == failed.name == "tools/call review"
        assert called.attributes["gen_ai.tool.name"] == "review"
        assert called.status.status_code is StatusCode.UNSET
        assert failed.attributes["error.type"] == "tool_error"
        assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, None)

    def test_trace_context(self, client, spans):
        """The trace context in `_meta` determines the parent span and the trace state."""
        client.ask(
            "prompts/get",
            {"name": "review", "arguments": {"diff": "x"}},
            traceparent=PARENT,
            tracestate="rojo=1",
            baggage="team=blue",
        )
        (span,) = spans()

        assert format(span.context.trace_id, "032x") == TRACE
        assert format(span.parent.span_id, "016x") == "00f067aa0ba902b7"
        assert span.context.trace_state.to_header() == "rojo=1"

    @pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
    def test_trace_context_in_older_revisions(self, sdk, spans, revision):
        """The trace context is used in older revisions too, although they do not define it."""
        client = Client(CATALOG, revision, observers=[Telemetry(PIPE)])
        spans_before = len(spans())
        client.ask("prompts/get", {"name": "review", "arguments": {"diff": "x"}}, traceparent=PARENT)

        assert format(spans()[spans_before:][-1].context.trace_id, "032x") == TRACE

    @pytest.mark.parametrize(
        "traceparent", [7, None, "no", ["a"], {"b": 1}, "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
    )
    def test_invalid_trace_context(self, client, spans, traceparent):
        """With an invalid trace context the request is served, and its span has no parent."""
        reply = client.ask(
            "prompts/get", {"name": "review", "arguments": {"diff": "x"}}, traceparent=traceparent
        )

        assert "result" in reply
        assert [span.parent for span in spans()] == [None]

    def test_error(self, client, spans):
        """The span of a failed request has the error code, but not the message."""
        client.get("broken")
        (span,) = spans()

        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert {key: span.attributes[key] for key in ("error.type", "rpc.response.status_code")} == {
            "error.type": "-32603",
            "rpc.response.status_code": "-32603",
        }

    def test_unknown_method(self, client, spans):
        """Requests for unknown methods have spans with one common name."""
        client.ask("prompts/made_up")
        (span,) = spans()

        assert (span.name, span.attributes["error.type"]) == ("_OTHER", "-32601")

    def test_unknown_prompt(self, client, spans):
        """The name of an unknown prompt is in neither the name nor the attributes of the span."""
        client.get("made up")
        (span,) = spans()

        assert span.name == "prompts/get"
        assert "gen_ai.prompt.name" not in span.attributes

    def test_values_are_not_exported(self, client, spans):
        """A span contains no value of an argument or of a variable in a URI."""
        client.get("review", diff="the-diff", token="the-token")  # noqa: S106 (no password)
        client.ask("resources/read", {"uri": "docs://the-page"})
        client.get("review", other="the-value")
        exported = json.dumps([json.loads(span.to_json()) for span in spans()])

        assert len(spans()) == 3
        assert not [word for word in ("the-diff", "the-token", "the-page", "the-value") if word in exported]

    def test_resource_uri(self, client, spans):
        """The URI of a resource without variables is an attribute."""
        client.ask("resources/read", {"uri": "docs://readme"})

        assert [span.attributes["mcp.resource.uri"] for span in spans()] == ["docs://readme"]

    def test_unanswered_request(self, sdk, spans):
        """The span of an open request ends with the server."""
        client = Client(None, observers=[Telemetry(TCP)])
        client.post("prompts/list")

        client.server.close(0, answer_unfinished=False)

        assert [span.attributes.get("error.type") for span in spans()] == [None, "cancelled"]


def test_request_durations(client, points):
    """Durations are recorded with the attributes of the conventions, without the request id."""
    client.get("review", diff="x")
    client.ask("prompts/list")
    by_method = {
        point.attributes["mcp.method.name"]: point for point in points("mcp.server.operation.duration")
    }

    assert {"prompts/get", "prompts/list"} <= set(by_method)
    assert "jsonrpc.request.id" not in by_method["prompts/list"].attributes
    assert by_method["prompts/list"].explicit_bounds[:3] == (0.01, 0.02, 0.05)


def test_rejected_http_requests_have_no_spans(sdk, spans):
    """Requests that the endpoint rejects have no spans; all others have."""
    app = Application(CATALOG, Settings(telemetry=Telemetry(TCP)))
    message = modern(1, "prompts/get", {"name": "review", "arguments": {"diff": "x"}}, traceparent=PARENT)
    try:
        assert answer_to(app, message).status == 200
        assert answer_to(app, message, host="evil.example").status == 421
        assert answer_to(app, message, content_type="text/plain").status == 415
        assert answer_to(app, b"{").status == 400
    finally:
        app.close(0)

    assert [(span.name, span.attributes["network.transport"]) for span in spans()] == [
        ("prompts/get review", "tcp")
    ]
    assert format(spans()[0].context.trace_id, "032x") == TRACE


class TestObservers:
    def test_several_observers(self):
        """Several observers are notified of the same requests in order."""
        calls = []

        class Observer:
            def __init__(self, name):
                self.name = name

            def begin(self, request, catalog):
                calls.append((self.name, request.method))
                return lambda reply: calls.append((self.name, bool(reply.line)))

        Client(CATALOG, MODERN, observers=[Observer("a"), Observer("b")]).ask("prompts/list")

        assert calls == [("a", "prompts/list"), ("b", "prompts/list"), ("a", True), ("b", True)]


SCRIPT = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
exporter = ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: "SPAN " + span.name + chr(10))
provider.add_span_processor(BatchSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from promptkit.cli import main
sys.exit(main())
"""


def test_last_span_is_exported_over_stdio(tmp_path):
    """With `--otel`, spans of a pending batch are exported before the process exits."""
    (tmp_path / "greet.py").write_text(
        'from promptkit import prompt\n@prompt\ndef greet() -> str:\n    """Greet."""\n    return "hello"\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "serve", str(tmp_path), "--otel"],
        input=json.dumps(modern(1, "prompts/get", {"name": "greet"})).encode() + b"\n",
        capture_output=True,
        timeout=30,
        check=True,
    )

    assert b'"hello"' in done.stdout
    assert b"SPAN prompts/get greet" in done.stderr


def test_missing_opentelemetry_package(tmp_path):
    """Without the package, `--otel` prints the command that installs it."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry'] = None\n")
    (tmp_path / "recipes").mkdir()
    for options in ((), ("--http", "0")):
        done = subprocess.run(
            [sys.executable, "-m", "promptkit", "serve", str(tmp_path / "recipes"), "--otel", *options],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

        error = done.stderr.splitlines()[-1]
        assert (done.returncode, error) == (
            2,
            f"promptkit: --otel needs opentelemetry: {install_command('otel')}",
        )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_every_worker_exports_its_spans(tmp_path):
    """The SDK is set up before workers are forked, and each worker exports its spans before it exits."""
    folder, log = tmp_path / "recipes", tmp_path / "log"
    folder.mkdir()
    (folder / "greet.py").write_text(GREET)
    command = [sys.executable, "-c", SCRIPT, "serve", str(folder), "--otel", "--http", "0", "--workers", "2"]
    served = ServerProcess(command, log)
    message = modern(1, "prompts/get", {"name": "greet"}, traceparent=PARENT)
    try:
        for _ in range(4):
            with served.connect() as connection:
                reply = connection.ask(
                    "/mcp", json.dumps(message).encode(), **{**PLAIN, **modern_headers(message)}
                )
                assert reply.status == 200
        assert served.stop()[0] == 0
    finally:
        served.process.kill()
        served.process.wait()

    assert served.stderr().count("SPAN prompts/get greet") == 4
