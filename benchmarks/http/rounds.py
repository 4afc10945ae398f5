"""Interleaved rounds over HTTP, which measure the servers in turn, with one worker and with two workers."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs

from benchmarks import recipes, rows
from benchmarks.cases import TYPED
from benchmarks.http.load import Load, find_wrk, send_load
from benchmarks.http.peers import HttpPeer
from benchmarks.http.server import HttpServer, Post, free_port
from benchmarks.peers import OURS, UnavailableError
from benchmarks.rounds import Figure
from benchmarks.rows import Row
from benchmarks.runner import UNSET
from benchmarks.session import ServerFailedError

POST = Post(TYPED)
COUNT = 10  # prompts on each server

#: The size of a constant reply if promptkit is not measured, in bytes.
REPLY_BYTES = 300


@attrs.frozen
class HttpPlan:
    """
    How much to measure in one round.

    Args:
        warm_up:
            The duration of the load before a measurement, in seconds.

        seconds:
            The duration of each measured load, in seconds.

        loads:
            The number of measured loads for each server with one worker.
    """

    warm_up: int
    seconds: int
    loads: int = 1


FULL = HttpPlan(warm_up=1, seconds=2, loads=2)
QUICK = HttpPlan(warm_up=1, seconds=1)


def choose_processors() -> tuple[set[int] | None, set[int] | None]:
    """
    Return the processors for a server with one worker, and the processors for wrk.

    If this process can use only one processor, both are None, which means that any processor can be used.
    """
    if not hasattr(os, "sched_getaffinity") or len(processors := sorted(os.sched_getaffinity(0))) < 2:
        return None, None
    return {processors[0]}, {processors[1]}


@attrs.define
class HttpRounds:
    """
    The rounds of one run.

    Args:
        plan:
            How much to measure.

        folder:
            The folder that contains the image and the folders of recipes.

        peers:
            The servers to measure.

        report_progress:
            A function that is called with a description of the current measurement.

        notes:
            The reason for each skipped measurement, keyed by server and measurement.
    """

    plan: HttpPlan
    folder: Path
    peers: Sequence[HttpPeer]
    report_progress: Callable[[str], None]
    notes: dict[tuple[str, str], str] = attrs.field(factory=dict)
    _size: int = REPLY_BYTES
    _values: dict[Row, dict[str, list[float]]] = attrs.field(factory=lambda: defaultdict(dict))

    def run(self, count: int) -> dict[Row, dict[str, Figure]]:
        """
        Check every server, measure it in *count* rounds, and return the figures.
        """
        if not self.peers:
            return {}
        try:
            find_wrk()
        except UnavailableError as error:
            self.notes["wrk", "everything over HTTP"] = str(error)
            return {}
        peers = [peer for peer in self.peers if self._answers_correctly(peer)]
        for number in range(count):
            self.report_progress(f"round {number + 1} of {count}, over HTTP")
            self._measure_with_one_worker(peers)
            for peer in peers:
                if peer.workers > 1:
                    self._store(peer, 2, self._measure_with_two_workers(peer))
        return {
            row: {name: Figure.of(values) for name, values in by_server.items()}
            for row, by_server in self._values.items()
        }

    def _answers_correctly(self, peer: HttpPeer) -> bool:
        """Start *peer* once, and return whether its reply is correct. If not, note the reason."""
        self.report_progress(f"{peer.label}: checking its replies over HTTP")
        try:
            with self._start(peer, 1, free_port()) as server:
                if peer.has_prompts:
                    server.check(POST)
                if peer.name == OURS:
                    self._size = len(server.reply)
        except ServerFailedError as error:
            self.notes[peer.name, "HTTP"] = str(error)
            return False
        return True

    def _start(self, peer: HttpPeer, workers: int, port: int) -> HttpServer:
        shell = {name: value for name, value in os.environ.items() if name not in UNSET}
        settings = {
            "BENCHMARK_PROMPTS": str(COUNT),
            "BENCHMARK_PICTURES": str(self.folder),
            "BENCHMARK_BYTES": str(self._size),
        }
        command = peer.command_for(recipes.folder(self.folder, COUNT), port, workers)
        processors = choose_processors()[0] if workers == 1 else None
        return HttpServer(command, {**shell, **settings}, port, POST, processors)

    def _measure_with_one_worker(self, peers: Sequence[HttpPeer]) -> None:
        """Measure the servers with one worker in turn, so that a slow period affects all of them."""
        with ExitStack() as running:
            servers = {peer: running.enter_context(self._start(peer, 1, free_port())) for peer in peers}
            for peer, server in servers.items():
                self._store(peer, 1, _measure_first(server, self.plan))
            for _ in range(self.plan.loads):
                for peer, server in servers.items():
                    self._store(peer, 1, _measure_load(server, self.plan))

    def _measure_with_two_workers(self, peer: HttpPeer) -> Iterator[tuple[Row, float]]:
        """Yield the figures of a server with two workers."""
        with self._start(peer, 2, free_port()) as server:
            send_load(server.port, POST, seconds=self.plan.warm_up, processors=None)
            before = server.processor_time()
            results = send_load(server.port, POST, seconds=self.plan.seconds, processors=None)
            yield from _figures(results, server.processor_time() - before, 2)
            yield rows.http_memory(2), server.memory()

    def _store(self, peer: HttpPeer, workers: int, figures: Iterator[tuple[Row, float]]) -> None:
        """Store the figures of one server, and note the error if they are incomplete."""
        try:
            for row, value in figures:
                self._values[row].setdefault(peer.name, []).append(value)
        except ServerFailedError as error:
            self.notes[peer.name, f"HTTP with {workers} workers"] = str(error)


def _measure_first(server: HttpServer, plan: HttpPlan) -> Iterator[tuple[Row, float]]:
    """
    Yield the start time of a server with one worker, and the median time of a request on one connection.
    """
    yield rows.HTTP_OPENING, server.opened
    send_load(server.port, POST, seconds=plan.warm_up, processors=choose_processors()[1])
    single = send_load(
        server.port, POST, seconds=plan.warm_up, connections=1, processors=choose_processors()[1]
    )
    yield rows.HTTP_ALONE, single.median


def _measure_load(server: HttpServer, plan: HttpPlan) -> Iterator[tuple[Row, float]]:
    """Yield the figures of a server with one worker under one load."""
    before = server.processor_time()
    results = send_load(server.port, POST, seconds=plan.seconds, processors=choose_processors()[1])
    yield from _figures(results, server.processor_time() - before, 1)
    yield rows.http_memory(1), server.memory()


def _figures(results: Load, processor_time: float, workers: int) -> Iterator[tuple[Row, float]]:
    yield rows.http_rate(workers), results.requests / results.seconds
    yield rows.http_each(workers), results.seconds / results.requests
    yield rows.http_median(workers), results.median
    yield rows.http_slowest(workers), results.slowest
    yield rows.http_work(workers), processor_time / results.requests
