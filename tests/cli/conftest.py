"""Commands that run in this process, with their output in memory or on an imitated terminal."""

import json
import os
import sys
from contextlib import chdir
from io import BytesIO, StringIO, TextIOWrapper

import msgspec
import pytest

from promptkit.cli import diff_sides, main
from tests.conftest import forgetting_modules
from tests.forked import fork_server
from tests.terminal import command, environment


class Terminal(StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        """Return True."""
        return True


def exit_code_of(argv):
    """Run a command and return its exit code."""
    try:
        return main(argv)
    except SystemExit as end:
        return end.code


@pytest.fixture
def run(capsys, monkeypatch):
    """
    A function that runs a command and returns the exit code, standard output and standard error.

    The function also takes the working directory and the standard input of the command.
    """

    def call(*argv, cwd=None, stdin=b""):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin)))
        if cwd is not None:
            monkeypatch.chdir(cwd)
        capsys.readouterr()
        code = exit_code_of(argv)
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """
    A function that runs a command in a forked process, with the same arguments and results as `command`.
    """
    if not hasattr(os, "fork"):
        yield command
        return
    with fork_server(tmp_path_factory.mktemp("forked")) as forked:
        yield forked


@pytest.fixture
def in_process(recipes, monkeypatch):
    """Load both sides of `diff` in this process; other tests verify that each side gets its own process."""

    def ask(folder, request, moved, _environment=None):
        with chdir(folder), forgetting_modules(folder):
            answer = msgspec.to_builtins(diff_sides._answer_request(*request))
        text = json.dumps(answer).replace(str(moved[0]), str(moved[1]))
        return msgspec.convert(json.loads(text), diff_sides.Answer)

    monkeypatch.setattr(diff_sides, "ask", ask)


@pytest.fixture
def run_on_terminal(monkeypatch):
    """
    A function that runs a command with one stream on a terminal, and returns the exit code and its text.
    """

    def call(*argv, stream="stdout", columns=80, **variables):
        with monkeypatch.context() as patched:
            for name in os.environ.keys() - environment().keys():
                patched.delenv(name)
            for name, value in {"TERM": "xterm-256color", "COLUMNS": str(columns), **variables}.items():
                patched.setenv(name, value)
            patched.setattr(sys, stream, terminal := Terminal())
            code = exit_code_of(argv)
        return code, terminal.getvalue()

    return call
