"""The performance budgets of promptkit, and verdicts on whether a run kept them."""

from collections.abc import Mapping
from statistics import median

import attrs

from benchmarks import rows
from benchmarks.cases import PICTURE, TYPED, listing
from benchmarks.peers import OURS
from benchmarks.rounds import Figure, Results
from benchmarks.rows import Row


@attrs.frozen
class Budget:
    """
    A limit on a figure of promptkit, relative to a figure of another server.

    Args:
        what:
            The title of the budget.

        ours:
            The row of promptkit's figure.

        peer:
            The server to compare with.

        theirs:
            The row of that server's figure.

        least:
            The minimum ratio of that server's figure to promptkit's.
    """

    what: str
    ours: Row
    peer: str
    theirs: Row
    least: float

    def ratio(self, figures: Mapping[Row, Mapping[str, Figure]]) -> float | None:
        """
        Return the ratio of the peer's figure to promptkit's; None if either was not measured.

        The result is the median of the ratios of all rounds, because the clock rate of a machine can change
        between rounds by more than the margin of a budget.
        """
        ours = figures.get(self.ours, {}).get(OURS)
        theirs = figures.get(self.theirs, {}).get(self.peer)
        if ours is None or theirs is None:
            return None
        pairs = zip(ours.rounds, theirs.rounds, strict=False)
        return median(their_value / our_value for our_value, their_value in pairs)


@attrs.frozen
class Allowance:
    """
    An absolute limit on a figure of promptkit.

    Args:
        what:
            The title of the allowance.

        ours:
            The row of the figure.

        peer:
            The limit as text, shown in place of a server.

        most:
            The limit in the unit of the row.

        least:
            The minimum ratio of the limit to the figure.
    """

    what: str
    ours: Row
    peer: str
    most: float
    least: float = 1.0

    def ratio(self, figures: Mapping[Row, Mapping[str, Figure]]) -> float | None:
        """
        Return the ratio of the limit to promptkit's figure; None if the figure was not measured.
        """
        ours = figures.get(self.ours, {}).get(OURS)
        return self.most / ours.median if ours else None


def _budget_against(peer: str, row: Row, least: float) -> Budget:
    """Return the budget that compares promptkit with *peer* in one row."""
    return Budget(row.title, row, peer, row, least)


def _allowance(row: Row, words: str, most: float) -> Allowance:
    """Return the allowance for one row."""
    return Allowance(row.title, row, words, most)


def _growth(what: str, many: Row, few: Row, most: float) -> Budget:
    """Return the budget that limits the ratio of promptkit's figure in row *many* to that in row *few*."""
    return Budget(what, many, OURS, few, 1 / most)


LIST = listing(1_000)
#: The budgets of the design, in the order of its table.
BUDGETS: tuple[Budget | Allowance, ...] = (
    _budget_against("mcp", rows.pipelined(TYPED), 60),
    _budget_against("typescript", rows.pipelined(TYPED), 3),
    _budget_against("bare", rows.pipelined(TYPED), 0.3),
    _budget_against("mcp", rows.alone(TYPED), 20),
    _budget_against("typescript", rows.alone(TYPED), 2),
    _budget_against("mcp", rows.first_list(10), 4),
    _budget_against("typescript", rows.first_list(10), 1 / 0.7),
    _budget_against("mcp", rows.first_get(10), 4),
    _budget_against("typescript", rows.first_get(10), 1 / 0.7),
    _growth(
        "start to the first reply, with a recipe that imports for 10 s, and without it",
        rows.SLOW_OPENING,
        rows.OPENING,
        most=1.2,
    ),
    _budget_against("mcp", rows.first_get(1_000), 5),
    _budget_against("typescript", rows.first_get(1_000), 1 / 0.8),
    _allowance(rows.next_to_loops(1), "1 ms", 1e-3),
    _allowance(rows.next_to_loops(8), "8 ms", 8e-3),
    _allowance(rows.saved_file(20), "150 ms", 0.15),
    _allowance(rows.saved_file(2_000), "2.5 s", 2.5),
    _allowance(rows.slowest_request(20), "50 ms", 0.05),
    _allowance(rows.slowest_request(2_000), "50 ms", 0.05),
    # The limit for a large reply is 1.3 times the time that the pipe needs for the same bytes.
    _budget_against("echo", rows.alone(LIST), 1 / 1.3),
    _budget_against("echo", rows.alone(PICTURE), 1 / 1.3),
    _budget_against("mcp", rows.memory(10), 2.5),
    _growth("resident memory after images, and before", rows.LOADED, rows.memory(10), most=1.5),
    _budget_against("mcp", rows.http_each(1), 8),
    _budget_against("asgi", rows.http_each(1), 0.6),
    _budget_against("mcp", rows.http_slowest(1), 10),
    _growth(
        "prompts/get among 10,000 prompts, and among 10",
        rows.among(TYPED, 10_000),
        rows.among(TYPED, 10),
        most=1.25,
    ),
    _growth(
        "start with 10,000 prompts, and with 1,000",
        rows.first_list(10_000),
        rows.first_list(1_000),
        most=11,
    ),
    _allowance(rows.check_of_files(1_000), "5 s", 5),
)


@attrs.frozen
class Verdict:
    """
    The result of one budget in one era.

    Args:
        budget:
            The budget.

        era:
            The name of the era.

        ratio:
            The measured ratio.
    """

    budget: Budget | Allowance
    era: str
    ratio: float

    @property
    def kept(self) -> bool:
        """
        Whether the budget was kept.
        """
        return self.ratio >= self.budget.least


def judge(results: Results) -> list[Verdict]:
    """
    Return a verdict for each budget and era that was measured.
    """
    return [
        Verdict(budget, era, ratio)
        for budget in BUDGETS
        for era, figures in results.items()
        if (ratio := budget.ratio(figures)) is not None
    ]
