"""Results as plots: bars beside the peers, and curves over the number of prompts."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.cases import LARGE_PICTURE, TYPED, listing
from benchmarks.peers import COLD, OURS, Peer
from benchmarks.rounds import Figure
from benchmarks.rows import Row
from benchmarks.tables import measure, ratio

COLOURS = {
    OURS: "#0072b2",
    COLD: "#56b4e9",
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
    "resident memory": rows.memory(10),
}
CURVES: dict[str, Callable[[int], Row]] = {
    "start to the first prompts/list": rows.first_list,
    "resident memory": rows.memory,
    "prompts/get, typed, one of N": lambda count: rows.among(TYPED, count),
    "prompts/list of N": lambda count: rows.alone(listing(count)),
}
SETTINGS = {
    "svg.hashsalt": "promptkit",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.facecolor": "white",  # dark text has to be read on dark pages, too
}

Results = Mapping[Row, Mapping[str, Figure]]


def _bars(axes: Any, title: str, row: Row, results: Results, peers: Sequence[Peer]) -> None:
    """
    Draw one row: a bar for each server that was measured, and how many times promptkit's it is.
    """
    found = {peer: results[row][peer.name].median for peer in reversed(peers) if peer.name in results[row]}
    ours = results[row].get(OURS)
    labels = [
        measure(value, row.unit) + (f" ({ratio(value / ours.median)})" if ours and peer.name != OURS else "")
        for peer, value in found.items()
    ]
    bars = axes.barh(
        [peer.label for peer in found], list(found.values()), color=[COLOURS[peer.name] for peer in found]
    )
    axes.bar_label(bars, labels, padding=3)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlim(0, max(found.values()) * 1.6)  # room for the labels
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)


def _curves(axes: Any, title: str, curves: Mapping[int, tuple[Row, Results]], peers: Sequence[Peer]) -> None:
    """
    Draw one figure over the number of prompts: a curve for each server that was measured.
    """
    for peer in peers:
        points = [
            (size, results[row][peer.name].median)
            for size, (row, results) in curves.items()
            if peer.name in results.get(row, {})
        ]
        if len(points) > 1:
            style = "--" if peer.name == COLD else "-"
            axes.plot(
                *zip(*points, strict=True), style, marker="o", label=peer.label, color=COLOURS[peer.name]
            )
    from matplotlib.ticker import LogLocator

    units = {row.unit for row, _ in curves.values()}
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set(xscale="log", yscale="log", xlabel="prompts")
    axes.set_xticks(list(curves), [f"{size:,}" for size in curves])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: re.sub(r"\.0+ ", " ", measure(value, *units)))
    axes.minorticks_off()
    axes.grid(axis="y", color="#dddddd")


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
        figure, grid = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        for axes, (title, row_of) in zip(grid.flat, CURVES.items(), strict=True):
            _curves(axes, title, {size: (row_of(size), results) for size in sizes}, peers)
        figure.legend(
            *grid.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
        )
        _save(figure, folder / "growth")


def _save(figure: Any, path: Path) -> None:
    """
    Write a figure as PNG and as SVG, without the date.
    """
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
