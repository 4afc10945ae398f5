"""Real assistants start the server that `install` has added to their configuration."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.clients.node_clients import PATIENT, install

HERE = Path(__file__).parent

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
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
def run_as_user(assistants, tmp_path):
    """
    A function that runs a command as a user with prompts, with `claude` on the PATH, and returns its output.
    """
    home, project, programs = (tmp_path / name for name in ("home", "team", "bin"))
    for folder in (home / ".gemini", project / "prompts", programs):
        folder.mkdir(parents=True)
    (project / "prompts" / "greet.py").write_text(RECIPE)
    # The clients start no servers in untrusted folders, or from a project's file that is not approved.
    (home / ".gemini" / "settings.json").write_text('{"security": {"folderTrust": {"enabled": false}}}')
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    (programs / "claude").symlink_to(program("claude-code", assistants))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    path = os.pathsep.join([str(programs), sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {**variables, "HOME": str(home), "PATH": path, "CI": "1"}

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
