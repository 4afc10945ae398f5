"""A project's file is everybody's: its paths are right wherever it lies. And entries that are stale."""

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.clients.configurations import ConfigurationFile
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.clients.servers import command_in
from tests.cli.install.entries import entries, file_of

WITH_PROJECT = [name for name, settings in INSTALLABLE.items() if settings.project]

#: What each client's documentation has for the folder of a project; the others start servers in that folder.
FOLDERS = {
    "claude-code": "${CLAUDE_PROJECT_DIR:-.}",
    "cursor": "${workspaceFolder}",
    "vscode": "${workspaceFolder}",
}

posix = pytest.mark.skipif(os.name == "nt", reason="programs are links")


def command(name):
    return command_in(INSTALLABLE[name], entries(name, "project")["team-prompts"])


def as_the_client_does(name, words, project):
    """The words that a client starts: its variable stands for the folder of the project."""
    folder = FOLDERS.get(name)
    return [word.replace(folder, str(project)) if folder else word for word in words]


@pytest.fixture
def own_environment(project, monkeypatch):
    """The scripts of an environment that lies in the project."""
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
def test_what_is_written_is_found(name, folder, parts):
    """
    Whatever path is written into a project's file leads there; those within the project hold nothing of it.
    """
    home = Path("/home/me").absolute()
    place = ConfigurationFile(name, "project", str(home / "team"))
    path = home.joinpath(folder, *parts)
    written = place.format_path(str(path))

    assert Path(place.resolve_path(written)) == path
    assert Path(written).is_absolute() != path.is_relative_to(home / "team")


@pytest.mark.parametrize("name", WITH_PROJECT)
class TestEachClient:
    def test_paths_are_those_of_everybody(self, name, project, promptkit):
        """
        They begin with what the client has for the folder of the project, and nothing in the file is yours.
        """
        folder = FOLDERS.get(name, ".")
        code, out, err = promptkit("install", name, "--scope", "project", "--", "--workspace", ".")

        assert (code, err) == (0, "")
        assert command(name)[:4] == ["promptkit", "serve", f"{folder}/prompts", f"--workspace={folder}"]
        assert str(Path.home().parent) not in file_of(name, "project").read_text()
        assert "    everyone who works on the project needs promptkit on their PATH\n" in out

    @posix
    def test_it_starts_in_another_clone(  # noqa: PLR0917
        self, name, project, own_environment, promptkit, tmp_path, prompts_of, monkeypatch
    ):
        """
        The environment within the project is named as the prompts are: where the project is moved to, the
        client starts it as before.
        """
        promptkit("install", name, "--scope", "project")
        program, *words = command(name)
        clone = project.rename(tmp_path / "clone")
        monkeypatch.chdir(clone)
        started = as_the_client_does(name, [program, *words], clone)

        assert program == f"{FOLDERS.get(name, '.')}/.venv/bin/promptkit"
        assert prompts_of(started, cwd=clone) == ["greet"]

    def test_again(self, name, project, promptkit):
        """
        What stands there is recognised, shown and taken out.
        """
        promptkit("install", name, "--scope", "project")
        _, again, _ = promptkit("install", name, "--scope", "project")
        _, listed, _ = promptkit("install", "--list", name)
        _, removed, _ = promptkit("uninstall", name, "--scope", "project")

        assert ": nothing to change" in again
        assert f"project: {file_of(name, 'project')}\n        team-prompts: promptkit serve " in listed
        assert removed.startswith(f"{CLIENTS[name].title} no longer has the server 'team-prompts'\n")

    def test_what_others_have_not(self, name, project, promptkit, tmp_path):
        """
        What lies outside of the project is yours alone, and that is said.
        """
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "greet.py").touch()
        _, out, _ = promptkit("install", name, "prompts", "../elsewhere", "--scope", "project")

        assert command(name)[2:4] == [f"{FOLDERS.get(name, '.')}/prompts", str(tmp_path / "elsewhere")]
        assert f"    only this machine has {tmp_path / 'elsewhere'}\n" in out

    def test_of_ones_own(self, name, project, promptkit):
        """
        In the file that is yours, paths are absolute, as before.
        """
        promptkit("install", name)
        words = command_in(INSTALLABLE[name], entries(name)["team-prompts"])

        assert words[1:3] == ["serve", str(project / "prompts")]
        assert Path(words[0]).is_absolute()

    def test_an_object_and_the_project_itself(self, name, project, promptkit):
        """
        A file, an object in it, and the folder of the project.
        """
        folder = FOLDERS.get(name, ".")
        promptkit(
            "install", name, "prompts/greet.py:greet", ".", "--scope", "project", "--name", "team-prompts"
        )

        assert command(name)[2:4] == [f"{folder}/prompts/greet.py:greet", folder]


class TestGone:
    def test_a_folder(self, project, promptkit, data_of, tmp_path):
        """
        An entry whose prompts were moved is marked, and no other; so is one whose workspace is gone.
        """
        (tmp_path / "space").mkdir()
        promptkit("install", "zed", "goose")
        promptkit("install", "zed", "prompts", "--name", "second", "--", f"--workspace={tmp_path / 'space'}")
        promptkit("install", "zed", "prompts/greet.py:greet", "--name", "object")
        promptkit("install", "zed", "json.tool", "--name", "module")
        assert "gone: " not in promptkit("install", "--list")[1]

        (tmp_path / "space").rmdir()
        (project / "prompts").rename(project / "moved")
        _, out, _ = promptkit("install", "--list", "zed")
        (client,) = data_of("install", "--list", "zed")["clients"]

        prompts = str(project / "prompts")
        assert client["configurations"]["user"]["gone"] == {
            "team-prompts": [prompts],
            "second": [prompts, str(tmp_path / "space")],
            "object": [f"{prompts}/greet.py:greet"],
        }
        assert f"            gone: {prompts}\n" in out

    @posix
    def test_an_environment(self, project, own_environment, promptkit):
        """
        Its program, or the Python that it runs on.
        """
        promptkit("install", "zed")
        assert "gone: " not in promptkit("install", "--list", "zed")[1]

        (own_environment / "python").unlink()
        (own_environment / "python").symlink_to("/nonexistent/python3")
        broken = promptkit("install", "--list", "zed")[1]
        (own_environment / "promptkit").unlink()
        gone = promptkit("install", "--list", "zed")[1]

        assert f"            gone: {own_environment / 'promptkit'}\n" in broken
        assert broken == gone

    @posix
    @pytest.mark.parametrize("name", WITH_PROJECT)
    def test_in_a_projects_file(self, name, project, own_environment, promptkit):
        """
        What stands for the folder of the project is known there.
        """
        promptkit("install", name, "--scope", "project")
        assert "gone: " not in promptkit("install", "--list", name)[1]

        (project / "prompts").rename(project / "moved")
        assert (
            f"            gone: {FOLDERS.get(name, '.')}/prompts\n" in promptkit("install", "--list", name)[1]
        )

    def test_a_program_by_its_name(self, project, promptkit, tmp_path):
        """
        It is gone if nobody finds it.
        """
        promptkit("install", "zed", "--scope", "project")
        assert "            gone: promptkit\n" in promptkit("install", "--list", "zed")[1]

        program = tmp_path / "bin" / ("promptkit.exe" if os.name == "nt" else "promptkit")
        program.touch(mode=0o755)
        assert "gone: " not in promptkit("install", "--list", "zed")[1]

    def test_what_only_a_client_knows(self, project, promptkit):
        """
        A path with a variable of a client's may be there.
        """
        promptkit("install", "cursor")
        text = (
            file_of("cursor")
            .read_text()
            .replace(json.dumps(str(project / "prompts")), '"${userHome}/prompts"')
        )
        file_of("cursor").write_text(text)

        assert "${userHome}/prompts" in promptkit("install", "--list", "cursor")[1]
        assert "gone: " not in promptkit("install", "--list", "cursor")[1]
