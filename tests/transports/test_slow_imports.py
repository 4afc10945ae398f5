"""The server replies and shuts down even during slow and endless imports of recipes."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.wire import initialize, line, notification, request

pytestmark = pytest.mark.slow

HANG = """
import time
from promptkit import prompt
print("importing", flush=True)
{body}
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
def serve_hanging(recipes):
    """A function that serves a recipe whose import never ends, and returns once the import has started."""
    started = []

    def start(*options, body=SLEEPING):
        folder = recipes(hang=HANG.format(body=body))
        command = [sys.executable, "-m", "promptkit", "serve", str(folder), *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, **pipes)
        started.append(process)
        assert process.stderr.readline() == b"importing\n"
        return process

    yield start
    for process in started:
        with process:
            process.kill()


def send(process, *messages):
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()


def receive(process):
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("body", [SLEEPING, SPINNING, STUBBORN], ids=["sleeping", "spinning", "stubborn"])
def test_endless_import(serve_hanging, body):
    """
    Requests that need a recipe time out with an error that names the pending import. At the end of the input,
    the server waits neither for the client nor for the recipes.
    """
    process = serve_hanging("--timeout", "0.2", "--grace", "0.1", body=body)
    send(process, initialize("2025-11-25"), notification("notifications/initialized"))
    send(process, request(1, "ping"), request(2, "prompts/list"), request(3, "prompts/get", {"name": "a"}))
    replies = [receive(process) for _ in range(4)]
    stdout, stderr = process.communicate(timeout=50)

    assert [reply["id"] for reply in replies] == [0, 1, 2, 3]
    assert replies[0]["result"]["protocolVersion"] == "2025-11-25"
    assert [reply["error"]["code"] for reply in replies[2:]] == [-32603, -32603]
    assert "still being imported" in replies[3]["error"]["message"]
    assert "hang.py is at line" in replies[3]["error"]["message"]
    assert (stdout, stderr.count(b"still being imported"), process.returncode) == (b"", 2, 0)


@pytest.mark.parametrize(
    ("name", "body"), [("SIGTERM", SLEEPING), ("SIGINT", STUBBORN), ("SIGHUP", SPINNING)]
)
def test_signal_stops_the_server(serve_hanging, name, body):
    """SIGTERM, SIGINT and SIGHUP stop the server without output."""
    process = serve_hanging("--grace", "0.1", body=body)
    process.send_signal(getattr(signal, name))

    assert (process.wait(50), process.stderr.read()) == (0, b"")


def test_no_errors_are_sent_after_the_end_of_input(serve_hanging):
    """Requests that are pending at the end of the input get no reply, and the reason is printed."""
    process = serve_hanging("--grace", "0.1")
    stdout, stderr = process.communicate(
        line(initialize("2025-11-25")) + line(request(1, "prompts/get", {"name": "a"})), timeout=30
    )

    assert [json.loads(reply)["id"] for reply in stdout.splitlines()] == [0]
    reason = "the input ended while recipes were being imported: hang.py is at line 4"
    assert stderr.decode() == f"promptkit: {reason}; to wait longer, raise --grace\n"
    assert process.returncode == 0


def test_pending_requests_are_rejected_on_a_signal(serve_hanging):
    """A connected client gets an error for each pending request."""
    process = serve_hanging("--grace", "0.1")
    send(process, initialize("2025-11-25"), request(1, "prompts/get", {"name": "a"}), request(2, "ping"))
    assert [receive(process)["id"] for _ in range(2)] == [0, 2]
    process.terminate()

    assert receive(process)["error"]["message"] == "the server was shut down before prompts/get was answered"
    assert process.wait(50) == 0


def test_strict_server_replies_only_after_the_import(serve_hanging):
    """With `--strict`, not even the handshake is answered, and a signal ends the process."""
    process = serve_hanging("--strict", "--grace", "0.1")
    send(process, initialize("2025-11-25"))
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
    not hasattr(os, "getppid") or sys.platform == "win32", reason="orphans keep their parent on this platform"
)
def test_server_stops_when_its_parent_dies(recipes):
    """The server exits when its parent dies, even if another process holds its input open."""
    folder = recipes(hang=HANG.format(body=SLEEPING))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], **pipes) as parent:
        lines = {parent.stderr.readline() for _ in range(2)}
        assert b"importing\n" in lines
        parent.kill()

        assert parent.stdout.read() == b""  # the end of the output: the server has exited
