"""The batch benchmark: its programs write equal requests, and its goals are evaluated correctly."""

import json
import subprocess
from importlib.util import find_spec

import pytest

from benchmarks import batch
from benchmarks.batch import OURS, WORKERS, Goal, Run, commands, goals_of, write_rows
from benchmarks.batch_loops import LOOPS


@pytest.fixture
def folder(tmp_path):
    """A folder with the benchmark's recipe."""
    batch.write_recipe(tmp_path)
    return tmp_path


def written(path):
    """Return the request bodies of a file."""
    return [json.loads(line)["body"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_all_write_the_same_requests(folder):
    """Every program writes the same request body for each row."""
    found = commands(folder, write_rows(folder, 3))
    assert list(found) == [OURS, WORKERS, *LOOPS]
    bodies = {}
    for name, command in found.items():
        if "LangChain" in name and find_spec("langchain_core") is None:
            continue
        subprocess.run(command, cwd=batch.ROOT, check=True, capture_output=True)
        out = folder / "out.jsonl" if name in LOOPS else folder / "out" / "requests-00001.jsonl"
        bodies[name] = written(out)
        batch.remove_batch(folder)

    assert len(bodies[OURS]) == 3
    assert all(one == bodies[OURS] for one in bodies.values())


def test_goals_are_of_the_runs_that_took_turns():
    """Ratios compare runs of the same round, so that a machine that slows down changes none."""
    alone = {OURS: 1.0, WORKERS: 0.5, "an f-string": 0.5, "Jinja2": 1.0, "LangChain": 9.0}
    seconds = {**alone, 1: 10.0, 2: 5.0}
    runs = {
        name: [Run(value * slower, value * slower, 70) for slower in (1, 2, 1)]
        for name, value in seconds.items()
    }

    goals = list(goals_of(runs, 100_000, runs, 1_000_000))

    assert [(goal.measured, goal.is_met) for goal in goals] == [
        *((9.0, True), (2.0, True), (2.0, True), (2.0, True)),
        *((4.0, True), (70.0, True)),
    ]


@pytest.mark.parametrize(("goal", "is_met"), [(Goal("", 1, 2), True), (Goal("", 1, 2, is_least=True), False)])
def test_a_goal_that_is_missed(goal, is_met):
    """A goal is an upper bound, or a lower bound if `is_least` is set."""
    assert goal.is_met is is_met
