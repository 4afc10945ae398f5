"""The stdio transport, tested with real processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from promptkit.protocol.limits import CutOff
from promptkit.transports.stdio import StdioPipes
from tests.wire import HANDSHAKES, initialize, line, modern, request

GREET = '''
import asyncio, os, subprocess, sys, time
from promptkit import prompt, user

@prompt
def greet(name: str):
    """Say hello."""
    return user(f"Hello, {name}.")

@prompt
def sleepy(seconds: float):
    time.sleep(seconds)
    return "awake"

@prompt
async def waiting(seconds: float):
    await asyncio.sleep(seconds)
    return "done"
'''

NOISY = '''
import os, subprocess, sys
from promptkit import prompt, user

print("at import")
os.write(1, b"at import, raw\\n")
subprocess.run(["echo", "at import, by a child"], check=True)
sys.stdout.write("unfinished")

@prompt
def noisy():
    """Make a noise."""
    print("inside", flush=True)
    sys.__stdout__.write("also inside\\n")
    os.write(1, b"inside, raw\\n")
    subprocess.run(["echo", "inside, by a child"], check=True)
    eaten = subprocess.run(["cat"], capture_output=True, check=True).stdout + sys.stdin.buffer.read()
    return user(f"A child and the prompt read {eaten!r}.")
'''

OPENING = line(initialize("2025-06-18")) + line({"jsonrpc": "2.0", "method": "notifications/initialized"})


@pytest.fixture
def serve(recipes):
    """A function that starts `promptkit serve` on a folder with one recipe."""
    started = []

    def start(source, *options, env=None):
        process = subprocess.Popen(
            [sys.executable, "-m", "promptkit", "serve", recipes(recipe=source), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def talk(process, *messages):
    """Send messages, close the input, and return the replies, standard error and the exit code."""
    stdout, stderr = process.communicate(b"".join(map(line, messages)), timeout=50)
    return [json.loads(reply) for reply in stdout.splitlines()], stderr.decode(), process.returncode


def exchange(process, *messages):
    """Send messages and return the next reply; the input stays open."""
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def get_prompt(number, name, /, **arguments):
    return request(number, "prompts/get", {"name": name, "arguments": arguments})


def text(answer):
    return answer["result"]["messages"][0]["content"]["text"]


@pytest.mark.requirement("stdio/only-messages")
def test_output_of_recipes_never_reaches_the_client(serve):
    """
    Prints, raw writes and child processes do not disturb the protocol, at import or while rendering, and a
    child process that reads standard input consumes no message, in every revision.
    """
    process = serve(NOISY)
    sessions = [
        message for revision in HANDSHAKES for message in (initialize(revision), get_prompt(1, "noisy"))
    ]
    messages = [*sessions, modern(2, "prompts/get", {"name": "noisy"}), request(3, "ping")]

    replies = [exchange(process, message) for message in messages]
    stdout, stderr = process.communicate(timeout=50)

    assert [(reply["jsonrpc"], reply["id"]) for reply in replies] == [
        ("2.0", message["id"]) for message in messages
    ]
    assert stdout == b""
    assert {text(reply) for reply in replies if reply["id"] in (1, 2)} == {"A child and the prompt read b''."}
    for noise in ("at import", "at import, by a child", "unfinished", "inside, raw", "inside, by a child"):
        assert noise in stderr.decode()


@pytest.mark.requirement("stdio/utf-8")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_encoding_is_utf_8(serve, locale):
    """Messages are read and written as UTF-8 in every locale."""
    name = "日本語 🦊 ü"
    process = serve(
        GREET, env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    )
    params = {"name": "greet", "arguments": {"name": name}}
    messages = [
        message
        for revision in HANDSHAKES
        for message in (initialize(revision), request(1, "prompts/get", params))
    ]
    messages.append(modern(2, "prompts/get", params))

    lines = []
    for message in messages:
        process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        process.stdin.flush()
        lines.append(process.stdout.readline())

    replies = [json.loads(reply.decode("utf-8")) for reply in lines]
    assert [text(reply) for reply in replies if reply["id"]] == [f"Hello, {name}."] * 5
    assert b"".join(lines).count(name.encode()) == 5


@pytest.mark.requirement("stdio/log")
def test_traceback_is_logged_to_standard_error(serve):
    """The log contains the traceback under the error number that the client received."""
    broken = "from promptkit import prompt\n@prompt\ndef broken():\n    raise ValueError('password123')\n"
    sessions = [
        message for revision in HANDSHAKES for message in (initialize(revision), get_prompt(1, "broken"))
    ]
    process = serve(broken)

    replies = [
        exchange(process, message) for message in [*sessions, modern(2, "prompts/get", {"name": "broken"})]
    ]
    _, logged, _ = talk(process)

    errors = [reply["error"]["message"] for reply in replies if "error" in reply]
    numbers = [message.removeprefix("prompt 'broken' failed (error ").removesuffix(")") for message in errors]
    assert len({number for number in numbers if f"error {number} in prompt 'broken'" in logged}) == 5
    assert logged.count("ValueError: password123") == 5


def test_standard_error_is_empty_without_problems(serve):
    replies, logged, code = talk(serve(GREET), initialize("2025-06-18"), get_prompt(1, "greet", name="Ada"))

    assert (text(replies[1]), logged, code) == ("Hello, Ada.", "", 0)


def test_all_input_is_answered_before_exit(serve):
    """Input that ends early is fully answered, including a last line without a line break."""
    process = serve(GREET, "--grace", "30")
    requests = b"".join(line(get_prompt(number, "greet", name="x" * 1000)) for number in range(1, 500))

    stdout, _ = process.communicate(OPENING + requests.rstrip(b"\n"), timeout=50)

    assert sorted(json.loads(reply)["id"] for reply in stdout.splitlines()) == [*range(500)]


def test_long_lines(serve):
    """A message can be far longer than the buffer of a pipe, in both directions."""
    long = "ü" * 600_000

    replies, _, _ = talk(serve(GREET), initialize("2025-06-18"), get_prompt(1, "greet", name=long))

    assert text(replies[1]) == f"Hello, {long}."


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a pipe hold more")
@pytest.mark.parametrize("before", [1 << 16, 1 << 20])
def test_long_reply_enlarges_the_pipe(serve, before):
    """The first reply that exceeds the buffer enlarges it; a larger buffer is kept."""
    import fcntl

    process = serve(GREET)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, before)
    exchange(process, initialize("2025-06-18"))
    sizes = []
    for length in (1, 1 << 17):
        name = "x" * length
        assert text(exchange(process, get_prompt(1, "greet", name=name))) == f"Hello, {name}."
        sizes.append(fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ))

    assert sizes == [before, max(before, 1 << 19)]


def test_long_reply_through_a_socket(recipes):
    """Long replies work if the client, such as one on Node.js, connects a socket instead of a pipe."""
    ours, theirs = socket.socketpair()
    name = "x" * 300_000
    command = [sys.executable, "-m", "promptkit", "serve", str(recipes(recipe=GREET))]
    with ours, subprocess.Popen(command, stdin=theirs, stdout=theirs) as process:
        theirs.close()
        with ours.makefile("rb") as replies:
            ours.sendall(OPENING + line(get_prompt(1, "greet", name=name)))
            replies.readline()  # the handshake
            assert text(json.loads(replies.readline())) == f"Hello, {name}."
        ours.shutdown(socket.SHUT_WR)

        assert process.wait(timeout=50) == 0


def test_invalid_json_is_rejected(serve):
    """Invalid JSON is answered with -32700, and the next line is served."""
    process = serve(GREET)

    stdout, _ = process.communicate(OPENING + b"no json\n\xff\n" + line(request(1, "ping")), timeout=50)

    _, first, second, pong = (json.loads(reply) for reply in stdout.splitlines())
    assert [first["error"]["code"], second["error"]["code"], pong["result"]] == [-32700, -32700, {}]


def test_running_prompt_completes_within_the_grace_period(serve):
    process = serve(GREET, "--grace", "30")
    replies, _, code = talk(process, initialize("2025-06-18"), get_prompt(1, "waiting", seconds="0.2"))

    assert (text(replies[1]), code) == ("done", 0)


def test_process_exits_after_the_grace_period(serve):
    """
    The process exits while a prompt still runs, without further output, because the official Python client
    fails on an error that arrives after it has disconnected.
    """
    process = serve(GREET, "--grace", "0.2")
    exchange(process, initialize("2025-06-18"))
    started = time.monotonic()

    replies, _, code = talk(process, get_prompt(1, "waiting", seconds="30"))

    assert (replies, code) == ([], 0)
    assert time.monotonic() - started < 10


@pytest.mark.requirement("lifecycle/shutdown/server-ends")
@pytest.mark.parametrize(
    ("name", "revision"),
    [
        ("SIGTERM", "2024-11-05"),
        ("SIGINT", "2025-03-26"),
        ("SIGHUP", "2025-06-18"),
        ("SIGTERM", "2025-11-25"),
    ],
)
def test_signal_stops_the_server(serve, name, revision):
    """
    Each termination signal stops the server with exit code 0 and without output, even if the input is open.
    """
    process = serve(GREET)
    exchange(process, initialize(revision))

    process.send_signal(getattr(signal, name))

    assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert process.wait(timeout=50) == 0


@pytest.mark.parametrize("server_ends_input", [True, False])
def test_end_of_input_after_a_partial_line(server_ends_input):
    """
    If the server itself stops reading, a partial line is marked, because the client could have sent the rest.
    """
    ours, theirs = os.pipe()
    pipes = StdioPipes(ours, theirs)
    os.write(theirs, b'{"jso')
    first = pipes.read()
    if server_ends_input:
        pipes.end()
    os.close(theirs)
    last = pipes.read()
    os.close(ours)

    assert (first, last, type(last)) == (b'{"jso', b"", CutOff if server_ends_input else bytes)


@pytest.mark.requirement("stdio/server-ends")
def test_signal_ends_subscriptions(serve):
    """A client of the modern era is notified of the end of its stream before the output is closed."""
    process = serve(GREET)
    opened = exchange(
        process, modern("s", "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    )

    process.terminate()

    result, cancelled = [json.loads(message) for message in process.stdout.read().splitlines()]
    assert opened["method"] == "notifications/subscriptions/acknowledged"
    assert (result["id"], result["result"]["resultType"]) == ("s", "complete")
    assert (cancelled["method"], cancelled["params"]) == ("notifications/cancelled", {"requestId": "s"})
    assert process.wait(timeout=50) == 0


def test_end_of_input_stops_the_server(serve):
    """Requests of the modern era are answered, then the process exits despite a waiting prompt."""
    process = serve(GREET, "--grace", "0.2")
    waiting = modern(1, "prompts/get", {"name": "waiting", "arguments": {"seconds": "30"}})
    exchange(process, modern(0, "prompts/list"))  # the import has ended
    started = time.monotonic()

    replies, _, code = talk(process, waiting, modern(2, "prompts/list"))

    assert ([reply["id"] for reply in replies if "result" in reply], code) == ([2], 0)
    assert time.monotonic() - started < 10


def test_signal_during_a_running_prompt(serve):
    """A sleeping prompt does not delay the exit, and the connected client gets an error."""
    process = serve(GREET, "--grace", "0.2")
    exchange(process, initialize("2025-06-18"))
    exchange(process, get_prompt(1, "sleepy", seconds="60"), request(2, "ping"))

    process.terminate()

    (reply,) = map(json.loads, process.stdout.read().splitlines())
    assert reply["error"]["message"] == "the server was shut down before prompts/get was answered"
    assert process.wait(timeout=50) == 0


def test_client_that_closes_its_output_pipe(serve):
    """When no client reads the output, the process exits without a traceback."""
    process = serve(GREET)
    exchange(process, initialize("2025-06-18"))
    process.stdout.close()

    process.stdin.write(line(request(1, "ping")))
    process.stdin.flush()

    assert (process.wait(timeout=50), process.stderr.read()) == (0, b"")


def test_client_that_disconnects_while_a_prompt_runs(serve):
    """The process exits when a late reply cannot be delivered, even if the input is open."""
    process = serve(GREET)
    exchange(process, initialize("2025-06-18"))
    process.stdin.write(line(get_prompt(1, "waiting", seconds="0.2")))
    process.stdin.flush()
    process.stdout.close()

    assert process.wait(timeout=50) == 0


@pytest.mark.parametrize("end", ["stdin", "stdout"])
def test_non_blocking_pipes_are_served(recipes, end):
    requests = b"".join(line(get_prompt(number, "greet", name="x" * 9000)) for number in range(1, 101))
    ours, theirs = os.pipe()
    back_ours, back_theirs = os.pipe()
    os.set_blocking(ours if end == "stdin" else back_theirs, False)
    process = subprocess.Popen(
        [sys.executable, "-m", "promptkit", "serve", "--grace", "30", str(recipes(recipe=GREET))],
        stdin=ours,
        stdout=back_theirs,
    )
    os.close(ours)
    os.close(back_theirs)
    writer = threading.Thread(target=write_slowly, args=(theirs, OPENING + requests))
    writer.start()
    with open(back_ours, "rb") as replies:
        answered = sorted(json.loads(reply)["id"] for reply in replies)
    writer.join()

    assert (answered, process.wait(timeout=50)) == ([*range(101)], 0)


def write_slowly(descriptor, data):
    """Write *data* after a pause, in which a reader gets no data, and close."""
    time.sleep(0.3)
    with open(descriptor, "wb") as pipe:
        pipe.write(data)


def test_threads_of_recipes_do_not_delay_the_exit(serve):
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"

    _, _, code = talk(serve(source + GREET), initialize("2025-06-18"))

    assert code == 0


def test_invalid_prompt_is_reported_and_skipped(serve):
    """The diagnostic of an invalid prompt is printed, and the other prompts are served."""
    replies, logged, code = talk(
        serve(GREET + "\n@prompt\ndef broken(a): return a\n"),
        initialize("2025-06-18"),
        get_prompt(1, "greet", name="x"),
    )

    assert (text(replies[1]), code) == ("Hello, x.", 0)
    assert "error PK301: prompt 'broken': parameter 'a' has no annotation" in logged


def test_strict_server_does_not_start_with_diagnostics(serve):
    replies, logged, code = talk(serve("@", "--strict"), initialize("2025-06-18"))

    assert (replies, code) == ([], 1)
    assert "PK101" in logged


def test_closed_standard_error(recipes):
    """Without standard error, the output of prompts is dropped and never reaches the client."""
    folder = recipes(recipe=NOISY)

    completed = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m promptkit serve "{folder}" 2>&-'],
        input=OPENING + line(get_prompt(1, "noisy")),
        capture_output=True,
        timeout=50,
        check=False,
    )

    assert sorted(json.loads(reply)["id"] for reply in completed.stdout.splitlines()) == [0, 1]


@pytest.mark.parametrize("closed", ["0<&-", "1>&-"])
def test_closed_standard_streams_are_a_usage_error(recipes, closed):
    """The server needs both standard input and output."""
    completed = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m promptkit serve "{recipes(recipe=GREET)}" {closed}'],
        input=OPENING,
        capture_output=True,
        timeout=50,
        check=False,
    )

    assert completed.returncode == 2
    assert completed.stderr.startswith(b"promptkit: standard input and output must be open: ")


def test_message_on_a_terminal(recipes):
    """A server that is started in a terminal prints that it waits for a client."""
    keyboard, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "promptkit", "serve", str(recipes(recipe=GREET))],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(terminal)
    stderr = process.stderr.readline().decode()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=50)
    os.close(keyboard)

    assert stderr.startswith("promptkit: waiting for an MCP client on standard input; to see a prompt, run: ")
    assert process.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="orphans keep their parent on this platform")
def test_server_stops_when_its_parent_dies(recipes):
    """The server exits when its parent dies, even if another process holds its input open."""
    program = (
        "import subprocess, sys, time; "
        "subprocess.Popen([sys.executable, '-m', 'promptkit', 'serve', sys.argv[1]]); "
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(recipes(recipe=GREET))]
    ours, theirs = os.pipe()
    with subprocess.Popen(command, stdin=ours, stdout=subprocess.PIPE) as parent:
        os.close(ours)
        os.write(theirs, OPENING)
        parent.stdout.readline()  # the server has started
        parent.kill()
        output = parent.stdout.read()  # ends when the server exits

    os.close(theirs)
    assert output == b""
