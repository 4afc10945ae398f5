"""Commands in a server: they cannot reach the wire and do not outlive their request."""

import http.client
import json
import os
import signal
from urllib.parse import urlsplit

import pytest

from tests.http_server import http_server
from tests.posting import PLAIN, agreeing
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
def client(recipes, folder, monkeypatch):
    """A function that starts a server over stdio and returns its client."""
    monkeypatch.delenv("PROMPTKIT_WORKSPACE")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    started = []

    def make(*options):
        made = Process(recipes(recipe=SOURCE), "--workspace", str(folder), *options, revision=MODERN)
        started.append(made.process)
        return made

    yield make
    for process in started:
        end(process)


def end(process):
    """Kill a server and close its streams."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def get(client, number, name, **arguments):
    """Request a prompt."""
    client.ask(number, "prompts/get", {"name": name, "arguments": arguments})


def text_of(reply):
    """Return the text of a prompt's single message, or of an error."""
    if "error" in reply:
        return reply["error"]["message"]
    (message,) = reply["result"]["messages"]
    return message["content"]["text"]


class TestStdio:
    def test_nothing_reaches_the_wire(self, client):
        """A command can neither write to the wire nor read from it, on any descriptor."""
        one = client()
        get(
            one,
            1,
            "runs",
            script="echo out; echo err >&2; cat; for n in 3 4 5 6 7 8 9; do { echo no >&$n; } 2>&-; done; :",
        )
        reply = one.wait_for(1)
        _, code, rest = one.end()

        assert text_of(reply) == "out"
        assert (code, rest) == (0, [])

    @pytest.mark.parametrize("name", ["runs", "awaits"])
    def test_a_cancelled_request_leaves_nothing(self, name, client, witness):
        """A cancelled request stops its command with all child processes, and the next request is served."""
        one = client()
        get(one, 1, name, script=witness.begin + HANGS)
        witness.begun()
        one.write(notification("notifications/cancelled", {"requestId": 1}))
        witness.all_gone()
        get(one, 2, name, script="echo next")

        assert text_of(one.wait_for(2)) == "next"
        assert one.end()[1:] == (0, [])

    @pytest.mark.parametrize("name", ["brief", "brief_await"])
    def test_the_time_limit_of_a_prompt_leaves_nothing(self, name, client, witness):
        """The prompt's timeout stops its command, even if the command's own timeout is longer."""
        one = client()
        get(one, 1, name, script=witness.begin + HANGS)
        witness.begun()
        witness.all_gone()

        assert "took longer than its limit of 0.5 s" in text_of(one.wait_for(1))

    @pytest.mark.parametrize(("name", "end"), [("runs", "signal"), ("awaits", "input")])
    def test_the_end_of_the_server_leaves_nothing(self, name, end, client, witness):
        """A command is stopped when the client closes the connection or the server gets a signal."""
        one = client("--grace", "0")
        get(one, 1, name, script=witness.begin + HANGS)
        witness.begun()
        if end == "input":
            one.process.stdin.close()
        else:
            one.process.send_signal(signal.SIGTERM)
        witness.all_gone()

        assert one.process.wait(30) == 0

    def test_the_workspace_is_the_one_that_is_named(self, client, folder, monkeypatch):
        """--workspace takes precedence over the environment."""
        monkeypatch.setenv("PROMPTKIT_WORKSPACE", "/")
        one = client()
        get(one, 1, "where")

        assert text_of(one.wait_for(1)) == str(folder)

    def test_files_complete_an_argument(self, client, folder):
        """Files of the workspace complete an argument."""
        folder.joinpath("a.txt").touch()
        one = client()
        argument = {"name": "path", "value": "a"}
        one.ask(
            1, "completion/complete", {"ref": {"type": "ref/prompt", "name": "opens"}, "argument": argument}
        )

        assert one.wait_for(1)["result"]["completion"]["values"] == ["a.txt"]


@pytest.fixture
def serve(recipes):
    """A function that serves the prompts over HTTP."""
    pytest.importorskip("httptools")
    return lambda *options, **environment: http_server(recipes(recipe=SOURCE), *options, **environment)


def post(url, name, **arguments):
    """Request a prompt and return the connection, whose reply is pending."""
    parts = urlsplit(url)
    message = modern(1, "prompts/get", {"name": name, "arguments": arguments})
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.request(
        "POST", parts.path, json.dumps(message), {**PLAIN, "host": parts.netloc, **agreeing(message)}
    )
    return connection


def answered(url, name, **arguments):
    """Request a prompt and return the text of its reply."""
    connection = post(url, name, **arguments)
    try:
        return text_of(json.loads(connection.getresponse().read()))
    finally:
        connection.close()


class TestHttp:
    def test_there_is_no_workspace_unless_it_is_named(self, serve, folder):
        """Over HTTP, there is no workspace without --workspace, whatever the environment contains."""
        variables = {"PROMPTKIT_WORKSPACE": str(folder), "CLAUDE_PROJECT_DIR": str(folder)}
        with serve(**variables) as url:
            said = [answered(url, "where"), answered(url, "runs", script="echo no")]

        assert all(text.startswith("this server has no workspace") for text in said)

    def test_the_workspace_is_the_one_that_is_named(self, serve, folder):
        """--workspace applies in each worker."""
        with serve("--workspace", str(folder), "--workers", "2") as url:
            assert {answered(url, "where") for _ in range(8)} == {str(folder)}

    @pytest.mark.parametrize("name", ["runs", "awaits"])
    def test_who_hangs_up_leaves_nothing(self, name, serve, folder, witness):
        """The command of a client that disconnects is stopped, and the next request is served."""
        with serve("--workspace", str(folder)) as url:
            connection = post(url, name, script=witness.begin + HANGS)
            witness.begun()
            connection.close()
            witness.all_gone()

            assert answered(url, name, script="echo next") == "next"

    @pytest.mark.parametrize(("name", "workers"), [("runs", "1"), ("awaits", "2")])
    def test_the_end_of_the_server_leaves_nothing(self, name, workers, serve, folder, witness):
        """Commands are stopped when the server's grace period has passed."""
        options = ("--workspace", str(folder), "--workers", workers, "--grace", "0.1")
        with serve(*options) as url:
            connection = post(url, name, script=witness.begin + HANGS)
            witness.begun()
        witness.all_gone()
        connection.close()


def test_an_application_has_the_workspace_of_its_variable(recipes, folder, monkeypatch):
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
