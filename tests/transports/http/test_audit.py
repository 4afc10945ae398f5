"""The audit of an HTTP server, with one worker and with several."""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest

from tests.posting import PLAIN, modern_headers
from tests.transports.http.conftest import GREET, PATIENCE, ServerProcess
from tests.wire import HANDSHAKES, initialize, modern, request

WORKERS = 2
CLIENTS = 8
REQUESTS_PER_CLIENT = 150

#: Long enough for lines to be torn if they were not written in one piece.
NAME = "n" * 60


def send_requests(port, client):
    """Send the requests of one client on one connection, and return the statuses of the replies."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    statuses = []
    for number in range(REQUESTS_PER_CLIENT):
        arguments = {"name": f"{NAME}{number}", **{f"{NAME}{index}": "x" for index in range(20)}}
        message = modern(f"{client}-{number}", "prompts/get", {"name": "greet", "arguments": arguments})
        fields = {**PLAIN, **modern_headers(message), "host": f"127.0.0.1:{port}"}
        connection.request("POST", "/mcp", json.dumps(message), fields)
        reply = connection.getresponse()
        reply.read()
        statuses.append(reply.status)
    connection.close()
    return statuses


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
@pytest.mark.timeout(120)
def test_audit_lines_of_several_workers_are_complete(recipes, tmp_path):
    """
    If workers under load write into one file, each line is complete, and each request has exactly one line.
    """
    audit = tmp_path / "audit"
    command = [sys.executable, "-m", "promptkit", "serve", str(recipes(greet=GREET)), "--http", "0"]
    server = ServerProcess([*command, "--workers", str(WORKERS), "--audit", str(audit)], tmp_path / "log")
    port = int(server.wait_for(r"serving at http://127\.0\.0\.1:(\d+)/mcp")[1])
    try:
        with ThreadPoolExecutor(CLIENTS) as clients:
            statuses = list(clients.map(lambda client: send_requests(port, client), range(CLIENTS)))
        assert server.stop()[0] == 0
    finally:
        server.process.kill()
        server.process.wait(PATIENCE)
    text = audit.read_bytes()
    records = [json.loads(line) for line in text.splitlines()]

    assert {status for client_statuses in statuses for status in client_statuses} == {200}
    assert text.endswith(b"}\n")
    assert sorted(record["id"] for record in records) == sorted(
        f"{client}-{number}" for client in range(CLIENTS) for number in range(REQUESTS_PER_CLIENT)
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
def audited(serve_promptkit, tmp_path):
    """
    A function that serves recipes with an audit, and returns the server and a function that reads the audit.
    """
    audit = tmp_path / "audit"

    def start(*options, **files):
        server = serve_promptkit(*options, "--audit", str(audit), **files)
        return server, lambda: [json.loads(line) for line in audit.read_bytes().splitlines()]

    return start


def post(connection, message, **fields):
    """Post a message, and return the response and its parsed body."""
    connection.request("POST", "/mcp", json.dumps(message), {**PLAIN, **fields})
    response = connection.getresponse()
    return response, json.loads(response.read())


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_audit_records_the_session(audited, revision):
    """Each line has the address, and the client and the revision of the handshake."""
    server, lines = audited("--http", "0", greet=GREET)
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    opened, _ = post(connection, initialize(revision))
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    post(connection, request(1, "prompts/get", {"name": "greet"}), **session)
    post(connection, request(2, "no/such"), **session)
    connection.close()

    expected = {"address": "127.0.0.1", "client": {"name": "test", "version": "3.1"}, "revision": revision}
    records = lines()
    assert [line["method"] for line in records] == ["initialize", "prompts/get", "no/such"]
    assert [{name: line[name] for name in expected} for line in records] == [expected] * 3


def test_timeout_has_one_error_id(audited):
    """The client, the audit and standard error show the same id, and standard error names the request."""
    server, lines = audited("--http", "0", slow=SLOW)
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    message = modern("asked", "prompts/get", {"name": "slow"})
    _, reply = post(connection, message, **modern_headers(message))
    connection.close()

    (line,) = lines()
    error = "prompt 'slow' took longer than its limit of 0.2 s"
    assert reply["error"]["message"] == f"{error} (error {line['error_id']})"
    assert (line["outcome"], line["code"], line["id"]) == ("error", -32603, "asked")
    server.wait_for(f"promptkit: error {line['error_id']} in prompts/get, request 'asked': {error}, and")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")
def test_no_address_on_a_unix_socket(audited, tmp_path):
    """Clients of a Unix socket have no address to record."""
    _, lines = audited("--uds", str(tmp_path / "socket"), greet=GREET)
    connection = HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(tmp_path / "socket"))
    message = modern(1, "prompts/get", {"name": "greet"})
    response, _ = post(connection, message, **modern_headers(message))
    connection.close()

    (line,) = lines()
    assert (response.status, "address" in line) == (200, False)
