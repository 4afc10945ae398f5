"""
The official clients run the script of calls over HTTP, against one server and through nginx against two.

nginx sends requests to both servers in turn. Therefore, a client with a handshake gets no elicitations and no
notifications. Tests that need Node or nginx are skipped if the program is not installed.
"""

import json
import time
from contextlib import ExitStack
from urllib.request import Request, urlopen

import pytest

from promptkit.transports.state_keys import VARIABLE
from tests.clients import python_client
from tests.clients.calls import PAGE_SIZE, collect_outcomes, expected_outcomes
from tests.clients.nginx import list_servers, nginx
from tests.clients.node_clients import PATIENCE, TEST_TIMEOUT, convert_for_typescript, run_typescript
from tests.clients.script import ADDED, STEPS
from tests.http_server import http_server
from tests.wire import request

#: The key with which the servers seal tokens.
KEY = "0f" * 32

#: The steps that a client with a handshake can run with one server, which does not know which client cancels.
IN_SESSION = [step for step in STEPS if "cancelled" not in step.claim]

#: The steps that a client with a handshake can run with several servers.
SESSIONLESS = [step for step in STEPS if not step.session]

#: One server notifies the client of changes; the steps after them must wait until all servers have reloaded.
CHANGES = [step for step in STEPS if "watch" in step.call]
CHANGED = [step for step in STEPS[STEPS.index(CHANGES[0]) :] if step not in CHANGES]
UNCHANGED = [step for step in STEPS if step not in CHANGED]

#: The steps that work in each older revision, which lack some content types or send them in another form.
OLDER = [step for step in SESSIONLESS if step.call.get("params", {}).get("name") not in ("audio", "link")]
OLDER = [step for step in OLDER if step.call.get("pages") not in ("prompts/list", "tools/list")]

PYTHON_MODES = pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
TYPESCRIPT_MODES = pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ({"pin": "2026-07-28"}, "2026-07-28")],
    ids=["legacy", "auto", "pin"],
)


@pytest.fixture
def server(folder):
    """The URL of a server."""
    with http_server(folder, "--tools", page_size=PAGE_SIZE) as url:
        yield url


@pytest.fixture
def servers(folder):
    """The URLs of two servers with the same recipes and the same key."""
    with ExitStack() as stack:
        options = {"page_size": PAGE_SIZE, VARIABLE: KEY}
        yield [stack.enter_context(http_server(folder, "--tools", **options)) for _ in range(2)]


@pytest.fixture
def proxy(tmp_path, servers):
    """The URL of nginx in front of both servers; afterwards, both must have answered requests."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    with nginx(folder, servers) as url:
        yield url
    assert len(list_servers(folder)) == len(servers)


@pytest.fixture
def run_in_python(folder):
    """A function that runs steps with the official Python client."""

    def run(url, mode, steps):
        result = python_client.run(url, folder, mode, [step.call for step in steps])
        return result["revision"], result["complaints"], collect_outcomes(steps, result["outcomes"])

    return run


@pytest.fixture
def run_in_node(folder, typescript):
    """A function that runs steps with the official TypeScript client."""

    def run(url, mode, steps, **options):
        result = run_typescript(typescript, url, folder, mode, [step.call for step in steps], **options)
        return result["revision"], result["complaints"], collect_outcomes(steps, result["outcomes"])

    return run


def steps_for(revision):
    """Return the steps that a client of this revision can run over HTTP."""
    return IN_SESSION if revision == "2025-11-25" else STEPS


def expected_node_outcomes(steps, revision):
    """Return the expected outcome of each of *steps*, as the TypeScript client reports it."""
    return {
        claim: convert_for_typescript(outcome)
        for claim, outcome in expected_outcomes(steps, revision).items()
    }


def wait_until_changed(servers):
    """Wait until each of the servers has loaded the last change."""
    body = json.dumps(request(1, "prompts/get", {"name": ADDED["name"]})).encode()
    deadline = time.monotonic() + PATIENCE
    for url in servers:
        post = Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 (the URL is ours)
        while "result" not in json.load(urlopen(post)):  # noqa: S310
            assert time.monotonic() < deadline, f"{url} has not seen the change"
            time.sleep(0.01)


@PYTHON_MODES
def test_python_client_gets_the_expected_outcomes(server, run_in_python, mode, revision):
    """
    The official Python client negotiates the newest revision that its mode allows, gets the expected outcome
    of every step, and reports no problem. In the newest revision it listens, and is notified of changes.
    """
    steps = steps_for(revision)

    negotiated, complaints, outcomes = run_in_python(server, mode, steps)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_outcomes(steps, revision)


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@TYPESCRIPT_MODES
def test_typescript_client_gets_the_expected_outcomes(server, run_in_node, mode, revision):
    """The official TypeScript client negotiates the revision and gets every expected outcome over HTTP."""
    steps = steps_for(revision)

    negotiated, complaints, outcomes = run_in_node(server, mode, steps)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_node_outcomes(steps, revision)


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_typescript_client_gets_the_expected_outcomes_in_older_revisions(server, run_in_node, revision):
    """A TypeScript client that supports only one older revision gets the expected outcomes as well."""
    negotiated, complaints, outcomes = run_in_node(server, "legacy", OLDER, revision=revision)

    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_node_outcomes(OLDER, revision)


def test_python_client_works_with_several_servers(proxy, servers, run_in_python):
    """
    Through a proxy, any server can answer the Python client's requests and take the replies to its questions.
    """
    revision = "2026-07-28"

    negotiated, complaints, outcomes = run_in_python(proxy, "auto", UNCHANGED)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_outcomes(UNCHANGED, revision)
    wait_until_changed(servers)
    negotiated, complaints, outcomes = run_in_python(proxy, "auto", CHANGED)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_outcomes(CHANGED, revision)


def test_python_client_works_with_several_servers_after_a_handshake(proxy, run_in_python):
    """A revision that the Python client has negotiated with one server is valid for all servers."""
    revision = "2025-11-25"

    negotiated, complaints, outcomes = run_in_python(proxy, "legacy", SESSIONLESS)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_outcomes(SESSIONLESS, revision)


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize("mode", ["auto", {"pin": "2026-07-28"}], ids=["auto", "pin"])
def test_typescript_client_works_with_several_servers(proxy, servers, run_in_node, mode):
    """
    Through a proxy, any server can answer the TypeScript client's requests and take the replies to its
    questions.
    """
    revision = "2026-07-28"

    negotiated, complaints, outcomes = run_in_node(proxy, mode, UNCHANGED)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_node_outcomes(UNCHANGED, revision)
    wait_until_changed(servers)
    negotiated, complaints, outcomes = run_in_node(proxy, mode, CHANGED)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_node_outcomes(CHANGED, revision)


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
def test_typescript_client_works_with_several_servers_after_a_handshake(proxy, run_in_node):
    """A revision that the TypeScript client has negotiated with one server is valid for all servers."""
    revision = "2025-11-25"

    negotiated, complaints, outcomes = run_in_node(proxy, "legacy", SESSIONLESS)
    assert (negotiated, complaints) == (revision, [])
    assert outcomes == expected_node_outcomes(SESSIONLESS, revision)
