"""
The official conformance suite has only expected failures.

The suite is installed from npm with its own Node. If the installation fails, the tests are skipped.
"""

from pathlib import Path
from shutil import copytree

import pytest

from tests.clients.node_clients import INSTALLING, install
from tests.conformance.runs import EXPECTED, PASSING, RUN_TIMEOUT, SCHEMA, expected, run, run_scenario
from tests.http_server import http_server

HERE = Path(__file__).parent

REVISIONS = ["2025-11-25", "2026-07-28"]

#: The numbers of passed and required scenarios of each revision.
PASSED = {"2025-11-25": (26, 30), "2026-07-28": (32, 37)}

#: Scenarios of the newest revision in which every check passes, with their numbers of checks.
COMPLETE = {"caching": 8, "http-header-validation": 14, "server-stateless": 30}

#: Scenarios of the skills extension, with their numbers of checks.
SKILLS = {
    "sep-2640-skills-directory": 7,
    "sep-2640-skills-enumeration": 32,
    "sep-2640-skills-manifest": 6,
}

pytestmark = [pytest.mark.installs, pytest.mark.timeout(INSTALLING + 2 * RUN_TIMEOUT)]


@pytest.fixture(scope="module")
def runs(installations, tmp_path_factory):
    """The run of the suite for each revision."""
    suite = install(HERE / "suite", installations, optional=True)
    # Two of the prompts write a recipe, so that the lists change.
    recipes = copytree(HERE / "recipes", tmp_path_factory.mktemp("served") / "recipes")
    with http_server(recipes, "--tools") as url:
        return {revision: run(suite, url, revision, tmp_path_factory.mktemp("run")) for revision in REVISIONS}


@pytest.mark.parametrize("revision", REVISIONS)
def test_only_expected_failures(runs, revision):
    """Every failure is expected, and every expected failure occurs."""
    scenarios = {entry for entry in expected(revision) if ":" not in entry}
    failures = {
        scenario for scenario, failed in runs[revision].failed.items() if failed and scenario in scenarios
    }
    for scenario, failed in runs[revision].failed.items():
        failures |= {f"{scenario}:{check}" for check in failed if scenario not in scenarios}

    assert failures == set(expected(revision))


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_message_is_valid(runs, revision):
    """Every message is valid in the published schema, even in scenarios with expected failures."""
    assert {scenario for scenario, failed in runs[revision].failed.items() if SCHEMA in failed} == set()


@pytest.mark.parametrize("revision", REVISIONS)
def test_number_of_passed_scenarios(runs, revision, record_property):
    """The number of passed scenarios matches the documentation."""
    passed, scored = len(runs[revision].passed), len(runs[revision].scored)
    record_property("figures", f"{passed} of {scored} scenarios of {revision} pass")

    assert (passed, scored) == PASSED[revision]


@pytest.mark.parametrize("scenario", COMPLETE)
def test_scenarios_pass_completely(runs, scenario):
    """Every check of statelessness, headers and caching passes."""
    newest = runs["2026-07-28"]

    assert (newest.failed[scenario], newest.checks[scenario]) == (set(), COMPLETE[scenario])


@pytest.mark.parametrize("scenario", SKILLS)
def test_skills(scenario, installations, tmp_path):
    """Every check of the skills extension passes with the skills of promptkit."""
    suite = install(HERE / "suite", installations, optional=True)
    with http_server(HERE.parents[1] / "recipes") as url:
        checks = run_scenario(suite, url, scenario, tmp_path)

    assert [check for check in checks if check["status"] not in PASSING] == []
    assert len(checks) == SKILLS[scenario]


@pytest.mark.parametrize("revision", REVISIONS)
def test_expected_failures_are_unique(revision):
    """Each expected failure has exactly one reason."""
    assert len(expected(revision)) == len(set(expected(revision)))
    assert all(reason["why"].strip() for reason in EXPECTED["expected"])
