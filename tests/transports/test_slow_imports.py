"""Slow or endless imports of recipes: the client, the parent and signals are still heard."""

import json
import os
import signal
import subprocess
import sys

import pytest

from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.limits import Limits
from promptkit.server.server import PROMPTKIT
from promptkit.transports.early import EarlyServer
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
    assert (greeted["id"], refused["id"], err, process.returncode) == (0, 1, b"", 0)
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


@pytest.fixture
def early():
    """A server that waits for recipes, its client greeted, and what it has sent."""
    sent = []
    server = EarlyServer(None, ServerInfo("promptkit", PROMPTKIT.version), Limits(), sent.append)
    server._greet()

    def receive(*messages):
        sent.clear()
        server._receive(b"".join(map(line, messages)))
        return [json.loads(each) for each in b"".join(sent).splitlines()]

    receive(*SESSION)
    return server, receive


def get(number):
    return request(number, "prompts/get", {"name": "a"})


class TestWhatIsHeld:
    def test_the_prompts_that_requests_wait_for(self, early):
        """
        It is known which prompts are needed first; other requests name none.
        """
        server, receive = early
        receive(get(1), request(2, "prompts/list"))

        assert server.held_prompts() == ["a"]

    def test_so_many_requests(self, early):
        """
        What goes beyond is refused at once; what was held before stays.
        """
        server, receive = early
        refused = [receive(get(number)) for number in range(1_003)]

        assert [reply[0]["id"] for reply in refused if reply] == [1_000, 1_001, 1_002]
        assert "1,000 requests wait for the recipes" in refused[1_000][0]["error"]["message"]
        assert [event.id for event in server.hand_over()] == list(range(1_000))

    def test_so_many_bytes(self, early):
        """
        One request is held whatever its size, and others beside it while there is room.
        """
        server, receive = early
        large = {"name": "a", "arguments": {"x": "y" * (4 << 20)}}

        assert receive(request(1, "prompts/get", large)) == []
        assert receive(get(2))[0]["error"]["message"].startswith("1 requests wait")
        assert receive(request(1, "notifications/cancelled") | {"params": {"requestId": 1}})[0]["error"]
        receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert receive(get(3)) == []
        assert [event.id for event in server.hand_over()] == [3]

    def test_what_is_cancelled_is_dropped(self, early):
        """
        A cancelled request gets no reply, and its id is free again.
        """
        server, receive = early
        receive(get(1), get("1"))
        receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

        assert [event.id for event in server.hand_over()] == ["1"]

    def test_an_id_in_use_is_refused(self, early):
        """
        Two requests that wait cannot bear the same id.
        """
        server, receive = early

        assert receive(get(1), get(1))[0]["error"]["message"] == "id 1 is in use by a request that still runs"
        assert len(server.hand_over()) == 1

    def test_what_was_not_read_yet_is_bounded(self):
        """
        A client that sends much before it is greeted is greeted earlier.
        """
        sent = []
        server = EarlyServer(None, ServerInfo("promptkit", PROMPTKIT.version), Limits(), sent.append)
        server._receive(b"".join(map(line, SESSION)))
        assert sent == []
        for number in range(100):
            server._receive(line(request(number, "ping", {"_meta": {"x": "y" * 65_536}})))

        assert b'"protocolVersion"' in sent[0]
