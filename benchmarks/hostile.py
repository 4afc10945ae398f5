"""Show that hostile input is handled in linear time: of each kind some, and sixteen times as much."""

import gc
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from time import thread_time
from typing import Final

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.hostile_input import CATALOG, KINDS, OPENING, Make
from benchmarks.report import measure, ratio
from promptkit.protocol.limits import Limits
from promptkit.server import Server

__all__ = ["MOST", "TIMES", "Growth", "grown", "opened"]

#: How many times the input is.
TIMES = 16

#: How many times as long it may take then: half as much again for what is no part of the input.
MOST = 24

#: Shorter times than this say little of what is measured, in seconds.
_NOISE = 1e-3

#: How often a kind of input is measured that does not seem linear.
_CHANCES: Final = 4

SIZE, QUICK_SIZE = 4096, 64  # items, or characters
LIMITS = Limits(completions=1e9)
WIDTH = 110  # columns, where the output is no terminal


@attrs.frozen
class Growth:
    """
    What one kind of input takes.

    Args:
        kind:
            What it is.

        small:
            The shortest time of the processor that some of it took, in seconds.

        large:
            The shortest time that `TIMES` times as much took.
    """

    kind: str
    small: float
    large: float

    @property
    def ratio(self) -> float:
        """
        How many times as long it took.
        """
        return self.large / self.small

    @property
    def linear(self) -> bool:
        """
        Whether that is no more than the input has grown, with some room.
        """
        return self.large <= max(MOST * self.small, _NOISE)


def opened() -> Server:
    """
    Return a server that has been greeted, and whose replies nobody reads.
    """
    server = Server(CATALOG, lambda _: None, limits=LIMITS)
    server.receive_data(OPENING)
    return server


def _seconds(data: bytes) -> float:
    """Return how much of a processor's time a new server takes over *data*; others run beside this."""
    server = opened()
    gc.disable()  # what it comes upon is no cost of this input
    try:
        begun = thread_time()
        server.receive_data(data)
        return thread_time() - begun
    finally:
        gc.enable()


def grown(kind: str, make: Make, size: int, rounds: int) -> Growth:
    """
    Measure one kind of input, small and large in turns; what seems to take too long, some times more.

    Large input leaves the processor's caches, the more so the more runs beside it.
    """
    small, large = make(size), make(size * TIMES)
    found = Growth(kind, inf, inf)
    for _ in range(_CHANCES):
        times = [(_seconds(small), _seconds(large)) for _ in range(rounds)]
        least = [min(column) for column in zip(*times, strict=True)]
        found = Growth(kind, min(found.small, least[0]), min(found.large, least[1]))
        if found.linear:
            break
    return found


def table(growths: Iterable[Growth], size: int) -> Table:
    """
    Return the figures for people.
    """
    title = f"hostile input: the processor's time for {size:,} items or characters, and for {size * TIMES:,}"
    found = Table("", title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for heading in (f"{size:,}", f"{size * TIMES:,}", f"at most {MOST}x"):
        found.add_column(heading, justify="right", no_wrap=True)
    found.add_column("")
    for growth in growths:
        verdict = "linear" if growth.linear else "[bold red]not linear[/]"
        times = (measure(growth.small, "s"), measure(growth.large, "s"), ratio(growth.ratio))
        found.add_row(growth.kind, *times, verdict)
    return found


def _chosen(kinds: Mapping[str, Make], words: str) -> Mapping[str, Make]:
    return {kind: make for kind, make in kinds.items() if words in kind}


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Measure, and print a table.

    Returns:
        0, or 1 if some input took more than linear time.
    """
    parser = ArgumentParser("python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small input, to see that everything works")
    parser.add_argument("--rounds", type=int, default=3, metavar="NUMBER", help="how often (default: 3)")
    parser.add_argument("--only", default="", metavar="WORDS", help="the kinds that have this in their name")
    options = parser.parse_args(arguments)
    size = QUICK_SIZE if options.quick else SIZE
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    with Console(stderr=True).status("") as status:
        growths = []
        for kind, make in _chosen(KINDS, options.only).items():
            status.update(kind)
            growths.append(grown(kind, make, size, options.rounds))
    console.print(table(growths, size))
    return int(not all(growth.linear for growth in growths))


if __name__ == "__main__":
    sys.exit(main())
