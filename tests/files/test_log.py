import os

import pytest

from promptkit.files.edits import open_log

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")


def test_lines_are_appended(tmp_path):
    """Lines are appended, and only the owner can read a new log."""
    for line in (b"one\n", b"two\n"):
        descriptor = open_log(tmp_path / "log")
        os.write(descriptor, line)
        os.close(descriptor)

    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    if os.name == "posix":
        assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.timeout(10)
def test_a_pipe_that_no_process_reads(tmp_path):
    """A pipe without a reader is rejected without waiting."""
    os.mkfifo(tmp_path / "log")

    with pytest.raises(OSError, match="No such device or address"):
        open_log(tmp_path / "log")
