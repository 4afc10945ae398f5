"""What tests of commands share."""

import os
import select
import shlex
import sys
from contextlib import suppress

import pytest


class Witness:
    """
    A pipe with a name, which tells what a command does, and when all that it has started is gone.

    Args:
        path:
            Where the pipe is made.
    """

    def __init__(self, path):
        os.mkfifo(path)
        self.reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        #: What a shell script begins with: from then on it, and all that it starts, holds the pipe open.
        self.begin = f"exec 3>{shlex.quote(str(path))}; echo begun >&3;"

    def _wait(self):
        assert select.select([self.reading], [], [], 30)[0], "nothing happens"

    def begun(self):
        """Wait until the script has begun."""
        self._wait()
        assert os.read(self.reading, 6) == b"begun\n"

    def all_gone(self):
        """Wait until nobody holds the pipe any more; return what was written into it meanwhile."""
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
    """A folder that is the workspace."""
    path = tmp_path / "workspace"
    path.mkdir()
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(path))
    return path
