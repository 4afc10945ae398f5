"""The runner starts servers, measures one thing at a time, and lets them end; the plan says how much."""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import attrs

from benchmarks import recipes, rows
from benchmarks.cases import CASES, PICTURE, PLAIN, TYPED, Case, echo_of, listing
from benchmarks.peers import Peer
from benchmarks.rows import Row
from benchmarks.session import RefusedError, Session
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

        many:
            A size for promptkit only: other servers would take a minute to start.

        files:
            How many files promptkit's recipes are in when one of them is saved.

        checked:
            How many files are checked.

        saves:
            How often a file is saved.

        starts:
            How often each server is started with a few prompts.

        turns:
            How often each case and each list is measured.
    """

    seconds: float
    least: int
    most: int
    sizes: tuple[int, ...]
    many: int
    files: tuple[int, ...] = ()
    checked: int = 2
    saves: int = 1
    starts: int = 1
    turns: int = 1

    @property
    def counts(self) -> tuple[int, ...]:
        """
        Every number of prompts.
        """
        return (*self.sizes, self.many)


#: Variables of the shell that would slow some servers down and not others.
UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONOPTIMIZE", "PYTHONDEVMODE")

FULL = Plan(
    seconds=0.15,
    least=100,
    most=20_000,
    sizes=(10, 100, 1_000),
    many=10_000,
    files=(20, 2_000),
    checked=1_000,
    saves=3,
    starts=5,
    turns=3,
)
QUICK = Plan(seconds=0.02, least=10, most=500, sizes=(10, 100), many=200, files=(2, 20), checked=20)


@attrs.frozen
class Runner:
    """
    Starts and measures servers.

    Args:
        plan:
            How much to measure.

        folder:
            Where the image and the folders of recipes lie.
    """

    plan: Plan
    folder: Path

    def start(self, peer: Peer, era: Era, count: int) -> Session:
        """
        Return a session with *peer*, which has *count* prompts.

        Raises:
            RefusedError: If it does not serve the era.
        """
        return self.start_in(recipes.folder(self.folder, count), peer, era, count=count)

    def start_in(self, folder: Path, peer: Peer, era: Era, *, count: int = 0) -> Session:
        """
        Return a session with *peer*, whose recipes are in *folder* if it reads any.

        Raises:
            RefusedError: If it does not serve the era.
        """
        return Session(peer.command_for(folder), self.environment(count), era)

    def environment(self, count: int = 0) -> dict[str, str]:
        """
        Return the environment of a server of *count* prompts.
        """
        shell = {name: value for name, value in os.environ.items() if name not in UNSET}
        return {**shell, "BENCHMARK_PROMPTS": str(count), "BENCHMARK_PICTURES": str(self.folder)}

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
                    except RefusedError as error:
                        faults[case.name] = str(error)
        except RefusedError as error:
            faults[None] = str(error)
        return faults

    def measure_start(self, peer: Peer, era: Era) -> Iterator[tuple[Row, float]]:
        """
        Yield how long *peer* takes to start with a few prompts.
        """
        size = self.plan.sizes[0]
        with self.start(peer, era, size) as session:
            yield rows.OPENING, session.opened
            yield from _measure_first_replies(session, size)

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
        if case is PICTURE:
            yield _size(session, case)

    def measure_size(self, session: Session, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield how long a server took to start with *count* prompts, and its memory once it has settled.
        """
        yield from _measure_first_replies(session, count)
        session.one_at_a_time(PLAIN, 2 * self.plan.seconds, 3, self.plan.most)
        session.settle()
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

    def measure_echo(self, peer: Peer, era: Era, case: Case, size: float) -> Iterator[tuple[Row, float]]:
        """
        Yield how long *peer* takes, which is an echo, for as many bytes as *case* has, *size* in KiB.
        """
        with self.start(peer, era, self.plan.sizes[0]) as session:
            echo = echo_of(case, round(size * 1024))
            if not echo.says_all(session.ask(echo)):  # which warms up, too
                reason = f"it does not answer with {size:.1f} KiB"
                raise RefusedError(reason)
            yield rows.alone(case), median(session.one_at_a_time(echo, self.plan.seconds, 5, self.plan.most))


def _measure_first_replies(session: Session, count: int) -> Iterator[tuple[Row, float]]:
    """Yield the time from the start to the first list of *count* prompts, and to a prompt after it."""
    session.ask(listing(count))
    yield rows.first_list(count), time.perf_counter() - session.started
    session.ask(PLAIN)
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
    """Ask for *case* once. Raises RefusedError if the answer is an error, or differs from the others'."""
    if peer.measures(case):
        result = session.ask(case)
        if peer.content and not case.says_all(result):
            reason = "its answer says something else"
            raise RefusedError(reason)
