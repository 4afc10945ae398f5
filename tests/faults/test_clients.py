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

pytestmark = pytest.mark.sampled

#: How long the end may take, in seconds: the grace of a second, and what it takes to exit.
SOON = 1.5

LARGE = {"name": "large", "arguments": {"size": "200000"}}


def gets(numbers, params=LARGE):
    """Return requests for one prompt, each a line."""
    return [line(modern(number, "prompts/get", params)) for number in numbers]


def faults(lines, sent):
    """Return what is wrong with the *lines* that came for what was *sent*."""
    ledger, schemas = Ledger(), Schemas()
    for text in sent:
        ledger.sent(text)
    invalid = [text[:200] for text in lines if not schemas.allow(text)]
    for text in lines:
        ledger.came(text)
    return invalid + list(ledger.faults().items())


def stalled(serving, sent):
    """Send *sent* until the server, whose replies are not read, takes no more."""
    for part in sent:
        if serving.offer(part, 1.0) < len(part):
            return
    pytest.fail("it took everything though nobody reads")


class TestReading:
    def test_slowly(self, serve, whole):
        """A client that reads slowly gets everything, once and whole."""
        serving = serve(reads=False)
        sent = gets(range(100 if whole else 20))
        serving.write(b"".join(sent))
        serving.process.stdin.close()

        while serving.read(16_384):
            time.sleep(0.0005)  # that is the slowness

        assert serving.process.wait(PATIENCE) == 0
        assert faults(serving.drained(), sent) == []

    def test_not_for_a_while(self, serve):
        """A client that stops reading, and goes on later, has lost nothing."""
        serving = serve(reads=False)
        sent = gets(range(500))
        taken = serving.offer(b"".join(sent), 1.0)
        time.sleep(1)  # that is the while

        serving.read_on()
        serving.write(b"".join(sent)[taken:])

        assert serving.serves()
        assert serving.end()[1] == 0
        extra = [line(modern("served?", "prompts/list")), line(request(f"served? {MODERN}", "ping"))]
        assert faults(serving.drained(), sent + extra) == []

    def test_no_more(self, serve):
        """
        A client that stops reading cannot keep a process that is told to end, and what it finds
        later are whole lines, but for the last.
        """
        serving = serve(reads=False)
        sent = gets(range(2000))
        serving.send(request("before", "ping"))
        serving.read(100)
        stalled(serving, sent)

        took, code = serving.told()

        assert (took < SOON, code) == (True, 0)
        serving.read_on()
        *lines, last = serving.drained()
        assert last
        assert len(lines) < len(sent)
        assert [text for text in lines if not Schemas().allow(text)] == []

    def test_after_the_end_of_the_input(self, serve):
        """
        Replies that wait to be read are not cut off because the input has ended, as in a pipe
        to a program that shows a page at a time; the process ends when they are read.
        """
        serving = serve(reads=False)
        first = line(modern("first", "prompts/list"))
        serving.write(first)
        serving.read(1)  # the recipes are imported
        sent = gets(range(300))
        taken = serving.offer(b"".join(sent), 1.0)
        serving.process.stdin.close()
        with pytest.raises(TimeoutExpired):
            serving.process.wait(1.5)  # longer than anything has to wait for a prompt

        serving.read_on()

        assert serving.process.wait(PATIENCE) == 0
        lines = b"".join(sent)[:taken].splitlines(keepends=True)  # the last may be cut off, which is an error
        assert faults(serving.drained(), [first, *lines]) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_writing_a_byte_at_a_time(serve, whole, revision):
    """A client that writes one byte at a time gets what any other gets."""
    serving, messages = serve(), []
    for turn in range(5 if whole else 1):
        numbers = (f"{turn} {number}" for number in count())
        messages += [
            found for found in session(revision, numbers) if "subscriptions/listen" not in str(found)
        ]
    sent = list(map(line, messages))
    ledger = Ledger()

    for byte in b"".join(sent):
        serving.write(bytes([byte]))
    serving.send(modern("last", "prompts/list"))
    serving.wait(lambda: any(b'"last"' in text for _, text in serving.lines))
    assert serving.end()[1] == 0

    for text in sent:
        ledger.sent(text)
    assert [text for text in serving.drained() if not Schemas().allow(text)] == []
    for text in serving.drained():
        ledger.came(text)
    ledger.replies.pop('"last"')
    assert ledger.faults() == {}


class TestVanishing:
    @pytest.mark.parametrize("busy", ["idle", "flooded", "sleeps", "naps"])
    def test_both_ends_close(self, serve, busy):
        """When a client is gone, whatever it has asked for, the process ends, and soon."""
        serving = serve(reads=False)
        serving.send(request("before", "ping"))
        serving.read(100)
        if busy == "flooded":
            stalled(serving, gets(range(2000)))
        elif busy != "idle":
            serving.write(gets([1], {"name": busy})[0] + line(request(2, "ping")))
            serving.read(100)

        serving.process.stdout.close()

        took, code = serving.end()
        assert (took < SOON, code) == (True, 0)

    def test_client_is_killed(self, serve, tmp_path):
        """A client that is killed in the middle of a line leaves no server behind."""
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

        until = time.monotonic() + PATIENCE
        while _runs(number):
            assert time.monotonic() < until
            time.sleep(0.01)


#: Starts a server, has it answer, writes half a line, says so, and waits to be killed.
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


def _runs(number):
    """Return whether a process that is not a child of this one runs; a zombie does not."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{number}/stat")
    return not status.is_file() or status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_in_mid_write(self, serve, whole, figures, number):
        """
        Told to end in the middle of writing, it ends soon and with whole lines: none is cut, mixed
        or sent twice, and replies come for the requests that came first.
        """
        slowest, answered = 0.0, []
        for turn in range(20 if whole else 3):
            serving = serve()
            sent = gets(range(400))
            serving.write(b"".join(sent[:1]))
            serving.wait(lambda serving=serving: serving.lines)
            serving.write(b"".join(sent[1 : 100 + turn]))
            serving.wait(lambda serving=serving: len(serving.lines) > 1)

            took, code = serving.told(number)

            assert (took < SOON, code) == (True, 0)
            lines = serving.drained()
            assert serving.rest == b""
            assert [text[:200] for text in lines if not Schemas().allow(text)] == []
            ids = [json.loads(text)["id"] for text in lines]
            assert ids == list(range(len(ids)))
            slowest, answered = max(slowest, took), [*answered, len(ids)]
        figures(signal=number.name, slowest_exit=f"{slowest:.2f} s", answered=answered)
