"""The readiness endpoint of a real server, with errors in recipes."""

import json
import sys
import time
from functools import partial
from http.client import HTTPConnection

import pytest

from tests.transports.http.conftest import GREET, PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")

READY = {"status": "ready", "errors": 0}


@pytest.fixture
def serving(serve_promptkit):
    """A function that serves recipes over HTTP."""
    return partial(serve_promptkit, "--http", "0")


def get_json(server, path="/readyz"):
    """Return the status and the parsed body of a GET request."""
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def wait_for(server, expected):
    """Wait until all workers give the *expected* reply, many times in a row."""
    deadline, matches = time.monotonic() + PATIENCE, 0
    while matches < 20:
        reply = get_json(server)
        matches = matches + 1 if reply == expected else 0
        assert time.monotonic() < deadline, reply


@pytest.mark.parametrize("workers", ["1", "2"])
def test_readiness_counts_errors(serving, tmp_path, workers):
    """
    Files with errors are counted from the start and after each edit; the server stays ready with the last
    valid prompts.
    """
    server = serving("--workers", workers, greet=GREET, bad="broken(\n", worse="import nowhere\n")
    assert get_json(server) == (200, {"status": "ready", "errors": 2})

    folder = tmp_path / "recipes"
    (folder / "bad.py").write_text(GREET.replace("greet", "bad"))
    (folder / "worse.py").unlink()
    wait_for(server, (200, READY))
    (folder / "greet.py").write_text(GREET + "broken(\n")
    wait_for(server, (200, {"status": "ready", "errors": 1}))
    (folder / "bad.py").write_text(GREET.replace("greet", "bad") + "\n")
    wait_for(server, (200, {"status": "ready", "errors": 1}))
    assert get_json(server, "/healthz") == (200, {"status": "ok"})


def test_strict_server_stays_ready_after_a_broken_edit(serving, tmp_path):
    """
    A strict server does not start with errors, but stays ready after an edit that breaks a recipe.
    """
    server = serving("--strict", greet=GREET)
    recipe = tmp_path / "recipes" / "greet.py"
    assert get_json(server) == (200, READY)

    recipe.write_text("broken(\n")
    wait_for(server, (200, {"status": "ready", "errors": 1}))
    recipe.write_text(GREET)
    wait_for(server, (200, READY))
