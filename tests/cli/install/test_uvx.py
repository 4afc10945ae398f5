"""If promptkit runs with uvx, `install` writes a uvx command instead of a path in uv's cache."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from promptkit.clients.profiles import INSTALLABLE
from promptkit.clients.servers import serve_arguments_in
from tests.cli.install.entries import entries
from tests.clients.python_packages import INSTALLING, install_packages

ROOT = Path(__file__).parents[3]
UV = ROOT / "tests" / "clients" / "uv.txt"

#: The packages of an environment: promptkit, a package added with `--with`, and their requirements.
PACKAGES = {
    "mcp-promptkit": ["attrs<27,>=24.2", 'json-repair<1,>=0.64; extra == "answers"'],
    "attrs": None,
    "json_repair": None,
    "Team.Prompts": ["python-dotenv"],
    "python-dotenv": [],
}


@pytest.fixture
def uvx(tmp_path, monkeypatch):
    """
    The `uvx` next to the `uv` that appears to have started this process, in an environment of its cache.
    """
    program = tmp_path / "uv folder" / "uvx"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    packages = [SimpleNamespace(name=name, requires=requires) for name, requires in PACKAGES.items()]
    monkeypatch.setattr("promptkit.clients.uvx.distributions", lambda: packages)
    monkeypatch.setattr("promptkit.clients.uvx.requirement", lambda name, extras=(): f"{name}{[*extras]}")
    monkeypatch.setattr("promptkit.clients.uvx.find_spec", lambda name: name == "json_repair")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "cache" / "archive-v0" / "abc"))
    monkeypatch.setenv("UV", str(program.with_name("uv")))
    return program


@pytest.mark.skipif(os.name == "nt", reason="the program is not executable")
def test_user_configuration(uvx, project, promptkit):
    """The command has the extras that a server can use, and the packages that no other package requires."""
    promptkit("install", "cursor")
    entry = entries("cursor")["team-prompts"]
    options = ["--from", "mcp-promptkit['answers']", "--with", "team-prompts[]"]

    assert entry["command"] == str(uvx)
    assert entry["args"] == [*options, "promptkit", "serve", str(project / "prompts")]
    assert serve_arguments_in(INSTALLABLE["cursor"], entry) == [str(project / "prompts")]
    assert "nothing to change" in promptkit("install", "cursor")[1]
    assert promptkit("uninstall", "cursor")[0] == 0
    assert dict(entries("cursor")) == {}


def test_project_configuration(uvx, project, promptkit):
    """In the project's file, the command is `uvx`, which every member of the project needs."""
    _, out, _ = promptkit("install", "cursor", "--scope", "project")

    assert entries("cursor", "project")["team-prompts"]["command"] == "uvx"
    assert "    everyone who works on the project needs uvx on their PATH\n" in out


@pytest.mark.parametrize("folder", ["tools/mcp-promptkit", ".venv"])
def test_other_environments(folder, uvx, project, promptkit, monkeypatch):
    """An installed tool, or an environment of uv, is started by its path."""
    monkeypatch.setattr(sys, "prefix", str(project / folder))
    promptkit("install", "cursor")

    args = entries("cursor")["team-prompts"]["args"]
    assert args[-2:] == ["serve", str(project / "prompts")]
    assert "--from" not in args


@pytest.mark.parametrize(
    "words", [["promptkit", "list", "x"], ["--from", "x", "ruff", "serve"], ["promptkit"]], ids=" ".join
)
def test_other_commands_of_uvx(words):
    """Other commands that uvx starts are not servers of promptkit."""
    assert serve_arguments_in(INSTALLABLE["cursor"], {"command": "uvx", "args": words}) is None


@pytest.mark.slow
@pytest.mark.installs
@pytest.mark.timeout(2 * INSTALLING)
@pytest.mark.skipif(os.name == "nt", reason="the client has a POSIX environment")
def test_real_uvx(project, installations, served_prompts, tmp_path):
    """With a real uvx, the written command serves recipes that import a package of `--with`."""
    folder = install_packages(UV, installations).parent
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", ROOT]
    subprocess.run(build, check=True, env={**os.environ, "PATH": os.defpath})
    (wheel,) = (tmp_path / "dist").glob("mcp_promptkit-*.whl")
    recipe = project / "prompts" / "greet.py"
    recipe.write_text(f"import dotenv\n{recipe.read_text()}")
    variables = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "UV_"))
    }
    variables |= {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_PYTHON": sys.executable}

    command = [folder / "uvx", "--from", wheel, "--with", "python-dotenv", "promptkit", "install", "cursor"]
    environment = {**variables, "HOME": str(tmp_path / "home"), "PATH": os.defpath}
    subprocess.run(command, env=environment, check=True)
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    (entry,) = json.loads(file.read_text())["mcpServers"].values()

    assert entry["args"][:3] == ["--from", f"mcp-promptkit @ {wheel.as_uri()}", "--with"]
    assert served_prompts([entry["command"], *entry["args"]], **variables) == ["greet"]
