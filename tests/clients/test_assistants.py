"""Clients that people really use start the server that `install` has put into their configuration."""

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

#: Where the program of each client is. No script of a package is run at installation, so it is the real one.
PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code-*/claude",
    "codex": ".bin/codex",
    "gemini-cli": ".bin/gemini",
    "opencode": "opencode-*/bin/opencode",
}

#: What each is asked, and what it then says of a server that it has started.
SAYS = {
    "claude-code": (["mcp", "get", "team"], r"Status: .*Connected(?s:.*)Args: serve \S+/prompts"),
    "gemini-cli": (["mcp", "list"], r"team: \S+ serve \S+/prompts \(stdio\) - Connected"),
    "opencode": (["mcp", "list"], r"team .*connected"),
}

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(2 * PATIENT)]


@pytest.fixture(scope="session")
def assistants(installations):
    """Where the clients are installed."""
    return install(HERE / "assistants", installations, optional=True) / "node_modules"


@pytest.fixture
def person(assistants, tmp_path):
    """Somebody with prompts, whose shell finds `claude`; it runs a command, and returns what is printed."""
    home, project, programs = (tmp_path / name for name in ("home", "team", "bin"))
    for folder in (home / ".gemini", project / "prompts", programs):
        folder.mkdir(parents=True)
    (project / "prompts" / "greet.py").write_text(RECIPE)
    # They start nothing in a folder that nobody has said to be trusted, or of a project's file.
    (home / ".gemini" / "settings.json").write_text('{"security": {"folderTrust": {"enabled": false}}}')
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    (programs / "claude").symlink_to(program("claude-code", assistants))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    path = os.pathsep.join([str(programs), sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {**kept, "HOME": str(home), "PATH": path, "CI": "1"}

    def run(*command):
        ran = subprocess.run(
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
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    return run


def program(client, assistants):
    """The program of a client; of several for one machine the one with the shortest name."""
    found = sorted(assistants.glob(PROGRAMS[client]), key=lambda path: len(str(path)))
    if not found:
        pytest.skip(f"{client} has nothing for this machine")
    return found[0]


def promptkit(person, *argv):
    """Run a command of promptkit, and return what it prints as JSON."""
    return json.loads(person(sys.executable, "-m", "promptkit", *argv, "--json"))


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", SAYS)
def test_a_client_starts_the_server(client, scope, assistants, person):
    """
    It says that it has started the server, and is connected; and nothing of it once it is taken out. So it
    does with a project's file, whose paths are everybody's.
    """
    asked, says = SAYS[client]
    promptkit(person, "install", client, "--scope", scope, "--env", "TEAM=core")
    said = person(program(client, assistants), *asked)
    assert re.search(says, said), said

    promptkit(person, "uninstall", client, "--scope", scope)
    assert "team" not in person(program(client, assistants), "mcp", "list").replace("/team", "")


def test_codex_reads_the_entry(assistants, person):
    """
    Codex lists what it would start, or reach.
    """
    started = promptkit(person, "install", "codex", "--env", "TEAM=core")["entry"]
    promptkit(person, "install", "codex", "--url", "http://127.0.0.1:9/mcp", "--name", "reached")
    printed = person(program("codex", assistants), "mcp", "list", "--json")
    listed = {one["name"]: one for one in json.loads(printed[printed.index("[\n") :])}

    assert listed["team"]["enabled"]
    assert {key: listed["team"]["transport"][key] for key in started} == started
    assert listed["reached"]["transport"]["url"] == "http://127.0.0.1:9/mcp"


def test_claude_code_changes_its_file_itself(person):
    """
    Its own command is run, for an entry that is there already, too.
    """
    first = promptkit(person, "install", "claude-code", "--name", "team")
    url = "http://127.0.0.1:9/mcp"
    second = promptkit(person, "install", "claude-code", "--name", "team", "--url", url)
    servers = json.loads(Path(second["file"]).read_text())["mcpServers"]

    assert [command[2] for command in first["commands"]] == ["add-json"]
    assert [command[2] for command in second["commands"]] == ["remove", "add-json"]
    assert servers == {"team": {"type": "http", "url": url}}
