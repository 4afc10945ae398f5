"""Fixtures for the tests of `promptkit diff`: a repository, and the command in this process."""

import json
import shutil
import sys
from contextlib import chdir

import msgspec
import pytest

from promptkit.cli import diff_sides, main
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
def in_process(recipes, monkeypatch):
    """Load both sides in this process. That each side has a process is the claim of other tests."""

    def ask(folder, request, moved, _environment=None):
        modules = dict(sys.modules)
        with chdir(folder):
            answer = msgspec.to_builtins(diff_sides._answer(*request))
        for name in [name for name in list(sys.modules) if name not in modules]:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
        text = json.dumps(answer).replace(str(moved[0]), str(moved[1]))
        return msgspec.convert(json.loads(text), diff_sides.Answer)

    monkeypatch.setattr(diff_sides, "ask", ask)


@pytest.fixture
def diff(capfd):
    """A function that runs `promptkit diff`, and returns its exit code, standard output and error."""

    def run(*arguments):
        code = main(["diff", *arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run
