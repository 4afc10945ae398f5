"""Results as JSON for programs."""

import datetime as dt
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.budgets import Verdict
from benchmarks.peers import Peer
from benchmarks.rounds import Figure, Results
from benchmarks.rows import Row
from promptkit.version import VERSION


def machine() -> dict[str, Any]:
    """
    Return where the figures come from.
    """
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


def versions() -> dict[str, str]:
    """
    Return what was measured, and what ran it; the labels of the other servers name theirs.
    """
    found = {"promptkit": VERSION, "Python": platform.python_version()}
    if node := shutil.which("node"):
        shown = subprocess.run((node, "--version"), capture_output=True, text=True, check=False)
        found["Node.js"] = shown.stdout.strip().removeprefix("v")
    return found


def _figure(figure: Figure) -> dict[str, Any]:
    """
    Return the median and the figure of each round, with the digits that matter.
    """
    return {"median": _short(figure.median), "rounds": [_short(value) for value in figure.rounds]}


def _short(value: float) -> float:
    """
    Return *value* with four digits.
    """
    return float(f"{value:.4g}")


def _rows(results: Mapping[Row, Mapping[str, Figure]]) -> dict[str, Any]:
    """
    Return the figures of one era, by title.
    """
    return {
        row.title: {
            "unit": row.unit,
            "table": row.table,
            "servers": {name: _figure(figure) for name, figure in found.items()},
        }
        for row, found in results.items()
    }


def document(
    peers: Sequence[Peer],
    results: Results,
    verdicts: Sequence[Verdict],
    notes: Mapping[tuple[str, str], str],
    compiling: Mapping[str, float],
) -> dict[str, Any]:
    """
    Return everything that a run found, as JSON can hold it.

    Args:
        peers:
            The servers.

        results:
            The figures.

        verdicts:
            What became of the budgets.

        notes:
            What was left out, and why.

        compiling:
            What was measured in this process, in seconds.
    """
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "versions": versions(),
        "machine": machine(),
        "servers": {peer.name: peer.label for peer in peers},
        "eras": {era: _rows(found) for era, found in results.items()},
        "budgets": [
            {
                "budget": verdict.budget.what,
                "against": verdict.budget.peer,
                "era": verdict.era,
                "at_least": verdict.budget.least,
                "measured": _short(verdict.ratio),
                "kept": verdict.kept,
            }
            for verdict in verdicts
        ],
        "left_out": [{"server": name, "what": what, "why": why} for (name, what), why in notes.items()],
        "compiling": {what: _short(seconds) for what, seconds in compiling.items()},
    }


def write(content: Mapping[str, Any], file: Path) -> None:
    """
    Write what a run found into a file.
    """
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
