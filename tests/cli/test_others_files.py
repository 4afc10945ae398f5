"""Commands in folders where somebody else has put something."""

import os

import pytest

from promptkit.loader.targets import project_root
from promptkit.testing.pytest_plugin import root_of
from tests.terminal import command

pytestmark = pytest.mark.sampled

MINE = "from promptkit import prompt\n\n@prompt\ndef mine():\n    return 'mine'\n"
THEIRS = "from pathlib import Path\nPath({!r}).touch()\n" + MINE.replace("mine", "theirs")
TABLE = '[tool.promptkit]\ntarget = "{}"\n'
COMMANDS = [["list"], ["render", "mine"], ["check"], ["complete", "mine", "x"], ["serve"]]

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="files are given to another user"
)
posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")


@pytest.fixture
def shared(tmp_path):
    """A folder with a configuration of someone else's, and one's own folder in it."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "theirs.py").write_text(THEIRS.format(str(tmp_path / "ran")))
    (tmp_path / "pyproject.toml").write_text(TABLE.format("theirs"))
    (tmp_path / "own" / "recipes").mkdir(parents=True)
    (tmp_path / "own" / "recipes" / "mine.py").write_text(MINE)
    for path in ("theirs", "theirs/theirs.py", "pyproject.toml"):
        os.chown(tmp_path / path, 1234, 1234)
    return tmp_path


@as_root
class TestOwners:
    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_their_configuration_is_refused(self, argv, shared):
        """
        Nothing of theirs runs, and the error says what to do.
        """
        code, out, err = command(*argv, cwd=shared / "own")

        assert not (shared / "ran").exists()
        assert (code, out) == (2, b"")
        assert err.decode() == (
            f"promptkit: {shared / 'pyproject.toml'}: it belongs to another user, whose code it would run: "
            "name the recipes on the command line, and it is not read, or make it yours\n"
        )

    @pytest.mark.parametrize(
        "argv", [["list", "recipes"], ["check", "recipes"], ["render", "recipes", "mine"]]
    )
    def test_a_target_that_is_named(self, argv, shared):
        """
        It does without their configuration, which may be wrong or a pipe.
        """
        (shared / "pyproject.toml").unlink()
        os.mkfifo(shared / "pyproject.toml")
        os.chown(shared / "pyproject.toml", 1234, 1234)

        assert command(*argv, cwd=shared / "own")[0] == 0

    @pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
    def test_it_is_not_looked_for_above_ones_own_project(self, mark, shared):
        """
        The search ends at the project's root, as that of git does, with a table of promptkit's or without.
        """
        (shared / "own" / mark).touch()

        code, out, _ = command("list", cwd=shared / "own")

        assert (code, out.decode().partition("\n")[0]) == (0, "prompt mine")

    def test_a_link_to_ones_own(self, shared):
        """
        A link of theirs to a file of mine would read my target as seen from their folder.
        """
        (shared / "own" / "settings").write_text(TABLE.format("theirs"))
        (shared / "pyproject.toml").unlink()
        (shared / "pyproject.toml").symlink_to("own/settings")
        os.lchown(shared / "pyproject.toml", 1234, 1234)

        assert command("list", cwd=shared / "own")[0] == 2
        assert not (shared / "ran").exists()

    def test_a_folder_of_theirs(self, shared):
        """
        Who owns the folder can change what a configuration in it leads to, whosever that is.
        """
        os.chown(shared, 1234, 1234)
        os.chown(shared / "pyproject.toml", 0, 0)

        assert command("list", cwd=shared / "own")[0] == 2
        assert not (shared / "ran").exists()

    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_the_usual_folder_may_be_theirs(self, argv, shared):
        """
        It is served only if it is named.
        """
        (shared / "pyproject.toml").unlink()
        (shared / "theirs").rename(shared / "recipes")

        code, out, err = command(*argv, cwd=shared)

        assert not (shared / "ran").exists()
        assert (code, out) == (2, b"")
        assert "it belongs to another user: name it if you trust its content" in err.decode()
        assert command("list", "recipes", cwd=shared)[0] == 0

    def test_sudo(self, shared):
        """
        Root works for whoever called it.
        """
        code, _, _ = command("list", cwd=shared / "own", env={"SUDO_UID": "1234"})

        assert code == 0

    def test_their_mark_is_no_root(self, shared):
        """
        What lies beside a mark of theirs is not imported, unless the recipes are theirs as well.
        """
        recipes = shared / "own" / "recipes"

        assert (project_root(recipes), root_of(recipes)) == (str(shared / "own"), shared / "own")
        os.chown(recipes, 1234, 1234)
        assert (project_root(recipes), root_of(recipes)) == (str(shared), shared)


#: What may lie in the place of a configuration, and what is said of it.
WEAPONS = {
    "deep": "it is not TOML: it is nested too deeply to be read",
    "large": "it cannot be read: it has more than 1,048,576 bytes",
    "device": "it cannot be read: it is not a regular file",
    "pipe": "it cannot be read: it is not a regular file",
}


@posix
class TestConfiguration:
    @pytest.mark.timeout(30)
    @pytest.mark.parametrize("kind", WEAPONS)
    @pytest.mark.parametrize("argv", [["list"], ["serve"], ["install", "cursor"]], ids=lambda argv: argv[0])
    def test_what_cannot_be_read_is_wrong_usage(self, kind, argv, tmp_path):
        """
        At once, with the file and the reason, and without a traceback.
        """
        file = tmp_path / "pyproject.toml"
        if kind == "deep":
            file.write_text("[tool.promptkit]\nx = " + "[" * 100_000)
        elif kind == "large":
            file.write_text(TABLE.format("recipes") + "#" * (1 << 20))
        elif kind == "device":
            file.symlink_to("/dev/zero")
        else:
            os.mkfifo(file)

        code, out, err = command(*argv, cwd=tmp_path)

        assert (code, out, err.decode()) == (2, b"", f"promptkit: {file}: {WEAPONS[kind]}\n")

    @pytest.mark.timeout(30)
    def test_pytest_is_not_held(self, tmp_path):
        """
        The plugin looks for the configuration in every run, also where nobody uses promptkit.
        """
        os.mkfifo(tmp_path / "pyproject.toml")
        (tmp_path / "test_one.py").write_text("def test_one(): pass\n")

        from promptkit.testing.pytest_plugin import make_importable

        make_importable(tmp_path)
