"""What is counted of requests, as Prometheus reads it."""

import os
import tempfile
from typing import Annotated

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from promptkit import Arg, PromptError, prompt
from promptkit.cli.options import parse
from promptkit.cli.serve_http import metrics_of
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
    """Page somebody."""
    return "Page them."


CATALOG = compile(Recipes(prompts=(review, page)))


#: What holds the files that are mapped into memory: the library closes none by itself, and each that is lost
#: is a warning.
KEPT = []


@pytest.fixture
def metrics(monkeypatch):
    """What counts, for two workers; after the test nothing of it is left."""
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    made = Metrics(2)
    KEPT.append(made)
    made.serve_as("0")
    yield made
    made.remove()


@pytest.fixture
def client(metrics):
    """A client of a server whose requests are counted."""
    return Client(CATALOG, MODERN, observers=[metrics], tools=True)


def read(metrics, faults=0):
    """The value of each sample, by its name and the values of its labels."""
    found = text_string_to_metric_families(metrics.text(faults).decode())
    samples = [sample for family in found for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


class TestRequests:
    def test_by_method_and_outcome(self, metrics, client):
        """
        What came of each request is counted, an error with its code; what clients make up is counted as one.
        """
        client.ask("prompts/list")
        client.get("review", diff="x")
        client.get("review", diff="y")
        client.get("review")
        client.call("review", diff="nothing")
        client.ask("no/such")
        client.ask("no/more")

        found = read(metrics)
        assert {key: value for key, value in found.items() if key[0] == "promptkit_requests_total"} == {
            ("promptkit_requests_total", "", "prompts/list", "ok"): 1,
            ("promptkit_requests_total", "", "prompts/get", "ok"): 2,
            ("promptkit_requests_total", "-32602", "prompts/get", "error"): 1,
            ("promptkit_requests_total", "", "tools/call", "failed"): 1,
            ("promptkit_requests_total", "-32601", "(other)", "error"): 2,
        }

    def test_by_prompt(self, metrics, client, capsys):
        """
        A prompt counts as such and as a tool. One that needs scopes cannot be told from what is not there.
        """
        client.get("review", diff="x")
        client.call("review", diff="x")
        client.get("review", diff="everything")
        client.get("page")
        client.get("guessed")

        found = read(metrics)
        assert {key: value for key, value in found.items() if key[0] == "promptkit_prompts_total"} == {
            ("promptkit_prompts_total", "", "ok", "review"): 2,
            ("promptkit_prompts_total", "-32603", "error", "review"): 1,
            ("promptkit_prompts_total", "-32602", "error", "(other)"): 2,
        }

    def test_durations(self, metrics, client):
        """
        Each is in one bucket, and in all that are larger; their sum is there, too.
        """
        for _ in range(3):
            client.get("review", diff="x")

        found = read(metrics)
        name = "promptkit_prompt_duration_seconds"
        buckets = {key[1]: value for key, value in found.items() if key[0] == f"{name}_bucket"}
        assert (buckets["+Inf"], found[f"{name}_count", "review"]) == (3, 3)
        assert sorted(buckets.values()) == list(buckets.values())
        assert 0 < found[f"{name}_sum", "review"] < 20
        assert found["promptkit_request_duration_seconds_count", "prompts/get"] == 3

    def test_in_flight(self, metrics, client):
        """
        A request is in flight until it is answered, or cancelled, and a worker begins with none.
        """
        (asked,) = client.server._connection.receive_data(
            b'{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":'
            b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
            b'"io.modelcontextprotocol/clientCapabilities":{}}}}\n'
        )
        ends = [metrics.begin(asked, lambda: CATALOG) for _ in range(3)]
        begun = read(metrics)["promptkit_requests_in_flight",]
        ends[0](CANCELLED)
        cancelled = read(metrics)["promptkit_requests_in_flight",]
        metrics.serve_as("0")

        assert (begun, cancelled, read(metrics)["promptkit_requests_in_flight",]) == (3, 2, 0)
        assert read(metrics)["promptkit_requests_total", "", "prompts/list", "cancelled"] == 1

    def test_no_value_is_shown(self, metrics, client):
        """
        Neither arguments nor what clients make up is in the text.
        """
        client.get("review", diff="hunter2", key="hunter2")
        client.get("hunter2", hunter2="hunter2")
        client.ask("hunter2")

        assert b"hunter2" not in metrics.text(0)


class TestWorkers:
    def test_a_worker_goes_on_where_the_one_before_it_was(self, metrics, client):
        """
        Under one number, workers count on; those of several are added up. So no counter falls.
        """
        for worker in ("0", "1", "parent", "0", "1"):
            metrics.serve_as(worker)
            client.get("review", diff="x")

        assert read(metrics)["promptkit_prompts_total", "", "ok", "review"] == 5

    def test_reloads_are_counted_once(self, metrics):
        """
        Each worker reloads by itself, so one of them counts.
        """
        for worker in ("0", "1"):
            metrics.serve_as(worker)
            metrics.reloaded()

        assert read(metrics)["promptkit_reloads_total",] == 1

    def test_faults_are_those_of_who_is_asked_last(self, metrics):
        """
        They go up and down, whoever has said what before.
        """
        found = []
        for worker, faults in (("0", 3), ("1", 1), ("0", 0)):
            metrics.serve_as(worker)
            found.append(read(metrics, faults)["promptkit_faulty_recipes",])

        assert found == [3, 1, 0]

    def test_the_folder(self, metrics):
        """
        Only its owner can read it, and it goes with the server.
        """
        folder = os.environ["PROMETHEUS_MULTIPROC_DIR"]
        assert os.stat(folder).st_mode & 0o777 == 0o700  # noqa: PTH116 (the mode of a folder by its name)

        metrics.remove()

        assert not os.path.exists(folder)  # noqa: PTH110 (as above)

    def test_no_folder(self, tmp_path, monkeypatch):
        """
        Where none can be made, the error says how to name another place.
        """
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
        with pytest.raises(ValueError, match="needs a folder for its files, which TMPDIR may name: No such"):
            metrics_of(parse(["serve", "--http", "0", "--metrics"]))
