"""A temporary home, a project outside of it, and functions that run promptkit there."""

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

#: Environment variables that move the configuration folders of clients.
FOLDER_VARIABLES = (
    *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CLINE_DIR", "CODEX_HOME", "COPILOT_HOME"),
    *("GEMINI_CLI_HOME", "QWEN_HOME"),
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home of a user without any installed client."""
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "bin").mkdir()
    for name in FOLDER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return folder


@pytest.fixture
def project(home, tmp_path, monkeypatch):
    """A project with a prompt, as the current folder."""
    folder = tmp_path / "team prompts"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "greet.py").write_text(RECIPE)
    (folder / "pyproject.toml").write_text('[tool.promptkit]\ntarget = "prompts"\n')
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def promptkit(capsys):
    """A function that runs a command and returns its exit code, standard output and standard error."""

    def run(*argv):
        code = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def usage_error(promptkit, capsys):
    """A function that runs a command with wrong usage and returns the error message."""

    def run(*argv):
        with pytest.raises(SystemExit) as end:
            promptkit(*argv)
        assert end.value.code == 2
        return capsys.readouterr().err.splitlines()[-1]

    return run


@pytest.fixture
def run_json(promptkit):
    """A function that runs a successful command with `--json` and returns the parsed output."""

    def run(command, *argv):
        code, out, err = promptkit(command, "--json", *argv)
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


@pytest.fixture
def served_prompts(tmp_path):
    """A function that starts a server as a client does and returns the names of its prompts."""
    session = (
        initialize("2025-11-25"),
        notification("notifications/initialized"),
        request(1, "prompts/list"),
    )

    def start(command, cwd=tmp_path, **variables):
        result = subprocess.run(
            command,
            input=b"".join(map(line, session)),
            capture_output=True,
            check=True,
            cwd=cwd,
            env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", **variables},
            timeout=30,
        )
        replies = [json.loads(reply) for reply in result.stdout.splitlines()]
        (listed,) = [reply["result"]["prompts"] for reply in replies if reply.get("id") == 1]
        return [prompt["name"] for prompt in listed]

    return start
