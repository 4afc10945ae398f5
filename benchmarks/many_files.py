"""The time that promptkit needs to start, to serve a saved file and to check, with many recipe files."""

import subprocess
import time
from collections.abc import Iterator
from itertools import count, islice
from math import inf
from statistics import median

from benchmarks import recipes, rows
from benchmarks.cases import PING, Case, list_case, saved_prompt_case
from benchmarks.peers import Peer, promptkit_command
from benchmarks.rows import Row
from benchmarks.runner import Runner
from benchmarks.session import Session
from benchmarks.wire import Era

PAUSE_S = 0.002  # between two requests for a saved prompt
RELEASE_S = 2.0  # seconds for which requests continue after the saved prompt is served
EDITS = count()  # numbers that make each edit differ from all earlier ones


def measure_saves(runner: Runner, peer: Peer, era: Era, files: int) -> Iterator[tuple[Row, float]]:
    """
    Yield the time until the first list, and two times for reloading a saved file.

    The two times are the median time until the file is served, and the time of the slowest request during
    reloads.
    """
    folder = recipes.folder_of_files(runner.folder, files)
    with runner.start_in(folder, peer, era) as session:
        session.ask(list_case(recipes.NAMED))
        yield rows.list_of_files(files), time.perf_counter() - session.started
        saves = []
        for edit in islice(EDITS, runner.plan.saves):
            session.wait_until_idle()
            recipes.save(runner.folder, files, edit)
            saves.append(_measure_reload(session, saved_prompt_case(recipes.SAVED_PROMPT, edit)))
        seconds, slowest = zip(*saves, strict=True)
        yield rows.saved_file(files), median(seconds)
        yield rows.slowest_request(files), max(slowest)


def _measure_reload(session: Session, case: Case) -> tuple[float, float]:
    """
    Return the time until a newly saved file is served, and the time of the slowest request.

    Requests continue after the file is served, because a reload also frees the previous recipes.
    """
    started = time.perf_counter()
    seconds, slowest, until = 0.0, 0.0, inf
    while time.perf_counter() < until:
        time.sleep(PAUSE_S)
        for request in (PING, case):
            sent = time.perf_counter()
            result = session.ask(request)
            slowest = max(slowest, time.perf_counter() - sent)
        if not seconds and case.has_expected_content(result):
            seconds = time.perf_counter() - started
            until = started + seconds + RELEASE_S
    return seconds, slowest


def measure_check(runner: Runner, files: int) -> Iterator[tuple[Row, float]]:
    """
    Yield the time that `promptkit check` takes for *files* recipe files.
    """
    command = (*promptkit_command(), "check", str(recipes.folder_of_files(runner.folder, files)))
    started = time.perf_counter()
    subprocess.run(command, env=runner.environment(), stdout=subprocess.DEVNULL, check=True)
    yield rows.check_of_files(files), time.perf_counter() - started
