"""
Real assistants start the server that `install` has added to their configuration, and send its prompts.

The model is scripted, and on loopback. The tests passed with Claude Code 2.1.330 and opencode 1.18.33 on
2026-11-29.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.clients.node_clients import PATIENT, install
from tests.clients.scripted_model import ScriptedModel

HERE = Path(__file__).parent

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
'''

PLANS = '''
from typing import Literal

from promptkit import prompt

@prompt
def plan(topic: str, tone: Literal["warm", "plain"], days: int):
    """Plan."""
    return f"Plan {topic} in {days:03} days, {tone}."

@prompt
def place(topic: str, town: str, note: str = "no note", days: int = 3):
    """Find a place."""
    return f"Find {topic} in <{town}> in {days:03} days, with {note}."

@prompt
def count(topic: str, days: int):
    """Count."""
    return f"Count {topic} in {days:03} days."
'''

#: The executable of each client. Packages run no install scripts, so this is the real program.
PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code-*/claude",
    "codex": ".bin/codex",
    "gemini-cli": ".bin/gemini",
    "opencode": "opencode-*/bin/opencode",
}

#: The arguments of each client's status command, and the pattern of its output for a connected server.
STATUS = {
    "claude-code": (["mcp", "get", "team"], r"Status: .*Connected(?s:.*)Args: serve \S+/prompts"),
    "gemini-cli": (["mcp", "list"], r"team: \S+ serve \S+/prompts \(stdio\) - Connected"),
    "opencode": (["mcp", "list"], r"team .*connected"),
}

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(2 * PATIENT)]


@pytest.fixture(scope="session")
def assistants(installations):
    """The folder in which the clients are installed."""
    return install(HERE / "assistants", installations, optional=True) / "node_modules"


@pytest.fixture
def user(assistants, tmp_path):
    """The project's folder and the environment of a user with prompts, with `claude` on the PATH."""
    home, project, programs = (tmp_path / name for name in ("home", "team", "bin"))
    for folder in (home / ".gemini", project / "prompts", programs):
        folder.mkdir(parents=True)
    (project / "prompts" / "greet.py").write_text(RECIPE)
    (project / "prompts" / "plans.py").write_text(PLANS)
    # The clients start no servers in untrusted folders, or from a project's file that is not approved.
    (home / ".gemini" / "settings.json").write_text('{"security": {"folderTrust": {"enabled": false}}}')
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    (programs / "claude").symlink_to(program("claude-code", assistants))
    own = ("XDG_", "ANTHROPIC_", "CLAUDE", "OPENCODE_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    path = os.pathsep.join([str(programs), sysconfig.get_path("scripts"), os.environ["PATH"]])
    return project, {**variables, "HOME": str(home), "PATH": path, "CI": "1", "NO_PROXY": "127.0.0.1"}


@pytest.fixture
def run_as_user(user):
    """A function that runs a command as the user, and returns its output."""
    project, environment = user

    def run(*command):
        completed = subprocess.run(
            [str(word) for word in command],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert completed.returncode == 0, completed.stdout
        return completed.stdout

    return run


def program(client, assistants):
    """Return the executable of a client; if several fit, the one with the shortest path."""
    executables = sorted(assistants.glob(PROGRAMS[client]), key=lambda path: len(str(path)))
    if not executables:
        pytest.skip(f"{client} has nothing for this machine")
    return executables[0]


def run_promptkit(run_as_user, *argv):
    """Run a promptkit command, and return its JSON output."""
    return json.loads(run_as_user(sys.executable, "-m", "promptkit", *argv, "--json"))


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", STATUS)
def test_client_starts_the_server(client, scope, assistants, run_as_user):
    """
    The client reports the installed server as connected, and no longer lists it after `uninstall`. This holds
    for a project's file as well, whose paths must work for every user.
    """
    command, pattern = STATUS[client]
    run_promptkit(run_as_user, "install", client, "--scope", scope, "--env", "TEAM=core")
    output = run_as_user(program(client, assistants), *command)
    assert re.search(pattern, output), output

    run_promptkit(run_as_user, "uninstall", client, "--scope", scope)
    assert "team" not in run_as_user(program(client, assistants), "mcp", "list").replace("/team", "")


def test_codex_reads_the_entry(assistants, run_as_user):
    """Codex lists the command, or the URL, of each installed entry."""
    command_entry = run_promptkit(run_as_user, "install", "codex", "--env", "TEAM=core")["entry"]
    run_promptkit(run_as_user, "install", "codex", "--url", "http://127.0.0.1:9/mcp", "--name", "reached")
    printed = run_as_user(program("codex", assistants), "mcp", "list", "--json")
    entries = {entry["name"]: entry for entry in json.loads(printed[printed.index("[\n") :])}

    assert entries["team"]["enabled"]
    assert {key: entries["team"]["transport"][key] for key in command_entry} == command_entry
    assert entries["reached"]["transport"]["url"] == "http://127.0.0.1:9/mcp"


def test_claude_code_writes_its_own_file(run_as_user):
    """Claude Code's own command writes the entry, and also replaces an existing one."""
    first = run_promptkit(run_as_user, "install", "claude-code", "--name", "team")
    url = "http://127.0.0.1:9/mcp"
    second = run_promptkit(run_as_user, "install", "claude-code", "--name", "team", "--url", url)
    servers = json.loads(Path(second["file"]).read_text())["mcpServers"]

    assert [command[2] for command in first["commands"]] == ["add-json"]
    assert [command[2] for command in second["commands"]] == ["remove", "add-json"]
    assert servers == {"team": {"type": "http", "url": url}}


#: What a person enters: words, quotes and punctuation stay as they are.
ENTERED = {"topic": 'bees and "trees", at noon', "tone": "plain", "days": 3}

#: The options with which another program types, and shows forms.
STREAMS = ("--input-format", "stream-json", "--output-format", "stream-json")

FIELDS = {
    "topic": {"type": "string"},
    "tone": {"type": "string", "enum": ["warm", "plain"]},
    "days": {"type": "integer", "description": "a whole number"},
}


@pytest.fixture
def ask_claude_code(assistants, run_as_user, user):
    """
    A function that types a command in Claude Code and fills in its forms.

    It returns the forms, and the texts that the model has received. In this mode, the program that has
    started Claude Code shows the forms, as an editor does.
    """
    project, environment = user
    run_promptkit(run_as_user, "install", "claude-code", "--name", "team")

    def ask(typed):
        forms = []
        with (
            ScriptedModel() as model,
            subprocess.Popen(
                [program("claude-code", assistants), "-p", "--verbose", *STREAMS],
                cwd=project,
                env={
                    **environment,
                    "ANTHROPIC_BASE_URL": model.url,
                    "ANTHROPIC_API_KEY": "none",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "MCP_CONNECTION_NONBLOCKING": "false",  # otherwise it goes on without a slow server
                    "MCP_CONNECT_TIMEOUT_MS": "60000",
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            send(process, {"type": "user", "message": {"role": "user", "content": typed}})
            for message in map(json.loads, process.stdout):
                if message["type"] == "result":
                    process.stdin.close()
                elif message["type"] == "control_request":
                    forms.append(message["request"])
                    answer = {"action": "accept", "content": ENTERED}
                    reply = {"request_id": message["request_id"], "subtype": "success", "response": answer}
                    send(process, {"type": "control_response", "response": reply})
        return forms, model.texts

    return ask


def send(process, message):
    """Write a message to Claude Code."""
    process.stdin.write(f"{json.dumps(message)}\n")
    process.stdin.flush()


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ("/mcp__team__plan", FIELDS),
        ("/mcp__team__plan bees and trees", {**FIELDS, "topic": {"type": "string", "default": "bees"}}),
    ],
    ids=["alone", "with words"],
)
def test_claude_code_shows_the_form(typed, fields, ask_claude_code):
    """
    Claude Code shows a form for a text, a choice and a number, and the model gets exactly what was entered.

    If words are typed, the form corrects them: each argument got one, and two of them were invalid.
    """
    forms, texts = ask_claude_code(typed)

    assert [form["subtype"] for form in forms] == ["elicitation"]
    assert forms[0]["requested_schema"]["properties"] == fields
    assert forms[0]["requested_schema"]["required"] == [*FIELDS]
    assert 'Plan bees and "trees", at noon in 003 days, plain.' in texts


def test_claude_code_drops_words(ask_claude_code):
    """Without a form, each argument gets one word, and the rest is lost."""
    forms, texts = ask_claude_code("/mcp__team__greet bees and trees")

    assert forms == []
    assert "Hello, bees." in texts


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("team:place", "Find bees in <trees and hives> in 003 days, with no note."),
        ("team:count", "bees trees and hives"),
    ],
    ids=["optional", "required"],
)
def test_opencode_fills_in_the_text(name, text, assistants, run_as_user, user):
    """
    For each argument, opencode sends its position, and replaces it in the text with a word that was typed.

    The last position in the text gets the rest. Optional arguments keep their defaults. If a position is
    invalid, the prompt is lost, and the model gets only the words.
    """
    _, environment = user
    with ScriptedModel() as model:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
            "models": {"scripted": {}},
        }
        settings = {"autoupdate": False, "model": "own/scripted", "provider": {"own": provider}}
        file = Path(environment["HOME"], ".config", "opencode", "opencode.json")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))
        run_promptkit(run_as_user, "install", "opencode", "--name", "team")
        run_as_user(
            program("opencode", assistants), "run", "--command", name, "bees", "trees", "and", "hives"
        )

    assert text in model.texts
