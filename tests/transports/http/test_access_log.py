"""The access log, and timestamps on standard error, of real servers."""

import json
import re
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection

import pytest

from tests.posting import PLAIN, modern_headers
from tests.transports.http.conftest import PATIENCE
from tests.wire import line as line_of
from tests.wire import modern

TOKEN = "t0" * 20

RECIPE = '''
import sys, time
from promptkit import prompt

@prompt
def greet(name: str):
    """Say hello."""
    print("two\\nlines", file=sys.stderr)
    return f"Hello, {name}."

@prompt
def wait():
    """Take a while."""
    time.sleep(20)
'''

LINE = re.compile(
    r"(?:(?P<time>\S+Z) )?promptkit: access address=(?P<address>\S+) method=(?P<method>\S+) "
    r"path=(?P<path>\".*\") status=(?P<status>\d+)(?: code=(?P<code>\d+))? "
    r"bytes=(?P<bytes>\d+) ms=(?P<ms>\d+\.\d)"
)


@pytest.fixture
def serving(serve_promptkit, tmp_path):
    """A function that serves recipes over HTTP with a token file."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada {TOKEN}\n")
    tokens.chmod(0o600)
    return partial(serve_promptkit, "--http", "0", "--token-file", str(tokens), "--grace", "0", greet=RECIPE)


def ask(server, path="/mcp", bearer=TOKEN):
    """Render a prompt with a secret argument, and return the length of the reply."""
    message = modern(1, "prompts/get", {"name": "greet", "arguments": {"name": "hunter2"}})
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    fields = {**PLAIN, **modern_headers(message), "authorization": f"Bearer {bearer}"}
    connection.request("POST", path, json.dumps(message), fields)
    size = len(connection.getresponse().read())
    connection.close()
    return size


def wait_for_log(server, number):
    """Return the first *number* lines of the access log, parsed."""
    deadline = time.monotonic() + PATIENCE
    while len(lines := [*filter(None, map(LINE.fullmatch, server.stderr().splitlines()))]) < number:
        assert time.monotonic() < deadline, server.stderr()
        time.sleep(0.01)
    return lines


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_each_request_is_logged(serving, workers):
    """
    The line has the address, method, path, status, size and duration, also for rejected requests, but no
    argument or token, wherever a client puts them.
    """
    server = serving("--access-log", "--workers", workers)
    sizes = [
        ask(server),
        ask(server, path=f"/mcp?access_token={TOKEN}&name=hunter2"),
        ask(server, bearer="hunter2"),
        ask(server, path='/a"b%0Ac%1b'),
    ]

    lines = wait_for_log(server, 4)
    if workers == "2":  # the lines of different workers have no order
        lines.sort(key=lambda line: line["status"])
    assert [(line["method"], json.loads(line["path"]), line["status"]) for line in lines] == [
        ("POST", "/mcp", "200"),
        ("POST", "/mcp", "400"),
        ("POST", "/mcp", "401"),
        ("POST", '/a"b\nc\x1b', "404"),
    ]
    assert [int(line["bytes"]) for line in lines] == sizes
    assert {line["address"] for line in lines} == {"127.0.0.1"}
    assert [line["time"] for line in lines] == [None] * 4
    assert "hunter2" not in server.stderr()
    assert TOKEN not in server.stderr()


def test_rate_limited_request_is_logged(serving):
    """The line has the error code, because the status is 200."""
    server = serving("--access-log", "--rate", "0.01")
    ask(server)
    ask(server)

    assert [(line["status"], line["code"]) for line in wait_for_log(server, 2)] == [
        ("200", None),
        ("200", "429"),
    ]


def test_disconnected_client_is_logged(serving):
    """The line has the status 499, as in nginx."""
    server = serving("--access-log")
    message = modern(1, "prompts/get", {"name": "wait"})
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    fields = {**PLAIN, **modern_headers(message), "authorization": f"Bearer {TOKEN}"}
    connection.request("POST", "/mcp", json.dumps(message), fields)
    time.sleep(0.2)
    with suppress(OSError):
        connection.close()

    (line,) = wait_for_log(server, 1)
    assert (line["status"], line["bytes"]) == ("499", "0")
    assert 100 < float(line["ms"]) < 19_000


def test_timestamps(serving):
    """
    With `--timestamps`, each line, including the output of recipes, starts with the time. Without
    `--access-log`, requests are not logged.
    """
    stamped, plain = serving("--timestamps"), serving()
    ask(stamped)
    ask(plain)

    for server in (stamped, plain):
        server.wait_for("lines\n")
    stamps = [line.split(" ", 1)[0] for line in stamped.stderr().splitlines()]
    assert len(stamps) == 3
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp) for stamp in stamps)
    assert [line.split(" ", 1)[1] for line in stamped.stderr().splitlines()][1:] == ["two", "lines"]
    assert plain.stderr().splitlines()[1:] == ["two", "lines"]
    assert plain.stderr().startswith("promptkit: serving at ")


def test_timestamps_over_stdio(recipes):
    """Each line has the time, including the lines of a traceback."""
    source = "from promptkit import prompt\n\n@prompt\ndef fails() -> str:\n    raise ValueError('no')\n"
    command = [sys.executable, "-m", "promptkit", "serve", str(recipes(fails=source)), "--timestamps"]
    stdin = line_of(modern(1, "prompts/get", {"name": "fails"}))
    completed = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE, check=True)
    lines = completed.stderr.decode().splitlines()

    assert b"failed (error " in completed.stdout
    assert len(lines) > 2
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in lines)
    assert lines[0].split(" ", 1)[1].startswith("promptkit: error ")
    assert lines[-1].endswith(" ValueError: no")
