"""The runner starts servers, measures one thing at a time, and lets them end; the plan says how much."""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from types import MappingProxyType

import attrs

from benchmarks import recipes, rows
from benchmarks.cases import CALLED, CASES, LARGE_PICTURE, PLAIN, TYPED, Case, echo_of, listing
from benchmarks.peers import Peer
from benchmarks.rows import Row
from benchmarks.session import Refused, Session
from benchmarks.wire import Era


@attrs.frozen
class Plan:
    """
    How much is measured of one server in one round.

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

        files:
            How many files promptkit's recipes are in, where it is measured what files cost.

        saves:
            How often one of them is saved.

        starts:
            How often each server is started with a few prompts for a list, and as often for a prompt.

        turns:
            How often each case, each list, and a check of many files is measured.
    """

    seconds: float
    least: int
    most: int
    sizes: tuple[int, ...]
    once: tuple[int, ...] = ()
    files: tuple[int, ...] = ()
    saves: int = 1
    starts: int = 1
    turns: int = 1

    @property
    def counts(self) -> tuple[int, ...]:
        """
        Every number of prompts.
        """
        return self.sizes + self.once


#: Variables of the shell that would slow some servers down and not others.
UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONOPTIMIZE", "PYTHONDEVMODE")

FULL = Plan(
    seconds=0.15,
    least=100,
    most=20_000,
    sizes=(10, 100, 1_000),
    once=(10_000,),
    files=(20, 2_000),
    saves=7,
    starts=7,
    turns=5,
)
QUICK = Plan(seconds=0.02, least=10, most=500, sizes=(10, 100), files=(2, 20))


@attrs.frozen
class Runner:
    """
    Starts and measures servers.

    Args:
        plan:
            How much to measure.

        folder:
            Where the images and the folders of recipes lie.
    """

    plan: Plan
    folder: Path

    def start(self, peer: Peer, era: Era, count: int) -> Session:
        """
        Return a session with *peer*, which has *count* prompts.

        Raises:
            Refused: If it does not serve the era.
        """
        return self.start_in(recipes.folder(self.folder, count), peer, era, count=count)

    def start_in(  # noqa: PLR0913 (most starts have no more than four)
        self,
        folder: Path,
        peer: Peer,
        era: Era,
        *,
        count: int = 0,
        options: Sequence[str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> Session:
        """
        Return a session with *peer*, whose recipes are in *folder* if it reads any.

        Raises:
            Refused: If it does not serve the era.
        """
        environment = {**self.environment(count), **variables}
        return Session((*peer.command_for(folder), *options), environment, era)

    def environment(self, count: int = 0) -> dict[str, str]:
        """
        Return the environment of a server of *count* prompts.
        """
        shell = {name: value for name, value in os.environ.items() if name not in UNSET}
        return {**shell, "BENCHMARK_PROMPTS": str(count), "BENCHMARK_PICTURES": str(self.folder)}

    def warm(self, peer: Peer, era: Era, count: int) -> None:
        """
        Start *peer* once without a clock, so that what it keeps for its next start is there.
        """
        with suppress(Refused), self.start(peer, era, count) as session:  # `measure` tells why
            session.ask(listing(count))
            session.ask(PLAIN)
            session.settle()

    def check(self, peer: Peer, era: Era) -> dict[str | None, str]:
        """
        Return what *peer* does not do, by case, and why; the era itself if there is no case.
        """
        size = self.plan.sizes[0]
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

    def measure_start(self, peer: Peer, era: Era) -> Iterator[tuple[Row, float]]:
        """
        Yield how long *peer* takes to start with a few prompts, and to end.
        """
        size = self.plan.sizes[0]
        with self.start(peer, era, size) as session:
            yield rows.OPENING, session.opened
            yield from self._begin(session, size)
            session.one_at_a_time(PLAIN, 2 * self.plan.seconds, 3, self.plan.most)
            yield rows.EXIT, session.close()

    def measure_first_get(self, peer: Peer, era: Era) -> Iterator[tuple[Row, float]]:
        """
        Yield how long *peer* takes from its start to the first prompt, without a list before.
        """
        size = self.plan.sizes[0]
        with self.start(peer, era, size) as session:
            session.ask(PLAIN)
            yield rows.get(size), time.perf_counter() - session.started

    def measure_case(self, session: Session, case: Case) -> Iterator[tuple[Row, float]]:
        """
        Yield the figures of one case, after a warm-up.
        """
        plan = self.plan
        session.one_at_a_time(case, plan.seconds / 10, 3, plan.most)
        times = sorted(session.one_at_a_time(case, plan.seconds, plan.least, plan.most))
        yield rows.alone(case), median(times)
        yield rows.slowest(case), times[math.ceil(len(times) * 0.99) - 1]
        count = min(plan.most, max(plan.least, round(plan.seconds / median(times))))
        session.pipelined(case, plan.least)
        yield rows.pipelined(case), session.pipelined(case, count)
        if case is LARGE_PICTURE:
            yield _size(session, case)

    def measure_tools(self, peer: Peer, era: Era) -> Iterator[tuple[Row, float]]:
        """
        Yield the figures of *peer*, which offers its prompts as tools, for a call of one.
        """
        folder = recipes.folder(self.folder, self.plan.sizes[0])
        with self.start_in(folder, peer, era, options=("--tools",)) as session:
            _check(session, peer, CALLED)
            yield from self.measure_case(session, CALLED)

    def measure_size(self, session: Session, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield how long a server took to start with *count* prompts, and its memory once it has settled.
        """
        begun = list(self._begin(session, count))
        if count != self.plan.sizes[0]:  # `measure_start` has that one
            yield from begun
        session.one_at_a_time(PLAIN, 2 * self.plan.seconds, 3, self.plan.most)
        session.settle()  # what follows a start is done
        yield from memory_of(session.memory(), rows.memory(count))

    def measure_list(self, session: Session, peer: Peer, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield the size of the list of *count* prompts, and how long it takes.
        """
        case = listing(count)
        _check(session, peer, case)  # which warms up, too
        yield _size(session, case)
        yield rows.alone(case), median(session.one_at_a_time(case, self.plan.seconds, 5, self.plan.most))

    def measure_among(self, session: Session, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield how long a prompt takes that is one of *count*.
        """
        times = session.one_at_a_time(TYPED, self.plan.seconds, 5, self.plan.most)
        yield rows.among(TYPED, count), median(times)

    def measure_get_of_files(self, peer: Peer, era: Era, files: int) -> Iterator[tuple[Row, float]]:
        """
        Yield how long *peer*, which reads recipes, takes to a prompt with so many files of them.
        """
        folder = recipes.folder_of_files(self.folder, files)
        with self.start_in(folder, peer, era) as session:  # leaves what it keeps for its next start
            session.ask(PLAIN)
            session.settle()
        with self.start_in(folder, peer, era) as session:
            session.ask(PLAIN)
            yield rows.get_of_files(files), time.perf_counter() - session.started
            session.settle()  # else the next start imports first

    def measure_list_of_files(self, peer: Peer, era: Era, files: int) -> Iterator[tuple[Row, float]]:
        """
        Yield how long *peer* takes to its first list. What it keeps for its next start is there.
        """
        with self.start_in(recipes.folder_of_files(self.folder, files), peer, era) as session:
            session.ask(listing(recipes.NAMED))
            yield rows.list_of_files(files), time.perf_counter() - session.started
            session.settle()  # a list that is told early is kept once it is confirmed

    def measure_echo(self, peer: Peer, era: Era, case: Case, size: float) -> Iterator[tuple[Row, float]]:
        """
        Yield how long *peer* takes, which is an echo, for as many bytes as *case* has, *size* in KiB.
        """
        with self.start(peer, era, self.plan.sizes[0]) as session:
            echo = echo_of(case, round(size * 1024))
            if not echo.says_all(session.ask(echo)):  # which warms up, too
                reason = f"it does not answer with {size:.1f} KiB"
                raise Refused(reason)
            yield rows.alone(case), median(session.one_at_a_time(echo, self.plan.seconds, 5, self.plan.most))

    def _begin(self, session: Session, count: int) -> Iterator[tuple[Row, float]]:
        """The time to the first replies with *count* prompts."""
        session.ask(listing(count))
        yield rows.first_list(count), time.perf_counter() - session.started
        session.ask(PLAIN)  # what was put off for the list has to be done by now
        yield rows.first_get(count), time.perf_counter() - session.started


def _size(session: Session, case: Case) -> tuple[Row, float]:
    """The size of a result."""
    return rows.size(case), len(session.ask(case)) / 1024


def memory_of(memory: float | None, row: Row) -> Iterator[tuple[Row, float]]:
    """
    Yield a figure of memory, on systems that tell it.
    """
    if memory is not None:
        yield row, memory


def _check(session: Session, peer: Peer, case: Case) -> None:
    """Ask for *case* once. Raises Refused if the answer is an error, or differs from the others'."""
    if peer.measures(case):
        result = session.ask(case)
        if peer.content and not case.says_all(result):
            reason = "its answer says something else"
            raise Refused(reason)
