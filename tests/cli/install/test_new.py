"""A new project, and the three commands that lead from there into a client."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pytest

from promptkit.clients.configurations import ConfigurationFile
from promptkit.fragments.invisible import escape_invisible
from tests.terminal import command

pytestmark = pytest.mark.sampled

FILES = ["prompts/review.py", "prompts/test_review.py", "pyproject.toml"]
IGNORED = ".gitignore"
GIT = shutil.which("git")
ROOT = Path(__file__).parents[3]
RENDERED = "[user]\nReview this python code.\n\n```python\nx = 1\n```\n"


@pytest.fixture
def empty(home, tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    folder = tmp_path / "somewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def files_in(folder):
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def follow(commands, folder, environment):
    """Type commands into one shell, one after the other; return what it shows for each."""
    mark = "--- that was it"
    script = "".join(f"{command}\necho '{mark}'\n" for command in commands)
    ran = subprocess.run(
        ["/bin/sh", "-e"],
        input=script,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.split(f"{mark}\n")[:-1]


def installed_in(home):
    """What Claude Code starts now."""
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["my-prompts"]
    return [entry["command"], *entry["args"]]


@pytest.mark.parametrize("argv", [[], ["."], ["my prompts"], ["a/b"]], ids=" ".join)
def test_what_is_written(argv, empty, promptkit):
    """
    One prompt, its test, the configuration and a `.gitignore`: nothing else.
    """
    code, out, err = promptkit("new", *argv)
    folder = empty.joinpath(*argv)

    assert (code, err) == (0, "")
    assert files_in(folder) == [IGNORED, *FILES]
    assert [one for one in out.splitlines() if one.startswith("wrote ")] == [
        f"wrote {Path(*argv, name)}"
        for name in ("pyproject.toml", "prompts/review.py", "prompts/test_review.py", IGNORED)
    ]


@pytest.mark.skipif(GIT is None, reason="there is no git")
@pytest.mark.parametrize("argv", [["new"], ["new", "--skill"]], ids=" ".join)
def test_what_a_repository_is_to_hold(argv, empty, promptkit):
    """
    All that was written, and nothing that Python and an environment write next to it.
    """
    promptkit(*argv)
    written = files_in(empty)
    for name in ("prompts/__pycache__/review.pyc", ".venv/bin/python"):
        (empty / name).parent.mkdir(parents=True)
        (empty / name).touch()
    git = partial(subprocess.check_output, cwd=empty, text=True)
    git([GIT, "init", "--quiet"])
    git([GIT, "add", "--all"])

    assert sorted(git([GIT, "ls-files"]).splitlines()) == written


@pytest.mark.parametrize("make", [lambda file: file.write_text("mine\n"), lambda file: file.symlink_to("no")])
def test_a_gitignore_stays(make, empty, promptkit):
    """
    It is not in the way, as all other files are.
    """
    make(file := empty / IGNORED)
    code, out, _ = promptkit("new")

    assert (code, IGNORED in out) == (0, False)
    assert file.is_symlink() or file.read_text() == "mine\n"
    assert not (empty / "no").exists()


def test_nothing_is_found_in_it(empty, promptkit, monkeypatch):
    """
    `check` is content, as it is with what people then write.
    """
    promptkit("new", "one")
    monkeypatch.chdir("one")

    assert promptkit("check", "--render") == (0, "1 prompt can be served\n", "")


@pytest.mark.timeout(300)  # pytest is started in it, with all of its plugins
@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_the_next_commands_work(empty, home, prompts_of, data_of):
    """
    As they are printed they show the prompt, pass its test and put it into a client, which can start it.
    """
    commands = data_of("new", "my prompts")["next"]
    shown, tested, installed = follow(commands, empty, {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    assert len(commands) == 3
    assert shown == RENDERED
    assert "2 passed" in tested
    assert installed.splitlines()[0] == "Claude Code has the server 'my-prompts'"
    assert prompts_of(installed_in(home)) == ["review"]


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
@pytest.mark.parametrize("name", ["-x", "--help", "-", "a\nb", "\x1b[2J", "$(touch ran)", "it's", "\u202ea"])
def test_a_folder_of_any_name(name, empty, home):
    """
    What is printed is one line a command, holds nothing that cannot be seen, and works as it is.
    """
    ran = command("new", "--", name, cwd=empty)
    printed = [one.strip() for one in ran[1].decode().partition("next:\n")[2].splitlines()]

    assert (ran[0], len(printed)) == (0, 3)
    assert escape_invisible(printed[0]) == printed[0]
    program = Path(sys.executable).parent
    path = os.pathsep.join([str(program), os.environ["PATH"], "/usr/bin", "/bin"])
    shown = subprocess.run(
        ["bash", "-c", printed[0]],  # noqa: S607 (wherever it is)
        cwd=empty,
        env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == RENDERED
    assert [one.name for one in empty.iterdir()] == [name]


@pytest.mark.installs
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_a_new_users_first_minute(empty, home, prompts_of, tmp_path):
    """
    With nothing but this package installed in an environment of its own, each command works the first time.
    """
    path = os.pathsep.join([str(tmp_path / "env" / "bin"), "/usr/bin", "/bin"])
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP"))}
    environment = {"HOME": str(home), "PATH": path, **kept}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    subprocess.run(["pip", "install", "-q", ROOT], env=environment, check=True, cwd=empty)  # noqa: S607 (the venv's)
    made = subprocess.run(
        ["promptkit", "new", "my-prompts"],  # noqa: S607 (the venv's)
        env=environment,
        cwd=empty,
        capture_output=True,
        text=True,
        check=True,
    )
    commands = [one.strip() for one in made.stdout.partition("next:\n")[2].splitlines()]
    shown, tested, installed = follow(commands, empty, environment)

    assert commands == [
        'cd my-prompts && promptkit render review code="x = 1"',
        "python -m pip install pytest && python -m pytest",
        "promptkit install claude-code",
    ]
    assert shown == RENDERED
    assert "2 passed" in tested
    assert installed.splitlines()[0] == "Claude Code has the server 'my-prompts'"
    assert prompts_of(installed_in(home)) == ["review"]


@pytest.mark.parametrize("name", FILES)
class TestNeverOverwrites:
    def test_a_file(self, name, empty, promptkit):
        """
        The file that is in the way is named, and nothing is written.
        """
        (empty / name).parent.mkdir(exist_ok=True)
        (empty / name).write_text("mine")
        code, out, err = promptkit("new")

        assert (code, out) == (1, "")
        assert err == (
            f"promptkit: nothing was written: {Path(name)} is in the way: move it, or name another folder\n"
        )
        assert files_in(empty) == [name]
        assert (empty / name).read_text() == "mine"

    def test_a_link_to_nothing(self, name, empty, promptkit):
        """
        Nothing is written through a link.
        """
        (empty / name).parent.mkdir(exist_ok=True)
        (empty / name).symlink_to("nowhere")

        assert promptkit("new")[0] == 1
        assert files_in(empty) == []


@pytest.mark.skipif(os.name == "nt", reason="links need privileges")
@pytest.mark.parametrize(
    ("argv", "link"), [(["out"], "out"), (["out/deep"], "out"), ([], "prompts"), (["out"], "out/prompts")]
)
@pytest.mark.parametrize("target", ["theirs", "missing"])
def test_a_link_in_place_of_a_folder(argv, link, target, empty, promptkit):
    """
    Nothing is written through a link that may have come with a repository.
    """
    (empty.parent / "theirs").mkdir()
    (empty / link).parent.mkdir(exist_ok=True)
    (empty / link).symlink_to(empty.parent / target)
    before = sorted(empty.rglob("*"))

    code, out, err = promptkit("new", *argv)

    assert (code, out) == (1, "")
    expected = f"{Path(link)}: it is a link: replace it by its target, or name the target"
    assert err == f"promptkit: nothing was written: {expected}\n"
    assert sorted(empty.rglob("*")) == before
    assert list((empty.parent / "theirs").iterdir()) == []


def test_a_file_in_place_of_a_folder(empty, promptkit):
    """
    It is left, and told.
    """
    (empty / "prompts").write_text("mine")
    code, _, err = promptkit("new")

    assert code == 1
    assert err == "promptkit: nothing was written: prompts is in the way: move it, or name another folder\n"
    assert files_in(empty) == ["prompts"]


def test_a_folder_that_cannot_be_made(empty, promptkit):
    """
    The reason is the system's.
    """
    (empty / "file").touch()
    code, _, err = promptkit("new", "file/below")

    assert code == 1
    assert err.startswith("promptkit: nothing was written: file")
    assert files_in(empty) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
@pytest.mark.parametrize(("folder", "left"), [("mine", ["mine"]), ("mine/a/b", ["mine"])])
def test_a_full_disk(folder, left, empty):
    """
    Nothing of what was made is left, and a folder that was there stays.
    """
    (empty / "mine").mkdir()
    ran = subprocess.run(
        ["/bin/sh", "-c", f"ulimit -f 0; exec {sys.executable} -m promptkit new {folder}"],
        cwd=empty,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("promptkit: nothing was written: ")
    assert [path.relative_to(empty).as_posix() for path in empty.rglob("*")] == left


def test_below_a_broken_configuration(empty, promptkit):
    """
    What is wrong with another project is nothing to a new one.
    """
    (empty / "pyproject.toml").write_text("[tool.promptkit]\ntarge = 1\n")

    assert promptkit("new", "one")[0] == 0


@pytest.mark.parametrize(("found", "named"), [("codex", "claude-code"), ("cursor", "cursor"), ("zed", "zed")])
def test_the_client_is_one_that_is_there(found, named, empty, data_of):
    """
    The first client on this machine is named that offers prompts.
    """
    ConfigurationFile(found).path.parent.mkdir(parents=True)

    assert data_of("new")["next"][-1].endswith(f" install {named}")


def test_programs_on_the_path_are_named_by_their_names(empty, data_of, monkeypatch):
    """
    Where the shell finds the programs of this environment, that is all it takes.
    """
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"))

    assert data_of("new")["next"] == [
        'promptkit render review code="x = 1"',
        "python -m pytest",
        "promptkit install claude-code",
    ]
