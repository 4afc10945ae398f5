"""Measure, and print a table."""

import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import compiling
from benchmarks.session import Session, start_to_listing

HERE = Path(__file__).parent
ROUNDS = 5

#: By name: what starts each server, and how many requests it is sent in one round.
SERVERS = {
    "promptkit": ([sys.executable, "-m", "promptkit", "serve", str(HERE / "recipes")], 20_000, 2_000),
    "bare loop": ([sys.executable, str(HERE / "servers" / "bare.py")], 20_000, 2_000),
    f"mcp {version('mcp')}": ([sys.executable, str(HERE / "servers" / "official.py")], 500, 200),
}


def measure(command: list[str], many: int, few: int) -> tuple[float, float, float]:
    """Return start to listing, one request of several, and one of many in a pipeline, in seconds."""
    start = start_to_listing(command)
    with Session(command) as session:
        session.one_at_a_time(few // 10)  # warm-up
        alone = median(session.one_at_a_time(few))
        return start, alone, session.pipelined(many)


def main() -> None:
    """Measure every server in turn, several times, and print the medians beside promptkit's."""
    rounds: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SERVERS}
    for _ in range(ROUNDS):
        for name, (command, many, few) in SERVERS.items():
            rounds[name].append(measure(command, many, few))
    medians = {name: [median(column) for column in zip(*rows, strict=True)] for name, rows in rounds.items()}
    table = Table(
        "server",
        "start to prompts/list",
        "prompts/get, one at a time",
        "prompts/get, pipelined",
        title=f"medians of {ROUNDS} rounds, and as multiples of promptkit's",
        box=box.SIMPLE_HEAD,
    )
    ours = medians["promptkit"]
    for name, figures in medians.items():
        units = ((1e3, "ms"), (1e6, "µs"), (1e6, "µs"))
        table.add_row(
            name,
            *(
                f"{figure * scale:,.1f} {unit} ({figure / own:.2f})"
                for figure, own, (scale, unit) in zip(figures, ours, units, strict=True)
            ),
        )
    console = Console()
    console.print(table)
    for figure, seconds in compiling.measure().items():
        console.print(
            f"  {figure}: {seconds * 1e3:.1f} ms" if seconds > 1e-3 else f"  {figure}: {seconds * 1e6:.2f} µs"
        )


main()
