"""Files with secrets: permissions, owners, and reloading."""

import os
import shlex
import subprocess
import sys

import pytest

from promptkit.transports.secret_files import InvalidSecretsError, SecretFile, read_secret_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes exist on POSIX only")
as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can change owners"
)

OTHER_USER = 1234


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file in a private folder; only the owner has access to both."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    path = folder / "secrets"
    path.write_text("secret")
    path.chmod(0o600)
    return path


def error_of(path):
    """Return the message of the error that the file at *path* causes."""
    with pytest.raises(InvalidSecretsError) as error:
        read_secret_file(str(path), "keys", str)
    return str(error.value)


@as_root
def test_file_of_another_user_is_rejected(file, monkeypatch):
    """
    A file of another user, who could have chosen the secrets, is rejected, unless that user has called
    `sudo`.
    """
    os.chown(file, OTHER_USER, 0)

    assert (
        error_of(file)
        == f"{file}: it belongs to another user (1234): generate new keys in a file of your own"
    )
    monkeypatch.setenv("SUDO_UID", str(OTHER_USER))
    assert read_secret_file(str(file), "keys", str) == "secret"


@as_root
def test_file_in_the_folder_of_another_user_is_rejected(file):
    """A file in the folder of another user is rejected, because that user could replace the file."""
    os.chown(file.parent, OTHER_USER, 0)

    assert error_of(file) == (
        f"{file}: other users can replace it, because they can change {file.parent}: "
        "generate new keys in a folder that only you can change"
    )


@pytest.mark.parametrize("mode", [0o757, 0o777, 0o703])
def test_world_writable_folder_is_rejected(file, mode):
    """A file in a world-writable folder is rejected, because any user could replace it."""
    file.parent.chmod(mode)

    assert f"other users can replace it, because they can change {file.parent}: " in error_of(file)


@as_root
def test_group_writable_folder(file):
    """
    A group-writable folder is accepted if the group is the owner's own, and rejected if it has other members.
    """
    file.parent.chmod(0o770)

    assert read_secret_file(str(file), "keys", str) == "secret"
    os.chown(file.parent, 0, OTHER_USER)
    assert f"other users can replace it, because they can change {file.parent}: " in error_of(file)


def test_sticky_folder_is_accepted(file):
    """A file in a sticky folder is accepted: `/tmp` and Kubernetes volumes are sticky."""
    file.parent.chmod(0o1777)

    assert read_secret_file(str(file), "keys", str) == "secret"


@pytest.mark.parametrize("open_folder", ["folder", "elsewhere"])
def test_symbolic_link(file, open_folder):
    """Others must not be able to replace the link or its target. Kubernetes mounts such links."""
    link = file.parents[1] / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(file)

    assert read_secret_file(str(link), "keys", str) == "secret"
    folder = file.parents[1] / open_folder
    folder.chmod(0o777)
    assert f"other users can replace it, because they can change {folder}: " in error_of(link)


@pytest.mark.parametrize(
    ("kind", "expected"), [("pipe", "it is not a regular file"), ("device", "it is not a regular file")]
)
def test_irregular_file_is_rejected(file, kind, expected):
    """A pipe or device is rejected without reading from it, which could block or never end."""
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file, 0o600)
    else:
        file.symlink_to("/dev/zero")

    assert error_of(file) == f"{file}: the file cannot be read: {expected}"


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o666, 0o660])
def test_hint_fixes_the_permissions(file, mode):
    """After the command of the hint, the file is accepted, and its group can still read it."""
    file.chmod(mode)
    hint = error_of(file).rpartition(", and run: ")[2]

    subprocess.run(shlex.split(hint), check=True)

    assert read_secret_file(str(file), "keys", str) == "secret"
    assert oct(file.stat().st_mode & 0o777) == oct(0o640)


class TestReloading:
    @pytest.fixture
    def secret(self, file):
        """The file, with a clock that the test advances."""
        self.now = 0.0
        return SecretFile(str(file), "keys", parse_word, "the old ones hold", lambda: self.now)

    def test_missing_file_is_rejected_at_start(self, file):
        """A missing file is rejected at the start, because there is no cached secret to fall back to."""
        with pytest.raises(InvalidSecretsError, match="cannot be read: No such file or directory"):
            SecretFile(f"{file}x", "keys", str, "the old ones hold")

    def test_file_is_reloaded_after_a_second(self, file, secret):
        """Requests within the same second use the cached secret."""
        assert secret.current() == "secret"
        file.write_text("other")
        self.now += 0.99
        assert secret.current() == "secret"
        self.now += 0.01
        assert secret.current() == "other"
        file.write_text("third")
        assert secret.current() == "other"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("bad", "this is not a secret"),
            (
                "open",
                "every user can read it (mode 0644): generate new keys, and run: chmod g-w,o-rwx {file}",
            ),
            (None, "the file cannot be read: No such file or directory"),
        ],
    )
    def test_invalid_change_keeps_the_old_secret(self, file, secret, capfd, text, expected):
        """After an invalid change, the old secret is used. Each problem and its fix are reported once."""
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
            file.chmod(0o644 if text == "open" else 0o600)
        for _ in range(3):
            self.now += 1
            assert secret.current() == "secret"
        assert (capfd.readouterr().err, secret.stale_for) == (
            f"promptkit: {file}: {expected.format(file=file)}; the old ones hold\n",
            3,
        )
        file.unlink(missing_ok=True)
        file.mkdir()
        self.now += 1
        assert secret.current() == "secret"
        assert capfd.readouterr().err == (
            f"promptkit: {file}: the file cannot be read: Is a directory; the old ones hold\n"
        )
        file.rmdir()
        file.touch(mode=0o600)
        file.write_text("fixed")
        self.now += 1
        expected = f"promptkit: {file}: fixed: all keys in it are in use\n"
        assert (secret.current(), secret.stale_for, capfd.readouterr().err) == ("fixed", 0, expected)
        self.now += 1
        assert (secret.current(), capfd.readouterr().err) == ("fixed", "")


def parse_word(text):
    """Return *text*, or raise an error for a bad word."""
    if text == "bad":
        raise InvalidSecretsError("this is not a secret")
    return text
