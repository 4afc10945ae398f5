"""Run the benchmarks, print tables, and write JSON and plots."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from rich.console import Console

from benchmarks import compiling, pictures, plots, recipes, report
from benchmarks.budgets import compute_verdicts
from benchmarks.http import rounds as http
from benchmarks.http.peers import HTTP_PEERS
from benchmarks.peers import OURS, PEERS, UnavailableError
from benchmarks.rounds import Rounds
from benchmarks.runner import FULL, QUICK, Runner
from benchmarks.wire import MODERN

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
README = Path(__file__).parents[1] / "README.md"
#: The default number of rounds. Each round restarts every server, and takes several minutes.
ROUNDS = 3
WIDTH = 250  # columns, if the output is not a terminal
STDIO, HTTP = "stdio", "http"
T = TypeVar("T")
NAMES = tuple(dict.fromkeys((*PEERS, *HTTP_PEERS)))


def _parse_options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="NUMBER",
        help=f"number of rounds (default: {ROUNDS}, or 1 with --quick)",
    )
    parser.add_argument("--quick", action="store_true", help="do a short run to check that everything works")
    parser.add_argument(
        "--only",
        type=lambda names: names.split(","),
        default=list(NAMES),
        metavar="NAMES",
        help=f"the servers to measure, separated by commas (default: {','.join(NAMES)})",
    )
    parser.add_argument(
        "--transport",
        choices=(STDIO, HTTP),
        help="measure over one transport only (default: both)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder for JSON and plots (default: docs/figures for a full run of all servers, otherwise "
        "none); a run that writes to the default also updates docs/performance.md and the README",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.only if name not in NAMES]
    if unknown:
        parser.error(f"unknown server {', '.join(unknown)}: choose from {', '.join(NAMES)}")
    is_complete = options.only == list(NAMES) and options.transport is None
    if options.output is None and not options.quick and is_complete:
        options.output = FOLDER
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    return options


def _make_peers(names: Sequence[str], factories: Mapping[str, Callable[[], T]], console: Console) -> list[T]:
    """
    Return the peers called *names* that are available on this machine, and print why the others are skipped.
    """
    peers = []
    for name in filter(factories.__contains__, names):
        try:
            peers.append(factories[name]())
        except UnavailableError as error:
            console.print(f"skipped: {name}: {error}", markup=False)
    return peers


def _write(content: report.Content, sizes: Sequence[int], folder: Path, console: Console) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    report.write_json(content, folder / "results.json")
    if folder.resolve() == FOLDER.resolve():
        report.write(report.format_page(content), PAGE)
        report.write(report.summary(content), README)
    try:
        plots.draw(content, sizes, folder)
    except ImportError:
        reason = "matplotlib is not installed: run pip install -e '.[bench]'"
        console.print(f"skipped: plots: {reason}", markup=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the benchmarks.

    Returns:
        0, or 1 if promptkit failed a check or did not complete a measurement.
    """
    options = _parse_options(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    peers = _make_peers(options.only, PEERS if options.transport != HTTP else {}, console)
    http_peers = _make_peers(options.only, HTTP_PEERS if options.transport != STDIO else {}, console)
    with TemporaryDirectory() as folder, Console(stderr=True).status("") as status:
        pictures.write(Path(folder))
        runner = Runner(QUICK if options.quick else FULL, Path(folder))
        recipes.write(runner.folder, runner.plan.counts)
        recipes.write_files(runner.folder, {*runner.plan.files, runner.plan.checked})
        recipes.write_extra(runner.folder)
        rounds = Rounds(runner, peers, status.update)
        results = rounds.run(options.rounds)
        plan = http.QUICK if options.quick else http.FULL
        http_rounds = http.HttpRounds(plan, runner.folder, http_peers, status.update, rounds.notes)
        results[MODERN.name] |= http_rounds.run(options.rounds)
        status.update("compiling")
        compiled = compiling.measure() if peers else {}
    verdicts = compute_verdicts(results)
    content = report.as_json([*peers, *http_peers], results, verdicts, rounds.notes, compiled)
    console.print(report.render(content))
    if options.output:
        _write(content, runner.plan.counts, options.output, console)
    return int(any(name == OURS for name, _ in rounds.notes))


sys.exit(main())
