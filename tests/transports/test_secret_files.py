"""Files of secrets: whose they may be, and where."""

import os
import sys

import pytest

from promptkit.transports.secret_files import InvalidSecrets, read_secret_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are of POSIX")
as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files away"
)

STRANGER = 1234


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file in a folder of its own, both their owner's alone."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    path = folder / "secrets"
    path.write_text("secret")
    path.chmod(0o600)
    return path


def refusal(path):
    """Why a file is refused."""
    with pytest.raises(InvalidSecrets) as refused:
        read_secret_file(str(path), "keys", str)
    return str(refused.value)


@as_root
def test_a_file_of_another_user(file, monkeypatch):
    """
    Its owner could have chosen what it holds. By `sudo`, the one who calls it is no other.
    """
    os.chown(file, STRANGER, 0)

    assert refusal(file) == f"{file}: it belongs to another user (1234): make new keys in a file of your own"
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert read_secret_file(str(file), "keys", str) == "secret"


@as_root
def test_a_file_in_the_folder_of_another_user(file):
    """
    Its owner could put any of our files in its place.
    """
    os.chown(file.parent, STRANGER, 0)

    assert refusal(file) == (
        f"{file}: others can replace it, as they can change {file.parent}: "
        "make new keys in a folder that only you can change"
    )


@pytest.mark.parametrize("mode", [0o757, 0o777, 0o703])
def test_a_folder_that_everybody_can_change(file, mode):
    """
    There, everybody could replace it.
    """
    file.parent.chmod(mode)

    assert f"others can replace it, as they can change {file.parent}: " in refusal(file)


@as_root
def test_a_folder_that_a_group_can_change(file):
    """
    That is a fault if the group has other members, and it is none if it is its owner's own.
    """
    file.parent.chmod(0o770)

    assert read_secret_file(str(file), "keys", str) == "secret"
    os.chown(file.parent, 0, STRANGER)
    assert f"others can replace it, as they can change {file.parent}: " in refusal(file)


def test_a_folder_of_everybody_in_which_files_stay_their_owners(file):
    """
    As /tmp is, and what Kubernetes mounts.
    """
    file.parent.chmod(0o1777)

    assert read_secret_file(str(file), "keys", str) == "secret"


@pytest.mark.parametrize("open_folder", ["folder", "elsewhere"])
def test_a_link(file, open_folder):
    """
    Neither it nor what it leads to may be for others to replace. Kubernetes mounts such links.
    """
    link = file.parents[1] / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(file)

    assert read_secret_file(str(link), "keys", str) == "secret"
    folder = file.parents[1] / open_folder
    folder.chmod(0o777)
    assert f"others can replace it, as they can change {folder}: " in refusal(link)


@pytest.mark.parametrize(
    ("kind", "said"), [("pipe", "it is no regular file"), ("device", "it is no regular file")]
)
def test_what_is_no_file(file, kind, said):
    """
    It is refused at once, and nobody waits for what may never come, or never end.
    """
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file, 0o600)
    else:
        file.symlink_to("/dev/zero")

    assert refusal(file) == f"{file}: cannot be read: {said}"
