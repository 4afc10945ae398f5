"""Results as plots: bars beside the peers, and curves over the number of prompts."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.cases import LARGE_PICTURE, TYPED, listing
from benchmarks.peers import OURS, Peer
from benchmarks.rounds import Figure
from benchmarks.rows import Row
from benchmarks.tables import measure

COLOURS = {
    OURS: "#0072b2",
    "mcp": "#d55e00",
    "fastmcp": "#e69f00",
    "typescript": "#009e73",
    "bare": "#777777",
    "echo": "#bbbbbb",
}
BARS = {
    "start to the first prompts/list": rows.first_list(10),
    "prompts/get, typed, one at a time": rows.alone(TYPED),
    "prompts/get, typed, pipelined": rows.pipelined(TYPED),
    "prompts/get, 1 MiB image": rows.alone(LARGE_PICTURE),
    "prompts/list of 1,000": rows.alone(listing(1_000)),
    "resident memory": rows.MEMORY,
}
CURVES: dict[str, Callable[[int], Row]] = {
    "start to the first prompts/list": rows.first_list,
    "prompts/list": lambda count: rows.alone(listing(count)),
    "prompts/get, typed": lambda count: rows.among(TYPED, count),
}
SETTINGS = {
    "svg.hashsalt": "promptkit",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

Results = Mapping[Row, Mapping[str, Figure]]


def _bars(axes: Any, title: str, row: Row, results: Results, peers: Sequence[Peer]) -> None:
    """
    Draw one row: a bar for each server that was measured.
    """
    found = results[row]
    shown = [peer for peer in reversed(peers) if peer.name in found]
    values = [found[peer.name].median for peer in shown]
    bars = axes.barh([peer.label for peer in shown], values, color=[COLOURS[peer.name] for peer in shown])
    axes.bar_label(bars, [measure(value, row.unit) for value in values], padding=3)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlim(0, max(values) * 1.3)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)


def _curves(axes: Any, title: str, curves: Mapping[int, Mapping[str, Figure]], peers: Sequence[Peer]) -> None:
    """
    Draw one figure over the number of prompts: a curve for each server that was measured.
    """
    for peer in peers:
        points = [
            (size, found[peer.name].median * 1e3) for size, found in curves.items() if peer.name in found
        ]
        if len(points) > 1:
            axes.plot(*zip(*points, strict=True), marker="o", label=peer.label, color=COLOURS[peer.name])
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set(xscale="log", yscale="log", xlabel="prompts", ylabel="ms")


def draw(results: Results, peers: Sequence[Peer], sizes: Sequence[int], folder: Path) -> None:
    """
    Write ``bars`` and ``growth`` into *folder*, as PNG and as SVG.

    Args:
        results:
            By row and server: the figures of one era.

        peers:
            The servers.

        sizes:
            How many prompts the servers had.

        folder:
            Where the files go.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context(SETTINGS):
        bars = {title: row for title, row in BARS.items() if row in results}
        figure, grid = plt.subplots(math.ceil(len(bars) / 3), 3, figsize=(12, 5.5), layout="constrained")
        for axes in grid.flat[len(bars) :]:
            axes.remove()
        for axes, (title, row) in zip(grid.flat, bars.items(), strict=False):
            _bars(axes, title, row, results, peers)
        _save(figure, folder / "bars")
        figure, grid = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
        for axes, (title, row_of) in zip(grid, CURVES.items(), strict=True):
            _curves(axes, title, {size: results.get(row_of(size), {}) for size in sizes}, peers)
        figure.legend(
            *grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
        )
        _save(figure, folder / "growth")


def _save(figure: Any, path: Path) -> None:
    """
    Write a figure as PNG and as SVG, without the date.
    """
    figure.savefig(path.with_suffix(".png"), dpi=110)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
