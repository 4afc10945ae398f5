"""
Batches: rows a second and memory of ``promptkit batch``, beside loops over an f-string, Jinja2 and LangChain.

`python -m benchmarks.batch` prints medians of runs that took turns, and ends with 1 if a goal was missed. All
read the same JSON lines, with three arguments each, and write files for OpenAI. What is held
against each other is the time of the processor, but for that of two workers.
"""

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.batch_loops import LOOPS, MODEL, TEXT

ROWS: Final = 400_000
MANY: Final = 1_000_000  # rows, for what memory takes at most
ROUNDS: Final = 3

ROOT: Final = Path(__file__).parents[1]

OURS: Final = "promptkit"
WORKERS: Final = "promptkit, 2 workers"

_RECIPE: Final = f'''
from typing import Literal

from promptkit import prompt


@prompt
def triage(ticket: str, severity: Literal["low", "high"], votes: int) -> str:
    """Triage a ticket."""
    return f{TEXT!r}
'''

_TICKET: Final = (
    "The page of invoices takes a minute to load since Monday, and then shows those of last year. "
)


@attrs.frozen
class Run:
    """
    What one command took.

    Args:
        seconds:
            Until it ended.

        processor:
            Of its processes, in seconds.

        memory:
            What the largest of them held at most, in MB.
    """

    seconds: float
    processor: float
    memory: float


@attrs.frozen
class Goal:
    """
    What was found, and what was wanted.

    Args:
        title:
            What it is.

        found:
            What was measured.

        wanted:
            The goal.

        is_least:
            Whether more is better.

        unit:
            What it is measured in.
    """

    title: str
    found: float
    wanted: float
    is_least: bool = False
    unit: str = "times"

    @property
    def is_met(self) -> bool:
        """
        Whether the goal was met.
        """
        return self.found >= self.wanted if self.is_least else self.found <= self.wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Measure, print, and return the exit code.
    """
    parser = ArgumentParser("python -m benchmarks.batch", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each run (default: %(default)s)")
    parser.add_argument("--many", type=int, default=MANY, help="of the run for memory (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often (default: %(default)s)")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_recipe(folder)
        rows, many = (write_rows(folder, count) for count in (options.rows, options.many))
        runs = _take_turns(folder, rows, options.rounds)
        memory = _run(commands(folder, many)[OURS], folder).memory
    goals = list(goals_of(runs, options.rows, memory, options.many))
    _print(runs, goals, options.rows)
    return 0 if all(goal.is_met for goal in goals) else 1


def write_recipe(folder: Path) -> None:
    """
    Write the prompt.
    """
    (folder / "triage.py").write_text(_RECIPE, encoding="utf-8")


def write_rows(folder: Path, count: int) -> Path:
    """
    Write a table of tickets, and return its path.
    """
    path = folder / f"{count}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = {
                "ticket": f"{number}: {_TICKET * 2}",
                "severity": ("low", "high")[number % 2],
                "votes": number,
            }
            file.write(json.dumps(row) + "\n")
    return path


def commands(folder: Path, rows: Path) -> dict[str, tuple[str, ...]]:
    """
    Return what writes a batch of *rows* into the folder ``out`` or the file ``out.jsonl``, by name.
    """
    python, out = sys.executable, str(folder / "out")
    ours = (
        *(python, "-m", "promptkit", "batch", "triage", str(rows), "--target", str(folder / "triage.py")),
        *("--for", "openai-chat", "--model", MODEL, "-o", out),
    )
    loops = {
        name: (python, "-m", "benchmarks.batch_loops", name, str(rows), f"{out}.jsonl") for name in LOOPS
    }
    return {OURS: ours, WORKERS: (*ours, "--workers", "2"), **loops}


def _take_turns(folder: Path, rows: Path, rounds: int) -> dict[str, list[Run]]:
    found = commands(folder, rows)
    turns = [{name: _run(command, folder) for name, command in found.items()} for _ in range(rounds)]
    return {name: [turn[name] for turn in turns] for name in found}


def _run(command: Sequence[str], folder: Path) -> Run:
    """Run a command, which has to succeed. What it wrote is removed."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    remove_batch(folder)
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def remove_batch(folder: Path) -> None:
    """
    Remove what a command wrote, as another one refuses to write over it.
    """
    rmtree(folder / "out", ignore_errors=True)
    (folder / "out.jsonl").unlink(missing_ok=True)


def goals_of(runs: dict[str, list[Run]], rows: int, memory: float, many: int) -> Iterator[Goal]:
    """
    Yield what was wanted of promptkit.
    """
    ours, workers = runs[OURS], runs[WORKERS]
    yield Goal("beside LangChain, rows a second", _ratio(runs["LangChain"], ours), 5, is_least=True)
    yield Goal("beside an f-string, time", _ratio(ours, runs["an f-string"]), 5)
    scaling = median(one.seconds / two.seconds for one, two in zip(ours, workers, strict=True))
    yield Goal("two workers beside one, rows a second", scaling, 1.8, is_least=True)
    seconds = median(run.processor for run in ours) * ROWS / rows
    yield Goal(f"{ROWS:,} rows on one core", seconds, 10, unit="s")
    yield Goal(f"{many:,} rows, memory at most", memory, 200, unit="MB")


def _ratio(these: list[Run], those: list[Run]) -> float:
    return median(this.processor / that.processor for this, that in zip(these, those, strict=True))


def _print(runs: dict[str, list[Run]], goals: list[Goal], rows: int) -> None:
    console, table = Console(width=110), Table()
    for heading in (f"{rows:,} rows", "rows a second", "seconds", "of processors", "a row", "", "memory"):
        table.add_column(heading, justify="right" if table.columns else "left")
    for name, found in runs.items():
        seconds = median(run.seconds for run in found)
        processor = median(run.processor for run in found)
        memory = max(run.memory for run in found)
        table.add_row(
            *(name, f"{rows / seconds:,.0f}", f"{seconds:.2f} s", f"{processor:.2f} s"),
            *(f"{processor / rows * 1e6:.1f} µs", f"{_ratio(found, runs[OURS]):.2f}x", f"{memory:.0f} MB"),
        )
    console.print(table)
    table = Table("goal", "found", "wanted", "")
    for goal in goals:
        wanted = f"at {'least' if goal.is_least else 'most'} {goal.wanted:g} {goal.unit}"
        table.add_row(goal.title, f"{goal.found:.2f} {goal.unit}", wanted, "" if goal.is_met else "MISSED")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
