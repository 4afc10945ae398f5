"""Interleaved rounds: every figure of each server in turn, so that a slow minute hits all of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import product
from statistics import median
from typing import Self

import attrs

from benchmarks import many_files, rows
from benchmarks.cases import CASES, LARGE_PICTURE, TYPED, Case, listing
from benchmarks.peers import OURS, Peer
from benchmarks.rows import Row
from benchmarks.runner import Runner, memory_of
from benchmarks.session import Refused, Session
from benchmarks.wire import ERAS, Era


@attrs.frozen
class Figure:
    """
    What the rounds found for one row, era and server.

    Args:
        rounds:
            The figure of each round.

        median:
            The one in the middle.

        low:
            The least.

        high:
            The greatest.
    """

    rounds: tuple[float, ...]
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """
        Return the figure for the values of all rounds.
        """
        return cls(tuple(values), median(values), min(values), max(values))


#: By era, row and server's name.
Results = dict[str, dict[Row, dict[str, Figure]]]


@attrs.define
class Rounds:
    """
    The rounds of one run.

    Args:
        runner:
            What starts and measures servers.

        peers:
            The servers.

        say:
            Is told what is measured now.

        notes:
            What was left out, and why.
    """

    runner: Runner
    peers: Sequence[Peer]
    say: Callable[[str], None]
    notes: dict[tuple[str, str], str] = attrs.field(factory=dict)
    _cases: dict[tuple[str, str], tuple[Case, ...]] = attrs.field(factory=dict)
    _values: dict[tuple[str, Row, str], list[float]] = attrs.field(factory=lambda: defaultdict(list))

    def run(self, count: int) -> Results:
        """
        Check every server, measure each *count* times, and return the figures.
        """
        for era in ERAS:
            for peer in self.peers:
                self._check(peer, era)
        for size in self.runner.plan.counts:
            self._warm(size)
        for number in range(count):
            for era in ERAS:
                self.say(f"round {number + 1} of {count}, {era.name} era")
                self._round(era, first=number == 0)
        return self._results()

    def _check(self, peer: Peer, era: Era) -> None:
        """Find out what *peer* does, and note the rest."""
        self.say(f"{peer.label}: what it answers in the {era.name} era")
        faults = self.runner.check(peer, era)
        for name, reason in faults.items():
            self._note(peer, era, reason, name)
        if None not in faults:
            self._cases[era.name, peer.name] = tuple(case for case in CASES if case.name not in faults)

    def _warm(self, size: int) -> None:
        """Start every server with *size* prompts once without a clock."""
        for peer in self.peers:
            eras = [era for era in ERAS if (era.name, peer.name) in self._cases]
            if eras and peer.content:
                self.say(f"{peer.label}: a start with {size:,} prompts that does not count")
                self.runner.warm(peer, eras[0], size)

    def _note(self, peer: Peer, era: Era, reason: str, case: str | None = None) -> None:
        what = f"{case} in the {era.name} era" if case else f"the {era.name} era"
        self.notes[peer.name, what] = reason

    def _round(self, era: Era, *, first: bool) -> None:
        """Measure every server that serves *era*, and then its growth for each number of prompts."""
        plan = self.runner.plan
        peers = [peer for peer in self.peers if (era.name, peer.name) in self._cases]
        for _ in range(plan.starts):
            for peer in peers:
                self._keep(peer, era, self.runner.measure_start(peer, era))
        for _ in range(plan.starts):
            for peer in filter(lambda peer: peer.content, peers):
                self._keep(peer, era, self.runner.measure_first_get(peer, era))
        self._round_of_cases(era, peers)
        self._round_of_growth(era, peers, plan.counts if first else plan.sizes)
        for files in plan.files:
            self._round_of_files(era, peers, files)

    def _round_of_cases(self, era: Era, peers: Sequence[Peer]) -> None:
        """Measure each case with every server, side by side."""
        with ExitStack() as open_sessions:
            sessions: dict[Peer, Session] = {}
            for peer in peers:
                session = self.runner.start(peer, era, self.runner.plan.sizes[0])
                sessions[peer] = open_sessions.enter_context(session)
            for case in CASES * self.runner.plan.turns:
                for peer, session in sessions.items():
                    if case in self._cases[era.name, peer.name] and peer.measures(case):
                        self._keep(peer, era, self.runner.measure_case(session, case))
                    if peer.name == OURS and case is LARGE_PICTURE:
                        self._echo(era, peers, case)
                if case is TYPED:  # a call of a tool is held against it
                    self._tools(era, peers)
            for peer, session in sessions.items():
                if peer.content:
                    self._keep(peer, era, memory_of(session.memory(), rows.LOADED))

    def _tools(self, era: Era, peers: Iterable[Peer]) -> None:
        """Measure calls of tools after all others have had their turn: a server is started for it."""
        for peer in peers:
            if peer.name == OURS:
                self._keep(peer, era, self.runner.measure_tools(peer, era))

    def _round_of_growth(self, era: Era, peers: Sequence[Peer], counts: Iterable[int]) -> None:
        """Measure what may depend on the number of prompts: starts, memory, lists, a prompt among many."""
        with ExitStack() as open_sessions:
            sessions: dict[tuple[int, Peer], Session] = {}
            for count, peer in product(counts, filter(lambda peer: peer.content, peers)):
                session = open_sessions.enter_context(self.runner.start(peer, era, count))
                self._keep(peer, era, self.runner.measure_size(session, count))
                sessions[count, peer] = session
            for _ in range(self.runner.plan.turns):
                for (count, peer), session in sessions.items():
                    self._keep(peer, era, self.runner.measure_list(session, peer, count))
                    if peer.name == OURS:
                        self._echo(era, peers, listing(count))
            for _ in range(self.runner.plan.turns):
                for (count, peer), session in sessions.items():
                    self._keep(peer, era, self.runner.measure_among(session, count))

    def _echo(self, era: Era, peers: Iterable[Peer], case: Case) -> None:
        """Measure echoes of as many bytes as promptkit has just answered a case with."""
        sizes = self._values.get((era.name, rows.size(case), OURS), ())
        for peer in peers:
            if not peer.content and sizes:
                self._keep(peer, era, self.runner.measure_echo(peer, era, case, sizes[-1]))

    def _round_of_files(self, era: Era, peers: Sequence[Peer], files: int) -> None:
        """Measure what reads recipes where they are in so many files."""
        reading = [peer for peer in peers if peer.reads_recipes]
        for peer in reading:
            self._keep(peer, era, self.runner.measure_get_of_files(peer, era, files))
        for _, peer in product(range(self.runner.plan.turns), reading):
            self._keep(peer, era, self.runner.measure_list_of_files(peer, era, files))
        for peer in reading:
            if peer.name == OURS:
                self._keep(peer, era, many_files.measure_saves(self.runner, peer, era, files))
                for _ in range(self.runner.plan.turns):
                    self._keep(peer, era, many_files.measure_check(self.runner, peer, era, files))

    def _keep(self, peer: Peer, era: Era, figures: Iterable[tuple[Row, float]]) -> None:
        """Keep the figures of one server; note what cut them short."""
        try:
            for row, value in figures:
                self._values[era.name, row, peer.name].append(value)
        except Refused as error:
            self._note(peer, era, str(error))

    def _results(self) -> Results:
        """The figures, row after row."""
        results: Results = {era.name: {} for era in ERAS}
        for (era, row, name), values in self._values.items():
            results[era].setdefault(row, {})[name] = Figure.of(values)
        return results
