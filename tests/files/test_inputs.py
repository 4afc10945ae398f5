import os
import socket
import threading
from pathlib import Path

import pytest

from promptkit.files.reading import open_input, open_regular_file

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="Windows has no such files"),
    pytest.mark.timeout(20),
]

both = pytest.mark.parametrize("function", [open_input, open_regular_file])


@both
def test_a_regular_file_and_a_link_to_one_are_opened(function, tmp_path):
    """A link to a regular file is followed, because the user named it."""
    (tmp_path / "a").write_bytes(b"data")
    (tmp_path / "link").symlink_to("a")

    for name in ("a", "link"):
        with function(tmp_path / name) as file:
            assert file.read() == b"data"


@both
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "link to a pipe", "link to a device", "folder"])
def test_everything_else_is_rejected_without_waiting(function, kind, tmp_path):
    """Pipes, sockets, devices, folders, and links to them are rejected without waiting."""
    path = tmp_path / "it"
    if kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))
    elif "pipe" in kind:
        os.mkfifo(tmp_path / "pipe")
        path = tmp_path / "pipe" if kind == "pipe" else path
        if kind == "link to a pipe":
            path.symlink_to("pipe")
    elif "link" in kind:
        path.symlink_to("/dev/zero")
    else:
        path = "/dev/zero"

    with pytest.raises(OSError, match=r"regular file|directory"):
        function(path)


class TestPipesOfAShell:
    @pytest.fixture
    def pipe(self):
        """The reading end of a pipe that contains a line."""
        reader, writer = os.pipe()
        os.write(writer, b"rows\n")
        closing = threading.Timer(0, os.close, (writer,))
        closing.start()
        yield reader
        closing.join()
        os.close(reader)

    @pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
    def test_process_substitution_is_read(self, folder, pipe):
        """The pipe of process substitution, `<(command)`, can be read by its descriptor's path."""
        if not Path(folder).exists():
            pytest.skip("this system has no such folder")

        with open_input(f"{folder}/{pipe}") as file:
            assert file.read() == b"rows\n"

    def test_a_link_to_such_a_pipe_is_rejected(self, pipe, tmp_path):
        """A link to such a pipe is rejected, so that a repository's file cannot read standard input."""
        (tmp_path / "rows.csv").symlink_to(f"/dev/fd/{pipe}")

        with pytest.raises(OSError, match="not a regular file; for a pipe, pass -"):
            open_input(tmp_path / "rows.csv")
