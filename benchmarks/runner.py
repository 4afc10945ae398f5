"""A runner that starts servers and measures one figure at a time, and a plan for how much to measure."""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import attrs

from benchmarks import recipes, rows
from benchmarks.cases import CASES, PICTURE, PLAIN, TYPED, Case, echo_case, list_case
from benchmarks.peers import Peer
from benchmarks.rows import Row
from benchmarks.session import ServerFailedError, Session
from benchmarks.wire import Era


@attrs.frozen
class Plan:
    """
    How much to measure for one server in one round.

    Args:
        seconds:
            The approximate duration of the measurement of each figure, in seconds.

        min_requests:
            The minimum number of requests to send one at a time.

        max_requests:
            The maximum number of requests to send, either one at a time or in a pipeline.

        sizes:
            The numbers of prompts on a server. The first number is used for all figures except growth.

        many:
            An additional number of prompts that is used only for promptkit, because other servers would take
            a minute to start.

        files:
            The numbers of recipe files with which to measure the reload of a saved file.

        checked:
            The number of recipe files to check.

        saves:
            The number of times to save a file.

        starts:
            The number of times to start each server with a few prompts.

        turns:
            The number of times to measure each case and each list.
    """

    seconds: float
    min_requests: int
    max_requests: int
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
        All numbers of prompts.
        """
        return (*self.sizes, self.many)


#: Environment variables that would slow down only some of the servers.
UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONOPTIMIZE", "PYTHONDEVMODE")

FULL = Plan(
    seconds=0.15,
    min_requests=100,
    max_requests=20_000,
    sizes=(10, 100, 1_000),
    many=10_000,
    files=(20, 2_000),
    checked=1_000,
    saves=3,
    starts=5,
    turns=3,
)
QUICK = Plan(
    seconds=0.02, min_requests=10, max_requests=500, sizes=(10, 100), many=200, files=(2, 20), checked=20
)


@attrs.frozen
class Runner:
    """
    Starts and measures servers.

    Args:
        plan:
            How much to measure.

        folder:
            The folder that contains the image and the folders of recipes.
    """

    plan: Plan
    folder: Path

    def start(self, peer: Peer, era: Era, count: int) -> Session:
        """
        Return a session with *peer*, started with *count* prompts.

        Raises:
            ServerFailedError: If the server does not support the era.
        """
        return self.start_in(recipes.folder(self.folder, count), peer, era, count=count)

    def start_in(self, folder: Path, peer: Peer, era: Era, *, count: int = 0) -> Session:
        """
        Return a session with *peer*, started with the recipes in *folder* if it reads recipes.

        Raises:
            ServerFailedError: If the server does not support the era.
        """
        return Session(peer.command_for(folder), self.environment(count), era)

    def environment(self, count: int = 0) -> dict[str, str]:
        """
        Return the environment for a server with *count* prompts.
        """
        shell = {name: value for name, value in os.environ.items() if name not in UNSET}
        return {**shell, "BENCHMARK_PROMPTS": str(count), "BENCHMARK_PICTURES": str(self.folder)}

    def check(self, peer: Peer, era: Era) -> dict[str | None, str]:
        """
        Check the replies of *peer*, and return the errors, keyed by the name of the failing case.

        The key None means that *peer* does not support the era.
        """
        size = self.plan.sizes[0]
        errors: dict[str | None, str] = {}
        try:
            with self.start(peer, era, size) as session:
                for case in (*CASES, list_case(size)):
                    try:
                        _check(session, peer, case)
                    except ServerFailedError as error:
                        errors[case.name] = str(error)
        except ServerFailedError as error:
            errors[None] = str(error)
        return errors

    def measure_start(self, peer: Peer, era: Era) -> Iterator[tuple[Row, float]]:
        """
        Yield the start times of *peer* with a few prompts.
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
        session.measure_one_at_a_time(case, plan.seconds / 10, 3, plan.max_requests)
        times = sorted(
            session.measure_one_at_a_time(case, plan.seconds, plan.min_requests, plan.max_requests)
        )
        yield rows.alone(case), median(times)
        yield rows.slowest(case), times[math.ceil(len(times) * 0.99) - 1]
        count = min(plan.max_requests, max(plan.min_requests, round(plan.seconds / median(times))))
        session.measure_pipelined(case, plan.min_requests)
        yield rows.pipelined(case), session.measure_pipelined(case, count)
        if case is PICTURE:
            yield _size(session, case)

    def measure_size(self, session: Session, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield the start times of a server with *count* prompts, and its memory when idle.
        """
        yield from _measure_first_replies(session, count)
        session.measure_one_at_a_time(PLAIN, 2 * self.plan.seconds, 3, self.plan.max_requests)
        session.wait_until_idle()
        yield from memory_figure(session.memory(), rows.memory(count))

    def measure_list(self, session: Session, peer: Peer, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield the size of the list of *count* prompts, and its median time.
        """
        case = list_case(count)
        _check(session, peer, case)  # also a warm-up
        yield _size(session, case)
        yield (
            rows.alone(case),
            median(session.measure_one_at_a_time(case, self.plan.seconds, 5, self.plan.max_requests)),
        )

    def measure_among(self, session: Session, count: int) -> Iterator[tuple[Row, float]]:
        """
        Yield the median time of a single prompt on a server with *count* prompts.
        """
        times = session.measure_one_at_a_time(TYPED, self.plan.seconds, 5, self.plan.max_requests)
        yield rows.among(TYPED, count), median(times)

    def measure_echo(self, peer: Peer, era: Era, case: Case, size: float) -> Iterator[tuple[Row, float]]:
        """
        Yield the median time of the echo server *peer* for *size* KiB, the size of the result of *case*.
        """
        with self.start(peer, era, self.plan.sizes[0]) as session:
            echo = echo_case(case, round(size * 1024))
            if not echo.has_expected_content(session.ask(echo)):  # also a warm-up
                reason = f"it does not answer with {size:.1f} KiB"
                raise ServerFailedError(reason)
            yield (
                rows.alone(case),
                median(session.measure_one_at_a_time(echo, self.plan.seconds, 5, self.plan.max_requests)),
            )


def _measure_first_replies(session: Session, count: int) -> Iterator[tuple[Row, float]]:
    """Yield the times from the start to the first list of *count* prompts, and to the prompt after it."""
    session.ask(list_case(count))
    yield rows.first_list(count), time.perf_counter() - session.started
    session.ask(PLAIN)
    yield rows.first_get(count), time.perf_counter() - session.started


def _size(session: Session, case: Case) -> tuple[Row, float]:
    """Send *case* once, and return the row and the size of the result in KiB."""
    return rows.size(case), len(session.ask(case)) / 1024


def memory_figure(memory: float | None, row: Row) -> Iterator[tuple[Row, float]]:
    """
    Yield the figure for memory, unless *memory* is None.
    """
    if memory is not None:
        yield row, memory


def _check(session: Session, peer: Peer, case: Case) -> None:
    """Send *case* once. Raises ServerFailedError if the reply is an error, or has unexpected content."""
    if peer.supports(case):
        result = session.ask(case)
        if peer.has_prompts and not case.has_expected_content(result):
            reason = "its reply has unexpected content"
            raise ServerFailedError(reason)
