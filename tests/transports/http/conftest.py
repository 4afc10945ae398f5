"""Real servers over HTTP, and a client of sockets alone."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parent / "stand_in.py"

#: How long anything is waited for, in seconds. It is a bound, no figure.
PATIENCE = 20.0

GREET = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
'''


class Served:
    """
    One `promptkit serve` over HTTP.

    Args:
        command:
            What to run.

        log:
            The file that standard error goes to.

        settings:
            More for `subprocess.Popen`.
    """

    def __init__(self, command, log, **settings):
        self.log = log
        with log.open("wb") as file:
            streams = {"stdin": subprocess.DEVNULL, "stderr": file, **settings}
            self.process = subprocess.Popen(command, **streams)

    def said(self):
        """All that standard error got."""
        return self.log.read_text(encoding="utf-8")

    def wait_for(self, pattern, seconds=PATIENCE):
        """Wait until standard error has something; return the match."""
        until = time.monotonic() + seconds
        while not (found := re.search(pattern, self.said())):
            if time.monotonic() > until or self.process.poll() is not None:
                msg = f"{pattern!r} did not come; the exit code is {self.process.poll()}; {self.said()}"
                raise TimeoutError(msg)
            time.sleep(0.01)
        return found

    @property
    def address(self):
        """The host and the port of the first URL."""
        found = self.wait_for(r"http://(\[.*?\]|[^:/]+):(\d+)/mcp")
        return found[1].strip("[]"), int(found[2])

    def connect(self):
        """A connection to it."""
        return Connection(socket.create_connection(self.address, PATIENCE))

    def get(self, path="/", **headers):
        """The body of one reply, on a connection of its own."""
        with self.connect() as connection:
            return connection.ask(path, **headers).json

    def end(self, number=signal.SIGTERM, seconds=PATIENCE):
        """End it by a signal; return the exit code and how long it took."""
        started = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(seconds), time.monotonic() - started


class Reply:
    """A status, the header fields, and the body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        """What the body says."""
        return json.loads(self.body)


class Connection:
    """One HTTP connection, with nothing between the test and its bytes."""

    def __init__(self, made):
        self.socket = made
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Send bytes as they are."""
        self.socket.sendall(data)

    def request(self, path="/", body=b"", **headers):
        """Send a request."""
        fields = {"host": "localhost", "content-length": str(len(body)), **headers}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self.send("\r\n".join(lines).encode() + body)

    def ask(self, path="/", body=b"", **headers):
        """Send a request, and return the reply."""
        self.request(path, body, **headers)
        return self.reply()

    def read_until(self, end):
        """The bytes up to and with *end*."""
        while end not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                msg = f"the connection ended after {self.rest!r}"
                raise EOFError(msg)
            self.rest += data
        found, end, self.rest = self.rest.partition(end)
        return found + end

    def reply(self):
        """The next reply."""
        status, *fields = self.read_until(b"\r\n\r\n").decode("latin-1").splitlines()[:-1]
        headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
        while len(self.rest) < int(headers["content-length"]):
            data = self.socket.recv(65536)
            if not data:
                msg = "the connection ended in the body"
                raise EOFError(msg)
            self.rest += data
        length = int(headers["content-length"])
        body, self.rest = self.rest[:length], self.rest[length:]
        return Reply(int(status.split()[1]), headers, body)

    def ask_to_the_last(self, seconds=PATIENCE):
        """Ask until a reply says that the connection ends: the server has been told to end."""
        until = time.monotonic() + seconds
        while self.ask().headers.get("connection") != "close":
            assert time.monotonic() < until

    def ended(self, seconds=PATIENCE):
        """How long it takes until the server ends the connection; what came before that is kept."""
        started = time.monotonic()
        self.socket.settimeout(seconds)
        with suppress(ConnectionResetError):
            while data := self.socket.recv(65536):
                self.rest += data
        return time.monotonic() - started


@pytest.fixture
def serve(recipes, tmp_path):
    """A function that serves recipes over HTTP with the stand-in."""
    started = []

    def start(*options, limits=None, source=GREET, launcher="", **settings):
        folder = recipes(greet=source)
        words = [str(STAND_IN), json.dumps(limits or {}), "serve", str(folder), *options]
        command = [sys.executable, *(["-c", launcher] if launcher else []), *words]
        served = Served(command, tmp_path / f"log{len(started)}", **settings)
        started.append(served)
        return served

    yield start
    for served in started:
        if served.process.poll() is None:
            with suppress(TimeoutError, subprocess.TimeoutExpired):
                served.process.terminate()
                served.process.wait(3)
            served.process.kill()
            served.process.wait()


@pytest.fixture
def started(recipes, tmp_path):
    """A function that has promptkit itself serve recipes, and returns once it does."""
    running = []

    def start(*options, env=None, **files):
        command = [sys.executable, "-m", "promptkit", "serve", str(recipes(**files)), *options]
        running.append(Served(command, tmp_path / f"log{len(running)}", env=env))
        running[-1].wait_for("serving at")
        return running[-1]

    yield start
    for served in running:
        served.process.kill()
        served.process.wait(PATIENCE)
