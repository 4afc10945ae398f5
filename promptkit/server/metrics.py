"""
Metrics: the number, outcomes and durations of requests, in the text format of Prometheus.

Each worker writes its own files in a shared folder; the worker that is scraped adds them up. A worker that
replaces another one continues its predecessor's files, so that counters never decrease and no files are left.

See https://prometheus.github.io/client_python/multiprocess/.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector

from promptkit.catalog.catalog import Catalog
from promptkit.files.scratch import create_scratch_folder, remove_scratch_folder
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.server.lookup import find_target, method_or_fallback

#: The environment variable in which prometheus_client expects the folder.
_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"

#: The upper bounds of the buckets for durations, in seconds. Most prompts take less than the first bound. The
#: last bound is the default time limit.
_BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30)

#: The label for unknown methods and prompts, because their number is unbounded; and for prompts that require
#: scopes, so that metrics do not reveal whether such a prompt exists.
_OTHER: Final = "(other)"

_PARENT: Final = "parent"


class Metrics:
    """
    The metrics from all workers of a server, created before the workers are forked.

    They do not contain argument values, text from clients, or names of prompts that require scopes. Metrics
    that recipes define with `prometheus_client` are included.

    Args:
        workers:
            The number of worker processes.

    Raises:
        OSError: If the folder for the files cannot be created.
    """

    def __init__(self, workers: int) -> None:
        self._folder = os.environ[_FOLDER] = create_scratch_folder("promptkit-metrics-")
        self._worker = _PARENT
        # `prometheus_client` may have been imported before the variable was set.
        values.ValueClass = values.MultiProcessValue(lambda: self._worker)  # type: ignore[no-untyped-call]
        counter = partial(Counter, namespace="promptkit", registry=None)
        self._requests = counter("requests", "Requests, by outcome.", ("method", "outcome", "code"))
        prompts_help = "Requests for prompts, as prompts or as tools, by outcome."
        self._prompts = counter("prompts", prompts_help, ("prompt", "outcome", "code"))
        refusals_help = "HTTP requests that were rejected before their body was parsed."
        self._refusals = counter("http_refusals", refusals_help, ("status",))

        histogram = partial(Histogram, namespace="promptkit", registry=None, buckets=_BOUNDS)
        self._request_s = histogram("request_duration_seconds", "Duration of a request.", ("method",))
        self._prompt_s = histogram(
            "prompt_duration_seconds", "Duration of requests for prompts.", ("prompt",)
        )

        gauge = partial(Gauge, namespace="promptkit", registry=None, multiprocess_mode="sum")
        self._open_gauge = gauge("requests_in_flight", "Pending requests, including open streams.")
        self._waiting_gauge = gauge("requests_waiting", "Requests that wait for a free slot.")
        errors_help = "Recipes that had errors when they were last loaded."
        self._errors_gauge = gauge("recipes_with_errors", errors_help, multiprocess_mode="mostrecent")
        for number in range(workers):
            self.serve_as(str(number))  # create the files now, so that no scrape finds an incomplete one
        self.serve_as(_PARENT)

    def serve_as(self, worker: str) -> None:
        """Continue the files of the worker's previous process, which this process replaces."""
        self._worker = worker
        self._open_gauge.set(0)
        self._waiting_gauge.set(0)
        self._request_s.labels("prompts/get")

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], None]:
        """Count *request* as open. Return a function to call with the reply before the reply is sent."""
        self._open_gauge.inc()
        method = method_or_fallback(request, _OTHER)
        prompt = _prompt_label(request, catalog()) if method in ("prompts/get", "tools/call") else None
        return partial(self._end, method, prompt, time.perf_counter())

    def count_waiting(self, difference: int) -> None:
        """Add *difference* to the number of waiting requests."""
        self._waiting_gauge.inc(difference)

    def count_rejection(self, status: int) -> None:
        """Count an HTTP request that was rejected with this status."""
        self._refusals.labels(status).inc()

    def encode(self, invalid: int) -> bytes:
        """Return the metrics of all workers. *invalid* is the number of recipes that have errors."""
        self._errors_gauge.set(invalid)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def close(self) -> None:
        """Do nothing, because the files are always complete."""

    def remove(self) -> None:
        """Remove the folder, once all workers have exited."""
        remove_scratch_folder(self._folder)

    def _end(self, method: str, prompt: str | None, started: float, reply: Reply) -> None:
        seconds = time.perf_counter() - started
        outcome = reply.outcome, "" if reply.code is None else reply.code
        self._open_gauge.dec()
        self._requests.labels(method, *outcome).inc()
        self._request_s.labels(method).observe(seconds)
        if prompt is not None:
            self._prompts.labels(prompt, *outcome).inc()
            self._prompt_s.labels(prompt).observe(seconds)


def _prompt_label(request: Request, catalog: Catalog) -> str:
    target = find_target(request, catalog)
    is_public = target is not None and target.item is not None and not target.item.scopes
    return target.identifier if target is not None and is_public else _OTHER
