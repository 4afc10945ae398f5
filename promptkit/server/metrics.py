"""
Metrics: how many requests came, what came of them and how long they took, in the text format of Prometheus.

Each worker counts in files of its own, in one folder; whoever is asked adds them up. A worker that takes the
place of another goes on with the files of that one: so no counter falls, and no file is left over.

See https://prometheus.github.io/client_python/multiprocess/.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector

from promptkit.catalog.catalog import Catalog
from promptkit.files.scratch import create_scratch_folder, remove_scratch_folder
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.server.lookup import target_of
from promptkit.server.observers import OpenRequests, known_method

#: Where prometheus_client finds the folder.
_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"

#: The bounds of durations, in seconds: most prompts take less than the first, and none may take more than 30.
_BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30)

#: What stands for methods and prompts that clients make up, of which there is no end, and for prompts that
#: need scopes: who reads the metrics cannot tell these from names that nobody has.
_OTHER: Final = "(other)"

#: By its name, what is counted, and by which labels.
_COUNTED: Final = {
    "requests": ("Requests, by outcome.", ("method", "outcome", "code")),
    "prompts": (
        "Requests for prompts, as prompts or as tools, by outcome.",
        ("prompt", "outcome", "code"),
    ),
    "reloads": ("Reloads that changed the served recipes.", ()),
    "http_refusals": (
        "HTTP requests that were refused before their body was parsed.",
        ("status",),
    ),
}

#: What is timed, and by which label.
_TIMED: Final = {
    "request": ("Duration of a request.", "method"),
    "prompt": ("Duration of requests for prompts.", "prompt"),
}

#: What goes up and down, and how the numbers of several workers become one.
_MEASURED: Final[Sequence[tuple[str, str, Literal["sum", "mostrecent"]]]] = (
    ("requests_in_flight", "Pending requests, including open streams.", "sum"),
    ("requests_waiting", "Requests that wait until fewer prompts run.", "sum"),
    ("faulty_recipes", "Recipes with an error at the last load.", "mostrecent"),
)

_RENDERS: Final = ("prompts/get", "tools/call")
_PARENT: Final = "parent"
_FIRST: Final = "0"


@attrs.frozen
class _OpenTimer:
    method: str
    prompt: str | None
    started: float


class Metrics:
    """
    Counts requests for Prometheus, in all workers of a server. It is made before they are forked.

    They hold no value of an argument, nothing that clients make up, and no name of a prompt that needs
    scopes. What recipes count with `prometheus_client` by themselves is shown, too.

    Args:
        workers:
            How many processes serve.

    Raises:
        OSError: If there is no folder for its files.
    """

    def __init__(self, workers: int) -> None:
        self._folder = os.environ[_FOLDER] = create_scratch_folder("promptkit-metrics-")
        self._worker = _PARENT
        # Something may have imported it before, without the variable.
        values.ValueClass = values.MultiProcessValue(lambda: self._worker)  # type: ignore[no-untyped-call]
        self._counters = {
            name: Counter(f"promptkit_{name}", about, labels, registry=None)
            for name, (about, labels) in _COUNTED.items()
        }
        self._durations = {
            what: Histogram(
                f"promptkit_{what}_duration_seconds", about, (label,), buckets=_BOUNDS, registry=None
            )
            for what, (about, label) in _TIMED.items()
        }
        self._in_flight, self._waiting, self._faults = (
            Gauge(f"promptkit_{name}", about, registry=None, multiprocess_mode=mode)
            for name, about, mode in _MEASURED
        )
        self._open_requests = OpenRequests(self._end)
        for number in range(workers):
            self.serve_as(str(number))  # nobody can then find a file that is only half made
        self.serve_as(_PARENT)

    def serve_as(self, worker: str) -> None:
        """Count for the worker of a number from now on, which takes the place of the one before it."""
        self._worker = worker
        self._in_flight.set(0)
        self._waiting.set(0)
        self._durations["request"].labels("prompts/get")

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], None]:
        """
        Note that *request* has arrived. Return what is called with the reply before that is sent.
        """
        self._in_flight.inc()
        method = known_method(request, _OTHER)
        prompt = _prompt_of(request, catalog()) if method in _RENDERS else None
        return self._open_requests.add(_OpenTimer(method, prompt, time.perf_counter()))

    def waiting_changed(self, difference: int) -> None:
        """Note that the number of requests that wait until fewer prompts run has changed."""
        self._waiting.inc(difference)

    def refused(self, status: int) -> None:
        """Count an HTTP request that was refused with a status."""
        self._counters["http_refusals"].labels(status).inc()

    def reloaded(self) -> None:
        """Count a reload. Each worker has its own: the first counts for all."""
        if self._worker == _FIRST:
            self._counters["reloads"].inc()

    def text(self, faults: int) -> bytes:
        """Return the metrics of all workers. So many recipes have a fault."""
        self._faults.set(faults)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def close(self) -> None:
        """Count the requests that were never answered."""
        self._open_requests.end_all()

    def remove(self) -> None:
        """Remove the folder, once all workers have ended."""
        remove_scratch_folder(self._folder)

    def _end(self, begun: _OpenTimer, reply: Reply) -> None:
        seconds = time.perf_counter() - begun.started
        came = reply.outcome, "" if reply.code is None else reply.code
        self._in_flight.dec()
        self._counters["requests"].labels(begun.method, *came).inc()
        self._durations["request"].labels(begun.method).observe(seconds)
        if begun.prompt is not None:
            self._counters["prompts"].labels(begun.prompt, *came).inc()
            self._durations["prompt"].labels(begun.prompt).observe(seconds)


def _prompt_of(request: Request, catalog: Catalog) -> str:
    target = target_of(request, catalog)
    is_named = target is not None and target.found is not None and not target.found.scopes
    return target.asked if target is not None and is_named else _OTHER
