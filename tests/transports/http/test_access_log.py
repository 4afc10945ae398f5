"""The access log, and the time before each line of standard error, of real servers."""

import json
import re
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection

import pytest

from tests.posting import PLAIN, agreeing
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
    """A function that serves recipes over HTTP to who has a token."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada {TOKEN}\n")
    tokens.chmod(0o600)
    return partial(serve_promptkit, "--http", "0", "--token-file", str(tokens), "--grace", "0", greet=RECIPE)


def ask(served, path="/mcp", bearer=TOKEN):
    """Get a prompt whose argument is a secret; return the length of the reply's body."""
    message = modern(1, "prompts/get", {"name": "greet", "arguments": {"name": "hunter2"}})
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    fields = {**PLAIN, **agreeing(message), "authorization": f"Bearer {bearer}"}
    connection.request("POST", path, json.dumps(message), fields)
    size = len(connection.getresponse().read())
    connection.close()
    return size


def logged(served, number):
    """What so many lines of the access log say, once they are there."""
    until = time.monotonic() + PATIENCE
    while len(found := [*filter(None, map(LINE.fullmatch, served.stderr().splitlines()))]) < number:
        assert time.monotonic() < until, served.stderr()
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_each_request_is_a_line(serving, workers):
    """
    It says from where it came, for what, what was sent, and how long that took; also if it was refused.
    Neither an argument nor a token is in it, wherever a client puts them.
    """
    served = serving("--access-log", "--workers", workers)
    sizes = [
        ask(served),
        ask(served, path=f"/mcp?access_token={TOKEN}&name=hunter2"),
        ask(served, bearer="hunter2"),
        ask(served, path='/a"b%0Ac%1b'),
    ]

    lines = logged(served, 4)
    if workers == "2":  # each writes its own lines: nobody orders them
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
    assert "hunter2" not in served.stderr()
    assert TOKEN not in served.stderr()


def test_a_request_over_a_limit(serving):
    """Its line has the code of the error, because the status is 200."""
    served = serving("--access-log", "--rate", "0.01")
    ask(served)
    ask(served)

    assert [(line["status"], line["code"]) for line in logged(served, 2)] == [("200", None), ("200", "429")]


def test_a_client_that_leaves(serving):
    """Its request has a line, with the status that nginx gives to such ones."""
    served = serving("--access-log")
    message = modern(1, "prompts/get", {"name": "wait"})
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    fields = {**PLAIN, **agreeing(message), "authorization": f"Bearer {TOKEN}"}
    connection.request("POST", "/mcp", json.dumps(message), fields)
    time.sleep(0.2)
    with suppress(OSError):
        connection.close()

    (line,) = logged(served, 1)
    assert (line["status"], line["bytes"]) == ("499", "0")
    assert 100 < float(line["ms"]) < 19_000


def test_each_line_has_the_time(serving):
    """With --timestamps, also what recipes print; without either option, there is no line for a request."""
    stamped, plain = serving("--timestamps"), serving()
    ask(stamped)
    ask(plain)

    for served in (stamped, plain):
        served.wait_for("lines\n")
    stamps = [line.split(" ", 1)[0] for line in stamped.stderr().splitlines()]
    assert len(stamps) == 3
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp) for stamp in stamps)
    assert [line.split(" ", 1)[1] for line in stamped.stderr().splitlines()][1:] == ["two", "lines"]
    assert plain.stderr().splitlines()[1:] == ["two", "lines"]
    assert plain.stderr().startswith("promptkit: serving at ")


def test_each_line_has_the_time_over_stdio(recipes):
    """There, too, and each line of a traceback as well."""
    source = "from promptkit import prompt\n\n@prompt\ndef fails() -> str:\n    raise ValueError('no')\n"
    command = [sys.executable, "-m", "promptkit", "serve", str(recipes(fails=source)), "--timestamps"]
    asked = line_of(modern(1, "prompts/get", {"name": "fails"}))
    ran = subprocess.run(command, input=asked, capture_output=True, timeout=PATIENCE, check=True)
    lines = ran.stderr.decode().splitlines()

    assert b"failed (error " in ran.stdout
    assert len(lines) > 2
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in lines)
    assert lines[0].split(" ", 1)[1].startswith("promptkit: error ")
    assert lines[-1].endswith(" ValueError: no")
