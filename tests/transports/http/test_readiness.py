"""What a real server says of the faults of its recipes to who asks whether it is ready."""

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
def serving(started):
    """A function that serves recipes over HTTP."""
    return partial(started, "--http", "0")


def asked(served, path="/readyz"):
    """The status, and what the body says."""
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def wait_for(served, said):
    """Ask until every worker says something: many times in a row."""
    until, times = time.monotonic() + PATIENCE, 0
    while times < 20:
        found = asked(served)
        times = times + 1 if found == said else 0
        assert time.monotonic() < until, found


@pytest.mark.parametrize("workers", ["1", "2"])
def test_faults_are_counted(serving, tmp_path, workers):
    """
    By files, from the start on and after each edit, though the last good prompts are served; it stays ready.
    """
    served = serving("--workers", workers, greet=GREET, bad="broken(\n", worse="import nowhere\n")
    assert asked(served) == (200, {"status": "ready", "errors": 2})

    folder = tmp_path / "recipes"
    (folder / "bad.py").write_text(GREET.replace("greet", "bad"))
    (folder / "worse.py").unlink()
    wait_for(served, (200, READY))
    (folder / "greet.py").write_text(GREET + "broken(\n")
    wait_for(served, (200, {"status": "ready", "errors": 1}))
    (folder / "bad.py").write_text(GREET.replace("greet", "bad") + "\n")
    wait_for(served, (200, {"status": "ready", "errors": 1}))
    assert asked(served, "/healthz") == (200, {"status": "ok"})


def test_a_strict_server_stays_ready(serving, tmp_path):
    """
    It does not begin to serve with faults. An edit that breaks a recipe takes no replica from the balancer.
    """
    served = serving("--strict", greet=GREET)
    recipe = tmp_path / "recipes" / "greet.py"
    assert asked(served) == (200, READY)

    recipe.write_text("broken(\n")
    wait_for(served, (200, {"status": "ready", "errors": 1}))
    recipe.write_text(GREET)
    wait_for(served, (200, READY))
