"""A home of the test's own, a project in it, and promptkit run there."""

import json
import subprocess

import pytest

from promptkit.cli import main
from tests.wire import initialize, line, notification, request

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
'''

#: Where clients look for their configuration, if these are set.
MOVED = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home of a person who has no client installed."""
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "bin").mkdir()
    for name in MOVED:
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return folder


@pytest.fixture
def project(home, tmp_path, monkeypatch):
    """A project with a prompt, which is the current folder."""
    folder = tmp_path / "team prompts"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "greet.py").write_text(RECIPE)
    (folder / "pyproject.toml").write_text('[tool.promptkit]\ntarget = "prompts"\n')
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def promptkit(capsys):
    """A function that runs a command; it returns the exit code, and what was printed."""

    def run(*argv):
        code = main([str(word) for word in argv])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def refused(promptkit, capsys):
    """A function that runs a command that is wrong usage, and returns what refuses it."""

    def run(*argv):
        with pytest.raises(SystemExit) as end:
            promptkit(*argv)
        assert end.value.code == 2
        return capsys.readouterr().err.splitlines()[-1]

    return run


@pytest.fixture
def data_of(promptkit):
    """A function that runs a command that succeeds, and returns what it prints as JSON."""

    def run(command, *argv):
        code, out, err = promptkit(command, "--json", *argv)
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


@pytest.fixture
def prompts_of(tmp_path):
    """A function that starts a server as a client does, greets it, and returns the names of its prompts."""
    session = (
        initialize("2025-11-25"),
        notification("notifications/initialized"),
        request(1, "prompts/list"),
    )

    def start(command, cwd=tmp_path):
        ran = subprocess.run(
            command,
            input=b"".join(map(line, session)),
            capture_output=True,
            check=True,
            cwd=cwd,
            env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"},
            timeout=30,
        )
        replies = [json.loads(reply) for reply in ran.stdout.splitlines()]
        (listed,) = [reply["result"]["prompts"] for reply in replies if reply.get("id") == 1]
        return [prompt["name"] for prompt in listed]

    return start
