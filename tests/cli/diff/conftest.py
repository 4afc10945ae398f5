"""Fixtures for the tests of `promptkit diff`: a repository, and the command in this process."""

import shutil

import pytest

from promptkit.cli import main
from tests.cli.diff.repositories import BEFORE, GIT, commit, git


@pytest.fixture(scope="session")
def committed(tmp_path_factory):
    """A repository with one commit, to copy."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    folder = tmp_path_factory.mktemp("committed")
    (folder / "recipes").mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    commit(folder, BEFORE)
    return folder


@pytest.fixture
def repository(committed, tmp_path, monkeypatch):
    """A repository with one commit, in a folder with a space in its name, as the current folder."""
    folder = shutil.copytree(committed, tmp_path / "my project")
    monkeypatch.chdir(folder)
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def diff(capfd):
    """A function that runs `promptkit diff`, and returns its exit code, standard output and error."""

    def run(*arguments):
        code = main(["diff", *arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run
