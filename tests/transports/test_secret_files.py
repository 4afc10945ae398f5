"""Files of secrets: whose they may be, and where."""

import os
import shlex
import subprocess
import sys
from threading import Event, Thread

import pytest

from promptkit.transports.secret_files import InvalidSecretsError, SecretFile, read_secret_file

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
    with pytest.raises(InvalidSecretsError) as refused:
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
    ("kind", "said"), [("pipe", "it is not a regular file"), ("device", "it is not a regular file")]
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


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o666, 0o660])
def test_the_remedy_is_enough(file, mode):
    """
    One command makes it a file that is taken, and its group may still read it, as a server does for root.
    """
    file.chmod(mode)
    hint = refusal(file).rpartition(", and ")[2]

    subprocess.run(shlex.split(hint), check=True)

    assert read_secret_file(str(file), "keys", str) == "secret"
    assert oct(file.stat().st_mode & 0o777) == oct(0o640)


class TestReadingAgain:
    @pytest.fixture
    def held(self, file):
        """The file, and a clock that the test moves on."""
        self.now = 0.0
        return SecretFile(str(file), "keys", read_words, "the old ones hold", lambda: self.now)

    def test_at_first_it_has_to_be_there(self, file):
        """
        There are no secrets to go on with.
        """
        with pytest.raises(InvalidSecretsError, match="cannot be read: No such file or directory"):
            SecretFile(f"{file}x", "keys", str, "the old ones hold")

    def test_a_second_later(self, file, held):
        """
        What it holds then counts, and no request of the same second reads it.
        """
        assert held.current() == "secret"
        file.write_text("other")
        self.now += 0.99
        assert held.current() == "secret"
        self.now += 0.01
        assert held.current() == "other"
        file.write_text("third")
        assert held.current() == "other"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("bad", "this is no secret"),
            ("open", "every user can read it (mode 0644): make new keys, and chmod g-w,o-rwx {file}"),
            (None, "cannot be read: No such file or directory"),
        ],
    )
    def test_a_fault_changes_nothing(self, file, held, capfd, text, said):
        """
        It is said once, and another one too, until it is mended, which is said, too.
        """
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
            file.chmod(0o644 if text == "open" else 0o600)
        for _ in range(3):
            self.now += 1
            assert held.current() == "secret"
        assert (capfd.readouterr().err, held.stale_for) == (
            f"promptkit: {file}: {said.format(file=file)}; the old ones hold\n",
            3,
        )
        file.unlink(missing_ok=True)
        file.mkdir()
        self.now += 1
        assert held.current() == "secret"
        assert capfd.readouterr().err == (
            f"promptkit: {file}: cannot be read: Is a directory; the old ones hold\n"
        )
        file.rmdir()
        file.touch(mode=0o600)
        file.write_text("mended")
        self.now += 1
        said = f"promptkit: {file}: this is fixed: all keys in it count\n"
        assert (held.current(), held.stale_for, capfd.readouterr().err) == ("mended", 0, said)
        self.now += 1
        assert (held.current(), capfd.readouterr().err) == ("mended", "")

    def test_one_thread_reads(self, file):
        """
        Others go on with what is there while it does.
        """
        reading, may_end = Event(), Event()

        def read(text):
            reading.set()
            may_end.wait(10)
            return text

        may_end.set()
        self.now = 0.0
        held = SecretFile(str(file), "keys", read, "the old ones hold", lambda: self.now)
        reading.clear()
        may_end.clear()
        file.write_text("other")
        self.now += 1
        thread = Thread(target=held.current)
        thread.start()
        assert reading.wait(10)
        self.now += 1

        assert held.current() == "secret"
        may_end.set()
        thread.join()
        assert held.current() == "other"


def read_words(text):
    """The text, if it is no bad word."""
    if text == "bad":
        raise InvalidSecretsError("this is no secret")
    return text
