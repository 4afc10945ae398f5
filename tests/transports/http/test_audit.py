"""One audit of several workers."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest

from tests.posting import PLAIN, agreeing
from tests.transports.http.conftest import GREET, PATIENCE, Served
from tests.wire import modern

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
    """
    Under load, the workers write into one file. Each line is whole, and each request has exactly one.
    """
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
