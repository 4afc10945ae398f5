"""The watchdog terminates a process only if no Python code can run in it."""

import faulthandler
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from queue import Queue

import pytest

from promptkit import prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.server import Server
from promptkit.server.threads import Watchdog
from tests.wire import initialize, line, modern, request

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs kernel timers")

#: Limit on CPU time without running Python code, in seconds.
LIMIT = 0.3

#: A server with that limit.
LAUNCH = f"""
import sys
from functools import partial
from promptkit.cli import main
from promptkit.cli import serve
from promptkit.server.threads import Watchdog
serve.Watchdog = partial(Watchdog, {LIMIT})
sys.exit(main(["serve", "--no-watch", *sys.argv[1:]]))
"""

HOLDING = """
import hashlib, re, signal, sys, threading, time, zlib
from promptkit import prompt, resource

@prompt
def matches():
    re.match(r"(a+)+$", "a" * 60 + "b")

@prompt
def later():
    time.sleep(1.2)
    return str(sum(range(10**13)))

@prompt
async def adds():
    return str(sum(range(10**13)))

@resource("slow://one")
def one() -> str:
    return str(sum(range(10**13)))

@prompt
def spins():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    return "done"

@prompt
def digests():
    data = bytes(1 << 20)
    def work():
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            hashlib.pbkdf2_hmac("sha256", data, b"salt", 500_000)
            zlib.compress(data)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "done"

@prompt
def sleeps():
    time.sleep(1)
    return "done"

@prompt
def imports():
    import json, email, xml.dom.minidom, decimal, sqlite3
    return "done"
"""

HELD = {
    "matches": ("prompts/get", {"name": "matches"}),
    "later": ("prompts/get", {"name": "later"}),
    "adds": ("prompts/get", {"name": "adds"}),
    "resource": ("resources/read", {"uri": "slow://one"}),
}


@pytest.fixture
def serve(recipes):
    """Return a function that starts a server with prompts that hold the GIL."""
    started = []

    def make(source=HOLDING, *options, **streams):
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *options, str(recipes(recipe=source))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **streams,
        )
        started.append(process)
        return process

    yield make
    for process in started:
        process.kill()
        process.communicate()


def ask(process, *messages):
    """Send messages."""
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()


@pytest.mark.parametrize(
    ("held", "ending"),
    [*((held, "nothing") for held in HELD), ("matches", "end of input"), ("matches", "SIGTERM")],
)
def test_gil_that_is_never_released(serve, held, ending):
    """
    A process in which no Python code can run is terminated by the kernel, with or without a signal to stop
    it.
    """
    process = serve()
    ask(process, initialize("2025-06-18"), request(1, *HELD[held]))
    process.stdout.readline()
    if ending == "end of input":
        process.stdin.close()
        process.stdin = None
    elif ending == "SIGTERM":
        process.send_signal(signal.SIGTERM)

    # A signal, or the end of the input, can precede the start of the prompt.
    codes = {-signal.SIGPROF} if ending == "nothing" else {-signal.SIGPROF, 0}
    assert process.wait(60) in codes


def test_gil_that_is_held_when_the_parent_exits(recipes, tmp_path):
    """A process in which no Python code can run exits even if its parent, which could kill it, has exited."""
    script = tmp_path / "parent.py"
    script.write_text(
        f"import os, subprocess, sys, time\n"
        f"server = subprocess.Popen([sys.executable, '-c', {LAUNCH!r}, sys.argv[1]], stdin=subprocess.PIPE,"
        f" stdout=subprocess.PIPE)\n"
        f"server.stdin.write({line(modern(1, 'prompts/get', {'name': 'matches'}))!r})\n"
        f"server.stdin.flush()\n"
        f"print(server.pid, flush=True)\n"
        f"os._exit(0)\n"
    )
    parent = subprocess.run(
        [sys.executable, script, recipes(recipe=HOLDING)], capture_output=True, check=True, timeout=60
    )

    assert has_exited(int(parent.stdout))


def has_exited(number):
    """Whether a process that is not our child exits."""
    import os

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        with suppress(OSError), open(f"/proc/{number}/stat") as stat:
            if stat.read().rpartition(")")[2].split()[0] == "Z":
                return True
        time.sleep(0.05)
    return False


def test_gil_that_is_held_by_pid_1_of_a_container(recipes):
    """PID 1 of a container handles the signal and exits, because the kernel does not terminate it."""
    contained = ["unshare", "--user", "--pid", "--fork", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*contained, "true"], check=False).returncode:
        pytest.skip("no container can be made here")
    process = subprocess.Popen(
        [*contained, sys.executable, "-c", LAUNCH, str(recipes(recipe=HOLDING))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            ask(process, modern(1, "prompts/get", {"name": "matches"}))
            assert process.wait(60) == signal.SIGPROF
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["spins", "digests", "sleeps", "imports"])
def test_healthy_process_is_not_terminated(serve, name):
    """Running Python code, C code without the GIL, and sleeping can take longer than the limit."""
    process = serve()
    ask(process, modern(1, "prompts/get", {"name": name}))

    assert b'"result"' in process.stdout.readline()
    process.stdin.close()
    process.stdin = None
    assert process.wait(60) == 0


def test_stopped_process_is_not_terminated(serve):
    """Only CPU time counts, so a process that was stopped continues."""
    process = serve()
    ask(process, modern(1, "prompts/get", {"name": "sleeps"}))
    process.send_signal(signal.SIGSTOP)
    time.sleep(LIMIT * 2)
    process.send_signal(signal.SIGCONT)

    assert b'"result"' in process.stdout.readline()


def test_stacks_are_printed(serve):
    """The last lines on standard error are the stacks of all threads, with the line of the prompt."""
    process = serve(HOLDING, stderr=subprocess.PIPE)
    ask(process, modern(1, "prompts/get", {"name": "matches"}))
    printed = process.stderr.read().decode()

    assert process.wait(60) == -signal.SIGPROF
    assert re.search(r'File ".*recipe\.py", line 6 in matches', printed)


def test_no_guard(serve):
    """With `--no-guard` the process is not terminated, which C debuggers need, for example."""
    process = serve(HOLDING.replace("10**13", "3 * 10**7"), "--no-guard")
    ask(process, modern(1, "prompts/get", {"name": "adds"}))

    assert b'"result"' in process.stdout.readline()


@pytest.fixture
def timer():
    """Return a function that returns the state of the timer, and stop the timer after the test."""
    yield lambda: signal.getitimer(signal.ITIMER_PROF)
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.unregister(signal.SIGPROF)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def test_arm_and_disarm(timer):
    """The timer starts when it is armed and stops when it is disarmed."""
    guard = Watchdog(50.0)
    guard.arm()
    assert timer()[0] > 40
    guard.disarm()

    assert timer() == (0.0, 0.0)


def test_timer_of_the_author_is_not_changed(timer):
    """If the author handles the signal, like a profiler, the timer is not changed."""
    signal.signal(signal.SIGPROF, lambda *_: None)
    signal.setitimer(signal.ITIMER_PROF, 1000.0, 7.0)
    guard = Watchdog(50.0)
    guard.arm()
    guard.disarm()

    assert timer()[1] == 7.0


def test_timer_runs_only_with_prompts(timer):
    """The timer runs before a prompt starts, and stops when the server is idle."""
    seen, sent, arrived, ended = [], Queue(), Queue(), threading.Event()

    @prompt
    def looks():
        seen.append(timer()[0])
        return "done"

    server = Server(compile(Recipes(prompts=(looks,))), sent.put, watchdog=Watchdog(50.0))
    server.read_from(arrived.get, ended.set)
    assert timer()[0] == 0
    arrived.put(line(modern(1, "prompts/get", {"name": "looks"})))
    sent.get(timeout=30)
    deadline = time.monotonic() + 20
    while timer()[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    arrived.put(b"")
    assert ended.wait(30)
    server.close(1)

    assert (seen[0] > 40, timer()) == (True, (0.0, 0.0))
