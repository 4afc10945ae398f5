"""Interleaved rounds over HTTP: every load of each server in turn, with one worker and with two."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs

from benchmarks import recipes, rows
from benchmarks.cases import TYPED
from benchmarks.http.load import Load, find_wrk, load
from benchmarks.http.peers import HttpPeer
from benchmarks.http.server import HttpServer, Post, free_port
from benchmarks.peers import OURS, AbsentError
from benchmarks.rounds import Figure
from benchmarks.rows import Row
from benchmarks.runner import UNSET
from benchmarks.session import RefusedError

POST = Post(TYPED)
COUNT = 10  # prompts that each server has

#: How many bytes constant ones are if promptkit is not there to be imitated.
REPLY_BYTES = 300


@attrs.frozen
class HttpPlan:
    """
    How long is measured.

    Args:
        warm_up:
            How long a server works before that counts, in seconds.

        seconds:
            How long each load goes on, in seconds.

        loads:
            How often each server with one worker gets a load, in turn.
    """

    warm_up: int
    seconds: int
    loads: int = 1


FULL = HttpPlan(warm_up=1, seconds=2, loads=2)
QUICK = HttpPlan(warm_up=1, seconds=1)


def cores() -> tuple[set[int] | None, set[int] | None]:
    """
    Return the processors of a server with one worker, and of the load; None for any if there is but one.
    """
    if not hasattr(os, "sched_getaffinity") or len(found := sorted(os.sched_getaffinity(0))) < 2:
        return None, None
    return {found[0]}, {found[1]}


@attrs.define
class HttpRounds:
    """
    The rounds of one run.

    Args:
        plan:
            How long is measured.

        folder:
            Where the images and the folders of recipes lie.

        peers:
            The servers.

        say:
            Is told what is measured now.

        notes:
            What was left out, and why.
    """

    plan: HttpPlan
    folder: Path
    peers: Sequence[HttpPeer]
    say: Callable[[str], None]
    notes: dict[tuple[str, str], str] = attrs.field(factory=dict)
    _size: int = REPLY_BYTES
    _values: dict[Row, dict[str, list[float]]] = attrs.field(factory=lambda: defaultdict(dict))

    def run(self, count: int) -> dict[Row, dict[str, Figure]]:
        """
        Check every server, measure each *count* times, and return the figures.
        """
        if not self.peers:
            return {}
        try:
            find_wrk()
        except AbsentError as reason:
            self.notes["wrk", "everything over HTTP"] = str(reason)
            return {}
        peers = [peer for peer in self.peers if self._answers(peer)]
        for number in range(count):
            self.say(f"round {number + 1} of {count}, over HTTP")
            self._round(peers)
            for peer in peers:
                if peer.workers > 1:
                    self._keep(peer, 2, self._measure_two(peer))
        return {
            row: {name: Figure.of(values) for name, values in found.items()}
            for row, found in self._values.items()
        }

    def _answers(self, peer: HttpPeer) -> bool:
        """Whether *peer* answers as it should. It notes why not, and starts once without a clock."""
        self.say(f"{peer.label}: what it answers over HTTP")
        try:
            with self._start(peer, 1, free_port()) as server:
                if peer.content:
                    server.check(POST)
                if peer.name == OURS:
                    self._size = len(server.reply)
        except RefusedError as error:
            self.notes[peer.name, "HTTP"] = str(error)
            return False
        return True

    def _start(self, peer: HttpPeer, workers: int, port: int) -> HttpServer:
        shell = {name: value for name, value in os.environ.items() if name not in UNSET}
        own = {
            "BENCHMARK_PROMPTS": str(COUNT),
            "BENCHMARK_PICTURES": str(self.folder),
            "BENCHMARK_BYTES": str(self._size),
        }
        command = peer.command_for(recipes.folder(self.folder, COUNT), port, workers)
        processors = cores()[0] if workers == 1 else None
        return HttpServer(command, {**shell, **own}, port, POST, processors)

    def _round(self, peers: Sequence[HttpPeer]) -> None:
        """Measure all servers with one worker, side by side: a slow minute hits all of them."""
        with ExitStack() as running:
            servers = {peer: running.enter_context(self._start(peer, 1, free_port())) for peer in peers}
            for peer, server in servers.items():
                self._keep(peer, 1, _measure_first(server, self.plan))
            for _ in range(self.plan.loads):
                for peer, server in servers.items():
                    self._keep(peer, 1, _measure_load(server, self.plan))

    def _measure_two(self, peer: HttpPeer) -> Iterator[tuple[Row, float]]:
        """The figures of a server with two workers."""
        with self._start(peer, 2, free_port()) as server:
            load(server.port, POST, seconds=self.plan.warm_up, processors=None)
            before = server.processor_time()
            found = load(server.port, POST, seconds=self.plan.seconds, processors=None)
            yield from _figures(found, server.processor_time() - before, 2)
            yield rows.http_memory(2), server.memory()

    def _keep(self, peer: HttpPeer, workers: int, figures: Iterator[tuple[Row, float]]) -> None:
        """Keep the figures of one server; note what cut them short."""
        try:
            for row, value in figures:
                self._values[row].setdefault(peer.name, []).append(value)
        except RefusedError as error:
            self.notes[peer.name, f"HTTP with {workers} workers"] = str(error)


def _measure_first(server: HttpServer, plan: HttpPlan) -> Iterator[tuple[Row, float]]:
    """How long a server with one worker took to start, and what it takes for one client."""
    yield rows.HTTP_OPENING, server.opened
    load(server.port, POST, seconds=plan.warm_up, processors=cores()[1])
    one = load(server.port, POST, seconds=plan.warm_up, connections=1, processors=cores()[1])
    yield rows.HTTP_ALONE, one.median


def _measure_load(server: HttpServer, plan: HttpPlan) -> Iterator[tuple[Row, float]]:
    """The figures of one load of a server with one worker."""
    before = server.processor_time()
    found = load(server.port, POST, seconds=plan.seconds, processors=cores()[1])
    yield from _figures(found, server.processor_time() - before, 1)
    yield rows.http_memory(1), server.memory()


def _figures(found: Load, spent: float, workers: int) -> Iterator[tuple[Row, float]]:
    yield rows.http_rate(workers), found.requests / found.seconds
    yield rows.http_each(workers), found.seconds / found.requests
    yield rows.http_median(workers), found.median
    yield rows.http_slowest(workers), found.slowest
    yield rows.http_work(workers), spent / found.requests
