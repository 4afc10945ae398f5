import os

import pytest

from promptkit.files.writing import open_log

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")


def test_lines_are_appended(tmp_path):
    """
    A new file is its owner's alone.
    """
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
    """
    It is refused, not waited for.
    """
    os.mkfifo(tmp_path / "log")

    with pytest.raises(OSError, match="No such device or address"):
        open_log(tmp_path / "log")
