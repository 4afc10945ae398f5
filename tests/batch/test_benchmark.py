"""The batch benchmark: its programs write equal requests, and its goals are evaluated correctly."""

import json
import subprocess
from importlib.util import find_spec

import pytest

from benchmarks import batch
from benchmarks.batch import OURS, WORKERS, Goal, Run, commands, evaluate_goals, write_rows
from benchmarks.batch_loops import LOOPS


@pytest.fixture
def folder(tmp_path):
    """A folder with the benchmark's recipe."""
    batch.write_recipe(tmp_path)
    return tmp_path


def read_bodies(path):
    """Return the request bodies of a file."""
    return [json.loads(line)["body"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_programs_write_the_same_requests(folder):
    """Every program writes the same request body for each row."""
    commands_by_name = commands(folder, write_rows(folder, 3))
    assert list(commands_by_name) == [OURS, WORKERS, *LOOPS]
    bodies = {}
    for name, command in commands_by_name.items():
        if "LangChain" in name and find_spec("langchain_core") is None:
            continue
        subprocess.run(command, cwd=batch.ROOT, check=True, capture_output=True)
        out = folder / "out.jsonl" if name in LOOPS else folder / "out" / "requests-00001.jsonl"
        bodies[name] = read_bodies(out)
        batch.remove_batch(folder)

    assert len(bodies[OURS]) == 3
    assert all(body == bodies[OURS] for body in bodies.values())


def test_ratios_compare_runs_of_the_same_round():
    """Ratios compare runs of the same round, so a machine that slows down does not change them."""
    medians = {OURS: 1.0, WORKERS: 0.5, "an f-string": 0.5, "Jinja2": 1.0, "LangChain": 9.0}
    seconds = {**medians, 1: 10.0, 2: 5.0}
    runs = {
        name: [Run(value * factor, value * factor, 70) for factor in (1, 2, 1)]
        for name, value in seconds.items()
    }

    goals = list(evaluate_goals(runs, 100_000, runs, 1_000_000))

    assert [(goal.measured, goal.is_met) for goal in goals] == [
        *((9.0, True), (2.0, True), (2.0, True), (2.0, True)),
        *((4.0, True), (70.0, True)),
    ]


@pytest.mark.parametrize(
    ("goal", "is_met"), [(Goal("", 1, 2), True), (Goal("", 1, 2, is_minimum=True), False)]
)
def test_goals(goal, is_met):
    """A goal is an upper bound, or a lower bound if `is_minimum` is set."""
    assert goal.is_met is is_met
