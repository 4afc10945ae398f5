"""Commands in folders with files of other users."""

import os

import pytest

from promptkit.loader.targets import project_root
from promptkit.testing.pytest_plugin import root_of

OWN = "from promptkit import prompt\n\n@prompt\ndef mine():\n    return 'mine'\n"
FOREIGN = "from pathlib import Path\nPath({!r}).touch()\n" + OWN.replace("mine", "theirs")
TABLE = '[tool.promptkit]\ntarget = "{}"\n'
COMMANDS = [["list"], ["render", "mine"], ["check"], ["complete", "mine", "x"], ["serve"]]

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="files are given to another user"
)
posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")


@pytest.fixture
def shared(tmp_path):
    """A folder with another user's configuration, and the user's own folder in it."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "theirs.py").write_text(FOREIGN.format(str(tmp_path / "ran")))
    (tmp_path / "pyproject.toml").write_text(TABLE.format("theirs"))
    (tmp_path / "own" / "recipes").mkdir(parents=True)
    (tmp_path / "own" / "recipes" / "mine.py").write_text(OWN)
    for path in ("theirs", "theirs/theirs.py", "pyproject.toml"):
        os.chown(tmp_path / path, 1234, 1234)
    return tmp_path


@as_root
class TestOwners:
    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_configuration_of_another_user_is_rejected(self, argv, shared, run):
        """No code of the other user runs, and the error suggests a fix."""
        code, out, err = run(*argv, cwd=shared / "own")

        assert not (shared / "ran").exists()
        assert (code, out) == (2, "")
        assert err == (
            f"promptkit: {shared / 'pyproject.toml'}: it belongs to another user and could run that user's "
            "code: pass the recipes on the command line, so that it is not read, or take ownership of it\n"
        )

    @pytest.mark.parametrize(
        "argv", [["list", "recipes"], ["check", "recipes"], ["render", "recipes", "mine"]]
    )
    def test_named_target(self, argv, shared, run):
        """
        With a target on the command line, the other user's configuration is ignored, even if it is invalid or
        a pipe.
        """
        (shared / "pyproject.toml").unlink()
        os.mkfifo(shared / "pyproject.toml")
        os.chown(shared / "pyproject.toml", 1234, 1234)

        assert run(*argv, cwd=shared / "own")[0] == 0

    @pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
    def test_search_ends_at_the_project_root(self, mark, shared, run):
        """The search for a configuration ends at the project's root, like git's search for a repository."""
        (shared / "own" / mark).touch()

        code, out, _ = run("list", cwd=shared / "own")

        assert (code, out.partition("\n")[0]) == (0, "prompt mine")

    def test_link_of_another_user_to_an_own_file(self, shared, run):
        """
        Another user's link to the user's own file is rejected, because targets are relative to its folder.
        """
        (shared / "own" / "settings").write_text(TABLE.format("theirs"))
        (shared / "pyproject.toml").unlink()
        (shared / "pyproject.toml").symlink_to("own/settings")
        os.lchown(shared / "pyproject.toml", 1234, 1234)

        assert run("list", cwd=shared / "own")[0] == 2
        assert not (shared / "ran").exists()

    def test_folder_of_another_user(self, shared, run):
        """A configuration in another user's folder is rejected, even if the file is the user's own."""
        os.chown(shared, 1234, 1234)
        os.chown(shared / "pyproject.toml", 0, 0)

        assert run("list", cwd=shared / "own")[0] == 2
        assert not (shared / "ran").exists()

    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_default_folder_of_another_user(self, argv, shared, run):
        """A default folder that belongs to another user is served only if the command line names it."""
        (shared / "pyproject.toml").unlink()
        (shared / "theirs").rename(shared / "recipes")

        code, out, err = run(*argv, cwd=shared)

        assert not (shared / "ran").exists()
        assert (code, out) == (2, "")
        assert "it belongs to another user: pass its path explicitly if you trust its content" in err
        assert run("list", "recipes", cwd=shared)[0] == 0

    def test_sudo(self, shared, monkeypatch, run):
        """Under sudo, files of the user who called it are accepted."""
        monkeypatch.setenv("SUDO_UID", "1234")

        assert run("list", cwd=shared / "own")[0] == 0

    def test_project_root_of_another_user(self, shared):
        """Another user's root marker is ignored, unless the recipes belong to the same user."""
        recipes = shared / "own" / "recipes"

        assert (project_root(recipes), root_of(recipes)) == (str(shared / "own"), shared / "own")
        os.chown(recipes, 1234, 1234)
        assert (project_root(recipes), root_of(recipes)) == (str(shared), shared)


#: Files in place of a configuration, and the error for each.
HOSTILE_FILES = {
    "deep": "it is not valid TOML: it is nested too deeply",
    "large": "it cannot be read: it is larger than 1,048,576 bytes",
    "device": "it cannot be read: it is not a regular file",
    "pipe": "it cannot be read: it is not a regular file",
}


@posix
class TestConfiguration:
    @pytest.mark.timeout(30)
    @pytest.mark.parametrize("kind", HOSTILE_FILES)
    @pytest.mark.parametrize("argv", [["list"], ["serve"], ["install", "cursor"]], ids=lambda argv: argv[0])
    def test_unreadable_configuration(self, kind, argv, tmp_path, run):
        """An unreadable configuration is a usage error with the file and the reason, without waiting."""
        file = tmp_path / "pyproject.toml"
        if kind == "deep":
            file.write_text("[tool.promptkit]\nx = " + "[" * 100_000)
        elif kind == "large":
            file.write_text(TABLE.format("recipes") + "#" * (1 << 20))
        elif kind == "device":
            file.symlink_to("/dev/zero")
        else:
            os.mkfifo(file)

        code, out, err = run(*argv, cwd=tmp_path)

        assert (code, out, err) == (2, "", f"promptkit: {file}: {HOSTILE_FILES[kind]}\n")

    @pytest.mark.timeout(30)
    def test_pytest_does_not_hang(self, tmp_path):
        """The pytest plugin, which looks for a configuration in every run, does not wait for a pipe."""
        os.mkfifo(tmp_path / "pyproject.toml")
        (tmp_path / "test_one.py").write_text("def test_one(): pass\n")

        from promptkit.testing.pytest_plugin import make_importable

        make_importable(tmp_path)
