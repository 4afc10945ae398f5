"""The Prometheus metrics of requests."""

import os
from typing import Annotated

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from promptkit import Arg, PromptError, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.jsonrpc import CANCELLED
from promptkit.server.metrics import Metrics
from tests.wire import MODERN, Client


@prompt
def review(diff: str, key: Annotated[str, Arg(secret=True)] = "") -> str:
    """Review a change."""
    if diff == "nothing":
        raise PromptError("there is nothing to review")
    if diff == "everything":
        raise ValueError(diff)
    return f"Review {diff}"


@prompt(scopes=["oncall"])
def page() -> str:
    """Page the operator."""
    return "Page them."


CATALOG = compile(Recipes(prompts=(review, page)))


#: Keeps the memory-mapped files open: the library does not close them, and each lost file is a warning.
INSTANCES = []


@pytest.fixture
def metrics(monkeypatch):
    """Return metrics for two workers, and remove them after the test."""
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    instance = Metrics(2)
    INSTANCES.append(instance)
    instance.serve_as("0")
    yield instance
    instance.remove()


@pytest.fixture
def client(metrics):
    """Return a client of a server with metrics."""
    return Client(CATALOG, MODERN, observers=[metrics], tools=True)


def read_samples(metrics, faults=0):
    """Return the value of each sample by its name and label values."""
    families = text_string_to_metric_families(metrics.encode(faults).decode())
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


class TestRequests:
    def test_requests_by_method_and_outcome(self, metrics, client):
        """Requests are counted by method and outcome, errors also by code, and unknown methods together."""
        client.ask("prompts/list")
        client.get("review", diff="x")
        client.get("review", diff="y")
        client.get("review")
        client.call("review", diff="nothing")
        client.ask("no/such")
        client.ask("no/more")

        samples = read_samples(metrics)
        assert {key: value for key, value in samples.items() if key[0] == "promptkit_requests_total"} == {
            ("promptkit_requests_total", "", "prompts/list", "ok"): 1,
            ("promptkit_requests_total", "", "prompts/get", "ok"): 2,
            ("promptkit_requests_total", "-32602", "prompts/get", "error"): 1,
            ("promptkit_requests_total", "", "tools/call", "failed"): 1,
            ("promptkit_requests_total", "-32601", "(other)", "error"): 2,
        }

    def test_requests_by_prompt(self, metrics, client, capsys):
        """
        A prompt and its tool are counted together; prompts that need scopes are counted as unknown prompts.
        """
        client.get("review", diff="x")
        client.call("review", diff="x")
        client.get("review", diff="everything")
        client.get("page")
        client.get("guessed")

        samples = read_samples(metrics)
        assert {key: value for key, value in samples.items() if key[0] == "promptkit_prompts_total"} == {
            ("promptkit_prompts_total", "", "ok", "review"): 2,
            ("promptkit_prompts_total", "-32603", "error", "review"): 1,
            ("promptkit_prompts_total", "-32602", "error", "(other)"): 2,
        }

    def test_durations(self, metrics, client):
        """Each duration is in its bucket and all larger buckets, and in the sum."""
        for _ in range(3):
            client.get("review", diff="x")

        samples = read_samples(metrics)
        name = "promptkit_prompt_duration_seconds"
        buckets = {key[1]: value for key, value in samples.items() if key[0] == f"{name}_bucket"}
        assert (buckets["+Inf"], samples[f"{name}_count", "review"]) == (3, 3)
        assert sorted(buckets.values()) == list(buckets.values())
        assert 0 < samples[f"{name}_sum", "review"] < 20
        assert samples["promptkit_request_duration_seconds_count", "prompts/get"] == 3

    def test_pending_requests(self, metrics, client):
        """A request is pending until it is answered or cancelled, and a new worker starts with none."""
        (event,) = client.server._session.receive_data(
            b'{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":'
            b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
            b'"io.modelcontextprotocol/clientCapabilities":{}}}}\n'
        )
        ends = [metrics.begin(event, lambda: CATALOG) for _ in range(3)]
        pending = read_samples(metrics)["promptkit_requests_in_flight",]
        ends[0](CANCELLED)
        cancelled = read_samples(metrics)["promptkit_requests_in_flight",]
        metrics.serve_as("0")

        assert (pending, cancelled, read_samples(metrics)["promptkit_requests_in_flight",]) == (3, 2, 0)
        assert read_samples(metrics)["promptkit_requests_total", "", "prompts/list", "cancelled"] == 1

    def test_values_are_not_exposed(self, metrics, client):
        """The text contains no arguments and no names that a client made up."""
        client.get("review", diff="hunter2", key="hunter2")
        client.get("hunter2", hunter2="hunter2")
        client.ask("hunter2")

        assert b"hunter2" not in metrics.encode(0)


class TestWorkers:
    def test_worker_continues_the_counters_of_its_predecessor(self, metrics, client):
        """A worker continues its predecessor's counters, and the counters of all workers are added."""
        for worker in ("0", "1", "parent", "0", "1"):
            metrics.serve_as(worker)
            client.get("review", diff="x")

        assert read_samples(metrics)["promptkit_prompts_total", "", "ok", "review"] == 5

    def test_recipes_with_errors_are_a_gauge(self, metrics):
        """The number of recipes with errors is the latest one, whichever worker reports it."""
        values = []
        for worker, faults in (("0", 3), ("1", 1), ("0", 0)):
            metrics.serve_as(worker)
            values.append(read_samples(metrics, faults)["promptkit_recipes_with_errors",])

        assert values == [3, 1, 0]

    def test_folder_is_private_and_temporary(self, metrics):
        """The folder is readable only by its owner, and is removed with the server."""
        folder = os.environ["PROMETHEUS_MULTIPROC_DIR"]
        assert os.stat(folder).st_mode & 0o777 == 0o700  # noqa: PTH116 (the mode of a folder by its name)

        metrics.remove()

        assert not os.path.exists(folder)  # noqa: PTH110 (as above)
