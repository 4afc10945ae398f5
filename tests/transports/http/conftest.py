"""Real HTTP servers, and a client on raw sockets."""

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

#: The timeout for everything that tests wait for, in seconds.
PATIENCE = 20.0

GREET = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
'''


class ServerProcess:
    """
    A `promptkit serve` process over HTTP.

    Args:
        command:
            The command line.

        log:
            The file for standard error.

        settings: Additional arguments for `subprocess.Popen`.
    """

    def __init__(self, command, log, **settings):
        self.log = log
        with log.open("wb") as file:
            streams = {"stdin": subprocess.DEVNULL, "stderr": file, **settings}
            self.process = subprocess.Popen(command, **streams)

    def stderr(self):
        """Return standard error so far."""
        return self.log.read_text(encoding="utf-8")

    def wait_for(self, pattern, seconds=PATIENCE):
        """Wait until *pattern* matches in standard error, and return the match."""
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.stderr())):
            if time.monotonic() > deadline or self.process.poll() is not None:
                msg = f"{pattern!r} did not come; the exit code is {self.process.poll()}; {self.stderr()}"
                raise TimeoutError(msg)
            time.sleep(0.01)
        return match

    @property
    def address(self):
        """The host and the port of the first URL."""
        match = self.wait_for(r"http://(\[.*?\]|[^:/]+):(\d+)/mcp")
        return match[1].strip("[]"), int(match[2])

    def connect(self):
        """Open a connection to the server."""
        return Connection(socket.create_connection(self.address, PATIENCE))

    def get(self, path="/", **headers):
        """Return the JSON body of the reply to one request, on its own connection."""
        with self.connect() as connection:
            return connection.ask(path, **headers).json

    def stop(self, number=signal.SIGTERM, seconds=PATIENCE):
        """Stop the server with a signal, and return the exit code and the duration."""
        started = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(seconds), time.monotonic() - started


class Reply:
    """The status, headers and body of a response."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        """The parsed body."""
        return json.loads(self.body)


class Connection:
    """An HTTP connection on a raw socket."""

    def __init__(self, sock):
        self.socket = sock
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Send raw bytes."""
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
        """Read up to and including *end*."""
        while end not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                msg = f"the connection ended after {self.rest!r}"
                raise EOFError(msg)
            self.rest += data
        data_before, end, self.rest = self.rest.partition(end)
        return data_before + end

    def reply(self):
        """Read the next reply."""
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

    def ask_until_close(self, seconds=PATIENCE):
        """Send requests until a reply closes the connection, as the replies of a draining server do."""
        deadline = time.monotonic() + seconds
        while self.ask().headers.get("connection") != "close":
            assert time.monotonic() < deadline

    def wait_for_close(self, seconds=PATIENCE):
        """
        Wait until the server closes the connection, and return the duration; received bytes are in `rest`.
        """
        started = time.monotonic()
        self.socket.settimeout(seconds)
        with suppress(ConnectionResetError):
            while data := self.socket.recv(65536):
                self.rest += data
        return time.monotonic() - started


@pytest.fixture
def serve(recipes, tmp_path):
    """A function that serves recipes over HTTP with the stand-in application."""
    started = []

    def start(*options, limits=None, source=GREET, launcher="", **settings):
        folder = recipes(greet=source)
        words = [str(STAND_IN), json.dumps(limits or {}), "serve", str(folder), *options]
        command = [sys.executable, *(["-c", launcher] if launcher else []), *words]
        server = ServerProcess(command, tmp_path / f"log{len(started)}", **settings)
        started.append(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            with suppress(TimeoutError, subprocess.TimeoutExpired):
                server.process.terminate()
                server.process.wait(3)
            server.process.kill()
            server.process.wait()


@pytest.fixture
def serve_promptkit(recipes, tmp_path):
    """A function that serves recipes over HTTP with promptkit, and returns once the server listens."""
    running = []

    def start(*options, env=None, **files):
        command = [sys.executable, "-m", "promptkit", "serve", str(recipes(**files)), *options]
        running.append(ServerProcess(command, tmp_path / f"log{len(running)}", env=env))
        running[-1].wait_for("serving at")
        return running[-1]

    yield start
    for server in running:
        server.process.kill()
        server.process.wait(PATIENCE)
