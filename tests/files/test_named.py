import os
import re
import subprocess
import sys
import threading

import pytest

from promptkit.files.reading import TooLargeError, read_named_file

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")


def test_a_file_and_its_limit(tmp_path):
    """A file up to the limit is read; the error for a larger file has its size."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10)

    assert read_named_file(file, 10) == b"x" * 10
    with pytest.raises(TooLargeError, match="it is larger than 9 bytes") as caught:
        read_named_file(file, 9)
    assert (caught.value.size, caught.value.filename) == (10, str(file))


@posix
def test_an_endless_device_is_read_up_to_the_limit():
    """An endless device is read up to the limit."""
    with pytest.raises(TooLargeError, match="it is larger than 9 bytes"):
        read_named_file("/dev/zero", 9)
    assert read_named_file(os.devnull, 9) == b""


@posix
@pytest.mark.timeout(20)
@pytest.mark.parametrize("pause", [0, 0.2], ids=["quick", "slow"])
def test_a_pipe_with_a_writer_is_read_whole(pause, tmp_path):
    """A pipe with a writer is read to its end, however late the data arrives."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = threading.Event()

    def write():
        with pipe.open("wb", buffering=0) as file:
            file.write(b"first ") if not pause else done.wait(pause)
            file.write(b"last")

    thread = threading.Thread(target=write)
    thread.start()
    data = read_named_file(pipe, 100)
    thread.join()

    assert data == (b"last" if pause else b"first last")


@posix
@pytest.mark.parametrize("words", ["printf text", "true", "sleep 0.1; printf text"])
def test_process_substitution(words):
    """The pipe of process substitution can be read."""
    script = (
        "import sys; from promptkit.files import reading; print(reading.read_named_file(sys.argv[1], 99))"
    )
    shell = ["bash", "-c", f'exec "$0" -c "$1" <({words})', sys.executable, script]

    printed = subprocess.run(shell, capture_output=True, text=True, check=True).stdout

    assert printed == f"{b'text' if 'text' in words else b''!r}\n"


@posix
def test_a_socket_is_rejected(tmp_path):
    """A socket is rejected."""
    import socket

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match=re.escape(str(tmp_path / "socket"))):
            read_named_file(tmp_path / "socket", 10)
