"""Reports of the results, as JSON and as tables for the terminal, the docs and the README."""

import datetime as dt
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.markdown import Markdown

from benchmarks import rows
from benchmarks.budgets import Verdict
from benchmarks.cases import TYPED
from benchmarks.http.peers import HttpPeer
from benchmarks.peers import OURS, Peer
from benchmarks.rounds import Figure, Results
from promptkit.version import VERSION

BEGIN: Final = "<!-- benchmarks:begin -->"
END: Final = "<!-- benchmarks:end -->"
COMMAND: Final = "pip install -e '.[bench]' && python -m benchmarks"
PLOTS: Final = {
    "Start, requests and memory of every server, as bars": "figures/bars.svg",
    "Start, memory and requests over the number of prompts, as curves": "figures/growth.svg",
}
#: The rows in the README, keyed by their titles in the results, with their titles in the README.
SUMMARY: Final = {
    rows.first_list(10).title: "start to the first list of prompts",
    rows.alone(TYPED).title: "a prompt with typed arguments, one at a time",
    rows.pipelined(TYPED).title: "a prompt with typed arguments, pipelined",
    rows.memory(10).title: "memory",
}
SUMMARY_SERVERS: Final = (OURS, "mcp", "fastmcp", "typescript")
UNITS: Final = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))

Content = Mapping[str, Any]


def format_figure(value: float, unit: str) -> str:
    """Format a figure with about three significant digits, in the largest suitable unit."""
    if unit != "s":
        return f"{value:,.{0 if value >= 1000 else 1}f} {unit}"
    scale, name = next((each for each in UNITS if value >= each[0]), UNITS[-1])
    digits = 0 if value / scale >= 100 else 1 if value / scale >= 10 else 2
    return f"{value / scale:,.{digits}f} {name}"


def format_ratio(value: float) -> str:
    """Format the ratio of two figures."""
    digits = 0 if value >= 100 else 1 if value >= 1 else 2
    return f"{value:,.{digits}f}x"


def as_json(
    peers: Sequence[Peer | HttpPeer],
    results: Results,
    verdicts: Sequence[Verdict],
    notes: Mapping[tuple[str, str], str],
    compiling: Mapping[str, float],
) -> dict[str, Any]:
    """Return all results of a run as JSON values, from which all other reports are generated."""
    machine = {"system": platform.system(), "machine": platform.machine(), "processors": os.cpu_count()}
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "versions": _versions(),
        "machine": machine,
        "servers": {peer.name: peer.label for peer in peers},
        "eras": {
            era: {
                row.title: {"unit": row.unit, "table": row.table, "servers": _figures(by_server)}
                for row, by_server in figures.items()
            }
            for era, figures in results.items()
        },
        "budgets": [
            {
                "budget": verdict.budget.title,
                "against": verdict.budget.peer,
                "era": verdict.era,
                "at_least": verdict.budget.min_ratio,
                "measured": _rounded(verdict.ratio),
                "kept": verdict.is_met,
            }
            for verdict in verdicts
        ],
        "left_out": [{"server": name, "what": what, "why": why} for (name, what), why in notes.items()],
        "compiling": {what: _rounded(seconds) for what, seconds in compiling.items()},
    }


def _versions() -> dict[str, str]:
    versions = {"promptkit": VERSION, "Python": platform.python_version()}
    if node := shutil.which("node"):
        process = subprocess.run((node, "--version"), capture_output=True, text=True, check=False)
        versions["Node.js"] = process.stdout.strip().removeprefix("v")
    return versions


def _figures(by_server: Mapping[str, Figure]) -> dict[str, Any]:
    return {
        name: {"median": _rounded(figure.median), "rounds": [*map(_rounded, figure.rounds)]}
        for name, figure in by_server.items()
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def write_json(content: Content, file: Path) -> None:
    """Write the results of a run into a file."""
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def format_page(content: Content) -> str:
    """Return all figures as Markdown for docs/performance.md."""
    first, *others = content["eras"]
    parts = [
        _origin(content),
        *(f"![{what}]({path})" for what, path in PLOTS.items()),
        *_format_era(content, first),
    ]
    for era in others:
        parts += [
            f"<details>\n<summary>The same in the {era} era</summary>",
            *_format_era(content, era),
            "</details>",
        ]
    return "\n\n".join([*parts, _budgets(content["budgets"]), *_notes(content)])


def render(content: Content) -> Markdown:
    """Return all figures for the terminal, each with half the range of its rounds."""
    eras = [part for era in content["eras"] for part in _format_era(content, era, spread=True)]
    return Markdown("\n\n".join([*eras, _budgets(content["budgets"]), *_notes(content)]))


def summary(content: Content) -> str:
    """Return the figures for the README as Markdown."""
    figures = next(iter(content["eras"].values()))
    names = [name for name in SUMMARY_SERVERS if name in content["servers"]]
    lines = [
        [label, *(format_cell(figures[title], name) for name in names)]
        for title, label in SUMMARY.items()
        if title in figures
    ]
    picture, path = next(iter(PLOTS.items()))
    return f"{_table(['', *map(content['servers'].get, names)], lines)}\n\n![{picture}](docs/{path})"


def extract_figures(text: str) -> str:
    """Return the part of *text* between the markers. Raises ValueError if there are no markers."""
    _, begin, after = text.partition(BEGIN)
    figures, end, _ = after.partition(END)
    if not begin or not end:
        reason = f"there is no {BEGIN} with {END} after it"
        raise ValueError(reason)
    return figures.strip()


def write(figures: str, file: Path) -> None:
    """Replace the text between the markers in a file. Raises ValueError if there are no markers."""
    text = file.read_text(encoding="utf-8")
    extract_figures(text)
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    file.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}", encoding="utf-8")


def _origin(content: Content) -> str:
    machine = content["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    peers = [label for name, label in content["servers"].items() if name != OURS]
    return (
        f"Measured on {content['date']} with {versions}, next to {', '.join(peers)}, on {machine['system']} "
        f"({machine['machine']}, {machine['processors']} processors), by\n\n"
        f"```sh\n{COMMAND}\n```\n\n"
        "Each figure is the median of the rounds; its ratio to promptkit's figure is in parentheses."
    )


def _format_era(content: Content, era: str, *, spread: bool = False) -> Iterator[str]:
    rows_by_title = content["eras"][era]
    for kind in dict.fromkeys(row["table"] for row in rows_by_title.values()):
        titles = [title for title, row in rows_by_title.items() if row["table"] == kind]
        measured = {name for title in titles for name in rows_by_title[title]["servers"]}
        labels = {name: label for name, label in content["servers"].items() if name in measured}
        lines = [
            [title, *(format_cell(rows_by_title[title], name, spread=spread) for name in labels)]
            for title in _group_by_kind(titles)
        ]
        yield f"**{kind}, {era} era**"
        yield _table(["", *labels.values()], lines)


def _group_by_kind(titles: Iterable[str]) -> list[str]:
    """Return *titles* in order, except that titles that differ only in a number are next to each other."""
    kinds: dict[str, list[str]] = {}
    for title in titles:
        kinds.setdefault(re.sub(r"\d[\d,]*", "", title), []).append(title)
    return [title for kind in kinds.values() for title in kind]


def format_cell(row: Mapping[str, Any], name: str, *, spread: bool = False) -> str:
    """
    Format the figure of a server with its ratio to promptkit's.

    With *spread*, add half the range of the rounds if there are several.
    """
    figure, ours = row["servers"].get(name), row["servers"].get(OURS)
    if figure is None:
        return "-"
    text = format_figure(figure["median"], row["unit"])
    if spread and figure["median"] and len(figure["rounds"]) > 1:
        text += f" ±{(max(figure['rounds']) - min(figure['rounds'])) / 2 / figure['median']:.0%}"
    if name == OURS or ours is None:
        return text
    return f"{text} ({format_ratio(figure['median'] / ours['median'])})"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], right_aligned: Sequence[int] = ()) -> str:
    """Return a Markdown table. By default, all columns but the first are right-aligned."""
    right = right_aligned or range(1, len(head))
    rule = ["---:" if column in right else "---" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def _budgets(budgets: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        [
            *(budget["budget"], budget["against"], budget["era"]),
            *(format_ratio(budget["at_least"]), format_ratio(budget["measured"])),
            "kept" if budget["kept"] else "**missed**",
        ]
        for budget in budgets
    ]
    kept_count = sum(budget["kept"] for budget in budgets)
    heading = (
        f"**Budgets** ({kept_count} of {len(budgets)} kept): the ratio of the other figure to promptkit's"
    )
    return f"{heading}\n\n{_table(['budget', 'against', 'era', 'at least', 'measured', ''], lines, (3, 4))}"


def _notes(content: Content) -> Iterator[str]:
    notes = [
        *(f"- skipped: {note['server']}: {note['what']}: {note['why']}" for note in content["left_out"]),
        *(f"- {what}: {format_figure(seconds, 's')}" for what, seconds in content["compiling"].items()),
    ]
    if notes:
        yield "\n".join(notes)
