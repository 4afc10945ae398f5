"""How long promptkit takes with many recipe files: to start, to serve a saved file, and to check all."""

import subprocess
import time
from collections.abc import Iterator
from itertools import count, islice
from statistics import median

from benchmarks import recipes, rows
from benchmarks.cases import PING, Case, listing, saved
from benchmarks.peers import Peer, program
from benchmarks.rows import Row
from benchmarks.runner import Runner
from benchmarks.session import Session
from benchmarks.wire import Era

PAUSE_S = 0.002  # between two requests for a saved prompt
EDITS = count()  # numbers that make each edit differ from all earlier ones


def measure_saves(runner: Runner, peer: Peer, era: Era, files: int) -> Iterator[tuple[Row, float]]:
    """
    Yield the time to the first list, from a save until it is served, and of the slowest request meanwhile.
    """
    folder = recipes.folder_of_files(runner.folder, files)
    with runner.start_in(folder, peer, era) as session:
        session.ask(listing(recipes.NAMED))
        yield rows.list_of_files(files), time.perf_counter() - session.started
        seconds, slowest = [], 0.0
        for edit in islice(EDITS, runner.plan.saves):
            session.settle()
            started = time.perf_counter()
            recipes.save(runner.folder, files, edit)
            slowest = max(slowest, _wait_until_served(session, saved(recipes.SAVED_PROMPT, edit)))
            seconds.append(time.perf_counter() - started)
        yield rows.saved_file(files), median(seconds)
        yield rows.slowest_request(files), slowest


def _wait_until_served(session: Session, case: Case) -> float:
    """Ask until the reply is of the saved file, and return how long the slowest request took."""
    slowest, is_served = 0.0, False
    while not is_served:
        time.sleep(PAUSE_S)
        for request in (PING, case):
            asked = time.perf_counter()
            result = session.ask(request)
            slowest = max(slowest, time.perf_counter() - asked)
        is_served = case.says_all(result)
    return slowest


def measure_check(runner: Runner, files: int) -> Iterator[tuple[Row, float]]:
    """
    Yield the time that `promptkit check` takes for *files* recipe files.
    """
    command = (*program(), "check", str(recipes.folder_of_files(runner.folder, files)))
    started = time.perf_counter()
    subprocess.run(command, env=runner.environment(), stdout=subprocess.DEVNULL, check=True)
    yield rows.check_of_files(files), time.perf_counter() - started
