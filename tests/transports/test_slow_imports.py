"""Imports of recipes that are slow or never end: the server answers, and ends, during them."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.wire import initialize, line, notification, request

pytestmark = [pytest.mark.sampled, pytest.mark.slow]

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


def test_a_client_that_leaves_gets_no_more_errors(hang):
    """
    Requests that wait at the end of the input are not answered, as at any other end of the input.
    """
    process = hang("--grace", "0.1")
    out, err = process.communicate(
        line(initialize("2025-11-25")) + line(request(1, "prompts/get", {"name": "a"})), timeout=30
    )

    assert [json.loads(reply)["id"] for reply in out.splitlines()] == [0]
    assert (err, process.returncode) == (b"", 0)


def test_requests_that_wait_at_a_signal_are_refused(hang):
    """
    A client that has not hung up gets an error for each request that waits.
    """
    process = hang("--grace", "0.1")
    say(process, initialize("2025-11-25"), request(1, "prompts/get", {"name": "a"}), request(2, "ping"))
    assert [hear(process)["id"] for _ in range(2)] == [0, 2]
    process.terminate()

    assert hear(process)["error"]["message"] == "the server ended before prompts/get was answered"
    assert process.wait(50) == 0


def test_strict_serving_answers_nothing_before_the_import(hang):
    """
    With `--strict` not even the handshake is answered, and a signal ends the process.
    """
    process = hang("--strict", "--grace", "0.1")
    say(process, initialize("2025-11-25"))
    process.terminate()

    assert (process.stdout.read(), process.wait(50)) == (b"", 0)


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
