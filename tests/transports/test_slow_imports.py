"""Slow or endless imports of recipes: the client, the parent and signals are still heard."""

import json
import os
import signal
import subprocess
import sys

import pytest

from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.connection import Connection
from promptkit.protocol.limits import Limits
from promptkit.server.server import PROMPTKIT
from promptkit.transports.early_server import EarlyServer
from promptkit.transports.kept_lists import KeptLists
from promptkit.transports.read_files import Purpose, ReadFiles
from tests.wire import initialize, line, notification, request

HANG = """
import time
from promptkit import prompt
print("importing", flush=True)
{how}
prompt(name="a")(lambda: "x")
"""
SLEEPING = "while True: time.sleep(1)"
SPINNING = "while True: pass"
STUBBORN = """
while True:
    try:
        time.sleep(1)
    except BaseException:
        pass
"""


@pytest.fixture
def hang(recipes):
    """A function that starts a server of a recipe whose import does not end, once that has begun."""
    started = []

    def hang(*options, how=SLEEPING):
        folder = recipes(hang=HANG.format(how=how))
        command = [sys.executable, "-m", "promptkit", "serve", str(folder), *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, **pipes)
        started.append(process)
        assert process.stderr.readline() == b"importing\n"
        return process

    yield hang
    for process in started:
        with process:
            process.kill()


def say(process, *messages):
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()


def hear(process):
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("how", [SLEEPING, SPINNING, STUBBORN], ids=["sleeping", "spinning", "stubborn"])
class TestAnImportThatDoesNotEnd:
    def test_the_end_of_the_input_ends_it(self, hang, how):
        """
        A client that leaves is not waited for, nor are the recipes.
        """
        process = hang("--grace", "0.1", how=how)
        out, err = process.communicate(timeout=50)

        assert (out, err, process.returncode) == (b"", b"", 0)

    @pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
    def test_a_signal_ends_it(self, hang, how, name):
        """
        So do the signals that end a process, quietly.
        """
        process = hang("--grace", "0.1", how=how)
        process.send_signal(getattr(signal, name))

        assert (process.wait(50), process.stderr.read()) == (0, b"")

    def test_a_client_is_greeted_and_told_why_it_waits(self, hang, how):
        """
        A session is opened and a ping answered; what takes a recipe is refused in time, and says which
        recipe is not done.
        """
        process = hang("--timeout", "0.2", how=how)
        say(process, initialize("2025-11-25"), notification("notifications/initialized"))
        say(process, request(1, "ping"), request(2, "prompts/list"), request(3, "prompts/get", {"name": "a"}))
        replies = [hear(process) for _ in range(4)]

        assert [reply["id"] for reply in replies] == [0, 1, 2, 3]
        assert replies[0]["result"]["protocolVersion"] == "2025-11-25"
        assert [reply["error"]["code"] for reply in replies[2:]] == [-32603, -32603]
        assert "still being imported" in replies[3]["error"]["message"]
        assert "hang.py is at line" in replies[3]["error"]["message"]


def test_a_client_that_leaves_with_requests_open_is_answered(hang):
    """
    What waits at the end of the input is refused before the process ends, and not forgotten.
    """
    process = hang("--grace", "0.1")
    out, err = process.communicate(
        line(initialize("2025-11-25")) + line(request(1, "prompts/get", {"name": "a"})), timeout=30
    )

    greeted, refused = map(json.loads, out.splitlines())
    said = [text for text in err.splitlines() if b"hang.py has been importing for" not in text]
    assert (greeted["id"], refused["id"], said, process.returncode) == (0, 1, [], 0)
    assert "still being imported" in refused["error"]["message"]


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "promptkit", "serve", sys.argv[1], "--grace", "0.1"],
                         stdin=0, stdout=1, stderr=2)
sys.stdin.close()
print(child.pid, file=sys.stderr, flush=True)
import time; time.sleep(60)
"""


@pytest.mark.skipif(
    not hasattr(os, "getppid") or sys.platform == "win32", reason="nobody inherits orphans here"
)
def test_the_end_of_the_parent_ends_it(recipes):
    """
    A server whose parent is gone ends, also if its input is still held open.
    """
    folder = recipes(hang=HANG.format(how=SLEEPING))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], **pipes) as parent:
        said = {parent.stderr.readline() for _ in range(2)}
        assert b"importing\n" in said
        parent.kill()

        assert parent.stdout.read() == b""  # at the end of which nobody writes any more


SESSION = [initialize("2025-11-25"), notification("notifications/initialized")]


def get(number):
    return request(number, "prompts/get", {"name": "a"})


class TestWhatWaitsForTheServer:
    @pytest.fixture
    def sent(self):
        """What was sent so far."""
        return []

    @pytest.fixture
    def early(self, sent):
        """A server that answers early, with no list that is kept."""
        kept = KeptLists("", Purpose((), "", ""), ReadFiles(), Capabilities())
        return EarlyServer(kept, Connection(PROMPTKIT), Limits(), sent.append)

    def test_the_prompts_that_requests_wait_for(self, early, sent):
        """
        It is known which prompts are needed first; other requests name none.
        """
        early._receive(b"".join(map(line, [*SESSION, get(1), request(2, "prompts/list")])))

        assert early.expected_prompts() == ["a"]
        assert [json.loads(reply)["id"] for reply in sent] == [0]
        assert [event.id for event in early.hand_over()] == [1, 2]

    def test_what_is_cancelled(self, early):
        """
        The server is told of it, after the request.
        """
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        early._receive(b"".join(map(line, [*SESSION, get(1), cancelled])))

        request, cancellation = early.hand_over()
        assert (request.id, cancellation.request_id) == (1, 1)

    def test_so_many_bytes(self, early):
        """
        No more is read than so much, and what comes then is read by the server.
        """
        data = b"".join(map(line, SESSION))
        chunks = iter([data, *[line(request(n, "ping", {"x": "y" * 65_536})) for n in range(100)]])
        early.read_from(lambda: next(chunks))
        early._reader.join(20)

        assert 30 < len(list(chunks)) < 40
