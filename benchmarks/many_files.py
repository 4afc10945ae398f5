"""What promptkit takes where recipes are in many files: one is saved, all are checked."""

import subprocess
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from statistics import median

from benchmarks import recipes, rows
from benchmarks.cases import PLAIN, saved
from benchmarks.peers import Peer, program
from benchmarks.rows import Row
from benchmarks.runner import Runner, memory_of
from benchmarks.wire import Era

PAUSE_S = 0.002  # between two looks at whether a saved file is served
EDITS = count()  # each edit is another one than all before


def measure_saves(runner: Runner, peer: Peer, era: Era, files: int) -> Iterator[tuple[Row, float]]:
    """
    Yield how long it takes until *peer*, which is promptkit, serves a saved file, and the memory of that.
    """
    folder = recipes.folder_of_files(runner.folder, files)
    with runner.start_in(folder, peer, era) as session:
        session.ask(PLAIN)
        session.settle()
        yield from memory_of(session.memory(), rows.memory_of_files(files))
        session.forget_peak()
        times = []
        for edit in islice(EDITS, runner.plan.saves):
            case = saved(recipes.SAVED_PROMPT, edit)
            started = time.perf_counter()
            recipes.save(runner.folder, files, edit)
            while not case.says_all(session.ask(case)):
                time.sleep(PAUSE_S)
            times.append(time.perf_counter() - started)
            session.settle()
        yield rows.saved_file(files), median(times)
        yield from memory_of(session.peak(), rows.memory_of_reload(files))


def measure_check(runner: Runner, peer: Peer, era: Era, files: int) -> Iterator[tuple[Row, float]]:
    """
    Yield how long all files take to be imported, and to be checked.
    """
    folder = recipes.folder_of_files(runner.folder, files)
    with runner.start_in(folder, peer, era) as session:
        session.ask(PLAIN)
        yield rows.get_of_files(files), time.perf_counter() - session.started
    started = time.perf_counter()
    _run("check", folder, runner)
    yield rows.check_of_files(files), time.perf_counter() - started


def _run(command: str, folder: Path, runner: Runner, *options: str) -> None:
    """Run one of promptkit's commands on a folder, which has to succeed."""
    subprocess.run(
        (*program(), command, str(folder), *options),
        env=runner.environment(),
        stdout=subprocess.DEVNULL,
        check=True,
    )
