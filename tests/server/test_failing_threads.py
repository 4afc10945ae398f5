"""Every request is answered whatever fails on a thread of the server, or the log explains why not."""

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
from promptkit.server.pending import reply_to
from tests.server.busy_server import Process
from tests.wire import REVISIONS, initialize, line, modern, notification, request

needs_limits = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited otherwise")


@prompt
def greet():
    """Say hello."""
    return "Hello."


@prompt(elicit=True)
def asks(name: str):
    """Ask for a name."""
    return name


class ThreadedServer:
    """A server that reads its input on background threads; its output is in `output`."""

    def __init__(self):
        self.arrived, self.output, self.ended = Queue(), Queue(), threading.Event()
        self.server = Server(compile(Recipes(prompts=(greet, asks))), self.output.put)
        self.connection = self.server._session

    def start(self):
        """Start reading."""
        self.server.read_from(self._read, self.ended.set)

    def _read(self):
        item = self.arrived.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def ask(self, *messages):
        """Send lines in one write, and return the next line of the output."""
        self.arrived.put(b"".join(map(line, messages)))
        return self.output.get(timeout=50)


@pytest.fixture
def threaded_server():
    """Return a running server of two prompts."""
    server = ThreadedServer()
    server.start()
    assert b'"result"' in server.ask(initialize("2025-11-25", capabilities={"elicitation": {}}))
    server.arrived.put(line(notification("notifications/initialized")))
    yield server
    server.arrived.put(b"")
    assert server.ended.wait(50)


def fail_once(function, error, when=lambda *_: True):
    """
    Return a function that raises *error* in the first call that matches *when*, and otherwise calls
    *function*.
    """
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
def test_failing_read(threaded_server, error, capsys):
    """A failed read is retried, and the next line is served."""
    threaded_server.arrived.put(error)

    assert b'"id":1,"result":{}' in threaded_server.ask(request(1, "ping"))
    assert f"a client's message could not be read: {error!r}" in capsys.readouterr().err


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_unreadable_line(threaded_server, monkeypatch, error):
    """
    A line that cannot be processed gets an error with its id, and the lines before and after it are served.
    """
    receive = threaded_server.connection._receive_request
    failing = fail_once(receive, error, lambda _, request_id, *__: request_id == 2)
    monkeypatch.setattr(threaded_server.connection, "_receive_request", failing)

    first, second, third = threaded_server.ask(
        *(request(number, "ping") for number in (1, 2, 3))
    ).splitlines()
    assert b'"result":{}' in first
    assert b'"id":2,"error":{"code":-32603,"message":"the message could not be read"}' in second
    assert b'"result":{}' in third


@pytest.mark.parametrize("error", [*ERRORS, *ENDINGS], ids=repr)
@pytest.mark.parametrize("stage", ["serve", "question"])
def test_failing_request(threaded_server, monkeypatch, error, stage):
    """An exception outside of authors' code gets an error reply, and the next request is served."""
    failing = fail_once(reply_to, error)
    if stage == "serve":
        monkeypatch.setattr("promptkit.server.dispatch.reply_to", failing)
        reply = threaded_server.ask(request(1, "prompts/get", {"name": "greet"}))
    else:
        assert b"elicitation/create" in threaded_server.ask(request(1, "prompts/get", {"name": "asks"}))
        monkeypatch.setattr("promptkit.server.dispatch.reply_to", failing)
        content = {"action": "accept", "content": {"name": "Ada"}}
        reply = threaded_server.ask({"jsonrpc": "2.0", "id": "promptkit-1", "result": content})

    assert b'"id":1,"error":{"code":-32603,"message":"prompts/get failed"}' in reply
    assert b"Hello." in threaded_server.ask(request(2, "prompts/get", {"name": "greet"}))


@pytest.mark.parametrize("error", [*ERRORS, *ENDINGS], ids=repr)
@pytest.mark.parametrize("late", ["question", "stream"])
def test_failing_deferred_request(threaded_server, monkeypatch, error, late):
    """A request that fails while its reply is deferred gets the error as its only reply."""
    server = threaded_server.server
    sender = server._elicitation if late == "question" else server._notifier
    if late == "question":
        message = request(1, "prompts/get", {"name": "asks"})
    else:
        message = modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    monkeypatch.setattr(sender, "_send", fail_once(sender._send, error))
    lines = [threaded_server.ask(message)]
    threaded_server.arrived.put(line(request(2, "ping")))
    while not all(any(number in text for text in lines) for number in (b'"id":1,', b'"id":2,')):
        lines.append(threaded_server.output.get(timeout=50))
    threaded_server.server.close(0)

    (reply,) = (text for text in lines if b'"id":1,' in text)
    assert b'"error"' in reply
    assert threaded_server.output.empty()


def test_answer_to_a_cancelled_request(threaded_server):
    """An answer to a cancelled request is dropped, and reading continues."""
    threaded_server.server._dispatcher._events.append(ClientResponse("nobody", None))

    assert b'"result":{}' in threaded_server.ask(request(1, "ping"))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_failing_observer(threaded_server, monkeypatch, error):
    """An observer that raises does not prevent the reply."""

    class Failing:
        def begin(self, *_):
            def note(_reply):
                raise error

            return note

    monkeypatch.setattr(threaded_server.server, "_observers", [Failing()])

    assert b"Hello." in threaded_server.ask(request(1, "prompts/get", {"name": "greet"}))


def test_no_threads_can_be_started(recipes, tmp_path):
    """If no thread can be started, every request is still answered, if necessary with an error."""
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
    numbers = [2, 3, 4, 5, 6]
    for number, name in zip(numbers, ["sleeps", "awaits", "sleeps", "awaits", "recover"], strict=True):
        client.ask(number, "prompts/get", {"name": name})
    answered = [client.received.get(timeout=50)[1]["id"] for _ in numbers]
    client.ask(7, "prompts/get", {"name": "awaits"})

    assert sorted(answered) == numbers
    assert "result" in client.wait_for(7)
    assert client.end()[1] == 0
    assert "can't start new thread" in client.process.stderr.read().decode()
    client.process.stdout.close()
    client.process.stderr.close()


#: A server whose input cannot be read after the first time.
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


def test_input_that_cannot_be_read(recipes):
    """Pending requests are answered, standard error explains the problem, and the exit code is not 0."""
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
        replies, stderr = process.stdout.read(), process.stderr.read()

    assert code == 1
    assert b'"id":1,"error"' in replies
    assert b"a client's message could not be read: MemoryError()" in stderr


@needs_limits
@pytest.mark.parametrize("spare", [30, 110])
@pytest.mark.parametrize("revision", [REVISIONS[-1]])
def test_line_larger_than_memory(recipes, revision, spare):
    """A line that exceeds the memory limit is rejected with its id, and the next request is served."""
    limits, used = pytest.importorskip("resource"), 190
    process = subprocess.Popen(
        [sys.executable, "-m", "promptkit", "serve", "--no-watch", str(recipes(recipe=SMALL))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    limits.prlimit(process.pid, limits.RLIMIT_AS, ((used + spare) << 20,) * 2)
    long = modern(1, "prompts/get", {"name": "echo", "arguments": {"text": "x" * (60 << 20)}})
    replies, stderr = process.communicate(
        line(long) + line(modern(2, "prompts/get", {"name": "echo", "arguments": {"text": "y"}})), timeout=60
    )

    first, second = replies.splitlines()
    assert b'"id":1,"error"' in first, stderr
    assert b'"id":2,"result"' in second
    assert process.returncode == 0


SMALL = """
from promptkit import prompt

@prompt
def echo(text: str):
    return text
"""
