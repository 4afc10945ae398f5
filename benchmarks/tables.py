"""Results as tables for people."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from benchmarks.budgets import Verdict
from benchmarks.peers import OURS, Peer
from benchmarks.rounds import Figure
from benchmarks.rows import Row

UNITS = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))


def measure(value: float, unit: str) -> str:
    """
    Return *value* with three digits that matter and the unit that suits it.
    """
    if unit != "s":
        return f"{value:,.1f} {unit}"
    scale, name = next((each for each in UNITS if value >= each[0]), UNITS[-1])
    digits = 0 if value / scale >= 100 else 1 if value / scale >= 10 else 2
    return f"{value / scale:,.{digits}f} {name}"


def ratio(value: float) -> str:
    """
    Return how many times something is something else.
    """
    digits = 0 if value >= 100 else 1 if value >= 1 else 2
    return f"{value:,.{digits}f}x"


def _cell(figure: Figure | None, ours: Figure | None, unit: str) -> str:
    """
    Return a figure, how far its rounds lie apart, and how many times promptkit's it is.
    """
    if figure is None:
        return "-"
    spread = (figure.high - figure.low) / 2 / figure.median if figure.median else 0
    text = f"{measure(figure.median, unit)} ±{spread:.0%}"
    return text if ours is None or figure is ours else f"{text} {ratio(figure.median / ours.median):>6}"


def figures(
    era: str, results: Mapping[Row, Mapping[str, Figure]], peers: Sequence[Peer], count: int
) -> Table:
    """
    Return the table of one era.

    Args:
        era:
            Its name.

        results:
            By row and server: the figures.

        peers:
            The servers, in order.

        count:
            How many rounds there were.
    """
    title = f"{era} era: median of {count} rounds ± half their range, and how many times promptkit's"
    table = Table("", title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for peer in peers:
        table.add_column(peer.label, justify="right", no_wrap=True)
    for row, found in results.items():
        ours = found.get(OURS)
        table.add_row(row.title, *(_cell(found.get(peer.name), ours, row.unit) for peer in peers))
    return table


def budgets(verdicts: Sequence[Verdict]) -> Table:
    """
    Return the table of the budgets.
    """
    table = Table(
        *("budget", "against", "era", "at least", "measured", ""),
        title="budgets: how many times promptkit's the other figure is",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    for verdict in verdicts:
        budget = verdict.budget
        table.add_row(
            *(budget.what, budget.peer, verdict.era, ratio(budget.least), ratio(verdict.ratio)),
            "kept" if verdict.kept else "[bold red]missed[/]",
        )
    return table
