"""
The official clients carry out the same script of calls over HTTP: with one server, and with two behind nginx.

A client with a handshake has no session there, so it is asked nothing and told nothing. What needs Node or
nginx is skipped where that is missing.
"""

import json
import time
from contextlib import ExitStack
from urllib.request import Request, urlopen

import pytest

from promptkit.transports.secret_files import VARIABLE
from tests.clients import python_client
from tests.clients.calls import PAGE_SIZE, expected_of, told
from tests.clients.nginx import nginx, servers_of
from tests.clients.node_clients import PATIENCE, PATIENT, in_typescript, run_typescript
from tests.clients.script import ADDED, STEPS, WITHOUT_SESSION
from tests.http_server import http_server
from tests.wire import request

pytestmark = pytest.mark.sampled

#: What the servers seal tokens with.
KEY = "0f" * 32

#: What a client with a handshake can carry out.
SESSIONLESS = [*(step for step in STEPS if not step.session), *WITHOUT_SESSION]

#: A client is told of changes by one server. What comes after them waits until the others have seen them.
CHANGES = [step for step in STEPS if "watch" in step.call]
CHANGED = [step for step in STEPS[STEPS.index(CHANGES[0]) :] if step not in CHANGES]
UNCHANGED = [step for step in STEPS if step not in CHANGED]

#: What each older revision has as well. What it lacks is sent in another form.
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
    """The URLs of two servers that serve the same recipes, and have the same key."""
    with ExitStack() as stack:
        options = {"page_size": PAGE_SIZE, VARIABLE: KEY}
        yield [stack.enter_context(http_server(folder, "--tools", **options)) for _ in range(2)]


@pytest.fixture
def proxy(tmp_path, servers):
    """The URL of nginx in front of these servers. Both of them have had requests in the end."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    with nginx(folder, servers) as url:
        yield url
    assert len(servers_of(folder)) == len(servers)


@pytest.fixture
def in_python(folder):
    """A function that carries out steps with the official Python client."""

    def carry_out(url, mode, steps):
        came = python_client.run(url, folder, mode, [step.call for step in steps])
        return came["revision"], came["complaints"], told(steps, came["outcomes"])

    return carry_out


@pytest.fixture
def in_node(folder, typescript):
    """A function that carries out steps with the official TypeScript client."""

    def carry_out(url, mode, steps, **only):
        came = run_typescript(typescript, url, folder, mode, [step.call for step in steps], **only)
        return came["revision"], came["complaints"], told(steps, came["outcomes"])

    return carry_out


def steps_of(revision):
    """Return the script, as far as a client of this revision can carry it out over HTTP."""
    return SESSIONLESS if revision == "2025-11-25" else STEPS


def expected_in_node(steps, revision):
    """Return what has to come of each of *steps*, as the TypeScript client has it."""
    return {claim: in_typescript(outcome) for claim, outcome in expected_of(steps, revision).items()}


def wait_until_changed(servers):
    """Wait until each of the servers has seen the last change."""
    asked = json.dumps(request(1, "prompts/get", {"name": ADDED["name"]})).encode()
    until = time.monotonic() + PATIENCE
    for url in servers:
        posted = Request(url, asked, {"Content-Type": "application/json"})  # noqa: S310 (the URL is ours)
        while "result" not in json.load(urlopen(posted)):  # noqa: S310
            assert time.monotonic() < until, f"{url} has not seen the change"
            time.sleep(0.01)


@PYTHON_MODES
def test_the_python_client_gets_what_the_script_says(server, in_python, mode, revision):
    """
    The official Python client speaks the newest revision that its mode allows, gets what is expected of every
    call, and minds nothing. In the newest revision it listens, and is told of what changes.
    """
    steps = steps_of(revision)

    agreed, complaints, came = in_python(server, mode, steps)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_of(steps, revision)


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@TYPESCRIPT_MODES
def test_the_typescript_client_gets_what_the_script_says(server, in_node, mode, revision):
    """
    So does the official TypeScript client.
    """
    steps = steps_of(revision)

    agreed, complaints, came = in_node(server, mode, steps)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_in_node(steps, revision)


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_the_typescript_client_gets_it_in_each_older_revision(server, in_node, revision):
    """
    So it does where it knows an older revision only.
    """
    agreed, complaints, came = in_node(server, "legacy", OLDER, revision=revision)

    assert (agreed, complaints) == (revision, [])
    assert came == expected_in_node(OLDER, revision)


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
def test_the_python_client_does_not_notice_how_many_servers_there_are(proxy, servers, in_python, mode):
    """
    So it does behind a proxy, where requests reach one server or another, and so do answers to questions.
    """
    revision = "2026-07-28"

    agreed, complaints, came = in_python(proxy, mode, UNCHANGED)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_of(UNCHANGED, revision)
    wait_until_changed(servers)
    agreed, complaints, came = in_python(proxy, mode, CHANGED)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_of(CHANGED, revision)


def test_the_python_client_does_not_notice_it_with_a_handshake(proxy, in_python):
    """
    What was agreed upon with one server holds with all.
    """
    revision = "2025-11-25"

    agreed, complaints, came = in_python(proxy, "legacy", SESSIONLESS)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_of(SESSIONLESS, revision)


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@pytest.mark.parametrize("mode", ["auto", {"pin": "2026-07-28"}], ids=["auto", "pin"])
def test_the_typescript_client_does_not_notice_how_many_servers_there_are(proxy, servers, in_node, mode):
    """
    Neither does the official TypeScript client.
    """
    revision = "2026-07-28"

    agreed, complaints, came = in_node(proxy, mode, UNCHANGED)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_in_node(UNCHANGED, revision)
    wait_until_changed(servers)
    agreed, complaints, came = in_node(proxy, mode, CHANGED)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_in_node(CHANGED, revision)


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
def test_the_typescript_client_does_not_notice_it_with_a_handshake(proxy, in_node):
    """
    Nor does it if it begins with a handshake.
    """
    revision = "2025-11-25"

    agreed, complaints, came = in_node(proxy, "legacy", SESSIONLESS)
    assert (agreed, complaints) == (revision, [])
    assert came == expected_in_node(SESSIONLESS, revision)
