"""The budgets of promptkit, and whether a run kept them."""

from collections.abc import Mapping
from statistics import median

import attrs

from benchmarks import rows
from benchmarks.cases import CALLED, LARGE_PICTURE, STRUCTURED, TYPED, listing
from benchmarks.peers import OURS
from benchmarks.rounds import Figure, Results
from benchmarks.rows import Row


@attrs.frozen
class Budget:
    """
    How much of one figure a promptkit's may be.

    Args:
        what:
            What the budget is for.

        ours:
            The row of promptkit's figure.

        peer:
            The server that it is held against.

        theirs:
            The row of that server's figure.

        least:
            How many times promptkit's figure the other has to be.
    """

    what: str
    ours: Row
    peer: str
    theirs: Row
    least: float

    def ratio(self, figures: Mapping[Row, Mapping[str, Figure]]) -> float | None:
        """
        Return how many times promptkit's figure the other is, or nothing if one was not measured.

        Figures that were measured after each other make a pair, and this is the median of all pairs: the
        clock rate of a machine may change within a run by more than a budget leaves.
        """
        ours = figures.get(self.ours, {}).get(OURS)
        theirs = figures.get(self.theirs, {}).get(self.peer)
        if ours is None or theirs is None:
            return None
        return median(his / mine for mine, his in zip(ours.rounds, theirs.rounds, strict=False))


@attrs.frozen
class Allowance:
    """
    How large one figure of promptkit's may be, whatever others have.

    Args:
        what:
            What it is for.

        ours:
            The row of the figure.

        peer:
            The most that it may be, in words.

        most:
            The same in the unit of the row.
    """

    what: str
    ours: Row
    peer: str
    most: float
    least: float = 1.0

    def ratio(self, figures: Mapping[Row, Mapping[str, Figure]]) -> float | None:
        """
        Return how many times promptkit's figure would be allowed, or nothing if it was not measured.
        """
        ours = figures.get(self.ours, {}).get(OURS)
        # Of what costs next to nothing, the noise of two measurements may be negative.
        return self.most / max(ours.median, self.most / 100) if ours else None


def _against(peer: str, row: Row, least: float) -> Budget:
    """The budget that holds promptkit against *peer* in one row."""
    return Budget(row.title, row, peer, row, least)


def _growth(what: str, many: Row, few: Row, most: float) -> Budget:
    """The budget of how many times *few* promptkit's *many* may be."""
    return Budget(what, many, OURS, few, 1 / most)


START, LIST = rows.first_list(10), listing(1_000)
BUDGETS: tuple[Budget | Allowance, ...] = (
    _against("mcp", rows.pipelined(TYPED), 100),
    _against("bare", rows.pipelined(TYPED), 0.5),
    _against("mcp", rows.alone(TYPED), 30),
    _against("bare", rows.alone(TYPED), 1 / 1.5),
    _growth(
        "prompts/get, pipelined: a structured argument, and typed ones",
        rows.pipelined(STRUCTURED),
        rows.pipelined(TYPED),
        most=1.5,
    ),
    _growth(
        "typed arguments, pipelined: tools/call, and prompts/get",
        rows.pipelined(CALLED),
        rows.pipelined(TYPED),
        most=1.3,
    ),
    _against("mcp", START, 10),
    _against("typescript", START, 3),
    _against("bare", START, 1 / 1.2),
    _against("bare", rows.get(10), 0.5),
    # What a large reply may take is what the pipe takes for its bytes.
    _against("echo", rows.alone(LIST), 1 / 1.3),
    _against("echo", rows.alone(LARGE_PICTURE), 1 / 1.3),
    _against("mcp", rows.memory(10), 3),
    _growth("resident memory after images, and before", rows.LOADED, rows.memory(10), most=1.5),
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
    _growth(
        "start to prompts/get with 10,000 prompts in 2,000 files, and with 100 in 20",
        rows.get_of_files(2_000),
        rows.get_of_files(20),
        most=2,
    ),
    _growth(
        "a saved file until it is served, among 2,000 and among 20",
        rows.saved_file(2_000),
        rows.saved_file(20),
        most=2,
    ),
    _growth(
        "resident memory with 2,000 files, at most while one is saved, and before",
        rows.memory_of_reload(2_000),
        rows.memory_of_files(2_000),
        most=1.1,
    ),
    _growth(
        "check of 2,000 files, and their import",
        rows.check_of_files(2_000),
        rows.get_of_files(2_000),
        most=2.5,
    ),
    _against("mcp", rows.http_each(1), 9),
    _against("asgi", rows.http_each(1), 0.65),
    _against("mcp", rows.http_slowest(1), 10),
    _growth(
        "2 workers: work of the busier one, and of the other",
        rows.http_share("busier"),
        rows.http_share("other"),
        most=1.2,
    ),
    _against("mcp", rows.http_memory(2), 2),
    _against("mcp", rows.HTTP_OPENING, 2.5),
    Allowance(rows.HTTP_TOKEN.title, rows.HTTP_TOKEN, "10 µs", 10e-6),
)


@attrs.frozen
class Verdict:
    """
    One budget in one era.

    Args:
        budget:
            The budget.

        era:
            The era's name.

        ratio:
            What was measured.
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
