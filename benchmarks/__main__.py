"""Measure, print tables, and write JSON and plots."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from benchmarks import compiling, markdown, pictures, plots, recipes, tables
from benchmarks.budgets import judge
from benchmarks.documents import document, write
from benchmarks.peers import OURS, PEERS, Absent, Peer
from benchmarks.rounds import Rounds
from benchmarks.visits import FULL, QUICK, Visitor
from benchmarks.wire import HANDSHAKE

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
README = Path(__file__).parents[1] / "README.md"
WIDTH = 250  # columns, where the output is no terminal


def _options(arguments: Sequence[str] | None) -> Namespace:
    """
    Return what the command line asks for.
    """
    parser = ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, metavar="NUMBER", help="how many rounds (default: 5, quick: 1)")
    parser.add_argument("--quick", action="store_true", help="a short run, to see that everything works")
    parser.add_argument(
        "--only",
        type=lambda names: names.split(","),
        default=list(PEERS),
        metavar="NAMES",
        help=f"the servers, with commas between them (default: {','.join(PEERS)})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="where JSON and plots go (default: docs/figures for a full run of all, else nowhere); "
        "what goes to the default stands in docs/performance.md and the README, too",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.only if name not in PEERS]
    if unknown:
        parser.error(f"there is no server {', '.join(unknown)}; there are {', '.join(PEERS)}")
    if options.output is None and not options.quick and options.only == list(PEERS):
        options.output = FOLDER
    options.rounds = options.rounds or (1 if options.quick else 5)
    return options


def _start(names: Sequence[str], console: Console) -> list[Peer]:
    """
    Return the servers that can be started, and say which cannot.
    """
    found = []
    for name in names:
        try:
            found.append(PEERS[name]())
        except Absent as reason:
            console.print(f"left out: {name}: {reason}", markup=False)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the benchmark.

    Returns:
        0, or 1 if promptkit itself did not do all that was asked of it.
    """
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    peers = _start(options.only, console)
    with TemporaryDirectory() as folder, Console(stderr=True).status("") as status:
        pictures.write(Path(folder))
        visitor = Visitor(QUICK if options.quick else FULL, Path(folder))
        recipes.write(visitor.folder, visitor.extent.counts)
        rounds = Rounds(visitor, peers, status.update)
        results = rounds.run(options.rounds)
        status.update("compiling")
        compiled = compiling.measure()
    verdicts = judge(results)
    for era, figures in results.items():
        console.print(tables.figures(era, figures, peers, options.rounds))
    console.print(tables.budgets(verdicts))
    for what, seconds in compiled.items():
        console.print(f"{what}: {tables.measure(seconds, 's')}", highlight=False)
    for (name, what), why in rounds.notes.items():
        console.print(f"left out: {name}: {what}: {why}", markup=False, highlight=False)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        content = document(peers, results, verdicts, rounds.notes, compiled)
        write(content, options.output / "results.json")
        if options.output.resolve() == FOLDER.resolve():
            markdown.write(markdown.block(content), PAGE)
            markdown.write(markdown.summary(content), README)
        try:
            plots.draw(results[HANDSHAKE.name], peers, visitor.extent.counts, options.output)
        except ImportError:
            console.print(
                "left out: plots: matplotlib is not installed; pip install -e '.[bench]' does it",
                markup=False,
            )
    return int(any(name == OURS for name, _ in rounds.notes))


sys.exit(main())
