"""
Throughput and memory of ``promptkit batch``, compared with loops that use an f-string, Jinja2 or LangChain.

``python -m benchmarks.batch`` prints the medians of interleaved runs, and exits with 1 if a goal is missed.
All programs read the same JSON Lines file, with three arguments per line, and write files for OpenAI. The
comparison uses processor time. The speedup with several processes is measured in wall-clock time, with a
larger table.
"""

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.batch_loops import LOOPS, MODEL, TEXT

Name = TypeVar("Name", str, int)

ROWS: Final = 400_000
MANY: Final = 4_000_000  # rows, to measure the speedup with several processes, and the memory of one process
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
    The time and memory that one run of a command has used.

    Args:
        seconds:
            The wall-clock time, in seconds.

        processor:
            The processor time of all processes of the command, in seconds.

        memory:
            The peak memory of the largest process, in MB.
    """

    seconds: float
    processor: float
    memory: float


@attrs.frozen
class Goal:
    """
    The target for a figure, and its measured value.

    Args:
        title:
            The title of the figure.

        measured:
            The measured value.

        target:
            The target value.

        is_minimum:
            Whether the target is a minimum instead of a maximum.

        unit:
            The unit of both values.
    """

    title: str
    measured: float
    target: float
    is_minimum: bool = False
    unit: str = "times"

    @property
    def is_met(self) -> bool:
        """
        Whether the goal was met.
        """
        return self.measured >= self.target if self.is_minimum else self.measured <= self.target


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Measure, print tables, and return the exit code.
    """
    parser = ArgumentParser("python -m benchmarks.batch", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=ROWS, help="number of rows in each run (default: %(default)s)"
    )
    parser.add_argument(
        "--many", type=int, default=MANY, help="number of rows in the large table (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of rounds (default: %(default)s)")
    parser.add_argument(
        "--processes", type=int, default=2, help="maximum number of processes (default: %(default)s)"
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="write a plot of the throughput over the number of processes",
    )
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_recipe(folder)
        runs = _run_in_turns(folder, commands(folder, write_rows(folder, options.rows)), options.rounds)
        many = write_rows(folder, options.many)
        batches = {number: batch_command(folder, many, number) for number in range(1, options.processes + 1)}
        scaled = _run_in_turns(folder, batches, options.rounds)
    goals = list(evaluate_goals(runs, options.rows, scaled, options.many))
    _print(runs, options.rows)
    _print({f"--workers {number}": measured for number, measured in scaled.items()}, options.many)
    _print_goals(goals)
    if options.plot:
        from benchmarks.plots import (
            draw_scaling,  # imported last, because child processes start with the memory of this process
        )

        draw_scaling(
            {number: rows_a_second(measured, options.many) for number, measured in scaled.items()},
            options.plot,
        )
    return 0 if all(goal.is_met for goal in goals) else 1


def write_recipe(folder: Path) -> None:
    """
    Write the recipe file.
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


def batch_command(folder: Path, rows: Path, workers: int = 1) -> tuple[str, ...]:
    """
    Return the command that renders the rows in the file *rows*, and writes the folder ``out``.
    """
    return (
        *(sys.executable, "-m", "promptkit", "batch", "triage", str(rows), "--workers", str(workers)),
        *("--target", str(folder / "triage.py"), "--for", "openai-chat", "--model", MODEL),
        *("-o", str(folder / "out")),
    )


def commands(folder: Path, rows: Path) -> dict[str, tuple[str, ...]]:
    """
    Return the commands to compare, keyed by name. Each writes the folder ``out`` or the file ``out.jsonl``.
    """
    loop, out = (sys.executable, "-m", "benchmarks.batch_loops"), str(folder / "out.jsonl")
    ours = {OURS: batch_command(folder, rows), WORKERS: batch_command(folder, rows, 2)}
    return {**ours, **{name: (*loop, name, str(rows), out) for name in LOOPS}}


def _run_in_turns(
    folder: Path, by_name: Mapping[Name, tuple[str, ...]], rounds: int
) -> dict[Name, list[Run]]:
    turns = [{name: _run(command, folder) for name, command in by_name.items()} for _ in range(rounds)]
    return {name: [turn[name] for turn in turns] for name in by_name}


def _run(command: Sequence[str], folder: Path) -> Run:
    """Run a command and remove its output. Raises CalledProcessError if it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    remove_batch(folder)
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def remove_batch(folder: Path) -> None:
    """
    Remove the output of a command, because the next command would not overwrite it.
    """
    rmtree(folder / "out", ignore_errors=True)
    (folder / "out.jsonl").unlink(missing_ok=True)


def evaluate_goals(
    runs: Mapping[str, list[Run]], rows: int, scaled: Mapping[int, list[Run]], many: int
) -> Iterator[Goal]:
    """
    Yield the goals for promptkit, with their measured values.
    """
    ours = runs[OURS]
    yield Goal("throughput, compared with LangChain", _ratio(runs["LangChain"], ours), 5, is_minimum=True)
    yield Goal("time, compared with an f-string", _ratio(ours, runs["an f-string"]), 5)
    for count, single, double in ((rows, ours, runs[WORKERS]), (many, scaled[1], scaled[2])):
        scaling = median(alone.seconds / both.seconds for alone, both in zip(single, double, strict=True))
        yield Goal(
            f"throughput of two processes, compared with one, {count:,} rows", scaling, 1.7, is_minimum=True
        )
    seconds = median(run.processor for run in ours) * ROWS / rows
    yield Goal(f"{ROWS:,} rows on one core", seconds, 10, unit="s")
    memory = max(run.memory for run in scaled[1])
    yield Goal(f"peak memory for {many:,} rows", memory, 200, unit="MB")


def rows_a_second(runs: Sequence[Run], rows: int) -> float:
    """
    Return the number of rows that are rendered per second of wall-clock time, as the median of the runs.
    """
    return rows / median(run.seconds for run in runs)


def _ratio(these: list[Run], those: list[Run]) -> float:
    return median(this.processor / that.processor for this, that in zip(these, those, strict=True))


def _print(runs: Mapping[str, list[Run]], rows: int) -> None:
    first, table = next(iter(runs.values())), Table()
    for heading in (f"{rows:,} rows", "rows/s", "wall clock", "processor", "per row", "", "memory"):
        table.add_column(heading, justify="right" if table.columns else "left")
    for name, measured in runs.items():
        seconds = median(run.seconds for run in measured)
        processor = median(run.processor for run in measured)
        memory = max(run.memory for run in measured)
        table.add_row(
            *(name, f"{rows_a_second(measured, rows):,.0f}", f"{seconds:.2f} s", f"{processor:.2f} s"),
            *(f"{processor / rows * 1e6:.1f} µs", f"{_ratio(measured, first):.2f}x", f"{memory:.0f} MB"),
        )
    Console(width=110).print(table)


def _print_goals(goals: Sequence[Goal]) -> None:
    table = Table("goal", "measured", "target", "")
    for goal in goals:
        target = f"at {'least' if goal.is_minimum else 'most'} {goal.target:g} {goal.unit}"
        table.add_row(goal.title, f"{goal.measured:.2f} {goal.unit}", target, "" if goal.is_met else "MISSED")
    Console(width=110).print(table)


if __name__ == "__main__":
    sys.exit(main())
