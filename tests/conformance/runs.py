"""Runs of the official conformance suite, and their failed checks."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import attrs
import pytest

from tests.clients.node_clients import node_version

#: Timeout of one run, in seconds.
RUN_TIMEOUT = 120

SUITE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")

EXPECTED = tomllib.loads(Path(__file__).with_name("expected_failures.toml").read_text(encoding="utf-8"))

#: The statuses that count as passed. Warnings do not.
PASSING = frozenset({"SUCCESS", "INFO", "SKIPPED"})

#: The check of all scenarios that every message is valid in the published schema.
SCHEMA = "wire-schema-valid"


@attrs.frozen
class Run:
    """
    One run of the suite.

    Args:
        failed:
            The failed checks of each scenario.

        scored:
            The scenarios that the revision requires.

        checks:
            The number of checks of each scenario.

        passed:
            The required scenarios that the suite reports as passed. It ignores warnings.
    """

    failed: dict[str, set[str]]
    checks: dict[str, int]
    scored: set[str]
    passed: set[str]


def run(installed: Path, url: str, revision: str, folder: Path) -> Run:
    """
    Run the suite with the requirements of a revision, and return the results.

    Args:
        installed:
            The folder in which the suite is installed.

        url:
            The address of the server.

        revision:
            The revision.

        folder:
            An empty folder for the output of the suite.
    """
    completed = _suite(installed, url, folder, "--requirements", revision)
    summary = completed.stdout.partition("=== SUMMARY ===")[2]
    marks = {scenario: mark for mark, scenario in re.findall(r"^([✓✗]) ([\w-]+):", summary, re.MULTILINE)}
    assert marks, completed.stdout + completed.stderr
    scored = marks.keys() - set(re.findall(r"^  [✓✗] ([\w-]+) \(", summary, re.MULTILINE))
    passed = {scenario for scenario in scored if marks[scenario] == "✓"}
    by_scenario = {scenario: _checks(folder, scenario) for scenario in marks}
    failed = {
        scenario: {check["id"] for check in checks if check["status"] not in PASSING}
        for scenario, checks in by_scenario.items()
    }
    return Run(failed, {scenario: len(checks) for scenario, checks in by_scenario.items()}, scored, passed)


def run_scenario(installed: Path, url: str, scenario: str, folder: Path) -> list[dict[str, str]]:
    """
    Run one scenario that no revision requires, and return its checks.

    Args:
        installed:
            The folder in which the suite is installed.

        url:
            The address of the server.

        scenario:
            The scenario.

        folder:
            An empty folder for the output of the suite.
    """
    _suite(installed, url, folder, "--scenario", scenario)
    return _checks(folder, scenario)


def _suite(installed: Path, url: str, folder: Path, *chosen: str) -> "subprocess.CompletedProcess[str]":
    command = [_node(installed), str(installed / SUITE), "server", "--url", url, *chosen]
    return subprocess.run(
        [*command, "--output-dir", str(folder)],
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_TIMEOUT,
        check=False,
    )


def expected(revision: str) -> list[str]:
    """Return the expected failures: scenarios, or ``scenario:check``."""
    return [entry for reason in EXPECTED["expected"] for entry in reason.get(revision, ())]


def _checks(folder: Path, scenario: str) -> list[dict[str, str]]:
    """Return the checks of a scenario."""
    (written,) = folder.glob(f"server-{scenario}-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*/checks.json")
    checks: list[dict[str, str]] = json.loads(written.read_text(encoding="utf-8"))
    return checks


def _node(installed: Path) -> str:
    """Return the path of a recent Node: the one installed with the suite, or the machine's."""
    for name in ("bin/node", "bin/node.exe"):
        if bundled := next(installed.glob(f"node_modules/node-*/{name}"), None):
            return str(bundled)
    node = shutil.which("node") or "node"
    if node_version(node) < 22:
        pytest.skip("Node is too old for the conformance suite: it has to be 22 or later")
    return node
