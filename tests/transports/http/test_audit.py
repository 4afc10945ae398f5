"""The audit of a server over HTTP, with one worker and with several."""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest

from tests.posting import PLAIN, agreeing
from tests.transports.http.conftest import GREET, PATIENCE, Served
from tests.wire import HANDSHAKES, initialize, modern, request

WORKERS = 2
CLIENTS = 8
EACH = 150

#: So long that lines would be torn if they were written in pieces.
NAME = "n" * 60


def ask(port, client):
    """Send the requests of one client, on one connection; return the statuses of the replies."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    statuses = []
    for number in range(EACH):
        given = {"name": f"{NAME}{number}", **{f"{NAME}{place}": "x" for place in range(20)}}
        message = modern(f"{client}-{number}", "prompts/get", {"name": "greet", "arguments": given})
        fields = {**PLAIN, **agreeing(message), "host": f"127.0.0.1:{port}"}
        connection.request("POST", "/mcp", json.dumps(message), fields)
        reply = connection.getresponse()
        reply.read()
        statuses.append(reply.status)
    connection.close()
    return statuses


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
@pytest.mark.timeout(120)
def test_the_lines_of_several_workers_are_whole(recipes, tmp_path):
    """Under load, the workers write into one file. Each line is whole, and each request has exactly one."""
    audit = tmp_path / "audit"
    command = [sys.executable, "-m", "promptkit", "serve", str(recipes(greet=GREET)), "--http", "0"]
    served = Served([*command, "--workers", str(WORKERS), "--audit", str(audit)], tmp_path / "log")
    port = int(served.wait_for(r"serving at http://127\.0\.0\.1:(\d+)/mcp")[1])
    try:
        with ThreadPoolExecutor(CLIENTS) as clients:
            statuses = list(clients.map(lambda client: ask(port, client), range(CLIENTS)))
        assert served.end()[0] == 0
    finally:
        served.process.kill()
        served.process.wait(PATIENCE)
    text = audit.read_bytes()
    records = [json.loads(line) for line in text.splitlines()]

    assert {status for found in statuses for status in found} == {200}
    assert text.endswith(b"}\n")
    assert sorted(record["id"] for record in records) == sorted(
        f"{client}-{number}" for client in range(CLIENTS) for number in range(EACH)
    )
    assert len({record["process"] for record in records}) == WORKERS
    assert [record for record in records if "lost" in record] == []


SLOW = '''
import time
from promptkit import prompt

@prompt(timeout=0.2)
def slow():
    """Take too long."""
    time.sleep(30)
'''


@pytest.fixture
def audited(started, tmp_path):
    """A function that serves recipes and notes requests: what serves, and what returns the lines so far."""
    audit = tmp_path / "audit"

    def start(*options, **files):
        served = started(*options, "--audit", str(audit), **files)
        return served, lambda: [json.loads(line) for line in audit.read_bytes().splitlines()]

    return start


def posted(connection, message, **fields):
    """Post a message; return the response, and what its body says."""
    connection.request("POST", "/mcp", json.dumps(message), {**PLAIN, **fields})
    response = connection.getresponse()
    return response, json.loads(response.read())


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_who_shakes_hands_over_http(audited, revision):
    """
    From the handshake on, each line has the address, and the client and the revision that were agreed upon.
    """
    served, lines = audited("--http", "0", greet=GREET)
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    opened, _ = posted(connection, initialize(revision))
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    posted(connection, request(1, "prompts/get", {"name": "greet"}), **session)
    posted(connection, request(2, "no/such"), **session)
    connection.close()

    noted = {"address": "127.0.0.1", "client": {"name": "test", "version": "3.1"}, "revision": revision}
    found = lines()
    assert [line["method"] for line in found] == ["initialize", "prompts/get", "no/such"]
    assert [{name: line[name] for name in noted} for line in found] == [noted] * 3


def test_a_time_limit_that_was_hit(audited):
    """The client, the audit and standard error have one id for it, and standard error names the request."""
    served, lines = audited("--http", "0", slow=SLOW)
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    message = modern("asked", "prompts/get", {"name": "slow"})
    _, told = posted(connection, message, **agreeing(message))
    connection.close()

    (line,) = lines()
    said = "prompt 'slow' took longer than its limit of 0.2 s"
    assert told["error"]["message"] == f"{said} (error {line['error_id']})"
    assert (line["outcome"], line["code"], line["id"]) == ("error", -32603, "asked")
    served.wait_for(f"promptkit: error {line['error_id']} in prompts/get, request 'asked': {said}, and")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")
def test_a_unix_socket_has_no_address(audited, tmp_path):
    """All who connect there look alike, so none is made up."""
    _, lines = audited("--uds", str(tmp_path / "socket"), greet=GREET)
    connection = HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(tmp_path / "socket"))
    message = modern(1, "prompts/get", {"name": "greet"})
    response, _ = posted(connection, message, **agreeing(message))
    connection.close()

    (line,) = lines()
    assert (response.status, "address" in line) == (200, False)
