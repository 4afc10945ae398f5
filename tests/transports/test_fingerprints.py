"""The digests of the files that recipes were made from."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.digests import digest
from promptkit.transports.startup_cache.fingerprints import ABSENT, MAX_READ_BYTES, file_digest


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("files") / "file"


@given(st.binary(max_size=100), st.integers(1, 40))
def test_a_file_is_read_to_its_end(file, content, most):
    """
    A read may return less than it was asked for.
    """
    file.write_bytes(content)
    read = os.read
    with patch("os.read", lambda descriptor, count: read(descriptor, min(count, most))):
        assert file_digest(str(file)) == digest(content)


@given(st.binary(min_size=1, max_size=100), st.binary(max_size=100))
def test_a_file_that_is_being_written_is_read_as_it_is(file, before, more):
    """
    Its size was another one when it was opened.
    """
    file.write_bytes(before)
    fstat = os.fstat

    def written_after(descriptor):
        found = fstat(descriptor)
        with file.open("ab") as end:
            end.write(more)
        return found

    with patch("os.fstat", written_after):
        assert file_digest(str(file)) == digest(before + more)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_large_file_is_not_read(file, more):
    """
    Nor is one that turns out to be large only as it is read.
    """
    content = bytes(MAX_READ_BYTES + more)
    file.write_bytes(content)
    read = file_digest(str(file))
    small = Path(__file__).stat()
    with patch("os.fstat", lambda _: small):
        assert file_digest(str(file)) == read
    assert read == (None if more > 0 else digest(content))


@pytest.mark.parametrize("path", [Path("/proc/version"), Path("/proc/sys/kernel/pid_max")], ids=str)
def test_files_without_a_size_are_read(path):
    """
    The system makes up what they hold as they are read, and of some it tells only the first read.
    """
    if not path.exists():
        pytest.skip("this system has no such file")
    assert file_digest(str(path)) == digest(path.read_bytes())


def test_what_is_no_file_has_no_digest(tmp_path):
    """
    What does not exist is told from what cannot be compared. Nobody waits for who writes a named pipe.
    """
    (tmp_path / "file").touch()
    pipe = tmp_path / "pipe"
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
    else:
        pipe.mkdir()

    assert file_digest(str(tmp_path / "missing")) == ABSENT
    assert file_digest(str(tmp_path / "file" / "missing")) == ABSENT
    assert file_digest(str(tmp_path)) is None
    assert file_digest(str(pipe)) is None
