"""Response times of promptkit while it imports a slow recipe, and while prompts run pure Python code."""

from collections.abc import Iterator
from statistics import median

from benchmarks import recipes, rows
from benchmarks.cases import LOOP, PLAIN
from benchmarks.peers import Peer
from benchmarks.rows import Row
from benchmarks.runner import Runner
from benchmarks.wire import Era

PAUSE_S = 0.01  # without a pause, the server often reads a request before a loop holds the GIL again


def measure_slow_start(runner: Runner, peer: Peer, era: Era) -> Iterator[tuple[Row, float]]:
    """
    Yield the time from the start to the first reply, with a recipe whose import takes 10 s.
    """
    with runner.start_in(recipes.folder_with(runner.folder, recipes.SLOW), peer, era) as session:
        yield rows.SLOW_OPENING, session.opened


def measure_loops(runner: Runner, peer: Peer, era: Era, loops: int) -> Iterator[tuple[Row, float]]:
    """
    Yield the median time of a quick prompt while *loops* prompts run pure Python code.
    """
    with runner.start_in(recipes.folder_with(runner.folder, recipes.LOOP), peer, era) as session:
        session.ask(PLAIN)
        session.send(LOOP, loops)
        session.ask(PLAIN)  # this reply arrives only after all loops have started
        yield (
            rows.next_to_loops(loops),
            median(session.measure_with_pauses(PLAIN, runner.plan.min_requests, PAUSE_S)),
        )
