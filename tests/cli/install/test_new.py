"""`promptkit new`, and the commands that it suggests, up to installing the prompt in a client."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pytest

from promptkit.clients.configuration_files import ConfigurationFile
from promptkit.fragments.invisible import escape_invisible

FILES = ["prompts/review.py", "prompts/test_review.py", "pyproject.toml"]
IGNORED = ".gitignore"
GUIDE = "AGENTS.md"
GIT = shutil.which("git")
ROOT = Path(__file__).parents[3]
RENDERED = "[user]\nReview this python code.\n\n```python\nx = 1\n```\n"


@pytest.fixture
def empty_folder(home, tmp_path, monkeypatch):
    """An empty folder, as the current folder."""
    folder = tmp_path / "somewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def files_in(folder):
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def run_commands(commands, folder, environment):
    """Run commands one after the other in one shell, and return the output of each."""
    marker = "--- that was it"
    script = "".join(f"{command}\necho '{marker}'\n" for command in commands)
    result = subprocess.run(
        ["/bin/sh", "-e"],
        input=script,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.split(f"{marker}\n")[:-1]


def installed_command(home):
    """Return the command in Claude Code's configuration."""
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["my-prompts"]
    return [entry["command"], *entry["args"]]


@pytest.mark.parametrize("argv", [[], ["."], ["my prompts"], ["a/b"]], ids=" ".join)
def test_written_files(argv, empty_folder, promptkit):
    """`new` writes a prompt, its test, the configuration, a `.gitignore` and an `AGENTS.md`."""
    code, out, err = promptkit("new", *argv)
    folder = empty_folder.joinpath(*argv)

    assert (code, err) == (0, "")
    assert files_in(folder) == [IGNORED, GUIDE, *FILES]
    assert [line for line in out.splitlines() if line.startswith("wrote ")] == [
        f"wrote {Path(*argv, name)}"
        for name in ("prompts/review.py", "prompts/test_review.py", "pyproject.toml", IGNORED, GUIDE)
    ]


def test_written_files_for_markdown(empty_folder, promptkit):
    """`new --markdown` writes a Markdown prompt with a case, not a Python file. Other files are the same."""
    assert promptkit("new", "--markdown")[0] == 0
    assert files_in(empty_folder) == [IGNORED, GUIDE, "prompts/review.prompt.md", "pyproject.toml"]


@pytest.mark.skipif(GIT is None, reason="there is no git")
@pytest.mark.parametrize("argv", [["new"], ["new", "--skill"], ["new", "--markdown"]], ids=" ".join)
def test_committed_files(argv, empty_folder, promptkit):
    """Every written file is committed, and generated files next to them are ignored."""
    promptkit(*argv)
    written = files_in(empty_folder)
    assert promptkit("package", "--name", "p", "--version", "1")[0] == 0
    (empty_folder / "rows.csv").write_text("code\nx = 1\n")
    if "--skill" not in argv:
        assert promptkit("batch", "review", "rows.csv", "--for", "gemini")[0] == 0
    (empty_folder / "rows.csv").unlink()
    for name in ("prompts/__pycache__/review.pyc", ".venv/bin/python", ".hypothesis/examples/1"):
        (empty_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (empty_folder / name).touch()
    git = partial(subprocess.check_output, cwd=empty_folder, text=True)
    git([GIT, "init", "--quiet"])
    git([GIT, "add", "--all"])

    assert sorted(git([GIT, "ls-files"]).splitlines()) == written


@pytest.mark.parametrize(
    "create", [lambda file: file.write_text("mine\n"), lambda file: file.symlink_to("no")]
)
@pytest.mark.parametrize("name", [IGNORED, GUIDE, "pyproject.toml"])
def test_files_of_an_existing_project_are_kept(name, create, empty_folder, promptkit):
    """An existing `.gitignore`, `AGENTS.md` or `pyproject.toml` is kept, and the other files are written."""
    create(file := empty_folder / name)
    code, out, _ = promptkit("new")

    assert (code, f"wrote {name}\n" in out, f"kept {name}\n" in out) == (0, False, True)
    assert file.is_symlink() or file.read_text() == "mine\n"
    assert not (empty_folder / "no").exists()


@pytest.mark.parametrize("options", [[], ["--markdown"]], ids=" ".join)
def test_check_passes(options, empty_folder, promptkit, monkeypatch):
    """`check` has nothing to report in a new project."""
    promptkit("new", "one", *options)
    monkeypatch.chdir("one")

    assert promptkit("check", "--render", "--fail-on", "warning") == (0, "1 prompt can be served\n", "")


@pytest.mark.timeout(300)
@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_suggested_commands_for_markdown_work(empty_folder, home, served_prompts, run_json):
    """The printed commands render, check and install the Markdown prompt; pytest runs its case."""
    commands = run_json("new", "my prompts", "--markdown")["next"]
    tests = f"{sys.executable} -m pytest --promptkit -q -p no:cacheprovider"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    rendered, checked, installed, tested = run_commands([*commands, tests], empty_folder, environment)

    assert rendered == RENDERED.replace("```python\n", "").replace("```\n", "")
    assert checked == "1 prompt can be served\n"
    assert installed.splitlines()[0] == "Claude Code now has the server 'my-prompts'"
    assert "2 passed" in tested
    assert served_prompts(installed_command(home)) == ["review"]


@pytest.mark.timeout(300)  # pytest is started in it, with all of its plugins
@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_suggested_commands_work(empty_folder, home, served_prompts, run_json):
    """
    The printed commands render the prompt, pass its test and install it into a client that can start it.
    """
    commands = run_json("new", "my prompts")["next"]
    rendered, tested, installed = run_commands(
        commands, empty_folder, {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    )

    assert len(commands) == 3
    assert rendered == RENDERED
    assert "2 passed" in tested
    assert installed.splitlines()[0] == "Claude Code now has the server 'my-prompts'"
    assert served_prompts(installed_command(home)) == ["review"]


@pytest.mark.timeout(300)
@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_suggested_commands_work_in_an_existing_project(empty_folder, home, served_prompts, run_json):
    """
    In a project with another folder of recipes and of tests, the printed commands find the files that `new`
    has written, and another `new` adds a skill.
    """
    project = empty_folder / "my prompts"
    (project / "recipes").mkdir(parents=True)
    (project / "recipes" / "old.py").write_text(
        "from promptkit import prompt\n\n@prompt\ndef old():\n    return ''\n"
    )
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['tests']\n")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}

    prompt_output = run_commands(run_json("new", "my prompts")["next"], empty_folder, environment)
    skill_output = run_commands(run_json("new", "my prompts", "--skill")["next"], empty_folder, environment)

    assert (prompt_output[0], "2 passed" in prompt_output[1]) == (RENDERED, True)
    assert served_prompts(installed_command(home)) == ["review"]
    assert "name: review-changes" in skill_output[0]
    assert "4 passed" in skill_output[1]
    assert "installed 1 skill for Claude Code: review-changes" in skill_output[2]


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
@pytest.mark.parametrize("name", ["--help", "$(touch ran)", "it's a"])
def test_any_folder_name(name, empty_folder, home, promptkit):
    """The suggested commands work for any folder name with visible characters."""
    code, out, _ = promptkit("new", "--", name)
    commands = [line.strip() for line in out.partition("next:\n")[2].splitlines()]

    assert (code, len(commands)) == (0, 3)
    program = Path(sys.executable).parent
    path = os.pathsep.join([str(program), os.environ["PATH"], "/usr/bin", "/bin"])
    rendered = subprocess.run(
        ["bash", "-c", commands[0]],  # noqa: S607 (wherever it is)
        cwd=empty_folder,
        env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert rendered.stdout == RENDERED
    assert [path.name for path in empty_folder.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J$(touch ran)", "it's \u202ea"])
def test_invisible_characters_in_a_folder_name(name, empty_folder, home, promptkit):
    """The suggested commands take one line each, and contain no invisible characters."""
    code, out, _ = promptkit("new", "--", name)
    commands = [line.strip() for line in out.partition("next:\n")[2].splitlines()]

    assert (code, len(commands)) == (0, 3)
    assert escape_invisible("".join(commands), one_line=True) == "".join(commands)


@pytest.mark.installs
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_first_minute_of_a_new_user(empty_folder, home, served_prompts, tmp_path):
    """With only this package in a new environment, each suggested command works."""
    path = os.pathsep.join([str(tmp_path / "env" / "bin"), "/usr/bin", "/bin"])
    inherited = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP"))
    }
    environment = {"HOME": str(home), "PATH": path, **inherited}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    subprocess.run(["pip", "install", "-q", ROOT], env=environment, check=True, cwd=empty_folder)  # noqa: S607 (the venv's)
    result = subprocess.run(
        ["promptkit", "new", "my-prompts"],  # noqa: S607 (the venv's)
        env=environment,
        cwd=empty_folder,
        capture_output=True,
        text=True,
        check=True,
    )
    commands = [line.strip() for line in result.stdout.partition("next:\n")[2].splitlines()]
    rendered, tested, installed = run_commands(commands, empty_folder, environment)

    assert commands == [
        'cd my-prompts && promptkit render review code="x = 1"',
        "python -m pip install pytest && python -m pytest",
        "promptkit install claude-code",
    ]
    assert rendered == RENDERED
    assert "2 passed" in tested
    assert installed.splitlines()[0] == "Claude Code now has the server 'my-prompts'"
    assert served_prompts(installed_command(home)) == ["review"]


@pytest.mark.parametrize("name", ["prompts/review.py", "prompts/test_review.py"])
class TestNeverOverwrites:
    def test_existing_file_is_kept(self, name, empty_folder, promptkit):
        """An existing file is reported, and nothing is written."""
        (empty_folder / name).parent.mkdir(exist_ok=True)
        (empty_folder / name).write_text("mine")
        code, out, err = promptkit("new")

        assert (code, out) == (1, "")
        assert err == (
            f"promptkit: nothing was written: {Path(name)} is in the way: move it, or choose another folder\n"
        )
        assert files_in(empty_folder) == [name]
        assert (empty_folder / name).read_text() == "mine"

    def test_dangling_link_is_kept(self, name, empty_folder, promptkit):
        """Nothing is written through a link."""
        (empty_folder / name).parent.mkdir(exist_ok=True)
        (empty_folder / name).symlink_to("nowhere")

        assert promptkit("new")[0] == 1
        assert files_in(empty_folder) == []


@pytest.mark.skipif(os.name == "nt", reason="links need privileges")
@pytest.mark.parametrize(
    ("argv", "link"), [(["out"], "out"), (["out/deep"], "out"), ([], "prompts"), (["out"], "out/prompts")]
)
@pytest.mark.parametrize("target", ["theirs", "missing"])
def test_link_in_place_of_a_folder(argv, link, target, empty_folder, promptkit):
    """Nothing is written through a link that could have come with a repository."""
    (empty_folder.parent / "theirs").mkdir()
    (empty_folder / link).parent.mkdir(exist_ok=True)
    (empty_folder / link).symlink_to(empty_folder.parent / target)
    before = sorted(empty_folder.rglob("*"))

    code, out, err = promptkit("new", *argv)

    assert (code, out) == (1, "")
    expected = f"{Path(link)}: it is a link: replace it with its target, or use the path of the target"
    assert err == f"promptkit: nothing was written: {expected}\n"
    assert sorted(empty_folder.rglob("*")) == before
    assert list((empty_folder.parent / "theirs").iterdir()) == []


def test_file_in_place_of_a_folder(empty_folder, promptkit):
    """An existing file in place of a folder is kept and reported."""
    (empty_folder / "prompts").write_text("mine")
    code, _, err = promptkit("new")

    assert code == 1
    assert err == "promptkit: nothing was written: prompts is in the way: move it, or choose another folder\n"
    assert files_in(empty_folder) == ["prompts"]


def test_folder_that_cannot_be_created(empty_folder, promptkit):
    """The error quotes the operating system."""
    (empty_folder / "file").touch()
    code, _, err = promptkit("new", "file/below")

    assert code == 1
    assert err.startswith("promptkit: nothing was written: file")
    assert files_in(empty_folder) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_a_full_disk(empty_folder):
    """After a failed write, all created files are removed and existing folders stay."""
    (empty_folder / "mine").mkdir()
    result = subprocess.run(
        ["/bin/sh", "-c", f"ulimit -f 0; exec {sys.executable} -m promptkit new mine/a/b"],
        cwd=empty_folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("promptkit: nothing was written: ")
    assert [path.relative_to(empty_folder).as_posix() for path in empty_folder.rglob("*")] == ["mine"]


def test_broken_configuration_above(empty_folder, promptkit):
    """A broken configuration in a parent folder does not affect a new project."""
    (empty_folder / "pyproject.toml").write_text("[tool.promptkit]\ntarge = 1\n")

    assert promptkit("new", "one")[0] == 0


@pytest.mark.parametrize(
    ("installed", "expected"), [("codex", "claude-code"), ("cursor", "cursor"), ("zed", "zed")]
)
def test_suggested_client(installed, expected, empty_folder, run_json):
    """The suggested client is the first installed one that supports prompts."""
    ConfigurationFile(installed).path.parent.mkdir(parents=True)

    assert run_json("new")["next"][-1].endswith(f" install {expected}")


def test_commands_use_short_names(empty_folder, run_json, monkeypatch):
    """If the programs are on the PATH, the suggested commands use their names."""
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"))

    assert run_json("new")["next"] == [
        'promptkit render review code="x = 1"',
        "python -m pytest",
        "promptkit install claude-code",
    ]
