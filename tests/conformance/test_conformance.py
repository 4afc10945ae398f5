"""
The official conformance suite finds nothing wrong but what is expected, and why is said there.

It is installed from npm, with a Node of its own. Where that cannot be had, it is skipped.
"""

from pathlib import Path
from shutil import copytree

import pytest

from tests.clients.node_clients import INSTALLING, install
from tests.conformance.runs import EXPECTED, FINE, RUNNING, SCHEMA, expected, run, run_scenario
from tests.http_server import http_server

HERE = Path(__file__).parent

REVISIONS = ["2025-11-25", "2026-07-28"]

#: How many scenarios pass, of those that each revision requires.
PASSED = {"2025-11-25": (22, 30), "2026-07-28": (32, 37)}

#: Of the newest revision, in which every check passes, with how many there are.
WHOLE = {"caching": 8, "http-header-validation": 14, "server-stateless": 30}

#: Of the extension for skills, with how many checks each has.
SKILLS = {
    "sep-2640-skills-directory": 7,
    "sep-2640-skills-enumeration": 32,
    "sep-2640-skills-manifest": 6,
}

pytestmark = [pytest.mark.installs, pytest.mark.timeout(INSTALLING + 2 * RUNNING)]


@pytest.fixture(scope="module")
def runs(installations, tmp_path_factory):
    """A run for each revision."""
    suite = install(HERE / "suite", installations, optional=True)
    # Two of the prompts write a recipe, so that lists change.
    recipes = copytree(HERE / "recipes", tmp_path_factory.mktemp("served") / "recipes")
    with http_server(recipes, "--tools") as url:
        return {revision: run(suite, url, revision, tmp_path_factory.mktemp("run")) for revision in REVISIONS}


@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_fails_but_what_is_expected(runs, revision):
    """
    What does not pass is named in the file of expected failures, and all that is named does not pass.
    """
    whole = {entry for entry in expected(revision) if ":" not in entry}
    found = {scenario for scenario, failed in runs[revision].failed.items() if failed and scenario in whole}
    for scenario, failed in runs[revision].failed.items():
        found |= {f"{scenario}:{check}" for check in failed if scenario not in whole}

    assert found == set(expected(revision))


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_message_fits_the_schema(runs, revision):
    """
    Whatever else is expected to fail, no message is sent that the revision does not have.
    """
    assert {scenario for scenario, failed in runs[revision].failed.items() if SCHEMA in failed} == set()


@pytest.mark.parametrize("revision", REVISIONS)
def test_how_many_required_scenarios_pass(runs, revision, record_property):
    """
    Of the scenarios that a revision requires, as many pass as prompts, resources and tools can.
    """
    passed, scored = len(runs[revision].passed), len(runs[revision].scored)
    record_property("figures", f"{passed} of {scored} scenarios of {revision} pass")

    assert (passed, scored) == PASSED[revision]


@pytest.mark.parametrize("scenario", WHOLE)
def test_scenarios_of_many_checks_pass_whole(runs, scenario):
    """
    Statelessness, headers and caching are checked at many places.
    """
    found = runs["2026-07-28"]

    assert (found.failed[scenario], found.checks[scenario]) == (set(), WHOLE[scenario])


@pytest.mark.parametrize("scenario", SKILLS)
def test_skills_pass_whole(scenario, installations, tmp_path):
    """
    Each check of the extension passes, of the skills that come with promptkit.
    """
    suite = install(HERE / "suite", installations, optional=True)
    with http_server(HERE.parents[1] / "recipes") as url:
        checks = run_scenario(suite, url, scenario, tmp_path)

    assert [check for check in checks if check["status"] not in FINE] == []
    assert len(checks) == SKILLS[scenario]


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_expected_failure_is_named_once(revision):
    """
    So each has one reason.
    """
    assert len(expected(revision)) == len(set(expected(revision)))
    assert all(reason["why"].strip() for reason in EXPECTED["expected"])
