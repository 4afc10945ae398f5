"""Interleaved rounds, which measure the servers in turn, so that a slow period affects all of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import product
from statistics import median
from typing import Self

import attrs

from benchmarks import busy, many_files, rows
from benchmarks.cases import CASES, PICTURE, Case, list_case
from benchmarks.peers import OURS, Peer
from benchmarks.rows import Row
from benchmarks.runner import Runner, memory_figure
from benchmarks.session import ServerFailedError, Session
from benchmarks.wire import ERAS, Era

#: The numbers of pure-Python loops that run while a quick prompt is measured.
LOOPS = (1, 8)


@attrs.frozen
class Figure:
    """
    The results of the rounds for one row, era and server.

    Args:
        rounds:
            The value of each round.

        median:
            The median of the values.

        low:
            The lowest value.

        high:
            The highest value.
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


#: The figures, keyed by era, row and server name.
Results = dict[str, dict[Row, dict[str, Figure]]]


@attrs.define
class Rounds:
    """
    The rounds of one run.

    Args:
        runner:
            The runner that starts and measures servers.

        peers:
            The servers to measure.

        report_progress:
            A function that is called with a description of the current measurement.

        notes:
            The reason for each skipped measurement, keyed by server and measurement.
    """

    runner: Runner
    peers: Sequence[Peer]
    report_progress: Callable[[str], None]
    notes: dict[tuple[str, str], str] = attrs.field(factory=dict)
    _cases: dict[tuple[str, str], tuple[Case, ...]] = attrs.field(factory=dict)
    _values: dict[tuple[str, Row, str], list[float]] = attrs.field(factory=lambda: defaultdict(list))

    def run(self, count: int) -> Results:
        """
        Check every server, measure it in *count* rounds, and return the figures.

        Requests are measured in both eras. All other figures are measured only in the first era.
        """
        for era in ERAS:
            for peer in self.peers:
                self._check(peer, era)
        for number in range(count):
            self.report_progress(f"round {number + 1} of {count}: starts")
            self._measure_starts(ERAS[0])
            for era in ERAS:
                self.report_progress(f"round {number + 1} of {count}: requests in the {era.name} era")
                self._measure_cases(era)
            self.report_progress(f"round {number + 1} of {count}: many prompts")
            self._measure_growth(ERAS[0])
            for peer in self._peers_supporting(ERAS[0]):
                if peer.name == OURS:
                    self.report_progress(f"round {number + 1} of {count}: loops, and many files")
                    self._measure_promptkit(peer, ERAS[0])
        return self._results()

    def _check(self, peer: Peer, era: Era) -> None:
        """Check which cases *peer* supports, and note the errors of the other cases."""
        self.report_progress(f"{peer.label}: checking its replies in the {era.name} era")
        errors = self.runner.check(peer, era)
        for name, reason in errors.items():
            self._note(peer, era, reason, name)
        if None not in errors:
            self._cases[era.name, peer.name] = tuple(case for case in CASES if case.name not in errors)

    def _note(self, peer: Peer, era: Era, reason: str, case: str | None = None) -> None:
        what = f"{case} in the {era.name} era" if case else f"the {era.name} era"
        self.notes[peer.name, what] = reason

    def _peers_supporting(self, era: Era) -> list[Peer]:
        """Return the servers that support *era*."""
        return [peer for peer in self.peers if (era.name, peer.name) in self._cases]

    def _measure_starts(self, era: Era) -> None:
        """Measure the start of every server with a few prompts, in turn."""
        for _ in range(self.runner.plan.starts):
            for peer in self._peers_supporting(era):
                self._store(peer, era, self.runner.measure_start(peer, era))
                if peer.name == OURS:
                    self._store(peer, era, busy.measure_slow_start(self.runner, peer, era))

    def _measure_cases(self, era: Era) -> None:
        """Measure each case with every server, in turn."""
        with ExitStack() as open_sessions:
            sessions: dict[Peer, Session] = {}
            for peer in self._peers_supporting(era):
                session = self.runner.start(peer, era, self.runner.plan.sizes[0])
                sessions[peer] = open_sessions.enter_context(session)
            for case in CASES * self.runner.plan.turns:
                for peer, session in sessions.items():
                    if case in self._cases[era.name, peer.name] and peer.supports(case):
                        self._store(peer, era, self.runner.measure_case(session, case))
                    if peer.name == OURS and case is PICTURE:
                        self._measure_echoes(era, case)
            for peer, session in sessions.items():
                if peer.has_prompts and era is ERAS[0]:
                    self._store(peer, era, memory_figure(session.memory(), rows.LOADED))

    def _measure_growth(self, era: Era) -> None:
        """Measure the figures that depend on the number of prompts: start, memory, list, one of many."""
        with ExitStack() as open_sessions:
            sessions: dict[tuple[int, Peer], Session] = {}
            for count, peer in product(self.runner.plan.counts, self._peers_supporting(era)):
                if peer.has_prompts and (count != self.runner.plan.many or peer.name == OURS):
                    session = open_sessions.enter_context(self.runner.start(peer, era, count))
                    sessions[count, peer] = session
                    self._store(peer, era, self.runner.measure_size(session, count))
            for _ in range(self.runner.plan.turns):
                for (count, peer), session in sessions.items():
                    self._store(peer, era, self.runner.measure_list(session, peer, count))
                    if peer.name == OURS:
                        self._measure_echoes(era, list_case(count))
            for _ in range(self.runner.plan.turns):
                for (count, peer), session in sessions.items():
                    self._store(peer, era, self.runner.measure_among(session, count))

    def _measure_echoes(self, era: Era, case: Case) -> None:
        """Measure echo servers with replies of the same size as promptkit's last result for *case*."""
        sizes = self._values.get((era.name, rows.size(case), OURS), ())
        for peer in self._peers_supporting(era):
            if not peer.has_prompts and sizes:
                self._store(peer, era, self.runner.measure_echo(peer, era, case, sizes[-1]))

    def _measure_promptkit(self, peer: Peer, era: Era) -> None:
        """Measure features that only promptkit has: quick prompts next to slow ones, saved files, `check`."""
        for loops in LOOPS:
            self._store(peer, era, busy.measure_loops(self.runner, peer, era, loops))
        for files in self.runner.plan.files:
            self._store(peer, era, many_files.measure_saves(self.runner, peer, era, files))
        self._store(peer, era, many_files.measure_check(self.runner, self.runner.plan.checked))

    def _store(self, peer: Peer, era: Era, figures: Iterable[tuple[Row, float]]) -> None:
        """Store the figures of one server, and note the error if they are incomplete."""
        try:
            for row, value in figures:
                self._values[era.name, row, peer.name].append(value)
        except ServerFailedError as error:
            self._note(peer, era, str(error))

    def _results(self) -> Results:
        """Return the figures of all rounds."""
        results: Results = {era.name: {} for era in ERAS}
        for (era, row, name), values in self._values.items():
            results[era].setdefault(row, {})[name] = Figure.of(values)
        return results
