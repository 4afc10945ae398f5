"""
The time to list many skills, and to read a file of a skill, compared with an echo server.

``python -m benchmarks.skills`` prints the medians of the ratios of interleaved measurements, and exits with 1
if a median exceeds its budget.
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.cases import Case, echo_case
from benchmarks.session import Session
from benchmarks.wire import HANDSHAKE

SKILLS: Final = 1_000
FILES: Final = 9  # in each skill, in addition to `SKILL.md`
LARGE: Final = 100 * 1024  # bytes
ROUNDS: Final = 5

_ECHO: Final = (sys.executable, str(Path(__file__).parent / "servers" / "echo.py"))
_PROMPT: Final = "from promptkit import prompt\n\n\n@prompt\ndef hello() -> str:\n    return 'hello'\n"
_SKILL: Final = "---\nname: skill-{0}\ndescription: Do number {0}. Use it on request.\n---\n\n{1}\n"

LIST: Final = Case("skills/list", "skills/list", {}, len, 0)
FILE: Final = Case("a file of 100 KiB", "resources/read", {"uri": "skill://skill-0/file-0.md"}, len, 0)


@attrs.frozen
class Ratio:
    """
    Times of promptkit and of a baseline, with a budget for their ratio.

    Args:
        title:
            The title of the ratio.

        ours:
            The times of promptkit, in seconds.

        theirs:
            The times of the baseline, in seconds.

        budget:
            The maximum ratio.
    """

    title: str
    ours: list[float]
    theirs: list[float]
    budget: float

    @property
    def value(self) -> float:
        """
        The median of the ratios.
        """
        return median(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))


def main() -> int:
    """
    Measure, print a table, and return the exit code.
    """
    parser = ArgumentParser("python -m benchmarks.skills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of rounds (default: %(default)s)")
    parser.add_argument("--skills", type=int, default=SKILLS, help="number of skills (default: %(default)s)")
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        ratios = list(_measure(_write_recipes(Path(scratch), options.skills), options.rounds))
    _print(ratios, options.skills)
    return 0 if all(ratio.value <= ratio.budget for ratio in ratios) else 1


def _write_recipes(recipes: Path, skills: int) -> Path:
    """Write one prompt and many skills into *recipes*, and return this folder."""
    (recipes / "hello.py").write_text(_PROMPT)
    for number in range(skills):
        folder = recipes / "skills" / f"skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(_SKILL.format(number, "Do it.\n" * 50))
        for file in range(FILES):
            (folder / f"file-{file}.md").write_text(f"{number} {file}\n" * 100)
    (recipes / "skills" / "skill-0" / "file-0.md").write_text("x" * (LARGE - 1) + "\n")
    return recipes


def _measure(recipes: Path, rounds: int) -> Iterator[Ratio]:
    command = (sys.executable, "-m", "promptkit", "serve", str(recipes))
    for case in (LIST, FILE):
        with _session(command) as session, _session(_ECHO) as echo:
            size = len(session.ask(case))
            session.wait_until_idle()
            pairs = [
                (_median(session, case), _median(echo, echo_case(case, size - 2))) for _ in range(rounds)
            ]
        yield Ratio(f"{case.name}, {size / 1024:,.0f} KiB, compared with the echo", *_columns(pairs), 1.3)


def _session(command: tuple[str, ...]) -> Session:
    return Session(command, os.environ, HANDSHAKE)


def _median(session: Session, case: Case) -> float:
    return median(session.measure_one_at_a_time(case, 0.5, 5, 2_000))


def _columns(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    ours, theirs = zip(*pairs, strict=True)
    return list(ours), list(theirs)


def _print(ratios: list[Ratio], skills: int) -> None:
    table = Table(title=f"{skills:,} skills of {FILES + 1} files")
    for heading in ("", "promptkit", "echo", "ratio", "at most"):
        table.add_column(heading, justify="left" if not heading else "right")
    for ratio in ratios:
        times = (f"{median(values) * 1000:,.3f} ms" for values in (ratio.ours, ratio.theirs))
        table.add_row(ratio.title, *times, f"{ratio.value:.2f}", f"{ratio.budget:g}")
    Console(width=150).print(table)


if __name__ == "__main__":
    sys.exit(main())
