"""Requests are answered whatever fails on a thread of the server's, or the log says why they are not."""

import subprocess
import sys
import threading
from queue import Queue

import pytest

from promptkit import prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.events import ClientResponse
from promptkit.server import Server
from promptkit.server.replies import reply_to
from tests.server.busy_server import Process
from tests.wire import REVISIONS, initialize, line, modern, notification, request

pytestmark = pytest.mark.sampled

needs_limits = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited otherwise")


@prompt
def greet():
    """Say hello."""
    return "Hello."


@prompt(elicit=True)
def asks(name: str):
    """Ask for a name."""
    return name


class Reading:
    """A server that reads its input on threads of its own; its output is taken from `said`."""

    def __init__(self):
        self.arrived, self.told, self.ended = Queue(), Queue(), threading.Event()
        self.server = Server(compile(Recipes(prompts=(greet, asks))), self.told.put)
        self.connection = self.server._connection

    def start(self):
        """Let the server read."""
        self.server.read_from(self._read, self.ended.set)

    def _read(self):
        found = self.arrived.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def ask(self, *messages):
        """Let lines arrive in one piece; return the next line that is sent."""
        self.arrived.put(b"".join(map(line, messages)))
        return self.told.get(timeout=50)


@pytest.fixture
def reading():
    """A server of two prompts that reads."""
    made = Reading()
    made.start()
    assert b'"result"' in made.ask(initialize("2025-11-25", capabilities={"elicitation": {}}))
    made.arrived.put(line(notification("notifications/initialized")))
    yield made
    made.arrived.put(b"")
    assert made.ended.wait(50)


def failing_once(function, error, when=lambda *_: True):
    """Return what raises *error* the first time that it is called as *when* says."""
    failed = []

    def call(*args):
        if not failed and when(*args):
            failed.append(args)
            raise error
        return function(*args)

    return call


ERRORS = [MemoryError(), RuntimeError("can't start new thread"), RecursionError(), OSError(5, "no")]
ENDINGS = [SystemExit(), KeyboardInterrupt(), GeneratorExit()]


@pytest.mark.parametrize("error", [*ERRORS, *ENDINGS], ids=repr)
def test_reading_that_fails(reading, error, capsys):
    """
    What reads is called again, and the next line is served.
    """
    reading.arrived.put(error)

    assert b'"id":1,"result":{}' in reading.ask(request(1, "ping"))
    assert f"a message of a client could not be read: {error!r}" in capsys.readouterr().err


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_line_that_cannot_be_read(reading, monkeypatch, error):
    """
    It is answered with an error that bears its id; those before and behind it are served.
    """
    receive = reading.connection._receive_request
    failing = failing_once(receive, error, lambda _, request_id, __: request_id == 2)
    monkeypatch.setattr(reading.connection, "_receive_request", failing)

    first, second, third = reading.ask(*(request(number, "ping") for number in (1, 2, 3))).splitlines()
    assert b'"result":{}' in first
    reason = "the message is not read: there is not enough memory for it"
    if not isinstance(error, MemoryError):
        reason = "the message could not be read"
    assert f'"id":2,"error":{{"code":-32603,"message":"{reason}"}}'.encode() in second
    assert b'"result":{}' in third


@pytest.mark.parametrize("error", [*ERRORS, *ENDINGS], ids=repr)
@pytest.mark.parametrize("place", ["serve", "question"])
def test_a_request_that_cannot_be_worked_off(reading, monkeypatch, error, place):
    """
    Whatever is raised outside of authors' code, its request is answered, and the next one is served.
    """
    failing = failing_once(reply_to, error)
    if place == "serve":
        monkeypatch.setattr("promptkit.server.dispatch.reply_to", failing)
        reply = reading.ask(request(1, "prompts/get", {"name": "greet"}))
    else:
        assert b"elicitation/create" in reading.ask(request(1, "prompts/get", {"name": "asks"}))
        monkeypatch.setattr("promptkit.server.dispatch.reply_to", failing)
        content = {"action": "accept", "content": {"name": "Ada"}}
        reply = reading.ask({"jsonrpc": "2.0", "id": "promptkit-1", "result": content})

    assert b'"id":1,"error":{"code":-32603,"message":"prompts/get failed"}' in reply
    assert b"Hello." in reading.ask(request(2, "prompts/get", {"name": "greet"}))


@pytest.mark.parametrize("error", [*ERRORS, *ENDINGS], ids=repr)
@pytest.mark.parametrize("late", ["question", "stream"])
def test_a_request_that_fails_once_it_is_answered_later(reading, monkeypatch, error, late):
    """
    It gets one reply, the error, also at the end.
    """
    server = reading.server
    place = server._elicitation if late == "question" else server._notifier
    if late == "question":
        asked = request(1, "prompts/get", {"name": "asks"})
    else:
        asked = modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    monkeypatch.setattr(place, "_send", failing_once(place._send, error))
    said = [reading.ask(asked)]
    reading.arrived.put(line(request(2, "ping")))
    while not all(any(number in text for text in said) for number in (b'"id":1,', b'"id":2,')):
        said.append(reading.told.get(timeout=50))
    reading.server.close(0)

    (reply,) = (text for text in said if b'"id":1,' in text)
    assert b'"error"' in reply
    assert reading.told.empty()


def test_an_answer_for_a_request_that_was_withdrawn(reading):
    """
    An answer that comes too late is dropped, and reading goes on.
    """
    reading.server._dispatcher._events.append(ClientResponse("nobody", None))

    assert b'"result":{}' in reading.ask(request(1, "ping"))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_reply_that_cannot_be_noted(reading, monkeypatch, error):
    """
    What an audit raises keeps no reply back.
    """

    class Failing:
        def begin(self, *_):
            def note(_reply):
                raise error

            return note

    monkeypatch.setattr(reading.server, "_observers", [Failing()])

    assert b"Hello." in reading.ask(request(1, "prompts/get", {"name": "greet"}))


def test_threads_that_cannot_be_started(recipes, tmp_path):
    """
    Where there can be no more threads every request is answered, with an error if need be.
    """
    source = """
        import asyncio, threading, time
        from promptkit import prompt

        start = threading.Thread.start

        def refuse(thread):
            raise RuntimeError("can't start new thread")

        @prompt
        def exhaust():
            threading.Thread.start = refuse
            return "done"

        @prompt
        def recover():
            threading.Thread.start = start
            return "done"

        @prompt(timeout=20)
        def sleeps():
            time.sleep(0.3)
            return "awake"

        @prompt
        async def awaits():
            await asyncio.sleep(0.01)
            return "done"
    """
    client = Process(recipes(recipe=source), "--no-watch")
    client.ask(1, "prompts/get", {"name": "exhaust"})
    client.wait_for(1)
    asked = [2, 3, 4, 5, 6]
    for number, name in zip(asked, ["sleeps", "awaits", "sleeps", "awaits", "recover"], strict=True):
        client.ask(number, "prompts/get", {"name": name})
    answered = [client.came.get(timeout=50)[1]["id"] for _ in asked]
    client.ask(7, "prompts/get", {"name": "awaits"})

    assert sorted(answered) == asked
    assert "result" in client.wait_for(7)
    assert client.end()[1] == 0
    assert "can't start new thread" in client.process.stderr.read().decode()
    client.process.stdout.close()
    client.process.stderr.close()


#: A server that can read nothing after the first time.
BROKEN = """
import sys
from promptkit.cli import main
from promptkit.transports.stdio import StdioPipes

read, times = StdioPipes.read, []

def fail(wire):
    times.append(1)
    if len(times) > 1:
        raise MemoryError
    return read(wire)

StdioPipes.read = fail
sys.exit(main(["serve", "--no-watch", *sys.argv[1:]]))
"""

SLOW = """
import time
from promptkit import prompt

@prompt
def sleeps():
    time.sleep(30)
"""


def test_reading_that_cannot_go_on(recipes):
    """
    What is open is answered, standard error says why, and the exit code is not 0.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", BROKEN, "--grace", "0.2", str(recipes(recipe=SLOW))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        process.stdin.write(line(modern(1, "prompts/get", {"name": "sleeps"})))
        process.stdin.flush()
        code = process.wait(60)  # its input has not ended
        replies, said = process.stdout.read(), process.stderr.read()

    assert code == 1
    assert b'"id":1,"error"' in replies
    assert b"a message of a client could not be read: MemoryError()" in said


@needs_limits
@pytest.mark.parametrize("spare", [30, 70, 110, 140])
@pytest.mark.parametrize("revision", [REVISIONS[-1]])
def test_a_line_that_does_not_fit_into_memory(recipes, revision, spare):
    """
    Under a limit of memory it is refused with its id, and the next request is served.
    """
    limits, used = pytest.importorskip("resource"), 190
    process = subprocess.Popen(
        [sys.executable, "-m", "promptkit", "serve", "--no-watch", str(recipes(recipe=SMALL))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    limits.prlimit(process.pid, limits.RLIMIT_AS, ((used + spare) << 20,) * 2)
    long = modern(1, "prompts/get", {"name": "echo", "arguments": {"text": "x" * (60 << 20)}})
    replies, said = process.communicate(
        line(long) + line(modern(2, "prompts/get", {"name": "echo", "arguments": {"text": "y"}})), timeout=60
    )

    first, second = replies.splitlines()
    assert b'"id":1,"error"' in first, said
    assert b'"id":2,"result"' in second
    assert process.returncode == 0


SMALL = """
from promptkit import prompt

@prompt
def echo(text: str):
    return text
"""
