"""The performance budgets of promptkit, and whether a run has met them."""

from collections.abc import Mapping
from statistics import median

import attrs

from benchmarks import rows
from benchmarks.cases import PICTURE, TYPED, list_case
from benchmarks.peers import OURS
from benchmarks.rounds import Figure, Results
from benchmarks.rows import Row


@attrs.frozen
class Budget:
    """
    A limit on one of promptkit's figures, relative to a figure of another server.

    Args:
        title:
            The title of the budget.

        ours:
            The row that contains promptkit's figure.

        peer:
            The name of the server with which to compare promptkit.

        theirs:
            The row that contains that server's figure.

        min_ratio:
            The minimum ratio of that server's figure to promptkit's.
    """

    title: str
    ours: Row
    peer: str
    theirs: Row
    min_ratio: float

    def ratio(self, figures: Mapping[Row, Mapping[str, Figure]]) -> float | None:
        """
        Return the ratio of the peer's figure to promptkit's; None if one of them was not measured.

        The result is the median of the ratios of all rounds, because a machine's clock rate can change
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
    An absolute limit on one of promptkit's figures.

    Args:
        title:
            The title of the allowance.

        ours:
            The row that contains the figure.

        peer:
            The limit as text, which tables show in place of the name of a server.

        limit:
            The limit, in the unit of the row.

        min_ratio:
            The minimum ratio of the limit to the figure.
    """

    title: str
    ours: Row
    peer: str
    limit: float
    min_ratio: float = 1.0

    def ratio(self, figures: Mapping[Row, Mapping[str, Figure]]) -> float | None:
        """
        Return the ratio of the limit to promptkit's figure; None if the figure was not measured.
        """
        ours = figures.get(self.ours, {}).get(OURS)
        return self.limit / ours.median if ours else None


def _budget_against(peer: str, row: Row, min_ratio: float) -> Budget:
    """Return a budget that compares promptkit with *peer* in one row."""
    return Budget(row.title, row, peer, row, min_ratio)


def _allowance(row: Row, text: str, limit: float) -> Allowance:
    """Return an absolute limit on the figure in one row."""
    return Allowance(row.title, row, text, limit)


def _growth(title: str, many: Row, few: Row, max_ratio: float) -> Budget:
    """Return a budget for the ratio of promptkit's figure in the row *many* to the one in the row *few*."""
    return Budget(title, many, OURS, few, 1 / max_ratio)


LIST = list_case(1_000)
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
        max_ratio=1.2,
    ),
    _budget_against("mcp", rows.first_get(1_000), 5),
    _budget_against("typescript", rows.first_get(1_000), 1 / 0.8),
    _allowance(rows.next_to_loops(1), "1 ms", 1e-3),
    _allowance(rows.next_to_loops(8), "8 ms", 8e-3),
    _allowance(rows.saved_file(20), "150 ms", 0.15),
    _allowance(rows.saved_file(2_000), "2.5 s", 2.5),
    _allowance(rows.slowest_request(20), "50 ms", 0.05),
    _allowance(rows.slowest_request(2_000), "50 ms", 0.05),
    # A large reply can take 1.3 times as long as the pipe needs for the same number of bytes.
    _budget_against("echo", rows.alone(LIST), 1 / 1.3),
    _budget_against("echo", rows.alone(PICTURE), 1 / 1.3),
    _budget_against("mcp", rows.memory(10), 2.5),
    _growth("resident memory after images, and before", rows.LOADED, rows.memory(10), max_ratio=1.5),
    _budget_against("mcp", rows.http_each(1), 8),
    _budget_against("asgi", rows.http_each(1), 0.6),
    _budget_against("mcp", rows.http_slowest(1), 10),
    _growth(
        "prompts/get among 10,000 prompts, and among 10",
        rows.among(TYPED, 10_000),
        rows.among(TYPED, 10),
        max_ratio=1.25,
    ),
    _growth(
        "start with 10,000 prompts, and with 1,000",
        rows.first_list(10_000),
        rows.first_list(1_000),
        max_ratio=11,
    ),
    _allowance(rows.check_of_files(1_000), "5 s", 5),
)


@attrs.frozen
class Verdict:
    """
    Whether one budget was met in one era.

    Args:
        budget:
            The budget.

        era:
            The name of the protocol era.

        ratio:
            The measured ratio.
    """

    budget: Budget | Allowance
    era: str
    ratio: float

    @property
    def is_met(self) -> bool:
        """
        Whether the budget was met.
        """
        return self.ratio >= self.budget.min_ratio


def compute_verdicts(results: Results) -> list[Verdict]:
    """
    Return a verdict for each budget in each era in which it was measured.
    """
    return [
        Verdict(budget, era, ratio)
        for budget in BUDGETS
        for era, figures in results.items()
        if (ratio := budget.ratio(figures)) is not None
    ]
