import itertools
import json
import re
import threading
import time
from queue import Queue

import pytest

from promptkit import prompt
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from tests.server.busy_server import BUSY
from tests.wire import MODERN, initialize, line, notification, request

pytestmark = pytest.mark.slow

#: Methods and params of requests that take 30 seconds.
STUCK = {
    **{
        name: ("prompts/get", {"name": name})
        for name in ("sleeps", "spins", "digests", "yields", "blocks", "awaits", "swallows")
    },
    "completion": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "offers"}, "argument": {"name": "word", "value": ""}},
    ),
    "resource": ("resources/read", {"uri": "slow://one"}),
}

#: Methods and params of quick requests.
QUICK = [
    ("prompts/list", {}),
    ("prompts/get", {"name": "quick"}),
    ("resources/read", {"uri": "quick://one"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "quick"}, "argument": {"name": "name", "value": ""}},
    ),
]


def await_import(client):
    """Wait until the recipes are imported, so that no later request waits for them."""
    for number in itertools.count(100):
        client.ask(number, "prompts/list", {})
        if "result" in client.wait_for(number):
            break


@pytest.mark.requirement("ping/answered")
@pytest.mark.parametrize(
    "stuck",
    [["sleeps", "yields", "completion", "resource"], ["spins", "spins"], ["blocks", "blocks"]],
    ids=["threads", "processor", "loop"],
)
def test_stuck_request_delays_no_other(start, stuck):
    """While an author's code is stuck, all other requests are answered, even those in the same write."""
    client = start()

    for number, name in zip(itertools.count(1, 10), stuck, strict=False):
        client.write(request(number, *STUCK[name]), request(number + 1, "ping"))
        client.wait_for(number + 1)
        for offset, (quick, its_params) in enumerate(QUICK, number + 2):
            client.ask(offset, quick, its_params)
            assert "result" in client.wait_for(offset)
    duration, code, _ = client.end()

    assert code == 0
    assert duration < 10


@pytest.mark.requirement("stdio/end-of-input", "stdio/server-ends")
@pytest.mark.parametrize(
    ("stuck", "revision"),
    [
        *((stuck, "2025-06-18") for stuck in ("sleeps", "spins", "blocks")),
        ("swallows", MODERN),
    ],
)
def test_end_of_input_with_a_stuck_request(start, stuck, revision):
    """At the end of the input a stuck prompt has its grace period; then the process exits without a reply."""
    client = start("--grace", "0.2", revision=revision)
    client.ask(1, *STUCK[stuck])
    client.ask(2, "prompts/list", {})
    client.wait_for(2)

    duration, code, messages = client.end()

    assert (code, messages) == (0, [])
    assert duration < 10


@pytest.mark.parametrize(
    ("stuck", "revision"),
    [(["sleeps", "awaits", "completion"], "2024-11-05"), (["yields", "blocks"], MODERN)],
    ids=["handshake", "modern"],
)
def test_stuck_request_can_be_cancelled(start, stuck, revision):
    """A cancelled request is not answered, its id is free, and other requests continue."""
    client = start(revision=revision)
    for number, name in zip(itertools.count(1, 2), stuck, strict=False):
        client.ask(number, *STUCK[name])
        client.ask(number + 1, "prompts/list", {})
        client.wait_for(number + 1)
        client.write(notification("notifications/cancelled", {"requestId": number}))
        client.ask(number, "prompts/get", {"name": "quick"})

        assert client.wait_for(number)["result"]["messages"][0]["content"]["text"] == "Hello, you."
    assert client.end()[2] == []


@pytest.mark.parametrize(("name", "revision"), [("short", "2025-11-25"), ("brief", MODERN)])
def test_timeout(start, name, revision):
    """After the timeout the client gets one error, which standard error shows with the same id."""
    client = start(revision=revision)
    client.ask(1, "prompts/get", {"name": name})

    message, _, error_id = client.wait_for(1)["error"]["message"].partition(" (error ")
    assert message == f"prompt '{name}' took longer than its limit of 0.2 s"
    assert re.fullmatch(r"[0-9a-f]{8}\)", error_id)
    assert client.end()[2] == []
    printed, _, location = client.process.stderr.read().decode().partition(", and was at ")
    assert printed == f"promptkit: error {error_id[:8]} in prompts/get, request 1: {message}"
    assert re.fullmatch(r"\S+recipe\.py:\d+\n", location)


#: Parts of the line in which each request is stuck.
LINES = {
    "sleeps": "time.sleep(seconds)",
    "spins": "while time.monotonic() < end|pass",
    "digests": "hashlib.pbkdf2_hmac",
    "yields": "time.sleep(seconds)",
    "blocks": "time.sleep(seconds)",
    "awaits": "await asyncio.sleep(seconds)",
    "swallows": "await asyncio.sleep(seconds)",
    "completion": "time.sleep(30)",
    "resource": "time.sleep(30)",
}


@pytest.mark.parametrize(
    "stuck",
    [
        ["sleeps", "spins", "digests", "yields", "completion", "resource"],
        ["awaits", "swallows"],
        ["blocks"],  # separately, because no other coroutine would start
    ],
    ids=["threads", "coroutines", "loop"],
)
def test_timeout_reports_the_line(start, stuck):
    """After a timeout, standard error shows the file and the line of the prompt; the reply does not."""
    client = start("--timeout", "3", "--grace", "0.1")
    await_import(client)
    # Start the event loop, which can take longer than the limit on a busy machine.
    client.ask(50, "prompts/get", {"name": "awaits", "arguments": {"seconds": "0"}})
    client.wait_for(50)
    for number, name in enumerate(stuck):
        client.ask(number, *STUCK[name])

    messages = [client.wait_for(number)["error"]["message"] for number, _ in enumerate(stuck)]
    client.end()
    stderr = client.process.stderr.read().decode()

    pattern = (
        r"request (\d+): (\S+ ?'?\S*'? took longer than its limit of 3 s), and was at (.*recipe\.py):(\d+)\n"
    )
    reports = {int(number): report for number, *report in re.findall(pattern, stderr)}
    reports.pop(50, None)  # if the event loop was too slow
    assert reports.keys() == set(range(len(stuck))), stderr
    for number, name in enumerate(stuck):
        explanation, file, line_number = reports[number]
        assert messages[number].startswith(explanation)
        assert any(part in BUSY.splitlines()[int(line_number)] for part in LINES[name].split("|"))
        assert file not in messages[number]


def test_default_timeout(start):
    """A prompt without a timeout has the server's timeout."""
    client = start("--timeout", "0.3")
    await_import(client)
    client.ask(1, "prompts/get", {"name": "sleeps"})

    assert client.wait_for(1)["error"]["message"].startswith(
        "prompt 'sleeps' took longer than its limit of 0.3 s"
    )


def test_slow_lookup(monkeypatch):
    """The timeout error names the prompt even if the lookup of the prompt was slow."""
    getitem, release = Catalog.__getitem__, threading.Event()

    def getitem_slowly(catalog, name):
        time.sleep(0.3)  # by then another thread has taken over
        return getitem(catalog, name)

    @prompt
    def waits():
        release.wait(50)
        return "done"

    monkeypatch.setattr(Catalog, "__getitem__", getitem_slowly)
    arrived, output, ended = Queue(), Queue(), threading.Event()
    server = Server(compile(Recipes(prompts=(waits,))), output.put, limits=Limits(timeout=1))
    server.read_from(arrived.get, ended.set)
    arrived.put(line(initialize("2025-06-18")))
    output.get(timeout=50)
    arrived.put(line(request(1, "prompts/get", {"name": "waits"})))
    reply = json.loads(output.get(timeout=50))
    release.set()
    arrived.put(b"")

    assert ended.wait(50)
    assert reply["error"]["message"].startswith("prompt 'waits' took longer than its limit of 1 s")


def test_slow_prompt_is_answered(start, tmp_path):
    """A slow prompt is answered when it is ready, after later requests."""
    client, file = start(), tmp_path / "ready"
    client.write(
        request(1, "prompts/get", {"name": "follows", "arguments": {"file": str(file)}}), request(2, "ping")
    )

    assert client.wait_for(2)["result"] == {}
    assert client.unclaimed == []
    file.touch()
    assert "result" in client.wait_for(1)


def test_limits_of_running_and_queued_requests(start):
    """Requests above `--max-renders` are queued, and requests above `--max-waiting` are rejected."""
    client = start("--max-renders", "2", "--max-waiting", "1")
    await_import(client)
    time.sleep(0.2)  # until the thread that answered is idle
    for number in (1, 2):
        client.ask(number, "prompts/get", {"name": "awaits"})
    for number in (3, 4):
        client.ask(number, "prompts/get", {"name": "quick"})

    assert client.wait_for(4)["error"] == {
        "code": 429,
        "message": "1 requests are already waiting, which is the limit: try again later",
    }
    client.ask(5, "prompts/list", {})
    assert "result" in client.wait_for(5)
    assert client.unclaimed == []
    client.write(notification("notifications/cancelled", {"requestId": 1}))
    assert "result" in client.wait_for(3)


def test_timed_out_prompt_counts_until_it_returns(start, tmp_path):
    """A timed-out request gets one error; its prompt counts against `--max-renders` until it returns."""
    client, file = start("--max-renders", "1"), tmp_path / "ready"
    client.ask(1, "prompts/get", {"name": "lingers", "arguments": {"file": str(file)}})
    client.ask(2, "prompts/get", {"name": "quick"})

    assert "took longer" in client.wait_for(1)["error"]["message"]
    client.ask(3, "ping", {})
    client.wait_for(3)
    assert client.unclaimed == []
    file.touch()
    assert "result" in client.wait_for(2)
    assert client.end()[2] == []


def test_prompt_that_becomes_quick():
    """A prompt that was slow and has become quick runs on the reading thread again."""
    threads = []
    slow_calls = 3  # several, because on a busy machine a request can be late before its prompt starts

    @prompt
    def wakes():
        threads.append(threading.current_thread())
        if len(threads) <= slow_calls:
            time.sleep(0.3)
        return "done"

    arrived, output, ended = Queue(), Queue(), threading.Event()
    server = Server(compile(Recipes(prompts=(wakes,))), output.put)
    server.read_from(arrived.get, ended.set)
    arrived.put(line(initialize("2025-06-18")))
    output.get(timeout=50)
    for number in range(1, 13):
        arrived.put(line(request(number, "prompts/get", {"name": "wakes"})))
        output.get(timeout=50)
    arrived.put(b"")

    assert ended.wait(50)
    first_quick, *later = threads[slow_calls:]
    assert first_quick not in (threads[slow_calls - 1], later[0])
    # All pairs, unless the machine is busy.
    assert any(former is latter for former, latter in itertools.pairwise(later))
