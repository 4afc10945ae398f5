import os
import shutil
import subprocess

import pytest

from promptkit import Arg
from promptkit.catalog.completion import Completer
from promptkit.errors import PromptError
from promptkit.workspace import files

#: What lies in the workspace.
TREE = (
    "main.py",
    "notes.txt",
    "src/deep/er/tool.py",
    "src/tool.py",
    "src/tool.pyc",
    ".venv/lib.py",
    "line\nend.py",
)


@pytest.fixture
def tree(folder):
    """A workspace with files."""
    for name in TREE:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def git(folder, *words):
    """Have git do something in a folder."""
    subprocess.run(["git", *words], cwd=folder, check=True)  # noqa: S607 (whichever there is)


@pytest.fixture
def repository(tree):
    """A git repository with files, one of which is committed; some are ignored."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    tree.joinpath(".gitignore").write_text("*.pyc\n.venv\nsrc/deep\n")
    git(tree, "init", "-q")
    git(tree, "add", "main.py")
    return tree


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.py", ["main.py", "src/deep/er/tool.py", "src/tool.py"]),
        ("*.py", ["main.py"]),
        ("src/**", ["src/deep/er/tool.py", "src/tool.py", "src/tool.pyc"]),
        ("src/*/*/*", ["src/deep/er/tool.py"]),
        ("**/deep/**/*.py", ["src/deep/er/tool.py"]),
        ("**/tool.py[c]", ["src/tool.pyc"]),
        ("./m???.py", ["main.py"]),
        ("src", []),
    ],
)
def test_a_pattern_chooses_files(pattern, found, tree):
    """
    Stars stand for characters of one name, two for any folders; hidden folders, and names of several lines,
    are left out.
    """
    assert files(pattern)() == found


def test_a_repository_has_what_git_does_not_ignore(repository):
    """
    Committed or not, in order.
    """
    assert files("**")() == [".gitignore", "main.py", "notes.txt", "src/tool.py"]


def test_a_folder_of_a_repository_has_its_own_files(repository, monkeypatch):
    """
    Their paths begin there.
    """
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(repository / "src"))

    assert files("**/*.py")() == ["tool.py"]


def test_no_program_of_a_repository_runs(repository):
    """
    Its configuration may name one that git asks for changed files.
    """
    program = repository.parent / "monitor"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))

    assert "main.py" in files("**")()
    assert not repository.joinpath("ran").exists()


def test_without_git_folders_are_walked(repository, monkeypatch):
    """
    Then nothing is ignored but hidden folders.
    """
    monkeypatch.setenv("PATH", os.devnull)

    assert files("**/*.py*")() == ["main.py", "src/deep/er/tool.py", "src/tool.py", "src/tool.pyc"]


def test_it_completes_an_argument(tree):
    """
    It has the form that `Arg` takes: what was typed is looked for in the paths.
    """
    completer = Completer(Arg(complete=files("**/*.py")).complete)

    assert completer.complete("tool").values == ("src/deep/er/tool.py", "src/tool.py")


def test_without_a_workspace_there_are_none(monkeypatch):
    """
    Who completes is told why.
    """
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")

    with pytest.raises(PromptError, match="this server has no workspace"):
        files("*")()


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../b"])
def test_a_pattern_stays_in_the_workspace(pattern):
    """
    Others are the author's mistake.
    """
    with pytest.raises(ValueError, match="write it as seen from the workspace"):
        files(pattern)
