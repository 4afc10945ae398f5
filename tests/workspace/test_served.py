"""Commands in a server: they cannot reach the wire and do not outlive their request."""

import http.client
import json
import os
import signal
from urllib.parse import urlsplit

import pytest

from tests.http_server import http_server
from tests.posting import PLAIN, modern_headers
from tests.server.busy_server import Process
from tests.wire import MODERN, modern, notification

#: Prompts that run a given script, synchronous and asynchronous, with and without a timeout.
SOURCE = """
from typing import Annotated
from promptkit import Arg, prompt
from promptkit.workspace import files, run, run_async, workspace

@prompt
def where():
    return str(workspace())

@prompt
def runs(script: str):
    return run("sh", "-c", script, timeout=60)

@prompt
async def awaits(script: str):
    return await run_async("sh", "-c", script, timeout=60)

@prompt(timeout=0.5)
def brief(script: str):
    return run("sh", "-c", script, timeout=60)

@prompt(timeout=0.5)
async def brief_await(script: str):
    return await run_async("sh", "-c", script, timeout=60)

@prompt
def opens(path: Annotated[str, Arg(complete=files("*.txt"))]):
    return path
"""

HANGS = " sleep 60 & sleep 60"


@pytest.fixture
def start_client(recipes, folder, monkeypatch):
    """A function that starts a server over stdio and returns its client."""
    monkeypatch.delenv("PROMPTKIT_WORKSPACE")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    started = []

    def make(*options):
        client = Process(recipes(recipe=SOURCE), "--workspace", str(folder), *options, revision=MODERN)
        started.append(client.process)
        return client

    yield make
    for process in started:
        stop_process(process)


def stop_process(process):
    """Kill a server and close its streams."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def request_prompt(client, number, name, **arguments):
    """Request a prompt."""
    client.ask(number, "prompts/get", {"name": name, "arguments": arguments})


def extract_text(reply):
    """Return the text of a prompt's single message, or of an error."""
    if "error" in reply:
        return reply["error"]["message"]
    (message,) = reply["result"]["messages"]
    return message["content"]["text"]


class TestStdio:
    def test_command_cannot_reach_the_wire(self, start_client):
        """A command can neither write to the wire nor read from it, on any descriptor."""
        client = start_client()
        request_prompt(
            client,
            1,
            "runs",
            script="echo out; echo err >&2; cat; for n in 3 4 5 6 7 8 9; do { echo no >&$n; } 2>&-; done; :",
        )
        reply = client.wait_for(1)
        _, code, remaining = client.end()

        assert extract_text(reply) == "out"
        assert (code, remaining) == (0, [])

    @pytest.mark.parametrize("name", ["runs", "awaits"])
    def test_cancelled_request_stops_its_command(self, name, start_client, witness):
        """A cancelled request stops its command with all child processes, and the next request is served."""
        client = start_client()
        request_prompt(client, 1, name, script=witness.prefix + HANGS)
        witness.wait_for_start()
        client.write(notification("notifications/cancelled", {"requestId": 1}))
        witness.wait_for_end()
        request_prompt(client, 2, name, script="echo next")

        assert extract_text(client.wait_for(2)) == "next"
        assert client.end()[1:] == (0, [])

    @pytest.mark.parametrize("name", ["brief", "brief_await"])
    def test_timeout_of_a_prompt_stops_its_command(self, name, start_client, witness):
        """The prompt's timeout stops its command, even if the command's own timeout is longer."""
        client = start_client()
        request_prompt(client, 1, name, script=witness.prefix + HANGS)
        witness.wait_for_start()
        witness.wait_for_end()

        assert "took longer than its limit of 0.5 s" in extract_text(client.wait_for(1))

    @pytest.mark.parametrize(("name", "trigger"), [("runs", "signal"), ("awaits", "input")])
    def test_stopped_server_stops_its_commands(self, name, trigger, start_client, witness):
        """A command is stopped when the client closes the connection or the server gets a signal."""
        client = start_client("--grace", "0")
        request_prompt(client, 1, name, script=witness.prefix + HANGS)
        witness.wait_for_start()
        if trigger == "input":
            client.process.stdin.close()
        else:
            client.process.send_signal(signal.SIGTERM)
        witness.wait_for_end()

        assert client.process.wait(30) == 0

    def test_workspace_option_takes_precedence(self, start_client, folder, monkeypatch):
        """--workspace takes precedence over the environment."""
        monkeypatch.setenv("PROMPTKIT_WORKSPACE", "/")
        client = start_client()
        request_prompt(client, 1, "where")

        assert extract_text(client.wait_for(1)) == str(folder)

    def test_files_complete_an_argument(self, start_client, folder):
        """Files of the workspace complete an argument."""
        folder.joinpath("a.txt").touch()
        client = start_client()
        argument = {"name": "path", "value": "a"}
        client.ask(
            1, "completion/complete", {"ref": {"type": "ref/prompt", "name": "opens"}, "argument": argument}
        )

        assert client.wait_for(1)["result"]["completion"]["values"] == ["a.txt"]


@pytest.fixture
def serve(recipes):
    """A function that serves the prompts over HTTP."""
    pytest.importorskip("httptools")
    return lambda *options, **environment: http_server(recipes(recipe=SOURCE), *options, **environment)


def post_request(url, name, **arguments):
    """Request a prompt and return the connection, whose reply is pending."""
    parts = urlsplit(url)
    message = modern(1, "prompts/get", {"name": name, "arguments": arguments})
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.request(
        "POST", parts.path, json.dumps(message), {**PLAIN, "host": parts.netloc, **modern_headers(message)}
    )
    return connection


def fetch_text(url, name, **arguments):
    """Request a prompt and return the text of its reply."""
    connection = post_request(url, name, **arguments)
    try:
        return extract_text(json.loads(connection.getresponse().read()))
    finally:
        connection.close()


class TestHttp:
    def test_environment_does_not_set_the_workspace(self, serve, folder):
        """Over HTTP, there is no workspace without --workspace, whatever the environment contains."""
        variables = {"PROMPTKIT_WORKSPACE": str(folder), "CLAUDE_PROJECT_DIR": str(folder)}
        with serve(**variables) as url:
            texts = [fetch_text(url, "where"), fetch_text(url, "runs", script="echo no")]

        assert all(text.startswith("this server has no workspace") for text in texts)

    def test_workspace_option_applies_in_each_worker(self, serve, folder):
        """--workspace applies in each worker."""
        with serve("--workspace", str(folder), "--workers", "2") as url:
            assert {fetch_text(url, "where") for _ in range(8)} == {str(folder)}

    @pytest.mark.parametrize("name", ["runs", "awaits"])
    def test_disconnected_client_stops_its_command(self, name, serve, folder, witness):
        """The command of a client that disconnects is stopped, and the next request is served."""
        with serve("--workspace", str(folder)) as url:
            connection = post_request(url, name, script=witness.prefix + HANGS)
            witness.wait_for_start()
            connection.close()
            witness.wait_for_end()

            assert fetch_text(url, name, script="echo next") == "next"

    @pytest.mark.parametrize(("name", "workers"), [("runs", "1"), ("awaits", "2")])
    def test_stopped_server_stops_its_commands(self, name, workers, serve, folder, witness):
        """Commands are stopped when the server's grace period has passed."""
        options = ("--workspace", str(folder), "--workers", workers, "--grace", "0.1")
        with serve(*options) as url:
            connection = post_request(url, name, script=witness.prefix + HANGS)
            witness.wait_for_start()
        witness.wait_for_end()
        connection.close()


def test_application_uses_the_workspace_of_the_variable(recipes, folder, monkeypatch):
    """An ASGI application uses PROMPTKIT_WORKSPACE only, and has no workspace without it."""
    from promptkit.asgi import app
    from promptkit.errors import PromptError
    from promptkit.workspace import workspace

    target = recipes(recipe=SOURCE)
    app(target, watch=False)
    assert workspace() == folder

    monkeypatch.delenv("PROMPTKIT_WORKSPACE")
    app(target, watch=False)
    assert os.environ["PROMPTKIT_WORKSPACE"] == ""
    with pytest.raises(PromptError, match="this server has no workspace"):
        workspace()
