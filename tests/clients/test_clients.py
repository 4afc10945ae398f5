"""
Widely used clients run the script of calls in each of their modes.

Those that need Node are skipped where it is missing.
"""

import sys
from pathlib import Path

import pytest

from tests.clients import python_client
from tests.clients.calls import PAGE_SIZE, expected_of, told
from tests.clients.node_clients import (
    PATIENT,
    can_inspect,
    in_typescript,
    install,
    run_inspector,
    run_typescript,
)
from tests.clients.script import STEPS
from tests.http_server import http_server

HERE = Path(__file__).parent

#: Failing tool calls, for which the Inspector prints its own messages.
FAILING = [
    step
    for step in STEPS
    if (step.call.get("request") == "tools/call" and "content" not in step.expected.get("result", {}))
    or step.expected.get("result", {}).get("isError")
]

#: The steps that the Inspector can run in isolation.
INSPECTIONS = [step for step in STEPS if step.alone and can_inspect(step.call) and step not in FAILING]


@pytest.fixture
def command(folder):
    """The command that starts a server of these recipes."""
    options = ["--tools", "--page-size", str(PAGE_SIZE)]
    return [sys.executable, "-m", "promptkit", "serve", *options, str(folder)]


@pytest.fixture(params=["stdio", "http"])
def reached(request, command, folder):
    """The Inspector's arguments for a server: the command that starts it, or its URL."""
    if request.param == "stdio":
        yield command
    else:
        with http_server(folder, "--tools", page_size=PAGE_SIZE) as url:
            yield [url]


@pytest.fixture(scope="session")
def inspector(installations):
    """The Inspector's installation."""
    return install(HERE / "inspector", installations)


def inspected(outcome):
    """Return *outcome* as the Inspector prints it: with joined pages, and without error codes."""
    if "pages" in outcome:
        (key,) = outcome["pages"][0]
        return {"result": {key: [item for page in outcome["pages"] for item in page[key]]}}
    if "error" in outcome:
        return {"error": {**outcome["error"], "code": "error"}}
    return outcome


@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
def test_the_python_client_gets_what_the_script_says(folder, command, mode, revision):
    """
    The official Python client negotiates the newest revision that its mode allows, gets the expected outcome
    of every step, and reports no problem.
    """
    came = python_client.run(command, folder, mode, [step.call for step in STEPS])

    assert (came["revision"], came["complaints"]) == (revision, [])
    assert told(STEPS, came["outcomes"]) == expected_of(STEPS, revision)


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ({"pin": "2026-07-28"}, "2026-07-28")],
    ids=["legacy", "auto", "pin"],
)
def test_the_typescript_client_gets_what_the_script_says(typescript, folder, command, mode, revision):
    """The official TypeScript client negotiates the revision and gets every expected outcome over stdio."""
    came = run_typescript(typescript, command, folder, mode, [step.call for step in STEPS])
    expected = expected_of(STEPS, revision)

    assert (came["revision"], came["complaints"]) == (revision, [])
    assert told(STEPS, came["outcomes"]) == {claim: in_typescript(expected[claim]) for claim in expected}


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@pytest.mark.parametrize(
    ("era", "revision"),
    [("legacy", "2025-11-25"), ("modern", "2026-07-28")],
)
def test_the_inspector_gets_what_the_script_says(inspector, reached, era, revision):
    """
    The Inspector's command line gets the expected outcome of every call that works in isolation, over stdio
    and HTTP. With a handshake, it has no session over HTTP.
    """
    has_session = len(reached) > 1 or era == "modern"
    steps = [step for step in INSPECTIONS if has_session or not step.session]

    came = run_inspector(inspector, reached, era, [step.call for step in steps])
    expected = expected_of(steps, revision)

    assert came["revision"] == revision
    assert told(steps, came["outcomes"]) == {claim: inspected(expected[claim]) for claim in expected}
