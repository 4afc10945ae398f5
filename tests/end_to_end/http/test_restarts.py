"""Sessions go on: at a server that is started again, and while keys are replaced."""

import json
import os
import sys
import time
from http.client import HTTPConnection

import pytest

from promptkit.protocol.key_ring import KeyRing
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


def status_of(served, session):
    """The status of a request of a session."""
    return post(served, request(1, "prompts/list"), **{"mcp-session-id": session})[0]


def goes_on(served, session):
    """Whether a session goes on at a server."""
    return status_of(served, session) == 200


def test_a_session_outlives_the_server(start):
    """
    Clients that never open another one are served by the next one, and by servers next to it with workers.
    """
    first = start()
    _, session = post(first, initialize("2025-11-25"))
    assert first.end()[0] == 0
    assert goes_on(start(), session)
    assert goes_on(start("recipes", "--workers", "2"), session)
    assert not goes_on(start("others"), session)
    assert not goes_on(start(cache="cache-of-somebody-else"), session)


OLD, NEW = b"o" * 32, b"n" * 32

#: How often a server of two workers is asked, so that both have answered.
OFTEN = 12


@pytest.fixture
def keys(tmp_path):
    """A function that puts a file of keys in place of the one that is there."""

    def write(*lines):
        file = tmp_path / "keys.new"
        file.touch(mode=0o600)
        file.write_text("\n".join(line if isinstance(line, str) else line.hex() for line in lines))
        file.replace(tmp_path / "keys")

    return write


def key_of(session):
    """What a session id says of the key that has sealed it."""
    return session.split(".")[1]


def becomes(expected, look):
    """Whether something is as expected so often that each worker has said so."""
    until, seen = time.monotonic() + PATIENCE, 0
    while seen < OFTEN:
        seen = seen + 1 if look() == expected else 0
        if time.monotonic() > until:
            return False
    return True


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_key_is_replaced_while_it_serves(start, keys, workers):
    """
    The file is read again, by each worker. What the old key has sealed is taken until that is removed, though
    it was taken before; and what is sealed is sealed with the first key of the file.
    """
    keys(OLD)
    served = start("recipes", "--workers", workers, "--state-keys", "keys")
    old, new = (key_of(KeyRing([key]).seal("p", 1)) for key in (OLD, NEW))
    _, session = post(served, initialize("2025-11-25"))
    assert key_of(session) == old
    keys(OLD, NEW)
    time.sleep(1.1)  # each worker reads it with its next request
    keys(NEW, OLD)
    assert becomes(new, lambda: key_of(post(served, initialize("2025-11-25"))[1]))
    assert becomes(200, lambda: status_of(served, session))
    _, later = post(served, initialize("2025-11-25"))

    keys(NEW)
    assert becomes(404, lambda: status_of(served, session))
    assert becomes(200, lambda: status_of(served, later))
    assert served.stderr().count("\n") == 1, "it says nothing but where it serves"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (["oh no"], "line 1: this is neither base64 nor hexadecimal; a command that prints a key: "),
        ([], "there is no key; a command that prints one: "),
        (None, "cannot be read: No such file or directory; "),
    ],
)
def test_a_bad_file_of_keys_keeps_the_old_ones(start, keys, tmp_path, fault, said):
    """Standard error says what is wrong with it, once for each worker, until it is mended."""
    keys(OLD)
    served = start("recipes", "--workers", "2", "--state-keys", "keys")
    _, session = post(served, initialize("2025-11-25"))
    if fault is None:
        (tmp_path / "keys").unlink()
    else:
        keys(*fault)
    time.sleep(1.1)

    assert becomes(200, lambda: status_of(served, session))
    served.wait_for(f"promptkit: keys: {said}")
    told = [line for line in served.stderr().splitlines() if line.startswith("promptkit: keys: ")]
    assert 1 <= len(told) <= 2
    assert set(told) == {told[0]}
    assert told[0].endswith("; the keys that were last read are used until this is fixed")
    keys(NEW)
    assert becomes(404, lambda: status_of(served, session))
