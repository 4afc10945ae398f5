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
    """Send messages, end the input, and return the replies, what was logged, and the exit code."""
    out, err = process.communicate(b"".join(map(line, messages)), timeout=50)
    return [json.loads(reply) for reply in out.splitlines()], err.decode(), process.returncode


def ask(process, *messages):
    """Send messages and return the next reply, the input staying open."""
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def get(number, name, /, **arguments):
    return request(number, "prompts/get", {"name": name, "arguments": arguments})


def text(answer):
    return answer["result"]["messages"][0]["content"]["text"]


@pytest.mark.requirement("stdio/only-messages")
def test_noise_never_reaches_the_wire(serve):
    """
    Printing, raw writes and child processes disturb no byte of the wire, at import or inside a
    prompt, and a child that reads eats nothing of it, whatever the revision.
    """
    process = serve(NOISY)
    sessions = [message for revision in HANDSHAKES for message in (initialize(revision), get(1, "noisy"))]
    asked = [*sessions, modern(2, "prompts/get", {"name": "noisy"}), request(3, "ping")]

    replies = [ask(process, message) for message in asked]
    out, err = process.communicate(timeout=50)

    assert [(reply["jsonrpc"], reply["id"]) for reply in replies] == [
        ("2.0", message["id"]) for message in asked
    ]
    assert out == b""
    assert {text(reply) for reply in replies if reply["id"] in (1, 2)} == {"A child and the prompt read b''."}
    for noise in ("at import", "at import, by a child", "unfinished", "inside, raw", "inside, by a child"):
        assert noise in err.decode()


@pytest.mark.requirement("stdio/utf-8")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_the_wire_is_utf_8(serve, locale):
    """
    Text is read and written as UTF-8, whatever the locale is.
    """
    said = "日本語 🦊 ü"
    process = serve(
        GREET, env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    )
    params = {"name": "greet", "arguments": {"name": said}}
    asked = [
        message
        for revision in HANDSHAKES
        for message in (initialize(revision), request(1, "prompts/get", params))
    ]
    asked.append(modern(2, "prompts/get", params))

    out = []
    for message in asked:
        process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        process.stdin.flush()
        out.append(process.stdout.readline())

    replies = [json.loads(reply.decode("utf-8")) for reply in out]
    assert [text(reply) for reply in replies if reply["id"]] == [f"Hello, {said}."] * 5
    assert b"".join(out).count(said.encode()) == 5


@pytest.mark.requirement("stdio/log")
def test_what_went_wrong_is_told_on_standard_error(serve):
    """
    The traceback is there, under the number that the client got.
    """
    broken = "from promptkit import prompt\n@prompt\ndef broken():\n    raise ValueError('password123')\n"
    sessions = [message for revision in HANDSHAKES for message in (initialize(revision), get(1, "broken"))]
    process = serve(broken)

    replies = [ask(process, found) for found in [*sessions, modern(2, "prompts/get", {"name": "broken"})]]
    _, logged, _ = talk(process)

    told = [reply["error"]["message"] for reply in replies if "error" in reply]
    numbers = [message.removeprefix("prompt 'broken' failed (error ").removesuffix(")") for message in told]
    assert len({number for number in numbers if f"error {number} in prompt 'broken'" in logged}) == 5
    assert logged.count("ValueError: password123") == 5


def test_healthy_serving_is_silent(serve):
    """
    Nothing is printed while nothing is wrong, and the exit code is 0.
    """
    replies, logged, code = talk(serve(GREET), initialize("2025-06-18"), get(1, "greet", name="Ada"))

    assert (text(replies[1]), logged, code) == ("Hello, Ada.", "", 0)


def test_what_was_read_is_answered(serve):
    """
    Input that ends at once is answered whole, a last line without its end too.
    """
    process = serve(GREET, "--grace", "30")
    many = b"".join(line(get(number, "greet", name="x" * 1000)) for number in range(1, 500))

    out, _ = process.communicate(OPENING + many.rstrip(b"\n"), timeout=50)

    assert sorted(json.loads(reply)["id"] for reply in out.splitlines()) == [*range(500)]


def test_a_line_of_many_megabytes(serve):
    """
    A line may be far longer than a pipe holds, in both directions.
    """
    long = "ü" * 3_000_000

    replies, _, _ = talk(serve(GREET), initialize("2025-06-18"), get(1, "greet", name=long))

    assert text(replies[1]) == f"Hello, {long}."


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a pipe hold more")
@pytest.mark.parametrize("before", [1 << 16, 1 << 20])
def test_a_long_reply_has_a_wide_pipe(serve, before):
    """
    From the first reply on that a pipe does not hold; a pipe that holds more already is left as it is.
    """
    import fcntl

    process = serve(GREET)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, before)
    ask(process, initialize("2025-06-18"))
    sizes = []
    for length in (1, 1 << 17):
        name = "x" * length
        assert text(ask(process, get(1, "greet", name=name))) == f"Hello, {name}."
        sizes.append(fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ))

    assert sizes == [before, max(before, 1 << 19)]


def test_a_long_reply_through_a_socket(recipes):
    """
    Some clients, such as those on Node, give a server a socket and not a pipe.
    """
    ours, theirs = socket.socketpair()
    name = "x" * 300_000
    command = [sys.executable, "-m", "promptkit", "serve", str(recipes(recipe=GREET))]
    with ours, subprocess.Popen(command, stdin=theirs, stdout=theirs) as process:
        theirs.close()
        with ours.makefile("rb") as replies:
            ours.sendall(OPENING + line(get(1, "greet", name=name)))
            replies.readline()  # of the handshake
            assert text(json.loads(replies.readline())) == f"Hello, {name}."
        ours.shutdown(socket.SHUT_WR)

        assert process.wait(timeout=50) == 0


def test_a_line_that_is_no_json(serve):
    """
    It is answered with -32700, and the next line is served.
    """
    process = serve(GREET)

    out, _ = process.communicate(OPENING + b"no json\n\xff\n" + line(request(1, "ping")), timeout=50)

    _, first, second, pong = (json.loads(reply) for reply in out.splitlines())
    assert [first["error"]["code"], second["error"]["code"], pong["result"]] == [-32700, -32700, {}]


def test_a_running_prompt_gets_its_grace(serve):
    """
    At the end of input an asynchronous prompt may finish within the grace.
    """
    process = serve(GREET, "--grace", "30")
    replies, _, code = talk(process, initialize("2025-06-18"), get(1, "waiting", seconds="0.2"))

    assert (text(replies[1]), code) == ("done", 0)


def test_a_prompt_that_sleeps_on_does_not_hold_the_process(serve):
    """
    After the grace the process ends, whatever still runs, and says no more: the official Python client fails
    at an error that it gets once it has hung up.
    """
    process = serve(GREET, "--grace", "0.2")
    ask(process, initialize("2025-06-18"))
    started = time.monotonic()

    replies, _, code = talk(process, get(1, "waiting", seconds="30"))

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
def test_a_signal_ends_it_quietly(serve, name, revision):
    """
    Each signal that ends a process closes the output, the input being open, and gives exit code 0
    and no word.
    """
    process = serve(GREET)
    ask(process, initialize(revision))

    process.send_signal(getattr(signal, name))

    assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert process.wait(timeout=50) == 0


@pytest.mark.parametrize("ends", [True, False])
def test_who_has_ended_a_line(ends):
    """
    A wire that is ended says that the client has not said so: it may have sent the rest of a line.
    """
    ours, theirs = os.pipe()
    wire = StdioPipes(ours, theirs)
    os.write(theirs, b'{"jso')
    begun = wire.read()
    if ends:
        wire.end()
    os.close(theirs)
    ended = wire.read()
    os.close(ours)

    assert (begun, ended, type(ended)) == (b'{"jso', b"", CutOff if ends else bytes)


@pytest.mark.requirement("stdio/server-ends")
def test_a_signal_ends_streams(serve):
    """
    A client of the modern era is notified of the end of its stream before the output is closed.
    """
    process = serve(GREET)
    opened = ask(
        process, modern("s", "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    )

    process.terminate()

    result, cancelled = [json.loads(told) for told in process.stdout.read().splitlines()]
    assert opened["method"] == "notifications/subscriptions/acknowledged"
    assert (result["id"], result["result"]["resultType"]) == ("s", "complete")
    assert (cancelled["method"], cancelled["params"]) == ("notifications/cancelled", {"requestId": "s"})
    assert process.wait(timeout=50) == 0


def test_the_end_of_the_input_ends_it(serve):
    """
    What a client of the modern era has asked is answered, then the process ends, whatever waits.
    """
    process = serve(GREET, "--grace", "0.2")
    waiting = modern(1, "prompts/get", {"name": "waiting", "arguments": {"seconds": "30"}})
    started = time.monotonic()

    replies, _, code = talk(process, waiting, modern(2, "prompts/list"))

    assert ([reply["id"] for reply in replies if "result" in reply], code) == ([2], 0)
    assert time.monotonic() - started < 10


def test_a_signal_finds_a_prompt_at_work(serve):
    """
    A prompt that sleeps on does not hold the process after a signal either. Its client has not hung up, and
    is told.
    """
    process = serve(GREET, "--grace", "0.2")
    ask(process, initialize("2025-06-18"))
    ask(process, get(1, "sleepy", seconds="60"), request(2, "ping"))

    process.terminate()

    (reply,) = map(json.loads, process.stdout.read().splitlines())
    assert reply["error"]["message"] == "the server ended before prompts/get was answered"
    assert process.wait(timeout=50) == 0


def test_a_client_that_goes_away(serve):
    """
    When the output is no longer read the process ends by itself, without a traceback.
    """
    process = serve(GREET)
    ask(process, initialize("2025-06-18"))
    process.stdout.close()

    process.stdin.write(line(request(1, "ping")))
    process.stdin.flush()

    assert (process.wait(timeout=50), process.stderr.read()) == (0, b"")


def test_a_client_that_goes_away_while_a_prompt_runs(serve):
    """
    The process ends by itself when a late reply finds no reader, though the input stays open.
    """
    process = serve(GREET)
    ask(process, initialize("2025-06-18"))
    process.stdin.write(line(get(1, "waiting", seconds="0.2")))
    process.stdin.flush()
    process.stdout.close()

    assert process.wait(timeout=50) == 0


@pytest.mark.parametrize("end", ["stdin", "stdout"])
def test_descriptors_that_do_not_block(recipes, end):
    """
    A client that has set its pipes to non-blocking is served all the same.
    """
    requests = b"".join(line(get(number, "greet", name="x" * 9000)) for number in range(1, 101))
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
    """Write after a pause, in which a reader finds nothing, and close."""
    time.sleep(0.3)
    with open(descriptor, "wb") as pipe:
        pipe.write(data)


def test_threads_left_behind_do_not_hold_the_process(serve):
    """
    A thread that a recipe has started does not keep the process after its client is gone.
    """
    leaving = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"

    _, _, code = talk(serve(leaving + GREET), initialize("2025-06-18"))

    assert code == 0


def test_diagnostics_go_to_stderr_and_the_rest_is_served(serve):
    """
    A fault is printed, and the other prompts are served.
    """
    replies, logged, code = talk(
        serve(GREET + "\n@prompt\ndef broken(a): return a\n"),
        initialize("2025-06-18"),
        get(1, "greet", name="x"),
    )

    assert (text(replies[1]), code) == ("Hello, x.", 0)
    assert "error PK301: prompt 'broken': parameter 'a' has no annotation" in logged


def test_strict_serving_refuses(serve):
    """
    With --strict a fault is enough not to serve.
    """
    replies, logged, code = talk(serve("@", "--strict"), initialize("2025-06-18"))

    assert (replies, code) == ([], 1)
    assert "PK101" in logged


def test_a_closed_standard_error_does_no_harm(recipes):
    """
    Without a standard error, what prompts print is dropped and the wire stays clean.
    """
    folder = recipes(recipe=NOISY)

    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m promptkit serve "{folder}" 2>&-'],
        input=OPENING + line(get(1, "noisy")),
        capture_output=True,
        timeout=50,
        check=False,
    )

    assert sorted(json.loads(reply)["id"] for reply in ran.stdout.splitlines()) == [0, 1]


@pytest.mark.parametrize("closed", ["0<&-", "1>&-"])
def test_a_closed_wire_is_wrong_usage(recipes, closed):
    """
    Without standard input or output there is nothing to serve on.
    """
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m promptkit serve "{recipes(recipe=GREET)}" {closed}'],
        input=OPENING,
        capture_output=True,
        timeout=50,
        check=False,
    )

    assert ran.returncode == 2
    assert ran.stderr.startswith(b"promptkit: standard input and output must be open: ")


def test_on_a_terminal_it_says_what_to_do(recipes):
    """
    A person who starts the server by hand sees one line on what it waits for.
    """
    keyboard, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "promptkit", "serve", str(recipes(recipe=GREET))],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(terminal)
    said = process.stderr.readline().decode()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=50)
    os.close(keyboard)

    assert said.startswith("promptkit: waiting for an MCP client on standard input; to see a prompt, run: ")
    assert process.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a process keeps its dead parent")
def test_a_parent_that_dies(recipes):
    """
    A server whose client dies ends by itself, also if its input is still held open.
    """
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
        output = parent.stdout.read()  # which ends with the server

    os.close(theirs)
    assert output == b""
