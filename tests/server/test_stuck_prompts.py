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
from tests.wire import MODERN, REVISIONS, initialize, line, notification, request

pytestmark = [pytest.mark.sampled, pytest.mark.slow]

#: Everything that takes half a minute, as a method and its params.
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

#: What is answered at once.
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
@pytest.mark.parametrize("stuck", STUCK)
def test_nothing_waits_for_what_is_stuck(start, stuck):
    """
    While an author's code does not come back, everything else is answered, also what came
    in the same piece, and the same thing asked for again.
    """
    client = start()
    method, params = STUCK[stuck]

    for number in (1, 11):
        client.write(request(number, method, params), request(number + 1, "ping"))
        client.wait_for(number + 1)
        for offset, (quick, its_params) in enumerate(QUICK, number + 2):
            client.ask(offset, quick, its_params)
            assert "result" in client.wait_for(offset)
    took, code, _ = client.end()

    assert code == 0
    assert took < 10


@pytest.mark.requirement("stdio/end-of-input", "stdio/server-ends")
@pytest.mark.parametrize("stuck", ["sleeps", "spins", "blocks", "awaits", "swallows", "resource"])
@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_the_end_waits_for_nobody(start, stuck, revision):
    """
    At the end of the input a prompt that goes on has its grace; then the process ends, and says no more.
    """
    client = start("--grace", "0.2", revision=revision)
    client.ask(1, *STUCK[stuck])
    client.ask(2, "prompts/list", {})
    client.wait_for(2)

    took, code, found = client.end()

    assert (code, found) == (0, [])
    assert took < 10


@pytest.mark.parametrize("stuck", ["sleeps", "spins", "yields", "blocks", "awaits", "swallows", "completion"])
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_what_is_stuck_can_be_cancelled(start, stuck, revision):
    """
    A cancelled request is not answered, its id is free, and the others go on.
    """
    client = start(revision=revision)
    client.ask(1, *STUCK[stuck])
    client.ask(2, "prompts/list", {})
    client.wait_for(2)
    client.write(notification("notifications/cancelled", {"requestId": 1}))
    client.ask(1, "prompts/get", {"name": "quick"})

    assert client.wait_for(1)["result"]["messages"][0]["content"]["text"] == "Hello, you."
    assert client.end()[2] == []


@pytest.mark.parametrize("name", ["short", "brief"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_time_limit_holds(start, name, revision):
    """
    Whatever a prompt does, its client gets one error when its time is up, and standard error says so under
    the same id, with that of the request.
    """
    client = start(revision=revision)
    client.ask(1, "prompts/get", {"name": name})

    said, _, told = client.wait_for(1)["error"]["message"].partition(" (error ")
    assert said == f"prompt '{name}' took longer than its limit of 0.2 s"
    assert re.fullmatch(r"[0-9a-f]{8}\)", told)
    assert client.end()[2] == []
    printed, _, place = client.process.stderr.read().decode().partition(", and was at ")
    assert printed == f"promptkit: error {told[:8]} in prompts/get, request 1: {said}"
    assert re.fullmatch(r"\S+recipe\.py:\d+\n", place)


#: What stands in the line in which each of them is stuck.
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


@pytest.mark.parametrize("stuck", LINES)
def test_a_time_limit_says_where_the_code_was(start, stuck):
    """
    The author is told the file and the line, on standard error; the client is not.
    """
    client = start("--timeout", "0.3", "--grace", "0.1")
    await_import(client)
    client.ask(1, *STUCK[stuck])

    message = client.wait_for(1)["error"]["message"]
    client.end()
    said = client.process.stderr.read().decode()

    words = r"(\w+ '\S+' took longer than its limit of 0\.3 s), and was at (.*recipe\.py):(\d+)\n"
    (shown, file, line), *others = re.findall(words, said)
    assert message.startswith(shown)
    assert others == []
    assert any(part in BUSY.splitlines()[int(line)] for part in LINES[stuck].split("|"))
    assert file not in message


def test_every_prompt_has_a_time_limit(start):
    """
    A prompt whose author has set none has that of the server.
    """
    client = start("--timeout", "0.3")
    await_import(client)
    client.ask(1, "prompts/get", {"name": "sleeps"})

    assert client.wait_for(1)["error"]["message"].startswith(
        "prompt 'sleeps' took longer than its limit of 0.3 s"
    )


def test_a_prompt_that_is_found_late_is_named(monkeypatch):
    """
    Where a busy machine takes its time over finding the prompt, the error names it all the same.
    """
    seek, go_on = Catalog.__getitem__, threading.Event()

    def seek_slowly(catalog, name):
        time.sleep(0.3)  # by then another thread has taken over
        return seek(catalog, name)

    @prompt
    def waits():
        go_on.wait(50)
        return "done"

    monkeypatch.setattr(Catalog, "__getitem__", seek_slowly)
    arrived, told, ended = Queue(), Queue(), threading.Event()
    server = Server(compile(Recipes(prompts=(waits,))), told.put, limits=Limits(timeout=1))
    server.read_from(arrived.get, ended.set)
    arrived.put(line(initialize("2025-06-18")))
    told.get(timeout=50)
    arrived.put(line(request(1, "prompts/get", {"name": "waits"})))
    reply = json.loads(told.get(timeout=50))
    go_on.set()
    arrived.put(b"")

    assert ended.wait(50)
    assert reply["error"]["message"].startswith("prompt 'waits' took longer than its limit of 1 s")


def test_a_late_reply_still_comes(start, tmp_path):
    """
    A prompt that takes its time is answered when it is ready, after what was asked later.
    """
    client, file = start(), tmp_path / "ready"
    client.write(
        request(1, "prompts/get", {"name": "follows", "arguments": {"file": str(file)}}), request(2, "ping")
    )

    assert client.wait_for(2)["result"] == {}
    assert client.kept == []
    file.touch()
    assert "result" in client.wait_for(1)


def test_requests_above_the_limit_wait(start):
    """
    Requests above `--max-renders` run when there is room. Above `--max-waiting` a request is refused, and
    others are answered meanwhile.
    """
    client = start("--max-renders", "2", "--max-waiting", "1")
    await_import(client)
    time.sleep(0.2)  # until the thread that has answered it takes no room
    for number in (1, 2):
        client.ask(number, "prompts/get", {"name": "awaits"})
    for number in (3, 4):
        client.ask(number, "prompts/get", {"name": "quick"})

    assert client.wait_for(4)["error"] == {
        "code": 429,
        "message": "1 requests wait already, which is the limit: try again later",
    }
    client.ask(5, "prompts/list", {})
    assert "result" in client.wait_for(5)
    assert client.kept == []
    client.write(notification("notifications/cancelled", {"requestId": 1}))
    assert "result" in client.wait_for(3)


def test_a_prompt_that_runs_after_its_time_limit_takes_room(start, tmp_path):
    """
    Its request gets one reply, the error. The prompt counts against `--max-renders` until it returns.
    """
    client, file = start("--max-renders", "1"), tmp_path / "ready"
    client.ask(1, "prompts/get", {"name": "lingers", "arguments": {"file": str(file)}})
    client.ask(2, "prompts/get", {"name": "quick"})

    assert "took longer" in client.wait_for(1)["error"]["message"]
    client.ask(3, "ping", {})
    client.wait_for(3)
    assert client.kept == []
    file.touch()
    assert "result" in client.wait_for(2)
    assert client.end()[2] == []


def test_what_was_slow_is_tried_again():
    """
    A prompt that held up its thread, and is quick now, is rendered where it is read again.
    """
    threads, slow_calls = (
        [],
        3,
    )  # more than one: on a busy machine, a request may be late before it is in the prompt

    @prompt
    def wakes():
        threads.append(threading.current_thread())
        if len(threads) <= slow_calls:
            time.sleep(0.3)
        return "done"

    arrived, told, ended = Queue(), Queue(), threading.Event()
    server = Server(compile(Recipes(prompts=(wakes,))), told.put)
    server.read_from(arrived.get, ended.set)
    arrived.put(line(initialize("2025-06-18")))
    told.get(timeout=50)
    for number in range(1, 13):
        arrived.put(line(request(number, "prompts/get", {"name": "wakes"})))
        told.get(timeout=50)
    arrived.put(b"")

    assert ended.wait(50)
    first_quick, *later = threads[slow_calls:]
    assert first_quick not in (threads[slow_calls - 1], later[0])
    assert any(one is other for one, other in itertools.pairwise(later))  # but for a busy machine, each pair
