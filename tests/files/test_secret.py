import os

import pytest

from promptkit.files.edits import write_new_secret


def test_only_the_owner_can_access_a_secret(tmp_path):
    """Only the owner can access a new secret and the folder created for it."""
    file = tmp_path / "folder" / "key"
    write_new_secret(file, b"secret")

    assert file.read_bytes() == b"secret"
    assert [entry.name for entry in file.parent.iterdir()] == ["key"]
    if os.name == "posix":
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_file_that_exists_stays(tmp_path):
    """An existing secret is kept, and nothing else remains."""
    (tmp_path / "key").write_bytes(b"first")
    write_new_secret(tmp_path / "key", b"second")

    assert (tmp_path / "key").read_bytes() == b"first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]


@pytest.mark.skipif(os.name != "posix", reason="links need privileges")
def test_dangling_link_is_kept(tmp_path):
    """The target of a dangling link is not created."""
    (tmp_path / "key").symlink_to(tmp_path / "other")
    write_new_secret(tmp_path / "key", b"secret")

    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]
