"""A project's shared configuration has portable paths."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.clients.configuration_files import ConfigurationFile
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.clients.servers import command_in
from tests.cli.install.entries import config_path, entries

WITH_PROJECT = [name for name, settings in INSTALLABLE.items() if settings.project]

#: The variable for the project's folder by client; all others start servers in that folder.
FOLDERS = {
    "claude-code": "${CLAUDE_PROJECT_DIR:-.}",
    "cursor": "${workspaceFolder}",
    "vscode": "${workspaceFolder}",
}

posix = pytest.mark.skipif(os.name == "nt", reason="programs are links")


def command(name):
    return command_in(INSTALLABLE[name], entries(name, "project")["team-prompts"])


def expand_variables(name, words, project):
    """Replace the client's variable for the project's folder in a command."""
    folder = FOLDERS.get(name)
    return [word.replace(folder, str(project)) if folder else word for word in words]


@pytest.fixture
def own_environment(project, monkeypatch):
    """The folder with the programs of a virtual environment within the project."""
    scripts = project / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "promptkit").symlink_to(shutil.which("promptkit", path=sysconfig.get_path("scripts")))
    (scripts / "python").symlink_to(sys.executable)
    real = sysconfig.get_path
    monkeypatch.setattr(
        "promptkit.clients.servers.sysconfig.get_path",
        lambda name: str(scripts) if name == "scripts" else real(name),
    )
    return scripts


@given(
    st.sampled_from(WITH_PROJECT),
    st.sampled_from(["team", "team/..b", ".", "team2"]),
    st.lists(st.sampled_from(["a", "..b", "team", "two words"]), max_size=3),
)
def test_written_paths_resolve(name, folder, parts):
    """Every path in a project's file resolves to the original, and paths within the project are relative."""
    home = Path("/home/me").absolute()
    configuration = ConfigurationFile(name, "project", str(home / "team"))
    path = home.joinpath(folder, *parts)
    written = configuration.format_path(str(path))

    assert Path(configuration.resolve_path(written)) == path
    assert Path(written).is_absolute() != path.is_relative_to(home / "team")


@pytest.mark.parametrize("name", WITH_PROJECT)
class TestEachClient:
    def test_paths_are_portable(self, name, project, promptkit):
        """
        Paths start with the client's variable for the project's folder, and none is specific to this machine.
        """
        folder = FOLDERS.get(name, ".")
        code, out, err = promptkit("install", name, "--scope", "project", "--", "--workspace", ".")

        assert (code, err) == (0, "")
        assert command(name)[:4] == ["promptkit", "serve", f"{folder}/prompts", f"--workspace={folder}"]
        assert str(Path.home().parent) not in config_path(name, "project").read_text()
        assert "    everyone who works on the project needs promptkit on their PATH\n" in out

    @posix
    def test_environment_within_the_project(self, name, project, own_environment, promptkit):
        """The environment within the project has a relative path too, which resolves to its program."""
        promptkit("install", name, "--scope", "project")
        program, *_ = command(name)

        assert program == f"{FOLDERS.get(name, '.')}/.venv/bin/promptkit"
        assert Path(*expand_variables(name, [program], project)).samefile(own_environment / "promptkit")

    def test_entry_is_recognized(self, name, project, promptkit):
        """The entry is recognized, listed and removed."""
        promptkit("install", name, "--scope", "project")
        _, repeated, _ = promptkit("install", name, "--scope", "project")
        _, listed, _ = promptkit("install", "--list", name)
        _, removed, _ = promptkit("uninstall", name, "--scope", "project")

        assert ": nothing to change" in repeated
        assert f"project: {config_path(name, 'project')}\n        team-prompts: promptkit serve " in listed
        assert removed.startswith(f"{CLIENTS[name].title} no longer has the server 'team-prompts'\n")

    def test_targets_outside_the_project(self, name, project, promptkit, tmp_path):
        """Targets outside of the project are reported, because others do not have them."""
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "greet.py").touch()
        _, out, _ = promptkit("install", name, "prompts", "../elsewhere", "--scope", "project")

        assert command(name)[2:4] == [f"{FOLDERS.get(name, '.')}/prompts", str(tmp_path / "elsewhere")]
        assert f"    {tmp_path / 'elsewhere'} exists only on this machine\n" in out

    def test_user_configuration_has_absolute_paths(self, name, project, promptkit):
        """The user's own file has absolute paths."""
        promptkit("install", name)
        words = command_in(INSTALLABLE[name], entries(name)["team-prompts"])

        assert words[1:3] == ["serve", str(project / "prompts")]
        assert Path(words[0]).is_absolute()

    def test_object_and_project_as_targets(self, name, project, promptkit):
        """An object in a file and the project's folder are portable too."""
        folder = FOLDERS.get(name, ".")
        promptkit(
            "install", name, "prompts/greet.py:greet", ".", "--scope", "project", "--name", "team-prompts"
        )

        assert command(name)[2:4] == [f"{folder}/prompts/greet.py:greet", folder]


@posix
def test_moved_project(project, own_environment, promptkit, tmp_path, served_prompts):
    """A moved project with its own environment still starts."""
    promptkit("install", "cursor", "--scope", "project")
    words = command("cursor")
    clone = project.rename(tmp_path / "clone")

    assert served_prompts(expand_variables("cursor", words, clone), cwd=clone) == ["greet"]
