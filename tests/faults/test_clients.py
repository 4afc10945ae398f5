"""Clients that read slowly, stop reading, disappear, or send signals."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from tests.faults.ledger import Ledger, Schemas
from tests.faults.recorded import session
from tests.faults.serving import PATIENCE
from tests.wire import MODERN, REVISIONS, line, modern, request

#: The limit for the exit in seconds. The grace period is one second, but a busy machine needs longer, and a
#: process that waits for its client does not exit at all.
EXIT_S = 10.0

LARGE = {"name": "large", "arguments": {"size": "200000"}}


def get_requests(numbers, params=LARGE):
    """Return requests for one prompt, as lines."""
    return [line(modern(number, "prompts/get", params)) for number in numbers]


def reply_errors(lines, sent):
    """Return the errors in the *lines* that were received for *sent*."""
    ledger, schemas = Ledger(), Schemas()
    for text in sent:
        ledger.record_sent(text)
    invalid = [text[:200] for text in lines if not schemas.allow(text)]
    for text in lines:
        ledger.record_received(text)
    return invalid + list(ledger.errors().items())


def send_until_stalled(serving, sent):
    """Send *sent* until the server, whose output is not read, takes no more."""
    for part in sent:
        if serving.offer(part, 1.0) < len(part):
            return
    pytest.fail("the server took everything although its output is not read")


class TestReading:
    def test_slow_reader_gets_all_replies(self, serve, full_length):
        """Each reply arrives exactly once and completely."""
        # The input ends at once, and a busy machine needs more than a second for the replies.
        serving = serve("--grace", str(PATIENCE), reads=False)
        sent = get_requests(range(100 if full_length else 20))
        serving.write(b"".join(sent))
        serving.process.stdin.close()

        while serving.read(16_384):
            time.sleep(0.0005)  # the slow client

        assert serving.process.wait(PATIENCE) == 0
        assert reply_errors(serving.all_output(), sent) == []

    def test_reader_that_pauses_loses_nothing(self, serve):
        """A client that stops reading for a while gets all replies."""
        # Hundreds of replies are pending when the input ends, and a busy machine needs more than a second.
        serving = serve("--grace", str(PATIENCE), reads=False)
        sent = get_requests(range(500))
        written = serving.offer(b"".join(sent), 1.0)
        time.sleep(1)  # the pause

        serving.start_reading()
        serving.write(b"".join(sent)[written:])

        assert serving.is_serving()
        assert serving.end()[1] == 0
        extra = [line(modern("serving?", "prompts/list")), line(request(f"serving? {MODERN}", "ping"))]
        assert reply_errors(serving.all_output(), sent + extra) == []

    def test_client_that_stops_reading_cannot_prevent_the_exit(self, serve):
        """The process exits on a signal, and all lines in the pipe are complete except the last one."""
        serving = serve(reads=False)
        sent = get_requests(range(2000))
        serving.send(request("before", "ping"))
        serving.read(100)
        send_until_stalled(serving, sent)

        seconds, code = serving.stop()

        assert (seconds < EXIT_S, code) == (True, 0)
        serving.start_reading()
        *lines, last = serving.all_output()
        assert last
        assert len(lines) < len(sent)
        assert [text for text in lines if not Schemas().allow(text)] == []

    def test_unread_replies_outlive_the_input(self, serve):
        """
        Pending replies are not cut off when the input ends, as in a pipe to a pager; the process exits once
        they are read.
        """
        serving = serve(reads=False)
        first = line(modern("first", "prompts/list"))
        serving.write(first)
        serving.read(1)  # the recipes are imported
        sent = get_requests(range(300))
        written = serving.offer(b"".join(sent), 1.0)
        serving.process.stdin.close()
        with pytest.raises(TimeoutExpired):
            serving.process.wait(1.5)  # longer than any prompt takes

        serving.start_reading()

        assert serving.process.wait(PATIENCE) == 0
        lines = b"".join(sent)[:written].splitlines(
            keepends=True
        )  # the last one can be cut off, which is an error
        assert reply_errors(serving.all_output(), [first, *lines]) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_input_of_single_bytes(serve, full_length, revision):
    """Writing one byte at a time makes no difference."""
    serving, messages = serve(), []
    for turn in range(5 if full_length else 1):
        numbers = (f"{turn} {number}" for number in count())
        messages += [
            message for message in session(revision, numbers) if "subscriptions/listen" not in str(message)
        ]
    sent = list(map(line, messages))
    ledger = Ledger()

    for byte in b"".join(sent):
        serving.write(bytes([byte]))
    serving.send(modern("last", "prompts/list"))
    serving.wait(lambda: any(b'"last"' in text for _, text in serving.lines))
    assert serving.end()[1] == 0

    for text in sent:
        ledger.record_sent(text)
    assert [text for text in serving.all_output() if not Schemas().allow(text)] == []
    for text in serving.all_output():
        ledger.record_received(text)
    ledger.replies.pop('"last"')
    assert ledger.errors() == {}


class TestDisconnecting:
    @pytest.mark.parametrize("busy", ["idle", "flooded", "sleeps", "naps"])
    def test_server_exits_when_both_pipes_close(self, serve, busy):
        """When both pipes are closed, the process exits soon, whatever is pending."""
        serving = serve(reads=False)
        serving.send(request("before", "ping"))
        serving.read(100)
        if busy == "flooded":
            send_until_stalled(serving, get_requests(range(2000)))
        elif busy != "idle":
            serving.write(get_requests([1], {"name": busy})[0] + line(request(2, "ping")))
            serving.read(100)

        serving.process.stdout.close()

        seconds, code = serving.end()
        assert (seconds < EXIT_S, code) == (True, 0)

    def test_server_exits_when_the_client_is_killed(self, serve, tmp_path):
        """A client that is killed in the middle of a line leaves no server running."""
        folder = serve().process.args[4]
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, sys.executable, folder, str(tmp_path / "log")],
            stdout=subprocess.PIPE,
        )
        try:
            ready, _, _ = select.select([client.stdout], [], [], PATIENCE)
            assert ready
            number = int(client.stdout.readline())
        finally:
            client.kill()
            client.wait()
            client.stdout.close()

        deadline = time.monotonic() + PATIENCE
        while _is_running(number):
            assert time.monotonic() < deadline
            time.sleep(0.01)


#: Starts a server, waits for a reply, writes half a line, prints the process id, and waits to be killed.
CLIENT = """
import subprocess, sys, time
server = subprocess.Popen(
    [sys.argv[1], "-m", "promptkit", "serve", sys.argv[2]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(sys.argv[3], "wb"),
)
server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
server.stdin.flush()
server.stdout.readline()
server.stdin.write(b'{"jsonrpc":"2.0","id":2,"meth')
server.stdin.flush()
print(server.pid, flush=True)
time.sleep(60)
"""


def _is_running(number):
    """Return whether a process that is not a child of this one is running; zombies do not count."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{number}/stat")
    return not status.is_file() or status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_signal_in_the_middle_of_a_write(self, serve, full_length, figures, number):
        """
        The server exits soon, and its output consists of complete lines, none of them mixed or repeated, with
        replies to the earliest requests.
        """
        slowest, answered = 0.0, []
        for turn in range(20 if full_length else 3):
            serving = serve()
            sent = get_requests(range(400))
            serving.write(b"".join(sent[:1]))
            serving.wait(lambda serving=serving: serving.lines)
            serving.write(b"".join(sent[1 : 100 + turn]))
            serving.wait(lambda serving=serving: len(serving.lines) > 1)

            seconds, code = serving.stop(number)

            assert (seconds < EXIT_S, code) == (True, 0)
            lines = serving.all_output()
            assert serving.partial_line == b""
            assert [text[:200] for text in lines if not Schemas().allow(text)] == []
            ids = [json.loads(text)["id"] for text in lines]
            assert ids == list(range(len(ids)))
            slowest, answered = max(slowest, seconds), [*answered, len(ids)]
        figures(signal=number.name, slowest_exit=f"{slowest:.2f} s", answered=answered)
