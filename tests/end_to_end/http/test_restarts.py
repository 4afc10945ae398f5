"""A server that is started again: sessions that were opened before it ended go on."""

import json
import os
import sys
from http.client import HTTPConnection

import pytest

from tests.transports.http.conftest import GREET, PATIENCE, Served
from tests.wire import initialize, request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals end the server")


@pytest.fixture
def start(tmp_path):
    """A function that starts a server of a user with a cache, and of a target."""
    started = []

    def begin(target="recipes", *options, cache="cache"):
        (tmp_path / target).mkdir(exist_ok=True)
        (tmp_path / target / "greet.py").write_text(GREET)
        command = [sys.executable, "-m", "promptkit", "serve", target, "--http", "0", *options]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / cache)}
        started.append(Served(command, tmp_path / f"said{len(started)}", cwd=tmp_path, env=environment))
        return started[-1]

    yield begin
    for one in started:
        one.end()


def post(served, message, **fields):
    """The status of the answer to a message, and the session id that it brings."""
    headers = {"content-type": "application/json", "accept": "application/json", **fields}
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    connection.request("POST", "/mcp", json.dumps(message), headers)
    with connection.getresponse() as response:
        found = response.status, response.getheader("mcp-session-id")
    connection.close()
    return found


def goes_on(served, session):
    """Whether a session goes on at a server."""
    return post(served, request(1, "prompts/list"), **{"mcp-session-id": session})[0] == 200


def test_a_session_outlives_the_server(start):
    """
    Clients that never open another one are served by the next one, and by servers beside it with workers.
    """
    first = start()
    _, session = post(first, initialize("2025-11-25"))
    assert first.end()[0] == 0
    assert goes_on(start(), session)
    assert goes_on(start("recipes", "--workers", "2"), session)
    assert not goes_on(start("others"), session)
    assert not goes_on(start(cache="cache-of-somebody-else"), session)
