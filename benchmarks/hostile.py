"""Check that hostile input takes linear time, by comparing the times for a small and for a large input."""

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

from benchmarks.hostile_input import CATALOG, KINDS, OPENING, InputFactory
from benchmarks.report import format_figure, format_ratio
from promptkit.protocol.limits import Limits
from promptkit.server import Server

__all__ = ["MAX_RATIO", "SIZE_RATIO", "Growth", "measure_growth", "open_server"]

#: The ratio of the size of the large input to the size of the small input.
SIZE_RATIO = 16

#: The maximum ratio of the times for these inputs, which is one and a half times the ratio of their sizes.
MAX_RATIO = 24

#: Times below this limit, in seconds, are too noisy to compare.
_MIN_TIME_S = 1e-3

#: The number of times to measure a kind of input before its time counts as more than linear.
_MAX_ATTEMPTS: Final = 4

SIZE, QUICK_SIZE = 4096, 64  # items, or characters
LIMITS = Limits(completions=1e9)
WIDTH = 110  # columns, if the output is not a terminal


@attrs.frozen
class Growth:
    """
    The processor times for one kind of input, in two sizes.

    Args:
        kind:
            The kind of input.

        small:
            The shortest time for the small input, in seconds.

        large:
            The shortest time for an input that is `SIZE_RATIO` times as large.
    """

    kind: str
    small: float
    large: float

    @property
    def ratio(self) -> float:
        """
        The ratio of the two times.
        """
        return self.large / self.small

    @property
    def is_linear(self) -> bool:
        """
        Whether the time grows no faster than the input, within the margin.
        """
        return self.large <= max(MAX_RATIO * self.small, _MIN_TIME_S)


def open_server() -> Server:
    """
    Return an initialized server that discards its replies.
    """
    server = Server(CATALOG, lambda _: None, limits=LIMITS)
    server.receive_data(OPENING)
    return server


def _measure_seconds(data: bytes) -> float:
    """Return the processor time that a new server needs for *data*, in seconds."""
    server = open_server()
    gc.disable()  # a collection would add the time for unrelated objects
    try:
        started = thread_time()
        server.receive_data(data)
        return thread_time() - started
    finally:
        gc.enable()


def measure_growth(kind: str, create_input: InputFactory, size: int, rounds: int) -> Growth:
    """
    Measure one kind of input, alternating between the sizes. Repeat this if the times do not look linear.

    Large input might not fit into the processor's caches, especially while other programs are running.
    """
    small, large = create_input(size), create_input(size * SIZE_RATIO)
    growth = Growth(kind, inf, inf)
    for _ in range(_MAX_ATTEMPTS):
        times = [(_measure_seconds(small), _measure_seconds(large)) for _ in range(rounds)]
        least = [min(column) for column in zip(*times, strict=True)]
        growth = Growth(kind, min(growth.small, least[0]), min(growth.large, least[1]))
        if growth.is_linear:
            break
    return growth


def build_table(growths: Iterable[Growth], size: int) -> Table:
    """
    Return the figures as a table.
    """
    title = f"hostile input: processor time for {size:,} items or characters, and for {size * SIZE_RATIO:,}"
    grid = Table("", title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for heading in (f"{size:,}", f"{size * SIZE_RATIO:,}", f"at most {MAX_RATIO}x"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("")
    for growth in growths:
        verdict = "linear" if growth.is_linear else "[bold red]not linear[/]"
        times = (
            format_figure(growth.small, "s"),
            format_figure(growth.large, "s"),
            format_ratio(growth.ratio),
        )
        grid.add_row(growth.kind, *times, verdict)
    return grid


def _select_kinds(kinds: Mapping[str, InputFactory], words: str) -> Mapping[str, InputFactory]:
    return {kind: create_input for kind, create_input in kinds.items() if words in kind}


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Measure and print a table.

    Returns:
        0, or 1 if any input takes more than linear time.
    """
    parser = ArgumentParser("python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use small input to check that everything works")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="NUMBER", help="number of rounds (default: 3)"
    )
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="measure only the kinds whose name contains WORDS"
    )
    options = parser.parse_args(arguments)
    size = QUICK_SIZE if options.quick else SIZE
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    with Console(stderr=True).status("") as status:
        growths = []
        for kind, create_input in _select_kinds(KINDS, options.only).items():
            status.update(kind)
            growths.append(measure_growth(kind, create_input, size, options.rounds))
    console.print(build_table(growths, size))
    return int(not all(growth.is_linear for growth in growths))


if __name__ == "__main__":
    sys.exit(main())
