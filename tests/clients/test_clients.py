"""
Widely used clients run the script of calls in each of their modes.

Clients that need Node are skipped if it is not installed.
"""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.clients import python_client
from tests.clients.calls import PAGE_SIZE, collect_outcomes, expected_outcomes, get
from tests.clients.node_clients import (
    TEST_TIMEOUT,
    can_inspect,
    convert_for_typescript,
    install,
    run_inspector,
    run_typescript,
)
from tests.clients.outing import ENTERED, FIELDS, PLAN, RECIPE
from tests.clients.python_packages import INSTALLING, install_packages
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
def server_arguments(request, command, folder):
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


def convert_for_inspector(outcome):
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
def test_python_client_gets_the_expected_outcomes(folder, command, mode, revision):
    """
    The official Python client negotiates the newest revision that its mode allows, gets the expected outcome
    of every step, and reports no problem.
    """
    result = python_client.run(command, folder, mode, [step.call for step in STEPS])

    assert (result["revision"], result["complaints"]) == (revision, [])
    assert collect_outcomes(STEPS, result["outcomes"]) == expected_outcomes(STEPS, revision)


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ({"pin": "2026-07-28"}, "2026-07-28")],
    ids=["legacy", "auto", "pin"],
)
def test_typescript_client_gets_the_expected_outcomes(typescript, folder, command, mode, revision):
    """The official TypeScript client negotiates the revision and gets every expected outcome over stdio."""
    result = run_typescript(typescript, command, folder, mode, [step.call for step in STEPS])
    expected = expected_outcomes(STEPS, revision)

    assert (result["revision"], result["complaints"]) == (revision, [])
    assert collect_outcomes(STEPS, result["outcomes"]) == {
        claim: convert_for_typescript(expected[claim]) for claim in expected
    }


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize(
    ("era", "revision"),
    [("legacy", "2025-11-25"), ("modern", "2026-07-28")],
)
def test_inspector_gets_the_expected_outcomes(inspector, server_arguments, era, revision):
    """
    The Inspector's command line gets the expected outcome of every call that works in isolation, over stdio
    and HTTP. With a handshake, it has no session over HTTP.
    """
    has_session = len(server_arguments) > 1 or era == "modern"
    steps = [step for step in INSPECTIONS if has_session or not step.session]

    result = run_inspector(inspector, server_arguments, era, [step.call for step in steps])
    expected = expected_outcomes(steps, revision)

    assert result["revision"] == revision
    assert collect_outcomes(steps, result["outcomes"]) == {
        claim: convert_for_inspector(expected[claim]) for claim in expected
    }


IDENTITY = {
    "name": "shelf-prompts",
    "version": "3.2.1",
    "title": "Shelf",
    "description": "Prompts of the shelf.",
    "websiteUrl": "https://shelf.example",
    "icons": [{"src": "https://shelf.example/icon.png"}],
    "instructions": "Summarize with `summarize`.",
}


@pytest.fixture
def described_folder(tmp_path):
    """The recipes of a project that describes its server."""
    folder = tmp_path / "described" / "prompts"
    folder.mkdir(parents=True)
    (folder / "hello.prompt.md").write_text("Hello.\n", encoding="utf-8")
    (folder.parent / "pyproject.toml").write_text(
        """
        [project]
        name = "shelf-prompts"
        version = "3.2.1"
        description = "Prompts of the shelf."
        urls.homepage = "https://shelf.example"
        [tool.promptkit.server]
        title = "Shelf"
        icons = ["https://shelf.example/icon.png"]
        instructions = "Summarize with `summarize`."
        """,
        encoding="utf-8",
    )
    return folder


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_python_client_shows_the_identity(described_folder, mode):
    """The official Python client shows the project's name, version and instructions in both eras."""
    command = [sys.executable, "-m", "promptkit", "serve", str(described_folder)]

    assert python_client.run(command, described_folder, mode, [])["server"] == IDENTITY


@pytest.fixture
def outing(tmp_path):
    """The folder and the command of a server with the prompt from the table in docs/clients.md."""
    (tmp_path / "outing.py").write_text(RECIPE)
    return tmp_path, [sys.executable, "-m", "promptkit", "serve", str(tmp_path)]


#: A call without arguments, and the values that a person enters in the form.
ASKING = {**get("outing"), "answer": {"action": "accept", "content": ENTERED}}


def pinned_version(client, package):
    """Return the version of a package that a client's folder pins."""
    pinned = json.loads((HERE / client / "package.json").read_text(encoding="utf-8"))
    return pinned["dependencies"][package]


def received_text(outcome):
    """Return the text of a prompt's only message."""
    (message,) = outcome["result"]["messages"]
    return message["content"]["text"]


def test_python_client_shows_the_form(outing, observe):
    """A form asks the user of the Python client, and the client gets the entered values."""
    folder, command = outing
    (outcome,) = python_client.run(command, folder, "auto", [ASKING])["outcomes"]

    assert [form["requestedSchema"]["properties"] for form in outcome["asked"]] == [FIELDS]
    observe("python-sdk", version("mcp"), "prompts/get without arguments", "yes", received_text(outcome))


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_typescript_client_shows_the_identity(typescript, described_folder, mode):
    """The official TypeScript client shows the project's name, version and instructions over HTTP."""
    with http_server(described_folder) as url:
        assert run_typescript(typescript, url, described_folder, mode, [])["server"] == IDENTITY


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
def test_typescript_client_shows_the_form(typescript, outing, observe):
    """A form asks the user of the TypeScript client, and the client gets the entered values."""
    folder, command = outing
    (outcome,) = run_typescript(typescript, command, folder, "auto", [ASKING])["outcomes"]
    release = pinned_version("typescript", "@modelcontextprotocol/client")

    assert [form["requestedSchema"]["properties"] for form in outcome["asked"]] == [FIELDS]
    observe("typescript-sdk", release, "prompts/get without arguments", "yes", received_text(outcome))


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
def test_inspector_sends_arguments_as_typed(inspector, outing, observe):
    """The Inspector's command line has no forms, and sends each argument as it was typed."""
    _, command = outing
    arguments = {name: str(value) for name, value in ENTERED.items()}
    (outcome,) = run_inspector(inspector, command, "auto", [get("outing", **arguments)])["outcomes"]
    release = pinned_version("inspector", "@modelcontextprotocol/inspector")

    assert received_text(outcome) == PLAN
    observe("inspector", release, "prompts/get with all arguments", "no", PLAN)


@pytest.mark.slow
@pytest.mark.installs
@pytest.mark.timeout(2 * INSTALLING)
def test_fast_agent_shows_the_form(outing, installations, observe):
    """
    A form asks the user of fast-agent, and the client gets the entered values.

    fast-agent needs Python 3.12.
    """
    folder, command = outing
    requirements = HERE / "frameworks" / "fast_agent.txt"
    uvx = install_packages(HERE / "uv.txt", installations).with_name("uvx")
    options = ["--no-python-downloads", "--python", "3.12", "--with-requirements", str(requirements)]
    result = subprocess.run(
        [str(uvx), *options, "python", str(HERE / "frameworks" / "outing.py"), *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", "UV_CACHE_DIR": str(installations / "uv")},
        input=json.dumps(ENTERED),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == 2:  # of uvx itself
        pytest.skip(f"uvx found no Python 3.12, or no packages: {' '.join(result.stderr.split())[:300]}")
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout.splitlines()[-1])
    (release,) = re.findall("^fast-agent-mcp==(.+)$", requirements.read_text(encoding="utf-8"), re.MULTILINE)

    assert [form["properties"] for form in seen["forms"]] == [FIELDS]
    observe("fast-agent", release, "prompts/get without arguments", "yes", seen["text"])
