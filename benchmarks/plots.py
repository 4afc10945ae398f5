"""Plots of the results: bars for all servers, and curves over the number of prompts."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import rows
from benchmarks.cases import PICTURE, TYPED, list_case
from benchmarks.peers import OURS
from benchmarks.report import Content, format_cell, format_figure

COLOURS: Final = {
    OURS: "#0072b2",
    "mcp": "#d55e00",
    "fastmcp": "#e69f00",
    "typescript": "#009e73",
    "bare": "#777777",
    "echo": "#bbbbbb",
}
BARS: Final = {
    "start to the first prompts/list": rows.first_list(10),
    "prompts/get, typed, one at a time": rows.alone(TYPED),
    "prompts/get, typed, pipelined": rows.pipelined(TYPED),
    "prompts/get, 1 MiB image": rows.alone(PICTURE),
    "prompts/list of 1,000": rows.alone(list_case(1_000)),
    "resident memory": rows.memory(10),
}
CURVES: Final = {
    "start to the first prompts/list": rows.first_list,
    "resident memory": rows.memory,
    "prompts/get, typed, one of N": lambda count: rows.among(TYPED, count),
    "prompts/list of N": lambda count: rows.alone(list_case(count)),
}
STYLE: Final = {
    "svg.hashsalt": "promptkit",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.facecolor": "white",  # keeps dark text readable on dark pages
}


def draw(content: Content, sizes: Sequence[int], folder: Path) -> None:
    """
    Draw bars.svg and growth.svg for the first era. If only HTTP was measured, draw nothing.

    Raises ImportError if matplotlib is not installed.

    Args:
        content:
            The results of a run.

        sizes:
            The numbers of prompts that were measured.

        folder:
            The folder to write to.
    """
    measured, labels = next(iter(content["eras"].values())), content["servers"]
    bars = {title: measured[row.title] for title, row in BARS.items() if row.title in measured}
    if not bars:
        return
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(math.ceil(len(bars) / 3), 3, figsize=(12, 5.5), layout="constrained")
        for axes in grid.flat[len(bars) :]:
            axes.remove()
        for axes, (title, row) in zip(grid.flat, bars.items(), strict=False):
            _draw_bars(axes, title, row, labels)
        figure.savefig(folder / "bars.svg", metadata={"Date": None})
        figure, grid = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        for axes, (title, row_of) in zip(grid.flat, CURVES.items(), strict=True):
            of_size = {size: measured[row_of(size).title] for size in sizes if row_of(size).title in measured}
            _draw_curves(axes, title, of_size, labels)
        handles = grid.flat[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=6, frameon=False)
        figure.savefig(folder / "growth.svg", metadata={"Date": None})


def draw_scaling(rows_a_second: Mapping[int, float], path: Path) -> None:
    """
    Draw the throughput of a batch over the number of processes.

    Raises ImportError if matplotlib is not installed.

    Args:
        rows_a_second:
            The number of rows per second, keyed by the number of processes, which must include 1.

        path:
            The file to write.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    processes, single = [*rows_a_second], rows_a_second[1]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
        axes.plot([0, *processes], [0, *(single * number for number in processes)], ":", color="#777777")
        axes.plot(processes, [*rows_a_second.values()], "-", marker="o", color=COLOURS[OURS])
        axes.set_title("promptkit batch, rows per second", loc="left", fontweight="bold")
        axes.set(xlabel="processes", ylim=0, xlim=0)
        axes.set_xticks(processes)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y", color="#dddddd")
        figure.savefig(path, metadata={"Date": None})


def _draw_bars(axes: Any, title: str, row: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    names = [name for name in reversed(labels) if name in row["servers"]]
    values = [row["servers"][name]["median"] for name in names]
    bars = axes.barh([labels[name] for name in names], values, color=[COLOURS[name] for name in names])
    axes.bar_label(bars, [format_cell(row, name) for name in names], padding=3)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlim(0, max(values) * 1.6)  # space for the labels
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)


def _draw_curves(
    axes: Any, title: str, of_size: Mapping[int, Mapping[str, Any]], labels: Mapping[str, str]
) -> None:
    from matplotlib.ticker import LogLocator

    for name, label in labels.items():
        points = {
            size: row["servers"][name]["median"] for size, row in of_size.items() if name in row["servers"]
        }
        if len(points) > 1:
            axes.plot([*points], [*points.values()], marker="o", label=label, color=COLOURS[name])
    unit = next((row["unit"] for row in of_size.values()), "s")
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set(xscale="log", yscale="log", xlabel="prompts")
    axes.set_xticks([*of_size], [f"{size:,}" for size in of_size])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: re.sub(r"\.0+ ", " ", format_figure(value, unit)))
    axes.minorticks_off()
    axes.grid(axis="y", color="#dddddd")
