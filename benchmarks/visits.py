"""One visit to a server: start it, measure everything of one era, and let it end."""

import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import attrs

from benchmarks import recipes, rows
from benchmarks.cases import CASES, PLAIN, TYPED, Case, listing
from benchmarks.peers import Peer
from benchmarks.rows import Row
from benchmarks.session import Refused, Session
from benchmarks.wire import Era


@attrs.frozen
class Extent:
    """
    How much is measured in one visit.

    Args:
        seconds:
            How long each figure is measured, about.

        least:
            How many requests are sent one at a time at least.

        most:
            How many requests are sent at most, one at a time and pipelined.

        sizes:
            How many prompts a server has. The first is for everything but growth.

        once:
            A size for the first round alone: starting some servers with so many takes a minute.
    """

    seconds: float
    least: int
    most: int
    sizes: tuple[int, ...]
    once: tuple[int, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """
        Every number of prompts.
        """
        return self.sizes + self.once


UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONOPTIMIZE", "PYTHONDEVMODE")

SETTLING = 1.0  # seconds: what a server does once it has answered, it has done by then

FULL = Extent(seconds=0.15, least=100, most=20_000, sizes=(10, 100, 1_000), once=(10_000,))
QUICK = Extent(seconds=0.02, least=10, most=500, sizes=(10, 100))


@attrs.frozen
class Visitor:
    """
    What starts and measures servers.

    Args:
        extent:
            How much to measure.

        folder:
            Where the images and the folders of recipes lie.
    """

    extent: Extent
    folder: Path

    def start(self, peer: Peer, era: Era, count: int) -> Session:
        """
        Return a session with *peer*, which has *count* prompts.

        Raises:
            Refused: If it does not serve the era.
        """
        # What a shell sets for Python (say, to keep no bytecode) would slow some servers down and not others.
        shell = {name: value for name, value in os.environ.items() if name not in UNSET}
        own = {"BENCHMARK_PROMPTS": str(count), "BENCHMARK_PICTURES": str(self.folder)}
        return Session(peer.command_for(recipes.folder(self.folder, count)), {**shell, **own}, era)

    def warm(self, peer: Peer, era: Era, count: int) -> None:
        """
        Start *peer* once without a clock, so that what it keeps for its next start is there.
        """
        with suppress(Refused), self.start(peer, era, count) as session:  # a visit tells why
            session.ask(listing(count))
            session.one_at_a_time(PLAIN, SETTLING, 1, sys.maxsize)

    def check(self, peer: Peer, era: Era) -> dict[str | None, str]:
        """
        Return what *peer* does not do, by case, and why; the era itself if there is no case.
        """
        size = self.extent.sizes[0]
        faults: dict[str | None, str] = {}
        try:
            with self.start(peer, era, size) as session:
                for case in (*CASES, listing(size)):
                    try:
                        _check(session, peer, case)
                    except Refused as error:
                        faults[case.name] = str(error)
        except Refused as error:
            faults[None] = str(error)
        return faults

    def visit(self, peer: Peer, era: Era, cases: Sequence[Case]) -> Iterator[tuple[Row, float]]:
        """
        Yield every figure of *peer* with a few prompts: the start, memory, *cases*, and the end.
        """
        with self.start(peer, era, self.extent.sizes[0]) as session:
            yield rows.OPENING, session.opened
            yield from self._begin(session, self.extent.sizes[0])
            for case in filter(peer.measures, cases if peer.requests else ()):
                yield from self._measure(session, case)
            if peer.content and peer.requests:
                yield from _memory(session, rows.LOADED)
            yield rows.EXIT, session.close()

    def grow(self, peer: Peer, era: Era, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield the figures of *peer* that may depend on the number of its prompts.
        """
        everything = listing(count)
        cases = ((everything, rows.alone(everything)), (TYPED, rows.among(TYPED, count)))
        with self.start(peer, era, count) as session:
            begun = list(self._begin(session, count))
            if count != self.extent.sizes[0]:  # a visit measures that one
                yield from begun
            if peer.requests:
                yield rows.size(everything), len(session.ask(everything)) / 1024
            for case, row in cases if peer.requests else ():
                _check(session, peer, case)  # which warms up, too
                yield row, median(session.one_at_a_time(case, self.extent.seconds, 5, self.extent.most))

    def _begin(self, session: Session, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield what *count* prompts cost from the start on: the time to the first replies, and memory.
        """
        session.ask(listing(count))
        yield rows.first_list(count), time.perf_counter() - session.started
        session.ask(PLAIN)  # what was put off for the list has to be done by now
        yield rows.first_get(count), time.perf_counter() - session.started
        session.one_at_a_time(PLAIN, 2 * self.extent.seconds, 3, self.extent.most)  # what follows a start
        yield from _memory(session, rows.memory(count))

    def _measure(self, session: Session, case: Case) -> Iterator[tuple[Row, float]]:
        """
        Yield the figures of one case, after a warm-up.
        """
        extent = self.extent
        session.one_at_a_time(case, extent.seconds / 10, 3, extent.most)
        times = sorted(session.one_at_a_time(case, extent.seconds, extent.least, extent.most))
        yield rows.alone(case), median(times)
        yield rows.slowest(case), times[math.ceil(len(times) * 0.99) - 1]
        count = min(extent.most, max(extent.least, round(extent.seconds / median(times))))
        session.pipelined(case, extent.least)
        yield rows.pipelined(case), session.pipelined(case, count)


def _memory(session: Session, row: Row) -> Iterator[tuple[Row, float]]:
    """
    Yield the memory that the server holds, where the system tells.
    """
    memory = session.memory()
    if memory is not None:
        yield row, memory


def _check(session: Session, peer: Peer, case: Case) -> None:
    """
    Ask for *case* once.

    Raises:
        Refused: If the answer is an error, or says something else than all the others.
    """
    if peer.measures(case):
        result = session.ask(case)
        if peer.content and not case.says_all(result):
            reason = "its answer says something else"
            raise Refused(reason)
