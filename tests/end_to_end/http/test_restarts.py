"""Sessions continue across restarts of a server and during key rotation."""

import json
import os
import sys
import time
from http.client import HTTPConnection

import pytest

from promptkit.protocol.key_ring import KeyRing
from tests.transports.http.conftest import GREET, PATIENCE, ServerProcess
from tests.wire import initialize, request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals kill the server")


@pytest.fixture
def start(tmp_path):
    """A function that starts a server for a target, with the cache of a user."""
    started = []

    def start_server(target="recipes", *options, cache="cache"):
        (tmp_path / target).mkdir(exist_ok=True)
        (tmp_path / target / "greet.py").write_text(GREET)
        command = [sys.executable, "-m", "promptkit", "serve", target, "--http", "0", *options]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / cache)}
        started.append(ServerProcess(command, tmp_path / f"log{len(started)}", cwd=tmp_path, env=environment))
        return started[-1]

    yield start_server
    for server in started:
        server.stop()


def post(server, message, **fields):
    """Return the status and the session id of the reply to a message."""
    headers = {"content-type": "application/json", "accept": "application/json", **fields}
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    connection.request("POST", "/mcp", json.dumps(message), headers)
    with connection.getresponse() as response:
        reply = response.status, response.getheader("mcp-session-id")
    connection.close()
    return reply


def status_of(server, session):
    """Return the status of a request in a session."""
    return post(server, request(1, "prompts/list"), **{"mcp-session-id": session})[0]


def session_continues(server, session):
    """Return whether a session continues at a server."""
    return status_of(server, session) == 200


def test_session_outlives_the_server(start):
    """
    Later servers of the same target and user continue the session, even with workers. Servers of other
    targets or users do not.
    """
    first = start()
    _, session = post(first, initialize("2025-11-25"))
    assert first.stop()[0] == 0
    assert session_continues(start(), session)
    assert session_continues(start("recipes", "--workers", "2"), session)
    assert not session_continues(start("other"), session)
    assert not session_continues(start(cache="cache-of-another-user"), session)


OLD, NEW = b"o" * 32, b"n" * 32

#: The number of requests after which both of two workers have answered.
REQUESTS = 12


@pytest.fixture
def keys(tmp_path):
    """A function that replaces the key file."""

    def write(*lines):
        file = tmp_path / "keys.new"
        file.touch(mode=0o600)
        file.write_text("\n".join(line if isinstance(line, str) else line.hex() for line in lines))
        file.replace(tmp_path / "keys")

    return write


def key_of(session):
    """Return the key id in a session id."""
    return session.split(".")[1]


def becomes(expected, look):
    """Return whether repeated calls of *look* settle on *expected*."""
    deadline, repetitions = time.monotonic() + PATIENCE, 0
    while repetitions < REQUESTS:
        repetitions = repetitions + 1 if look() == expected else 0
        if time.monotonic() > deadline:
            return False
    return True


@pytest.mark.parametrize("workers", ["1", "2"])
def test_key_rotation_while_serving(start, keys, workers):
    """
    Each worker reloads the file. The first key seals, and sessions of the old key are valid until the key is
    removed.
    """
    keys(OLD)
    server = start("recipes", "--workers", workers, "--state-keys", "keys")
    old, new = (key_of(KeyRing([key]).seal("p", 1)) for key in (OLD, NEW))
    _, session = post(server, initialize("2025-11-25"))
    assert key_of(session) == old
    keys(OLD, NEW)
    time.sleep(1.1)  # each worker reloads the file with its next request
    keys(NEW, OLD)
    assert becomes(new, lambda: key_of(post(server, initialize("2025-11-25"))[1]))
    assert becomes(200, lambda: status_of(server, session))
    _, later = post(server, initialize("2025-11-25"))

    keys(NEW)
    assert becomes(404, lambda: status_of(server, session))
    assert becomes(200, lambda: status_of(server, later))
    assert server.stderr().count("\n") == 1, "standard error contains only the address"


#: The lines of invalid key files, None for a missing file, and the error.
INVALID = [
    (["oh no"], "line 1: a key must be at least 32 bytes long, in base64 or hexadecimal; to generate one"),
    ([], "there are no keys; to generate one, run: "),
    (None, "the file cannot be read: No such file or directory; "),
]


def test_invalid_key_file_keeps_the_old_keys(start, keys, tmp_path):
    """While the key file is invalid, the old keys are used, and each worker reports each error once."""
    keys(OLD)
    server = start("recipes", "--workers", "2", "--state-keys", "keys")
    _, session = post(server, initialize("2025-11-25"))
    for lines, expected in INVALID:
        if lines is None:
            (tmp_path / "keys").unlink()
        else:
            keys(*lines)
        time.sleep(1.1)

        assert becomes(200, lambda: status_of(server, session))
        server.wait_for(f"promptkit: keys: {expected}")
        reported = [line for line in server.stderr().splitlines() if f"promptkit: keys: {expected}" in line]
        assert 1 <= len(reported) <= 2
        assert set(reported) == {reported[0]}
        assert reported[0].endswith("the keys from the last successful read stay in use until this is fixed")
    keys(NEW)
    assert becomes(404, lambda: status_of(server, session))
