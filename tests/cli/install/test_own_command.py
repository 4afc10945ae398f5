"""Claude Code's configuration, which its own command changes where that is installed."""

import json
import os

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script for a shell")

#: Does with its configuration what Claude Code's command does, and notes what it is told.
CLAUDE = """#!{python}
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
    """A function that puts a program on the path that is called as Claude Code is."""

    def put(script):
        program = tmp_path / "bin" / "claude"
        program.write_text(script)
        program.chmod(0o755)
        return program

    return put


@pytest.fixture
def stand_in(claude):
    """A program that changes the configuration as Claude Code's does, in its own layout."""
    from sys import executable

    return claude(CLAUDE.format(python=executable))


@pytest.fixture
def file(home):
    """A configuration with a server of somebody's."""
    file = home / ".claude.json"
    file.write_text('{\n  "mcpServers": {"other": {"type": "http", "url": "http://x"}}\n}\n')
    return file


def servers(file):
    return json.loads(file.read_text())["mcpServers"]


def told(program):
    file = program.with_name("claude.told")
    return [json.loads(line)[1] for line in file.read_text().splitlines()] if file.exists() else []


class TestWhereItIs:
    def test_installs_and_uninstalls(self, stand_in, file, project, data_of):
        """
        It adds the entry and takes it out; the file as it was before is kept.
        """
        before = file.read_text()
        added = data_of("install", "claude-code")
        entry = servers(file)["team-prompts"]
        again = data_of("install", "claude-code")
        removed = data_of("uninstall", "claude-code")

        assert added["entry"] == entry
        assert entry["type"] == "stdio"
        assert entry["args"] == ["serve", str(project / "prompts")]
        assert (added["changed"], again["changed"], removed["changed"]) == (True, False, True)
        assert told(stand_in) == ["add-json", "remove"]
        assert set(servers(file)) == {"other"}
        with open(added["backup"]) as backup:
            assert backup.read() != before  # it is that of the last change
        assert added["commands"][0][:5] == [str(stand_in), "mcp", "add-json", "--scope", "user"]

    def test_changes_what_is_ours(self, stand_in, file, project, promptkit):
        """
        An entry of ours is replaced, with what people have added to it.
        """
        ours = {"type": "stdio", "command": "/old/promptkit", "args": ["serve", "x"], "env": {"A": "1"}}
        file.write_text(json.dumps({"mcpServers": {"team-prompts": ours}}))
        code, _, _ = promptkit("install", "claude-code")

        assert code == 0
        assert told(stand_in) == ["remove", "add-json"]
        assert servers(file)["team-prompts"]["env"] == {"A": "1"}
        assert servers(file)["team-prompts"]["args"] == ["serve", str(project / "prompts")]

    def test_dry_run(self, stand_in, file, project, promptkit):
        """
        The command is printed, so that people can run it.
        """
        code, out, _ = promptkit("install", "claude-code", "--dry-run")

        assert code == 0
        assert out.startswith(f'{stand_in} mcp add-json --scope user team-prompts \'{{"type": "stdio", ')
        assert told(stand_in) == []

    def test_a_projects_file_is_edited(self, stand_in, project, promptkit):
        """
        That file is people's, and nobody else writes it.
        """
        code, _, _ = promptkit("install", "claude-code", "--scope", "project")

        assert code == 0
        assert told(stand_in) == []
        assert set(servers(project / ".mcp.json")) == {"team-prompts"}

    def test_is_not_asked_about_a_malformed_file(self, stand_in, file, project, promptkit):
        """
        Claude Code begins a new file then, so it is not started.
        """
        file.write_text("{oops")
        code, _, err = promptkit("install", "claude-code")

        assert code == 1
        assert "this is not JSON" in err
        assert told(stand_in) == []
        assert file.read_text() == "{oops"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\nexit 0\n", "claude exited without an error, but did not change it"),
        ("#!/bin/sh\necho 'not allowed here' >&2\nexit 1\n", "claude mcp add-json failed: not allowed here"),
        ("#!/bin/sh\nexit 3\n", "claude mcp add-json failed: it ended with 3"),
        ("#!/nonexistent\n", "claude mcp add-json failed: "),
        ("#!/bin/sh\nkill -9 $$\n", "claude mcp add-json failed: it ended with -9"),
    ],
    ids=["does nothing", "refuses", "fails", "cannot start", "is killed"],
)
@pytest.mark.usefixtures("project")
def test_another_program_of_that_name(script, said, claude, file, promptkit):
    """
    What fails, or does nothing, is told, and the file is as it was.
    """
    claude(script)
    before = file.read_text()
    code, out, err = promptkit("install", "claude-code")

    assert (code, out) == (1, "")
    assert said in err
    assert file.read_text() == before
