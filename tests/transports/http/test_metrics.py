"""What Prometheus reads of servers over HTTP, as its own parser reads it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException

import pytest
from prometheus_client.parser import text_string_to_metric_families

from promptkit.errors.distribution import install_command
from tests.posting import PLAIN, agreeing
from tests.transports.http.conftest import GREET, PATIENCE
from tests.wire import modern

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")

COUNTING = '''
import os
from prometheus_client import Counter
from promptkit import prompt

GREETINGS = Counter("greetings", "How often somebody was greeted.")

@prompt
def greet():
    """Greet, and state which process does."""
    GREETINGS.inc()
    return str(os.getpid())
'''

LOADED = '''
import sys
from promptkit import prompt

@prompt
def loaded():
    """Say whether what counts is loaded."""
    return str("prometheus_client" in sys.modules)
'''

WAITING = '''
import time
from pathlib import Path
from promptkit import prompt

@prompt
def waits(path: str):
    """Wait for a file."""
    while not Path(path).exists():
        time.sleep(0.01)
    return "Waited."
'''

TOKEN = "t0" * 20


@pytest.fixture
def serving(started, tmp_path):
    """A function that serves recipes over HTTP, with a folder for what is temporary."""
    (tmp_path / "tmp").mkdir()
    return partial(started, "--http", "0", env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})


def refused(folder, *options, **environment):
    """What a server says that does not serve; its exit code is that of wrong usage."""
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), "--http", "0", "--metrics", *options]
    environment = {**os.environ, **environment}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50, check=False)
    assert ran.returncode == 2
    return ran.stderr


def ask(served, name, **arguments):
    """Get a prompt on a connection of its own; return its text."""
    message = modern(1, "prompts/get", {"name": name, "arguments": arguments})
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    try:
        connection.request("POST", "/mcp", json.dumps(message), {**PLAIN, **agreeing(message)})
        return json.loads(connection.getresponse().read())["result"]["messages"][0]["content"]["text"]
    finally:
        connection.close()


def read(served, path="/metrics", method="GET", **fields):
    """Read a path on a connection of its own; return the response, and its body."""
    connection = HTTPConnection(*served.address, timeout=PATIENCE)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): fields[name] for name in fields})
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def scraped(served, **fields):
    """Scrape as Prometheus does; return the families by their names."""
    response, text = read(served, **fields)
    assert (response.status, response.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    return {family.name: family for family in text_string_to_metric_families(text)}


def rising(families):
    """The samples that may never fall: those of counters and of histograms."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        if family.type in ("counter", "histogram")
        for sample in family.samples
    }


def value(families, name, **labels):
    """The value of the one sample with these labels; 0 if there is none."""
    family = families.get(name.removesuffix("_total"))
    samples = [] if family is None else family.samples
    found = [one.value for one in samples if one.name == name and labels.items() <= one.labels.items()]
    assert len(found) < 2
    return sum(found)


def wait_for(served, holds):
    """Scrape until something holds; return the families."""
    until = time.monotonic() + PATIENCE
    while not holds(found := scraped(served)):
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found


@pytest.mark.timeout(120)
def test_counters_never_fall_while_workers_are_killed(serving, tmp_path):
    """
    Two workers serve under load, one after another of them is killed, and Prometheus reads all the time: no
    counter falls, no reply that a client got is missing, not one of what recipes count by themselves, and
    nothing is left over at the end.
    """
    served = serving("--metrics", "--workers", "2", greet=COUNTING)
    replies, ended = [], threading.Event()

    def load():
        while not ended.is_set():
            with suppress(OSError, HTTPException):  # the worker was killed that had the connection
                replies.append(ask(served, "greet"))

    clients = [threading.Thread(target=load) for _ in range(2)]
    for client in clients:
        client.start()
    before, scrapes, killed = {}, 0, []
    until = time.monotonic() + 60
    while scrapes < 60:
        assert time.monotonic() < until
        with suppress(OSError, HTTPException):
            now = rising(scraped(served))
            assert {key: (old, now.get(key)) for key, old in before.items() if now.get(key, -1) < old} == {}
            before, scrapes = now, scrapes + 1
        if scrapes > 15 * (len(killed) + 1) and len(killed) < 3:
            killed.append(next(pid for pid in map(int, reversed(replies)) if pid not in killed))
            os.kill(killed[-1], signal.SIGKILL)
            served.wait_for(rf"process {killed[-1]}\) was killed by SIGKILL")
    ended.set()
    for client in clients:
        client.join(PATIENCE)

    found = wait_for(served, lambda now: value(now, "promptkit_requests_in_flight") == 0)
    counted = value(found, "promptkit_requests_total", method="prompts/get", outcome="ok")
    assert len(set(replies)) > 3
    assert len(replies) <= counted <= len(replies) + len(clients) * len(killed)
    assert value(found, "promptkit_prompts_total", prompt="greet") == counted
    assert len(replies) <= value(found, "greetings_total") <= len(replies) + len(clients) * len(killed)
    assert [one.name for one in (tmp_path / "tmp").iterdir() if one.name.startswith("promptkit-metrics-")]
    assert served.end()[0] == 0
    assert list((tmp_path / "tmp").glob("promptkit-metrics-*")) == []


def test_requests_that_wait(serving, tmp_path):
    """
    Requests beyond `--max-renders` are counted while they wait.
    """
    served = serving("--metrics", "--max-renders", "1", waits=WAITING)
    path = tmp_path / "released"
    get = partial(ask, served, "waits", path=str(path))
    clients = [threading.Thread(target=get) for _ in range(3)]
    for client in clients:
        client.start()
    wait_for(served, lambda now: value(now, "promptkit_requests_waiting") == 2)
    path.touch()
    for client in clients:
        client.join(PATIENCE)

    assert value(scraped(served), "promptkit_requests_waiting") == 0


def test_without_the_option_nothing_is_counted(serving):
    """
    There is nothing to be read, and what counts is not even loaded.
    """
    served = serving(loaded=LOADED)

    assert read(served)[0].status == 404
    assert ask(served, "loaded") == "False"


def test_who_may_read(serving, tmp_path):
    """
    What clients are asked for: a known host, no foreign page, and a token. Refusals are counted.
    """
    tokens = tmp_path / "tokens"
    tokens.write_text(f"prometheus {TOKEN}\n")
    tokens.chmod(0o600)
    served = serving("--metrics", "--token-file", str(tokens), greet=GREET)
    bearer = {"authorization": f"Bearer {TOKEN}"}

    statuses = [
        read(served, **fields)[0].status
        for fields in (
            {},
            {"authorization": "Bearer wrong"},
            {**bearer, "host": "evil.example"},
            {**bearer, "origin": "https://evil.example"},
            {**bearer, "method": "POST"},
            {**bearer, "method": "HEAD"},
        )
    ]
    assert statuses == [401, 401, 421, 403, 405, 200]
    found = scraped(served, **bearer)
    counted = {int(one.labels["status"]): one.value for one in found["promptkit_http_refusals"].samples}
    assert counted == {401: 2, 421: 1, 403: 1, 405: 1}
    assert read(served, **bearer)[0].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_reloads_and_faults(serving, tmp_path, workers):
    """
    An edit counts once, however many workers serve; a recipe with a fault shows until it is mended.
    """
    served = serving("--metrics", "--workers", workers, greet=GREET)
    recipe = tmp_path / "recipes" / "greet.py"
    (tmp_path / "recipes" / "more.py").write_text(GREET.replace("greet", "more"))
    edited = wait_for(served, lambda now: value(now, "promptkit_reloads_total") == 1)
    recipe.write_text(GREET + "broken(\n")
    broken = wait_for(served, lambda now: value(now, "promptkit_faulty_recipes") == 1)
    recipe.write_text(GREET)
    mended = wait_for(
        served,
        lambda now: value(now, "promptkit_faulty_recipes") == 0 and value(now, "promptkit_reloads_total") > 1,
    )

    reloads = [value(now, "promptkit_reloads_total") for now in (edited, broken, mended)]
    assert value(edited, "promptkit_faulty_recipes") == 0
    assert sorted(reloads) == reloads
    assert reloads[-1] <= 3


def test_a_start_that_fails_leaves_nothing(recipes, tmp_path):
    """
    Where nothing is served in the end, the folder is gone as well.
    """
    (tmp_path / "tmp").mkdir()
    said = refused(recipes(greet=GREET), "--public-url", "nowhere", TMPDIR=str(tmp_path / "tmp"))

    assert "is not the URL of a server" in said
    assert list((tmp_path / "tmp").glob("promptkit-metrics-*")) == []


def test_the_extra_is_missing(recipes, tmp_path):
    """
    Without the library, the error says what to install.
    """
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "sitecustomize.py").write_text(
        "import sys\nsys.modules['prometheus_client'] = None\n", encoding="utf-8"
    )
    said = refused(recipes(greet=GREET), PYTHONPATH=str(tmp_path / "missing"))

    assert said == f"promptkit: --metrics needs prometheus_client: {install_command('http,metrics')}\n"
