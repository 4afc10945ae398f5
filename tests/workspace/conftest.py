"""Fixtures shared by the workspace tests."""

import os
import select
import shlex
import sys
from contextlib import suppress

import pytest


class Witness:
    """
    A named pipe that records what a command does and when all of its processes have exited.

    Args:
        path:
            Where the pipe is created.
    """

    def __init__(self, path):
        os.mkfifo(path)
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        #: The start of a shell script: from then on, the shell and its child processes hold the pipe open.
        self.prefix = f"exec 3>{shlex.quote(str(path))}; echo started >&3;"

    def _wait_for_data(self):
        assert select.select([self.descriptor], [], [], 30)[0], "nothing happens"

    def wait_for_start(self):
        """Wait until the script has started."""
        self._wait_for_data()
        assert os.read(self.descriptor, 8) == b"started\n"

    def wait_for_end(self):
        """Wait until no process holds the pipe; return the bytes written to it since."""
        output = b""
        while True:
            self._wait_for_data()
            with suppress(BlockingIOError):
                if not (data := os.read(self.descriptor, 4096)):
                    return output
                output += data


@pytest.fixture
def witness(tmp_path):
    """A witness of one command."""
    if sys.platform == "win32":
        pytest.skip("there are no named pipes, and no process groups")
    pipe = Witness(tmp_path / "witness")
    yield pipe
    os.close(pipe.descriptor)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The workspace folder."""
    path = tmp_path / "workspace"
    path.mkdir()
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(path))
    return path
