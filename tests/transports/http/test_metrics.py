"""Metrics of HTTP servers, parsed by Prometheus' own parser."""

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
from tests.posting import PLAIN, modern_headers
from tests.transports.http.conftest import GREET, PATIENCE
from tests.wire import modern

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")

COUNTING = '''
import os
from prometheus_client import Counter
from promptkit import prompt

GREETINGS = Counter("greetings", "The number of greetings.")

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
    """Return whether the metrics library is loaded."""
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
def serving(serve_promptkit, tmp_path):
    """A function that serves recipes over HTTP, with its own folder for temporary files."""
    (tmp_path / "tmp").mkdir()
    return partial(serve_promptkit, "--http", "0", env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})


def usage_error_of(folder, *options, **environment):
    """Return standard error of a server that does not start because of a usage error."""
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), "--http", "0", "--metrics", *options]
    environment = {**os.environ, **environment}
    completed = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=50, check=False
    )
    assert completed.returncode == 2
    return completed.stderr


def ask(server, name, **arguments):
    """Render a prompt on a new connection, and return its text."""
    message = modern(1, "prompts/get", {"name": name, "arguments": arguments})
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    try:
        connection.request("POST", "/mcp", json.dumps(message), {**PLAIN, **modern_headers(message)})
        return json.loads(connection.getresponse().read())["result"]["messages"][0]["content"]["text"]
    finally:
        connection.close()


def read(server, path="/metrics", method="GET", **fields):
    """Request a path on a new connection, and return the response and its body."""
    connection = HTTPConnection(*server.address, timeout=PATIENCE)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): fields[name] for name in fields})
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def scrape(server, **fields):
    """Scrape like Prometheus does, and return the families by name."""
    response, text = read(server, **fields)
    assert (response.status, response.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    return {family.name: family for family in text_string_to_metric_families(text)}


def monotonic_samples(families):
    """Return the samples of counters and histograms, which never decrease."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        if family.type in ("counter", "histogram")
        for sample in family.samples
    }


def value(families, name, **labels):
    """Return the value of the only sample with these labels, or 0."""
    family = families.get(name.removesuffix("_total"))
    samples = [] if family is None else family.samples
    values = [
        sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(values) < 2
    return sum(values)


def wait_for(server, holds):
    """Scrape until *holds* returns True for the families, and return them."""
    deadline = time.monotonic() + PATIENCE
    while not holds(families := scrape(server)):
        assert time.monotonic() < deadline, families
        time.sleep(0.02)
    return families


@pytest.mark.timeout(120)
def test_counters_never_decrease_while_workers_are_killed(serving, tmp_path):
    """
    While two workers serve under load, several are killed during continuous scrapes. No counter decreases,
    each reply is counted, also by counters of recipes, and no files remain.
    """
    server = serving("--metrics", "--workers", "2", greet=COUNTING)
    replies, ended = [], threading.Event()

    def load():
        while not ended.is_set():
            with suppress(OSError, HTTPException):  # the worker with the connection was killed
                replies.append(ask(server, "greet"))

    clients = [threading.Thread(target=load) for _ in range(2)]
    for client in clients:
        client.start()
    before, scrapes, killed = {}, 0, []
    deadline = time.monotonic() + 60
    while scrapes < 60:
        assert time.monotonic() < deadline
        with suppress(OSError, HTTPException):
            current = monotonic_samples(scrape(server))
            assert {
                key: (previous_value, current.get(key))
                for key, previous_value in before.items()
                if current.get(key, -1) < previous_value
            } == {}
            before, scrapes = current, scrapes + 1
        if scrapes > 15 * (len(killed) + 1) and len(killed) < 3:
            killed.append(next(pid for pid in map(int, reversed(replies)) if pid not in killed))
            os.kill(killed[-1], signal.SIGKILL)
            server.wait_for(rf"process {killed[-1]}\) was killed by SIGKILL")
    ended.set()
    for client in clients:
        client.join(PATIENCE)

    families = wait_for(server, lambda current: value(current, "promptkit_requests_in_flight") == 0)
    count = value(families, "promptkit_requests_total", method="prompts/get", outcome="ok")
    assert len(set(replies)) > 3
    assert len(replies) <= count <= len(replies) + len(clients) * len(killed)
    # A worker can be killed between its two counters, before it sends the reply.
    assert len(replies) <= value(families, "promptkit_prompts_total", prompt="greet") <= count
    assert len(replies) <= value(families, "greetings_total") <= len(replies) + len(clients) * len(killed)
    assert [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("promptkit-metrics-")]
    assert server.stop()[0] == 0
    assert list((tmp_path / "tmp").glob("promptkit-metrics-*")) == []


def test_waiting_requests_are_counted(serving, tmp_path):
    """Requests beyond `--max-renders` are counted while they wait."""
    server = serving("--metrics", "--max-renders", "1", waits=WAITING)
    path = tmp_path / "released"
    get = partial(ask, server, "waits", path=str(path))
    clients = [threading.Thread(target=get) for _ in range(3)]
    for client in clients:
        client.start()
    wait_for(server, lambda now: value(now, "promptkit_requests_waiting") == 2)
    path.touch()
    for client in clients:
        client.join(PATIENCE)

    assert value(scrape(server), "promptkit_requests_waiting") == 0


def test_no_metrics_without_the_option(serving):
    """Without the option, the endpoint does not exist, and the metrics library is not loaded."""
    server = serving(loaded=LOADED)

    assert read(server)[0].status == 404
    assert ask(server, "loaded") == "False"


def test_access_to_metrics(serving, tmp_path):
    """
    The endpoint checks the host, the origin and the token like every other one, and rejections are counted.
    """
    tokens = tmp_path / "tokens"
    tokens.write_text(f"prometheus {TOKEN}\n")
    tokens.chmod(0o600)
    server = serving("--metrics", "--token-file", str(tokens), greet=GREET)
    bearer = {"authorization": f"Bearer {TOKEN}"}

    statuses = [
        read(server, **fields)[0].status
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
    families = scrape(server, **bearer)
    rejections = {
        int(sample.labels["status"]): sample.value for sample in families["promptkit_http_refusals"].samples
    }
    assert rejections == {401: 2, 421: 1, 403: 1, 405: 1}
    assert read(server, **bearer)[0].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_invalid_recipes_are_counted(serving, tmp_path, workers):
    """An invalid recipe counts once, regardless of the number of workers, until it is fixed."""
    server = serving("--metrics", "--workers", workers, greet=GREET)
    recipe = tmp_path / "recipes" / "greet.py"
    wait_for(server, lambda now: value(now, "promptkit_recipes_with_errors") == 0)
    recipe.write_text(GREET + "broken(\n")
    wait_for(server, lambda now: value(now, "promptkit_recipes_with_errors") == 1)
    recipe.write_text(GREET)
    wait_for(server, lambda now: value(now, "promptkit_recipes_with_errors") == 0)


def test_failed_start_leaves_no_files(recipes, tmp_path):
    """If the start fails, the folder of the metrics is removed."""
    (tmp_path / "tmp").mkdir()
    stderr = usage_error_of(recipes(greet=GREET), "--public-url", "nowhere", TMPDIR=str(tmp_path / "tmp"))

    assert "is not a valid server URL" in stderr
    assert list((tmp_path / "tmp").glob("promptkit-metrics-*")) == []


def test_missing_extra(recipes, tmp_path):
    """If the extra is missing, the error names the command that installs the library."""
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "sitecustomize.py").write_text(
        "import sys\nsys.modules['prometheus_client'] = None\n", encoding="utf-8"
    )
    stderr = usage_error_of(recipes(greet=GREET), PYTHONPATH=str(tmp_path / "missing"))

    assert stderr == f"promptkit: --metrics needs prometheus_client: {install_command('http,metrics')}\n"
