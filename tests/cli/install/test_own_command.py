"""Claude Code's configuration, which is changed by its own command if that is installed."""

import json
import os

import pytest

from tests.cli.install.entries import backup_path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script for a shell")

#: Changes the configuration like Claude Code's command and records its arguments.
STAND_IN = """#!{python}
import json, os, sys
_, verb, *_, name = words = [word for word in sys.argv[1:] if not word.startswith("{{")]
open(__file__ + ".told", "a").write(json.dumps(sys.argv[1:]) + "\\n")
file = os.path.expanduser("~/.claude.json")
data = json.load(open(file)) if os.path.exists(file) else {{"firstStart": 1}}
servers = data.setdefault("mcpServers", {{}})
if (verb == "remove") != (name in servers):
    sys.exit(f"No or another MCP server named {{name}}")
if verb == "remove":
    del servers[name]
else:
    servers[name] = json.loads(sys.argv[-1])
json.dump(data, open(file, "w"))
"""


@pytest.fixture
def claude(home, tmp_path):
    """A function that puts a program with the name of Claude Code's command on the PATH."""

    def install(script):
        program = tmp_path / "bin" / "claude"
        program.write_text(script)
        program.chmod(0o755)
        return program

    return install


@pytest.fixture
def stand_in(claude):
    """A program that changes the configuration like Claude Code's command, in its own layout."""
    from sys import executable

    return claude(STAND_IN.format(python=executable))


@pytest.fixture
def file(home):
    """A configuration with a server of another program."""
    file = home / ".claude.json"
    file.write_text('{\n  "mcpServers": {"other": {"type": "http", "url": "http://x"}}\n}\n')
    return file


def servers(file):
    return json.loads(file.read_text())["mcpServers"]


def called_commands(program):
    file = program.with_name("claude.told")
    return [json.loads(line)[1] for line in file.read_text().splitlines()] if file.exists() else []


class TestClaudeCommand:
    def test_install_and_uninstall(self, stand_in, file, project, promptkit):
        """The command adds and removes the entry, and the previous file is backed up."""
        before = file.read_text()
        _, added, _ = promptkit("install", "claude-code")
        entry = servers(file)["team-prompts"]
        _, repeated, _ = promptkit("install", "claude-code")
        _, removed, _ = promptkit("uninstall", "claude-code")

        assert entry["type"] == "stdio"
        assert entry["args"] == ["serve", str(project / "prompts")]
        assert [": nothing to change" in out for out in (added, repeated, removed)] == [False, True, False]
        assert called_commands(stand_in) == ["add-json", "remove"]
        assert set(servers(file)) == {"other"}
        assert backup_path(removed).read_text() != before  # the backup is of the last change

    def test_own_entry_is_replaced(self, stand_in, file, project, promptkit):
        """An entry of promptkit's is replaced, and the user's additions are kept."""
        entry = {"type": "stdio", "command": "/old/promptkit", "args": ["serve", "x"], "env": {"A": "1"}}
        file.write_text(json.dumps({"mcpServers": {"team-prompts": entry}}))
        code, _, _ = promptkit("install", "claude-code")

        assert code == 0
        assert called_commands(stand_in) == ["remove", "add-json"]
        assert servers(file)["team-prompts"]["env"] == {"A": "1"}
        assert servers(file)["team-prompts"]["args"] == ["serve", str(project / "prompts")]

    def test_dry_run(self, stand_in, file, project, promptkit):
        """A dry run prints the command for the user to run."""
        code, out, _ = promptkit("install", "claude-code", "--dry-run")

        assert code == 0
        assert out.startswith(f'{stand_in} mcp add-json --scope user team-prompts \'{{"type": "stdio", ')
        assert called_commands(stand_in) == []

    def test_project_file_is_edited(self, stand_in, project, promptkit):
        """The file of a project is edited directly, without the command."""
        code, _, _ = promptkit("install", "claude-code", "--scope", "project")

        assert code == 0
        assert called_commands(stand_in) == []
        assert set(servers(project / ".mcp.json")) == {"team-prompts"}

    def test_malformed_file(self, stand_in, file, project, promptkit):
        """The command is not run for a malformed file, because Claude Code would replace the file."""
        file.write_text("{oops")
        code, _, err = promptkit("install", "claude-code")

        assert code == 1
        assert "it is not valid JSON" in err
        assert called_commands(stand_in) == []
        assert file.read_text() == "{oops"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\nexit 0\n", "claude exited successfully, but did not change the file"),
        ("#!/bin/sh\necho 'not allowed here' >&2\nexit 1\n", "claude mcp add-json failed: not allowed here"),
        ("#!/bin/sh\nexit 3\n", "claude mcp add-json failed: it exited with code 3"),
        ("#!/nonexistent\n", "claude mcp add-json failed: "),
        ("#!/bin/sh\nkill -9 $$\n", "claude mcp add-json failed: it exited with code -9"),
    ],
    ids=["does nothing", "refuses", "fails", "cannot start", "is killed"],
)
@pytest.mark.usefixtures("project")
def test_failing_commands(script, message, claude, file, promptkit):
    """A command that fails or changes nothing is reported, and the file is unchanged."""
    claude(script)
    before = file.read_text()
    code, out, err = promptkit("install", "claude-code")

    assert (code, out) == (1, "")
    assert message in err
    assert file.read_text() == before
