"""What OpenTelemetry is told of requests, as its SDK receives it."""

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
from promptkit.protocol.jsonrpc import CANCELLED
from promptkit.server.telemetry import PIPE, TCP, Telemetry
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import Settings
from tests.posting import PLAIN, agreeing, answer_to
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
    """Read it."""
    return "text"


@resource("docs://{page}")
def page(page: str) -> str:
    """Read a page."""
    return page


CATALOG = compile(Recipes(prompts=(review, broken), resources=(readme, page)))


@pytest.fixture(scope="module")
def sdk():
    """The SDK, which keeps in memory what it is told. A process can set it up only once."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return spans, reader


@pytest.fixture
def spans(sdk):
    """A function that returns the spans that have ended since."""
    sdk[0].clear()
    return sdk[0].get_finished_spans


@pytest.fixture
def points(sdk):
    """A function that returns the points of a metric."""

    def found(name):
        data = sdk[1].get_metrics_data()
        scopes = [scope for found in data.resource_metrics for scope in found.scope_metrics]
        return [p for scope in scopes for m in scope.metrics if m.name == name for p in m.data.data_points]

    return found


@pytest.fixture
def client(sdk):
    """A client of a server that tells OpenTelemetry of its requests."""
    return Client(CATALOG, MODERN, observers=[Telemetry(PIPE)])


class TestSpans:
    def test_a_request_is_a_span_of_the_server(self, client, spans):
        """
        A span has the name and the attributes that the semantic conventions of MCP ask for.
        """
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

    def test_a_call_of_a_tool_is_one_too(self, sdk, spans):
        """
        It names the tool, and a result that says what was wrong is an error without its text.
        """
        client = Client(CATALOG, MODERN, observers=[Telemetry(PIPE)], tools=True)
        client.ask("tools/call", {"name": "review", "arguments": {"diff": "x"}})
        client.ask("tools/call", {"name": "review", "arguments": {}})
        called, refused = spans()

        assert called.name == refused.name == "tools/call review"
        assert called.attributes["gen_ai.tool.name"] == "review"
        assert called.status.status_code is StatusCode.UNSET
        assert refused.attributes["error.type"] == "tool_error"
        assert (refused.status.status_code, refused.status.description) == (StatusCode.ERROR, None)

    def test_it_is_a_child_of_the_span_that_the_client_names(self, client, spans):
        """
        The context of a trace in `_meta` is honoured, with its state.
        """
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
    def test_that_holds_in_every_revision(self, sdk, spans, revision):
        """
        Older revisions have no word for it, and clients send it all the same.
        """
        client = Client(CATALOG, revision, observers=[Telemetry(PIPE)])
        spans_before = len(spans())
        client.ask("prompts/get", {"name": "review", "arguments": {"diff": "x"}}, traceparent=PARENT)

        assert format(spans()[spans_before:][-1].context.trace_id, "032x") == TRACE

    @pytest.mark.parametrize(
        "wrong", [7, None, "no", ["a"], {"b": 1}, "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
    )
    def test_a_context_that_is_none_begins_a_trace(self, client, spans, wrong):
        """
        Whatever stands in its place, the request is served, and its span has no parent.
        """
        reply = client.ask("prompts/get", {"name": "review", "arguments": {"diff": "x"}}, traceparent=wrong)

        assert "result" in reply
        assert [span.parent for span in spans()] == [None]

    def test_an_error_has_its_code(self, client, spans):
        """
        The span of a request that fails says so by the code of the reply, and does not repeat its text.
        """
        client.get("broken")
        (span,) = spans()

        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert {key: span.attributes[key] for key in ("error.type", "rpc.response.status_code")} == {
            "error.type": "-32603",
            "rpc.response.status_code": "-32603",
        }

    def test_a_request_that_never_reaches_the_server_is_a_span(self, client, spans):
        """
        So is a request for a method that does not exist, under a name of which there is only one.
        """
        client.ask("prompts/made_up")
        (span,) = spans()

        assert (span.name, span.attributes["error.type"]) == ("_OTHER", "-32601")

    def test_nothing_that_a_client_makes_up_is_in_a_name(self, client, spans):
        """
        A prompt that does not exist names neither a span nor an attribute.
        """
        client.get("made up")
        (span,) = spans()

        assert span.name == "prompts/get"
        assert "gen_ai.prompt.name" not in span.attributes

    def test_no_value_is_in_a_span(self, client, spans):
        """
        A span holds no value of an argument, nor one in a URI.
        """
        client.get("review", diff="the-diff", token="the-token")  # noqa: S106 (no password)
        client.ask("resources/read", {"uri": "docs://the-page"})
        client.get("review", other="the-value")
        told = json.dumps([json.loads(span.to_json()) for span in spans()])

        assert len(spans()) == 3
        assert not [word for word in ("the-diff", "the-token", "the-page", "the-value") if word in told]

    def test_a_resource_without_variables_is_named(self, client, spans):
        """
        A URI that its author has written is an attribute.
        """
        client.ask("resources/read", {"uri": "docs://readme"})

        assert [span.attributes["mcp.resource.uri"] for span in spans()] == ["docs://readme"]

    def test_what_is_never_answered_ends_with_the_server(self, sdk, spans):
        """
        At the end no span is left open, and each ends once.
        """
        telemetry = Telemetry(TCP)
        request = next(
            event
            for event in Client(CATALOG, MODERN).server._connection.receive_data(
                json.dumps(modern(1, "prompts/list")).encode() + b"\n"
            )
        )
        end = telemetry.begin(request, lambda: CATALOG)
        telemetry.close()
        end(CANCELLED)

        assert [span.attributes["error.type"] for span in spans()] == ["cancelled"]


def test_requests_are_measured(client, points):
    """
    The duration of each request is recorded under the name of the conventions, without what is only its own.
    """
    client.get("review", diff="x")
    client.ask("prompts/list")
    found = {point.attributes["mcp.method.name"]: point for point in points("mcp.server.operation.duration")}

    assert {"prompts/get", "prompts/list"} <= set(found)
    assert "jsonrpc.request.id" not in found["prompts/list"].attributes
    assert found["prompts/list"].explicit_bounds[:3] == (0.01, 0.02, 0.05)


def test_over_http_the_endpoints_own_refusals_are_counted(sdk, spans, points):
    """
    What the endpoint refuses is counted by status. What it lets through is a span of a request over TCP.
    """
    app = Application(CATALOG, Settings(telemetry=Telemetry(TCP)))
    message = modern(1, "prompts/get", {"name": "review", "arguments": {"diff": "x"}}, traceparent=PARENT)
    try:
        assert answer_to(app, message).status == 200
        assert answer_to(app, message, host="evil.example").status == 421
        assert answer_to(app, message, content_type="text/plain").status == 415
        assert answer_to(app, b"{").status == 400
    finally:
        app.close(0)
    found = {
        point.attributes["http.response.status_code"]: point.value
        for point in points("promptkit.http.refusals")
    }

    assert found == {421: 1, 415: 1, 400: 1}
    assert [(span.name, span.attributes["network.transport"]) for span in spans()] == [
        ("prompts/get review", "tcp")
    ]
    assert format(spans()[0].context.trace_id, "032x") == TRACE


class TestObservers:
    def test_each_is_told_in_turn(self):
        """
        Several observers are notified of the same requests.
        """
        told = []

        class Observer:
            def __init__(self, name):
                self.name = name

            def begin(self, request, catalog):
                told.append((self.name, request.method))
                return lambda reply: told.append((self.name, bool(reply.line)))

        Client(CATALOG, MODERN, observers=[Observer("a"), Observer("b")]).ask("prompts/list")

        assert told == [("a", "prompts/list"), ("b", "prompts/list"), ("a", True), ("b", True)]


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


def test_over_stdio_the_last_span_is_exported_before_the_end(tmp_path):
    """
    `--otel` works over stdio, too. The SDK exports in batches, and the process ends without its exit
    handlers: what is left is handed over first.
    """
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


def test_without_the_api_the_extra_is_named(tmp_path):
    """
    Without its package, `--otel` says what to install.
    """
    (tmp_path / "opentelemetry.py").write_text("raise ModuleNotFoundError(name='opentelemetry')\n")
    (tmp_path / "recipes").mkdir()
    for more in ((), ("--http", "0")):
        done = subprocess.run(
            [sys.executable, "-m", "promptkit", "serve", str(tmp_path / "recipes"), "--otel", *more],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

        said = done.stderr.splitlines()[-1]
        assert (done.returncode, said) == (
            2,
            f"promptkit: --otel needs opentelemetry: {install_command('otel')}",
        )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_over_http_each_worker_exports_what_it_was_asked(tmp_path):
    """
    The SDK is set up before the workers are forked. Whichever of them answers, its span is exported before
    it ends.
    """
    folder, log = tmp_path / "recipes", tmp_path / "log"
    folder.mkdir()
    (folder / "greet.py").write_text(GREET)
    command = [sys.executable, "-c", SCRIPT, "serve", str(folder), "--otel", "--http", "0", "--workers", "2"]
    served = ServerProcess(command, log)
    message = modern(1, "prompts/get", {"name": "greet"}, traceparent=PARENT)
    try:
        for _ in range(4):
            with served.connect() as connection:
                reply = connection.ask("/mcp", json.dumps(message).encode(), **{**PLAIN, **agreeing(message)})
                assert reply.status == 200
        assert served.end()[0] == 0
    finally:
        served.process.kill()
        served.process.wait()

    assert served.stderr().count("SPAN prompts/get greet") == 4
