"""Fixtures shared by the workspace tests."""

import os
import select
import shlex
import sys
from contextlib import suppress

import pytest


class Witness:
    """
    A named pipe that records what a command does and when all of its processes have ended.

    Args:
        path:
            Where the pipe is created.
    """

    def __init__(self, path):
        os.mkfifo(path)
        self.reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        #: The start of a shell script: from then on, the shell and its child processes hold the pipe open.
        self.begin = f"exec 3>{shlex.quote(str(path))}; echo begun >&3;"

    def _wait(self):
        assert select.select([self.reading], [], [], 30)[0], "nothing happens"

    def begun(self):
        """Wait until the script has started."""
        self._wait()
        assert os.read(self.reading, 6) == b"begun\n"

    def all_gone(self):
        """Wait until no process holds the pipe; return the bytes written to it since."""
        said = b""
        while True:
            self._wait()
            with suppress(BlockingIOError):
                if not (data := os.read(self.reading, 4096)):
                    return said
                said += data


@pytest.fixture
def witness(tmp_path):
    """A witness of one command."""
    if sys.platform == "win32":
        pytest.skip("there are no named pipes, and no process groups")
    made = Witness(tmp_path / "witness")
    yield made
    os.close(made.reading)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The workspace folder."""
    path = tmp_path / "workspace"
    path.mkdir()
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(path))
    return path
