"""Runs of the official conformance suite, and what does not pass in them."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import attrs
import pytest

from tests.clients.node_clients import node_version

#: How long one run may take, in seconds.
RUNNING = 120

SUITE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")

EXPECTED = tomllib.loads(Path(__file__).with_name("expected_failures.toml").read_text(encoding="utf-8"))

#: What is no shortcoming. A warning is one.
FINE = frozenset({"SUCCESS", "INFO", "SKIPPED"})

#: The check that every message fits the published schema, which all scenarios have.
SCHEMA = "wire-schema-valid"


@attrs.frozen
class Run:
    """
    One run of the suite.

    Args:
        failed:
            Each scenario that ran, and the checks in it that do not pass.

        scored:
            The scenarios that the requirements count.

        checks:
            How many checks each scenario has.

        passed:
            Those of them that the suite itself takes for passed. It minds no warnings.
    """

    failed: dict[str, set[str]]
    checks: dict[str, int]
    scored: set[str]
    passed: set[str]


def run(installed: Path, url: str, revision: str, folder: Path) -> Run:
    """
    Run the scenarios that a revision requires.

    Args:
        installed:
            Where the suite is installed.

        url:
            Where the server is.

        revision:
            The revision.

        folder:
            An empty folder, for what the suite writes.
    """
    ran = _suite(installed, url, folder, "--requirements", revision)
    summary = ran.stdout.partition("=== SUMMARY ===")[2]
    marks = {scenario: mark for mark, scenario in re.findall(r"^([✓✗]) ([\w-]+):", summary, re.MULTILINE)}
    assert marks, ran.stdout + ran.stderr
    scored = marks.keys() - set(re.findall(r"^  [✓✗] ([\w-]+) \(", summary, re.MULTILINE))
    passed = {scenario for scenario in scored if marks[scenario] == "✓"}
    found = {scenario: _checks(folder, scenario) for scenario in marks}
    failed = {
        scenario: {check["id"] for check in checks if check["status"] not in FINE}
        for scenario, checks in found.items()
    }
    return Run(failed, {scenario: len(checks) for scenario, checks in found.items()}, scored, passed)


def run_scenario(installed: Path, url: str, scenario: str, folder: Path) -> list[dict[str, str]]:
    """
    Run one scenario, of those that no revision requires, and return its checks.

    Args:
        installed:
            Where the suite is installed.

        url:
            Where the server is.

        scenario:
            The scenario.

        folder:
            An empty folder, for what the suite writes.
    """
    _suite(installed, url, folder, "--scenario", scenario)
    return _checks(folder, scenario)


def _suite(installed: Path, url: str, folder: Path, *chosen: str) -> "subprocess.CompletedProcess[str]":
    command = [_node(installed), str(installed / SUITE), "server", "--url", url, *chosen]
    return subprocess.run(
        [*command, "--output-dir", str(folder)],
        capture_output=True,
        encoding="utf-8",
        timeout=RUNNING,
        check=False,
    )


def expected(revision: str) -> list[str]:
    """Return what is expected not to pass: scenarios, or ``scenario:check``."""
    return [entry for reason in EXPECTED["expected"] for entry in reason.get(revision, ())]


def _checks(folder: Path, scenario: str) -> list[dict[str, str]]:
    """The checks of a scenario."""
    (written,) = folder.glob(f"server-{scenario}-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*/checks.json")
    checks: list[dict[str, str]] = json.loads(written.read_text(encoding="utf-8"))
    return checks


def _node(installed: Path) -> str:
    """A Node that is new enough: the one that was installed along, or that of the machine."""
    for name in ("bin/node", "bin/node.exe"):
        if found := next(installed.glob(f"node_modules/node-*/{name}"), None):
            return str(found)
    node = shutil.which("node") or "node"
    if node_version(node) < 22:
        pytest.skip("Node is too old for the conformance suite: it has to be 22 or later")
    return node
