"""Results as Markdown, between two marks of a page: all of them, or the few that the README shows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import OURS
from benchmarks.tables import measure, ratio

__all__ = ["BEGIN", "COMMAND", "END", "block", "figures_of", "summary", "write"]

BEGIN: Final = "<!-- benchmarks:begin -->"
END: Final = "<!-- benchmarks:end -->"
COMMAND: Final = "pip install -e '.[bench]' && python -m benchmarks"
PLOTS: Final = {
    "Start, requests and memory of every server, as bars": "figures/bars.svg",
    "Start, memory and requests over the number of prompts, as curves": "figures/growth.svg",
}


def block(content: Mapping[str, Any]) -> str:
    """
    Return what stands between the marks.

    Args:
        content:
            What a run found, as `benchmarks.documents.document` returns it.
    """
    first, *others = content["eras"]
    parts = [
        _origin(content),
        *(f"![{what}]({path})" for what, path in PLOTS.items()),
        *_era(content, first),
        *(part for era in others for part in _folded(content, era)),
        _budgets(content["budgets"]),
        *_notes(content),
    ]
    return "\n\n".join(parts)


#: What the README shows, of these servers.
SUMMARY: Final = {
    "start to prompts/list of 10": "start to the first list of prompts",
    "prompts/get, typed arguments: pipelined": "a prompt with typed arguments",
    "resident memory with 10 prompts, after small requests": "memory",
}
SHOWN: Final = (OURS, "mcp", "fastmcp", "typescript")


def summary(content: Mapping[str, Any]) -> str:
    """
    Return the figures that the README shows.

    Args:
        content:
            What a run found, as `benchmarks.documents.document` returns it.
    """
    rows = next(iter(content["eras"].values()))
    names = [name for name in SHOWN if name in content["servers"]]
    found = {told: rows[title] for title, told in SUMMARY.items() if title in rows}
    lines = ([told, *(_cell(row, name) for name in names)] for told, row in found.items())
    table = _table(["", *(content["servers"][name] for name in names)], lines, range(1, len(names) + 1))
    picture, path = next(iter(PLOTS.items()))
    return f"{table}\n\n![{picture}](docs/{path})"


def figures_of(text: str) -> str:
    """
    Return what stands between the marks of *text*.

    Raises:
        ValueError: If it has no marks.
    """
    _, begin, rest = text.partition(BEGIN)
    found, end, _ = rest.partition(END)
    if not begin or not end:
        reason = f"there is no {BEGIN} with {END} after it"
        raise ValueError(reason)
    return found.strip()


def write(shown: str, file: Path) -> None:
    """
    Put what is *shown* between the marks of a file.
    """
    text = file.read_text(encoding="utf-8")
    figures_of(text)  # which says what is wrong with the marks
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    file.write_text(f"{before}{BEGIN}\n\n{shown}\n\n{END}{after}", encoding="utf-8")


def _origin(content: Mapping[str, Any]) -> str:
    """
    Return when and where the figures were found, and how to find them again.
    """
    machine = content["machine"]
    what = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    peers = [label for name, label in content["servers"].items() if not name.startswith(OURS)]
    return (
        f"Measured on {content['date']} with {what}, beside {', '.join(peers)}, on {machine['system']} "
        f"({machine['machine']}, {machine['processors']} processors), by\n\n"
        f"```sh\n{COMMAND}\n```\n\n"
        "Each figure is the median of the rounds, and in parentheses how many times promptkit's it is."
    )


def _table(head: Sequence[str], lines: Iterable[Iterable[str]], numbers: Iterable[int]) -> str:
    """
    Return a table whose columns *numbers* are aligned to the right.
    """
    rule = ["---:" if column in numbers else "---" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def _cell(row: Mapping[str, Any], name: str) -> str:
    """
    Return the figure of one server, and how many times promptkit's it is.
    """
    servers = row["servers"]
    if name not in servers:
        return "-"
    value = servers[name]["median"]
    shown = measure(value, row["unit"])
    if name == OURS or OURS not in servers:
        return shown
    return f"{shown} ({ratio(value / servers[OURS]['median'])})"


def _figures(content: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """
    Return the table of some rows, with a column for each server that they know.
    """
    labels = {
        name: label
        for name, label in content["servers"].items()
        if any(name in row["servers"] for row in rows.values())
    }
    lines = ([title, *(_cell(rows[title], name) for name in labels)] for title in _by_kind(rows))
    return _table(["", *labels.values()], lines, range(1, len(labels) + 1))


def _by_kind(titles: Iterable[str]) -> list[str]:
    """
    Return *titles* in their order, but those that differ in a number beside each other.
    """
    kinds: dict[str, list[str]] = {}
    for title in titles:
        kinds.setdefault(re.sub(r"\d[\d,]*", "", title), []).append(title)
    return [title for kind in kinds.values() for title in kind]


def _era(content: Mapping[str, Any], era: str) -> Iterator[str]:
    """
    Yield the tables of one era.
    """
    rows = content["eras"][era]
    for table in dict.fromkeys(row["table"] for row in rows.values()):
        yield f"**{table}, {era} era**"
        yield _figures(content, {title: row for title, row in rows.items() if row["table"] == table})


def _folded(content: Mapping[str, Any], era: str) -> Iterator[str]:
    """
    Yield the tables of one era, behind a summary.
    """
    yield f"<details>\n<summary>The same in the {era} era</summary>"
    yield from _era(content, era)
    yield "</details>"


def _budgets(budgets: Iterable[Mapping[str, Any]]) -> str:
    """
    Return which budgets were kept, and which were not.
    """
    found = list(budgets)
    kept = sum(budget["kept"] for budget in found)
    lines = (
        [
            *(budget["budget"], budget["against"], budget["era"]),
            *(ratio(budget["at_least"]), ratio(budget["measured"])),
            "kept" if budget["kept"] else "**missed**",
        ]
        for budget in found
    )
    head = ("budget", "against", "era", "at least", "measured", "")
    told = f"**Budgets** ({kept} of {len(found)} kept): how many times promptkit's figure the other is"
    return f"{told}\n\n{_table(head, lines, (3, 4))}"


def _notes(content: Mapping[str, Any]) -> Iterator[str]:
    """
    Yield what was left out, and what was measured without a server.
    """
    notes = [
        *(f"- left out: {note['server']}: {note['what']}: {note['why']}" for note in content["left_out"]),
        *(f"- {what}: {measure(seconds, 's')}" for what, seconds in content["compiling"].items()),
    ]
    if notes:
        yield "\n".join(notes)
